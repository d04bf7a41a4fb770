"""One field declares an option: flag, help, TOML, JSON, identity and limits follow from it."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pytest

import radii
from radii.errors import ExperimentError, InputError
from radii.problem import Domain, Grid, Norm, OneToAny, OneToOne
from radii.runs import (
    COUNT,
    Experiment,
    Settings,
    add_flags,
    given_flags,
    option,
    options_of,
    values_of_file,
)
from radii.strategy import Linear, Native
from radii.verifiers import Milp, Portfolio

DEMO = {"networks": "net.onnx", "data": "digits:test", "domain": "0:1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WithRestarts(Experiment):
    restarts: int | None = option(COUNT, "starts of the attack (its own)", group="how to measure")


def parsed(*flags: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_flags(parser, WithRestarts)
    return parser.parse_args(flags)


def test_a_field_is_a_flag_with_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert given_flags(parsed("--restarts", "5"), WithRestarts) == {"restarts": 5}
    with pytest.raises(SystemExit):
        parsed("--help")
    assert re.search(r"--restarts N +starts of the attack \(its own\)", capsys.readouterr().out)


@pytest.mark.parametrize("text", ["0", "-3", "1.5", "many", ""])
def test_a_flag_has_its_limits(text: str) -> None:
    with pytest.raises(ExperimentError, match=f"--restarts '?{text}'? must be") as raised:
        parsed(f"--restarts={text}")
    assert "\n" not in str(raised.value)


def test_a_field_is_a_line_of_toml(tmp_path: Path) -> None:
    file = tmp_path / "experiment.toml"
    file.write_text("\n".join(f"{name} = '{value}'" for name, value in DEMO.items()))
    assert WithRestarts.from_options(values_of_file(file)).restarts is None
    with file.open("a") as stream:
        stream.write("\nrestarts = 5\n")
    assert WithRestarts.from_options(values_of_file(file)).restarts == 5
    with pytest.raises(ExperimentError, match="option 'restarts' is not one of"):
        Experiment.from_options(values_of_file(file))


@pytest.mark.parametrize(
    ("value", "sentence"),
    [(0, "must be at least 1"), (True, "must be a whole number"), ("5", "must be a whole number")],
)
def test_python_and_toml_have_the_same_limits(value: object, sentence: str) -> None:
    with pytest.raises(ExperimentError, match=f"restarts {value!r} {sentence}"):
        WithRestarts.from_options({**DEMO, "restarts": value})


def test_a_field_is_part_of_the_identity_unless_nobody_gave_it() -> None:
    before = Experiment.from_options(DEMO).to_json()
    without = WithRestarts.from_options(DEMO).to_json()
    given = WithRestarts.from_options({**DEMO, "restarts": 5})
    assert {name: value for name, value in without.items() if value is not None} == {
        name: value for name, value in before.items() if value is not None
    }, "a store from before the field goes on"
    assert given.to_json() == {**without, "restarts": 5}
    again = WithRestarts.from_json({**json.loads(json.dumps(given.to_json())), **DEMO})
    assert again.restarts == 5
    assert again.to_json() == given.to_json()


# --- the record itself


def test_values_are_typed_however_they_are_given() -> None:
    as_text = Settings.from_options({"norm": "L2", "grid": "0.1:0.5:0.1", "property": "one-to-one"})
    as_values = Settings(norm=Norm.L2, grid=Grid("0.1", "0.5", "0.1"), property=OneToOne)
    assert as_text == as_values
    assert isinstance(Settings().property, OneToAny)
    assert as_text.to_json()["property"] == "one-to-one"


def test_instances_are_taken_as_they_are() -> None:
    class Mine(Milp):
        name = "mine"

    settings = Settings(verifier=Mine(), search=Linear).resolved()
    assert isinstance(settings.make_verifier(), Mine)
    assert isinstance(settings.make_search(), Linear)
    stored = settings.to_json()
    assert (stored["verifier"], stored["search"], stored["k"]) == ("mine", "linear", 1)
    with pytest.raises(InputError, match="device 'cpu': give it to the verifier 'mine' itself"):
        Settings(verifier=Mine(), device="cpu").resolved()


def test_what_depends_on_others_is_settled_once() -> None:
    chosen = Settings().resolved()
    assert chosen.search_class() is Native
    assert chosen.resolved() == chosen
    assert Settings.from_json(chosen.to_json()) == chosen
    assert Settings(verifier="milp").resolved().search == "attack-guided"


def test_the_order_of_stored_settings_never_changes() -> None:
    names = (
        "property norm grid search verifier attack k cuts timeout cpu_timeout budget seed memory "
    )
    order = (names + "device tool arithmetic features shard").split()
    assert [name for name in Settings().to_json() if name in order] == order
    assert {one.name for one in fields(Experiment)} == {*options_of(Experiment)}
    assert [*Experiment.from_options(DEMO).to_json()] == [*Settings().to_json()]


@pytest.mark.parametrize("text", ["0:1", "-1:1", "0.1:0.30000000000000004", "0,0.5,0:1,1,2"])
def test_a_domain_is_written_as_it_is_read(text: str) -> None:
    assert str(Domain.parse(text)) == text


def test_a_switch_is_two_flags_and_a_truth_value(tmp_path: Path) -> None:
    assert given_flags(parsed(), WithRestarts) == {}
    assert given_flags(parsed("--certificates"), WithRestarts) == {"certificates": True}
    assert given_flags(parsed("--no-certificates"), WithRestarts) == {"certificates": False}
    file = tmp_path / "experiment.toml"
    file.write_text("certificates = false\n")
    assert Settings.from_options(values_of_file(file)).certificates is False
    with pytest.raises(ExperimentError, match="certificates 'no' must be true or false"):
        Settings.from_options({"certificates": "no"})


def test_certificates_are_kept_unless_asked_otherwise_and_make_no_other_experiment() -> None:
    with_them, without = Settings(), Settings(certificates=False)
    assert with_them.certificates
    assert with_them.to_json() == without.to_json()
    for settings in (with_them, without):
        assert settings.make_verifier().certificates is settings.certificates  # type: ignore[attr-defined]
        racing = replace(settings, verifier="portfolio:native,milp").make_verifier()
        assert isinstance(racing, Portfolio)
        assert racing.members[0].certificates is settings.certificates  # type: ignore[attr-defined]
        assert replace(settings, verifier="milp").make_verifier().spec == "milp"


def test_declaring_loads_nothing_heavy() -> None:
    code = "import sys; from radii.runs import Experiment; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"numpy", "torch", "radii.problem._queries"}.isdisjoint(done.stdout.split())


# --- the way that CONTRIBUTING shows


def test_the_diff_in_contributing_is_all_that_a_flag_takes(tmp_path: Path) -> None:
    """It is applied to a copy of the package, whose `run` then has the flag."""
    root = Path(radii.__file__).parents[2]
    blocks = re.findall(r"```diff\n(.*?)```", (root / "CONTRIBUTING.md").read_text(), re.S)
    (diff,) = [block for block in blocks if "restarts" in block]
    source = (root / "src/radii/runs/_description.py").read_text()
    lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++", "@@"))]
    before = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
    after = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
    assert source.count(before) == 1
    package = tmp_path / "radii"
    package.mkdir()
    for path in (root / "src/radii").iterdir():
        (package / path.name).symlink_to(path)
    (package / "runs").unlink()
    (package / "runs").mkdir()
    for path in (root / "src/radii/runs").iterdir():
        (package / "runs" / path.name).symlink_to(path)
    (package / "runs/_description.py").unlink()
    (package / "runs/_description.py").write_text(source.replace(before, after))
    run = [sys.executable, "-m", "radii", "run"]
    environment = {"PYTHONPATH": str(tmp_path), "COLUMNS": "100"}
    shown = subprocess.run([*run, "--help-all"], env=environment, capture_output=True, text=True)
    assert "--restarts N" in shown.stdout
    types = subprocess.run(
        [sys.executable, "-c", "import derived_texts; print(derived_texts.setting_types())"],
        env={**environment, "PYTHONPATH": f"{tmp_path}:{root / 'scripts'}"},
        capture_output=True,
        text=True,
    )
    assert "    restarts: int | None\n" in types.stdout, "the type for Python follows"
    flags = ["--restarts", "0", "--out", str(tmp_path / "out")]
    refused = subprocess.run([*run, *flags], env=environment, capture_output=True, text=True)
    assert (refused.returncode, refused.stderr) == (2, "radii: --restarts 0 must be at least 1\n")
    assert tomllib.loads("restarts = 5") == {"restarts": 5}


def test_help_names_every_attack() -> None:
    from radii.attacks import ATTACKS

    listed = options_of(Settings)["attack"].help
    assert not [kind.name for kind in ATTACKS if kind.name not in listed]
