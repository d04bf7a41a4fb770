"""Entry points of other packages: found by name alone, and every mistake said in one sentence."""

from __future__ import annotations

import configparser
import math
import pickle
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from radii import attacks, datasets, plugins, problem, strategy, verifiers
from radii.attacks import FoolboxAttack, MinimumNorm, Pgd
from radii.cli import COMMANDS, main
from radii.errors import ExperimentError, InputError, SpecificationError
from radii.plugins import PluginGroup
from radii.problem import REAL, Query, Verdict
from radii.runs import Settings
from radii.testing import NetworkFamily, random_instance, random_network
from radii.testing import plugins as plugin_statuses
from radii.verifiers import BranchAndBound, Enumeration, Milp, Portfolio

pytestmark = pytest.mark.usefixtures("example_package")


def test_what_pip_writes_is_what_the_package_declares(example_package: Path) -> None:
    declared = tomllib.loads((example_package / "pyproject.toml").read_text())["project"][
        "entry-points"
    ]
    installed = configparser.ConfigParser(delimiters="=")
    installed.optionxform = str  # type: ignore[assignment,method-assign]
    installed.read(example_package / "radii_example-0.1.dist-info" / "entry_points.txt")
    assert {group: dict(installed[group]) for group in installed.sections()} == declared
    assert set(declared) == set(PluginGroup)


def test_names_find_them_beside_radiis_own() -> None:
    assert verifiers.get("bounds-alone").version == "0.1"
    assert verifiers.verifier_names()[-1] == "bounds-alone"
    assert attacks.attack_names()[-1] == "random-corners"
    assert strategy.get("thirds").name == strategy.search_names()[-1] == "thirds"
    assert problem.parse_property("among-top:k=3").spec == "among-top:k=3"
    assert datasets.load_spec("blobs:train[0:4]").labels.tolist() == [0, 1, 2, 0]
    assert "blobs" in datasets.dataset_names()


def test_options_are_keyword_arguments() -> None:
    verifier = verifiers.get("bounds-alone", margin=0.5, arithmetic=REAL)
    assert (verifier.spec, verifier.arithmetic) == ("bounds-alone:margin=0.5", REAL)
    again = verifiers.get(verifier.spec)
    assert vars(again)["margin"] == 0.5
    for name in ("bounds-alone", "bounds-alone:margin=1e-3"):
        with pytest.raises(SpecificationError, match=r"bounds-alone.*' has no option 'tool'"):
            verifiers.get(name, tool="x")
    race = verifiers.get("portfolio:native,bounds-alone", margin=0.5)
    assert race.spec == "portfolio:native,bounds-alone:margin=0.5"


@pytest.mark.parametrize(
    ("made", "spec"),
    [
        (BranchAndBound(), "native"),
        (BranchAndBound(device="cuda", arithmetic=REAL), "native:device=cuda"),
        (Milp(threads=2, branches=0), "milp:threads=2,branches=0"),
        (Enumeration(max_units=20), "enumeration"),
        (Portfolio([BranchAndBound(), Milp()]), "portfolio:native,milp"),
        (MinimumNorm(), "minimum-norm"),
        (Pgd(steps=100, restarts=5), "pgd:steps=100,restarts=5"),
        (FoolboxAttack("LinfPGD", steps=3), "foolbox:LinfPGD:steps=3"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_spec_tells_instances_apart_and_is_read_back(made: plugins.Plugin, spec: str) -> None:
    assert made.spec == spec
    assert pickle.loads(pickle.dumps(made)).spec == spec
    registry = attacks if isinstance(made, attacks.Attack) else verifiers
    assert registry.get(spec).spec == spec


def test_options_without_a_text_are_told_apart_as_well() -> None:
    stages = MinimumNorm().stages
    first, second = MinimumNorm(stages=stages[:1]), MinimumNorm(stages=stages[1:])
    assert len({first.spec, second.spec, MinimumNorm().spec}) == 3
    assert first.spec == MinimumNorm(stages=stages[:1]).spec
    with pytest.raises(SpecificationError, match="made in Python"):
        attacks.get(first.spec)


def test_a_text_is_no_number() -> None:
    """Both would be read back as the number."""

    class Named(Enumeration):
        def __init__(self, kind: object = "") -> None:
            super().__init__()

    kinds = ("1", 1, "None", None, "a", " a", 1.5, "1.5")
    assert len({Named(kind).spec for kind in kinds}) == len(kinds)
    assert Named("a").spec == "enumeration:kind=a"


@pytest.mark.parametrize("margin", [math.nan, math.inf])
def test_a_margin_that_is_not_finite_is_no_proof(margin: float) -> None:
    class Careless(verifiers.Verifier):
        name = "careless"
        version = "1"

        def run(self, *_: object) -> verifiers.Answer:
            return verifiers.Answer(Verdict.ROBUST, margin=margin)

    network = random_network(NetworkFamily.DENSE, 0)
    result = Careless().verify(network, Query(random_instance(network, 0), 0.01))
    assert result.verdict is Verdict.UNKNOWN and result.proof is None


@pytest.mark.parametrize(("lower", "margin"), [(0.01, math.nan), (0.01, math.inf), (math.nan, 0.0)])
def test_a_radius_that_is_not_finite_is_no_proof(lower: float, margin: float) -> None:
    class Careless(verifiers.GridVerifier, verifiers.RadiusVerifier):
        name = "careless"
        version = "1"

        def run(self, *_: object) -> verifiers.Answer:
            return verifiers.Answer(Verdict.UNKNOWN)

        def climb(self, *_: object) -> verifiers.RadiusAnswer:
            return verifiers.RadiusAnswer(lower, margin=margin)

        def measure(self, *_: object) -> verifiers.RadiusAnswer:
            return verifiers.RadiusAnswer(lower, margin=margin)

    network = random_network(NetworkFamily.DENSE, 0)
    instance = random_instance(network, 0)
    result = Careless().certify(network, instance, [0.01])
    assert result.verdict is Verdict.UNKNOWN and result.proof is None
    assert Careless().radius(network, instance).lower == 0


@pytest.mark.parametrize("chosen", [BranchAndBound, Enumeration])
def test_an_instance_does_not_pass_for_radiis_own(chosen: type[verifiers.Verifier]) -> None:
    """On resume, its answers would be taken for theirs."""
    mine = type("Mine", (chosen,), {})
    Settings(verifier=chosen())
    with pytest.raises(ExperimentError, match=f"is called '{chosen.name}', as radii's own is"):
        Settings(verifier=mine())


@pytest.mark.parametrize(
    "spec", ["pgd:steps", "pgd:steps=1,steps=2", "pgd:speed=3", "pgd:steps=0", "milp:3=4"]
)
def test_bad_options_are_named(spec: str) -> None:
    registry = verifiers if spec.startswith("milp") else attacks
    with pytest.raises(SpecificationError, match=spec.partition(":")[0]):
        registry.get(spec)


def declare(folder: Path, points: str, code: str = "") -> None:
    """Another package, called `other`."""
    (folder / "other.py").write_text(code)
    about = folder / "other-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(points)
    sys.modules.pop("other", None)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("import nowhere", "verifier 'mine' of package 'other' cannot be loaded: No module named"),
        ("raise ValueError('two\\nlines')", "cannot be loaded: two lines"),
        ("", "cannot be loaded: module 'other' has no attribute 'Mine'"),
        ("Mine = 3", "must be a subclass of radii's Verifier, not 3"),
        ("from radii.attacks import Pgd as Mine", "must be a subclass of radii's Verifier"),
        ("from radii.verifiers import Milp as Mine", "calls itself 'milp'"),
        ("from radii.verifiers import Verifier as Mine", "does not define run, version"),
    ],
)
def test_plugins_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, sentence: str
) -> None:
    declare(tmp_path, "[radii.verifiers]\nmine = other:Mine\n", code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError) as raised:
        verifiers.get("mine")
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)
    (problem,) = (status.problem for status in plugin_statuses() if status.name == "mine")
    assert sentence in problem


def test_radiis_own_names_are_never_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = "[radii.verifiers]\nnative = other:Mine\n[radii.properties]\none-to-one = other:Mine\n"
    declare(tmp_path, points, "raise RuntimeError('it was loaded')")
    monkeypatch.syspath_prepend(tmp_path)
    assert isinstance(verifiers.get("native"), BranchAndBound)
    assert problem.parse_property("one-to-one:3").target == 3
    assert verifiers.verifier_names().count("native") == 1
    hidden = [status for status in plugin_statuses() if "of its own" in status.problem]
    assert {status.name for status in hidden} == {"native", "one-to-one"}


def test_two_packages_with_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(tmp_path, "[radii.attacks]\nrandom-corners = other:Mine\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SpecificationError, match="several packages, other and radii-example"):
        attacks.get("random-corners")


def test_a_data_set_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = "[radii.datasets]\nnumbers = other:NUMBERS\nlists = other:lists\n"
    declare(tmp_path, points, "NUMBERS = [1, 2]\ndef lists(split): return [[1], [2]]\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=r"data set 'numbers' .* must be a function of the split"):
        datasets.load_spec("numbers[0:3]")
    with pytest.raises(InputError, match="gives list, not a radii Dataset"):
        datasets.load("lists")
    with pytest.raises(InputError, match=r"blobs.* has splits train and test, not 'all'"):
        datasets.load_spec("blobs:all")
    with pytest.raises(InputError, match=r"neither a data set .*blobs"):
        datasets.load_spec("spirals:test")


def test_a_command_is_listed_and_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    _, _, added = capsys.readouterr().out.partition("added:\n")
    assert "  farthest    of the package radii-example\n" in added
    with pytest.raises(SystemExit, match="0"):
        main(["farthest", "--help"])
    assert "largest proven radii" in capsys.readouterr().out
    assert main(["farthest", str(tmp_path / "nowhere")]) == 2


def test_commands_that_cannot_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(tmp_path, "[radii.commands]\nshow = other\nbare = other\n", "EPILOG = ''")
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["bare"]) == 2
    sentence = "command 'bare' of package 'other' does not define DESCRIPTION, add_arguments"
    assert sentence in capsys.readouterr().err
    with pytest.raises(SystemExit, match="0"):
        main(["show", "--help"])
    assert "radii show results" in capsys.readouterr().out
    problems = {status.name: status.problem for status in plugin_statuses(COMMANDS)}
    assert "of its own" in problems["show"] and not problems["farthest"]


def test_radiis_own_names_need_no_look_at_other_packages() -> None:
    """Which would take as long as there are packages installed."""
    code = (
        "import sys; from radii import attacks, problem, strategy, verifiers\n"
        "from importlib import metadata; metadata.entry_points = None\n"
        "verifiers.get('native'); attacks.get('pgd'); strategy.get('binary')\n"
        "problem.parse_property('one-to-one:3'); problem.parse_family('become')\n"
        "problem.parse_family('sr:delta=1')\n"
        "from radii.cli import build_parser; build_parser(only='show')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
