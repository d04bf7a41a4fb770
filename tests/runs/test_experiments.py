"""Whole experiments: brackets known by hand, kill -9 and resume, refusals."""

from __future__ import annotations

import math
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from conftest import dense_model, make_older
from radii.api import robustness_distribution
from radii.errors import DataError, ExperimentError, InputError, SpecificationError
from radii.problem import FLOAT, REAL, Arithmetic, Domain, Measurement
from radii.runs import Experiment, Settings, prepare, values_of_file
from radii.store import STORE_FILE, Store
from radii.testing._simulated import Lying
from radii.verifiers import BranchAndBound, Marabou, Milp, Portfolio


def experiment(network: Path, data: Path | str, **options: Any) -> Experiment:
    chosen = {"grid": "0.01:0.5:0.02", "domain": "0:1", **options}
    return Experiment.from_options({"networks": [str(network)], "data": str(data), **chosen})


def measured(described: Experiment, out: Path, jobs: int = 0) -> list[Measurement]:
    with Store.create_or_open(out) as store:
        prepare(described).run(store, jobs=jobs)
        return store.measurements()


@pytest.mark.parametrize("search", ["attack-guided", "binary", "linear", "native"])
@pytest.mark.parametrize("norm", ["linf", "l1"])
def test_brackets_of_a_linear_classifier(
    linear_file: Path, points_file: Path, tmp_path: Path, search: str, norm: str
) -> None:
    verifier = "native" if search == "native" else "milp"
    described = experiment(
        linear_file, points_file, search=search, verifier=verifier, norm=norm, grid="0.01:0.7:0.02"
    )
    factor = {"linf": 1, "l1": 2}[norm]
    found = measured(described, tmp_path / "out")
    for m, radius in zip(found, (0.1, 0.25, 0.0, 0.0), strict=True):
        assert m.bracket.lower <= radius * factor + 1e-6
        assert m.bracket.upper >= radius * factor - 1e-6
        assert m.bracket.width <= 0.02 + 1e-6
        assert m.correct is (radius > 0)
        assert m.missing == 0


@pytest.mark.slow
def test_one_to_one_is_one_instance_a_target(
    relu_file: Path, relu_points_file: Path, tmp_path: Path
) -> None:
    whole = measured(experiment(relu_file, relu_points_file), tmp_path / "any")
    targets = measured(
        experiment(relu_file, relu_points_file, property="one-to-one"), tmp_path / "one"
    )
    assert len(targets) == 2 * len(whole)
    for m in whole:
        mine = [t for t in targets if t.input == m.input]
        assert {t.target for t in mine} == {0, 1, 2} - {m.label}
        assert min(t.bracket.lower for t in mine) < m.bracket.upper or m.bracket.upper == 0
        assert m.bracket.lower <= min(t.bracket.upper for t in mine)


def test_running_again_asks_nothing_again(
    relu_file: Path, relu_points_file: Path, tmp_path: Path
) -> None:
    described, out = experiment(relu_file, f"{relu_points_file}[0:4]"), tmp_path / "out"
    first = measured(described, out)
    assert measured(described, out) == first


@pytest.mark.parametrize(
    "change",
    [
        {"grid": "0.01:0.5:0.03"},
        {"norm": "l1"},
        {"seed": 1},
        {"timeout": 5},
        {"domain": "0:2"},
        {"search": "binary"},
        {"property": "one-to-one"},
    ],
)
def test_a_changed_experiment_is_refused(
    linear_file: Path, points_file: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    measured(experiment(linear_file, points_file), tmp_path / "out")
    with pytest.raises(ExperimentError, match=f"another experiment .*{next(iter(change))} was"):
        measured(experiment(linear_file, points_file, **change), tmp_path / "out")


def run_command(described: dict[str, str], out: Path) -> subprocess.Popen[bytes]:
    flags = [part for name, value in described.items() for part in (f"--{name}", value)]
    code = (
        "import signal, radii.cli\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's & ignores it
        "raise SystemExit(radii.cli.main())"
    )
    command = [sys.executable, "-c", code]
    return subprocess.Popen([*command, "run", *flags, "--out", str(out)], stdout=subprocess.DEVNULL)


@pytest.mark.slow
def test_killed_and_resumed_equals_undisturbed(
    relu_file: Path, relu_points_file: Path, tmp_path: Path
) -> None:
    flags = {
        "network": str(relu_file),
        "data": str(relu_points_file),
        "domain": "0:1",
        "grid": "0.001:0.5:0.001",
        "search": "binary",
        "verifier": "milp",
        "jobs": "2",
    }
    assert run_command(flags, tmp_path / "whole").wait() == 0
    disturbed = tmp_path / "disturbed"
    for goal in (1, 30):
        process = run_command(flags, disturbed)
        while process.poll() is None and count_queries(disturbed) < goal:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert run_command(flags, disturbed).wait() == 0
    assert read(disturbed) == read(tmp_path / "whole")
    with sqlite3.connect(disturbed / STORE_FILE) as db:
        repeated = "SELECT 1 FROM queries GROUP BY instance, kind, eps HAVING count(*) > 1"
        assert db.execute(repeated).fetchall() == []
    db.close()


@pytest.mark.slow
def test_interrupted_ends_cleanly_and_keeps_what_was_found(
    relu_file: Path, relu_points_file: Path, tmp_path: Path
) -> None:
    flags = {
        "network": str(relu_file),
        "data": str(relu_points_file),
        "domain": "0:1",
        "grid": "0.001:0.5:0.001",
        "search": "k-binary",
        "k": "2",
        "verifier": "milp",
        "jobs": "2",
    }
    out = tmp_path / "out"
    process = run_command(flags, out)
    while process.poll() is None and count_queries(out) < 3:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    kept = count_queries(out)
    assert kept >= 3
    assert run_command(flags, out).wait() == 0
    assert count_queries(out) > kept
    with sqlite3.connect(out / STORE_FILE) as db:
        repeated = (
            "SELECT 1 FROM queries WHERE verdict != 'CANCELLED'"
            " GROUP BY instance, kind, eps HAVING count(*) > 1"
        )
        assert db.execute(repeated).fetchall() == []
    db.close()


def test_stores_from_before_an_option_existed_go_on(
    linear_file: Path, points_file: Path, tmp_path: Path
) -> None:
    described, out = experiment(linear_file, points_file, search="binary"), tmp_path / "out"
    first = measured(described, out)
    with sqlite3.connect(out / STORE_FILE) as db:
        for name in ("k", "cuts", "cpu_timeout"):
            db.execute("UPDATE meta SET value = json_remove(value, ?)", (f"$.{name}",))
    db.close()
    assert measured(described, out) == first


@pytest.mark.parametrize(
    ("options", "arithmetic"),
    [
        ({}, "float"),
        ({"arithmetic": "real"}, "real"),
        ({"arithmetic": "float:8.0"}, "float:8"),
        ({"arithmetic": FLOAT}, "float"),
        ({"verifier": "milp"}, "float"),
        ({"verifier": "marabou"}, "real"),
        ({"verifier": "portfolio:native,milp"}, "float"),
        ({"verifier": "portfolio:native,marabou"}, "real"),
        ({"search": "attack-only"}, None),
        ({"search": "attack-only", "arithmetic": "real"}, None),
    ],
)
def test_the_arithmetic_of_an_experiment(options: dict[str, Any], arithmetic: str | None) -> None:
    chosen = Settings(**options).resolved()
    assert chosen.arithmetic == (None if arithmetic is None else Arithmetic.parse(arithmetic))
    assert chosen.to_json()["arithmetic"] == arithmetic


@pytest.mark.parametrize("name", ["native", "milp", "enumeration", "gurobi"])
def test_the_arithmetic_reaches_the_verifier(name: str) -> None:
    verifier = Settings(verifier=name, arithmetic=Arithmetic.parse("float:8")).make_verifier()
    assert verifier.arithmetic == Arithmetic.parse("float:8")
    assert Settings(verifier=name).make_verifier().arithmetic == FLOAT


def test_a_portfolio_proves_in_what_all_its_members_do() -> None:
    mixed, both = "portfolio:native,marabou", "portfolio:native,milp"
    assert Settings(verifier=both).resolved().arithmetic == FLOAT
    chosen = Settings(verifier=mixed).resolved()
    assert chosen.arithmetic == REAL
    made = chosen.make_verifier()
    assert isinstance(made, Portfolio)
    assert [member.arithmetic for member in made.members] == [REAL, REAL]
    with pytest.raises(SpecificationError, match="'marabou' proves in real arithmetic alone"):
        Settings(verifier=mixed, arithmetic=FLOAT).make_verifier()
    assert Portfolio([BranchAndBound(), Marabou()]).arithmetic == REAL


@pytest.mark.parametrize("arithmetic", ["float", "real"])
def test_proofs_are_stored_with_the_arithmetic_asked_for(
    linear_file: Path, points_file: Path, tmp_path: Path, arithmetic: str
) -> None:
    described = experiment(linear_file, points_file, arithmetic=arithmetic)
    found = measured(described, tmp_path / "out")
    assert {str(m.arithmetic) for m in found if m.bracket.lower > 0} == {arithmetic}
    assert {m.arithmetic for m in found if not m.correct} == {None}


@pytest.mark.parametrize("arithmetic", ["real", REAL])
def test_python_takes_an_arithmetic_or_its_name(
    linear_file: Path, points_file: Path, arithmetic: str | Arithmetic
) -> None:
    found = robustness_distribution(
        linear_file,
        str(points_file),
        domain=(0, 1),
        grid="0.05:0.2:0.05",
        arithmetic=arithmetic,
        jobs=0,
    )
    assert found.column("arithmetic").tolist() == ["real", "real", "", ""]


def test_arithmetics_are_never_mixed_unasked(
    linear_file: Path, points_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    for made, other, scopes in (
        ("float", "real", "for floating point: go on with --arithmetic float, .* in real"),
        ("real", "float", "in real arithmetic: go on with --arithmetic real, .* for floating"),
    ):
        measured(experiment(linear_file, points_file, arithmetic=made), out / made)
        with pytest.raises(ExperimentError, match=f"the proofs in this directory hold {scopes}"):
            measured(experiment(linear_file, points_file, arithmetic=other), out / made)
        with pytest.raises(ExperimentError, match=f"seed was 0, is 1; arithmetic was {made}"):
            measured(experiment(linear_file, points_file, arithmetic=other, seed=1), out / made)


def test_a_store_from_before_arithmetic_goes_on_as_real(
    linear_file: Path, points_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    first = measured(experiment(linear_file, points_file), out)
    make_older(out, 3)
    with pytest.raises(ExperimentError, match="go on with --arithmetic real"):
        measured(experiment(linear_file, points_file), out)
    again = measured(experiment(linear_file, points_file, arithmetic="real"), out)
    assert [m.bracket for m in again] == [m.bracket for m in first]
    assert {m.arithmetic for m in again} == {REAL, None}


def test_an_attack_from_before_arithmetic_goes_on(
    linear_file: Path, points_file: Path, tmp_path: Path
) -> None:
    described = experiment(linear_file, points_file, search="attack-only")
    first = measured(described, tmp_path / "out")
    make_older(tmp_path / "out", 3)
    assert measured(described, tmp_path / "out") == first


def test_k_is_part_of_an_experiment(linear_file: Path, points_file: Path, tmp_path: Path) -> None:
    two = experiment(linear_file, points_file, search="k-binary")
    assert (two.resolved().k, two.resolved().cuts) == (2, "equal")
    first = measured(two, tmp_path / "out")
    assert measured(experiment(linear_file, points_file, search="k-binary", k=2), tmp_path / "out")
    for change in ({"k": 4}, {"cuts": "golden"}, {"cpu_timeout": 5}):
        with pytest.raises(ExperimentError, match=f"another experiment .*{next(iter(change))} was"):
            other = experiment(linear_file, points_file, search="k-binary", **change)
            measured(other, tmp_path / "out")
    for m, radius in zip(first, (0.1, 0.25, 0.0, 0.0), strict=True):
        assert m.bracket.lower <= radius + 1e-6
        assert m.bracket.upper >= radius - 1e-6


def count_queries(directory: Path) -> int:
    try:
        with Store.open(directory) as store:
            return sum(len(answers) for answers in store.results().values())
    except InputError:
        return 0


def read(directory: Path) -> list[tuple[int, float, float]]:
    with Store.open(directory) as store:
        return [(m.input, m.bracket.lower, m.bracket.upper) for m in store.measurements()]


def test_a_budget_ends_an_instance(relu_file: Path, relu_points_file: Path, tmp_path: Path) -> None:
    described = experiment(relu_file, relu_points_file, budget=1e-9, search="binary")
    found = measured(described, tmp_path / "out")
    assert all(m.queries == (1 if m.correct else 0) for m in found)
    assert all(m.bracket.lower <= m.bracket.upper for m in found)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"grid": "0.5:0.1:0.1"}, "not increasing"),
        ({"norm": "l7"}, "norm 'l7'"),
        ({"search": "lucky"}, "search 'lucky'"),
        ({"verifier": "oracle"}, "verifier 'oracle'"),
        ({"attack": "hammer"}, "attack 'hammer'"),
        ({"timeout": 0}, "timeout 0"),
        ({"timeout": math.nan}, "timeout nan"),
        ({"cpu_timeout": -1}, "cpu_timeout -1"),
        ({"search": "k-binary", "k": 0}, "k 0 must be"),
        ({"search": "k-binary", "k": 1.5}, "k 1.5 must be a whole number"),
        ({"search": "native", "k": 2}, "search 'native' asks one question"),
        ({"search": "k-binary", "cuts": "odd"}, "cuts 'odd'"),
        ({"seed": -1}, "seed -1"),
        ({"domain": ""}, "domain is missing"),
        ({"domain": "0:0.4"}, "domain"),
        ({"colour": "red"}, "option 'colour'"),
        ({"property": "one-to-all"}, "property 'one-to-all'"),
        ({"norm": "l2", "verifier": "milp"}, "l2"),
        ({"arithmetic": "octal"}, "arithmetic 'octal' is not one of float, real"),
        ({"arithmetic": 7}, "arithmetic '7' is not one of"),
        ({"arithmetic": "float:0.5"}, "roundings 0.5 times as large"),
        ({"arithmetic": "octal", "search": "attack-only"}, "arithmetic 'octal'"),
        (
            {"arithmetic": "float", "verifier": "marabou"},
            "verifier 'marabou' proves in real arithmetic alone; give 'real'",
        ),
    ],
)
def test_bad_options_are_refused_before_any_work(
    linear_file: Path, points_file: Path, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        prepare(experiment(linear_file, points_file, **options))


def test_toml_paths_are_relative_to_the_file(linear_file: Path, points_file: Path) -> None:
    file = linear_file.parent / "experiment.toml"
    file.write_text(
        'networks = ["linear.onnx"]\ndata = "points.npz[0:2]"\ndomain = "0:1"\ntimeout = 5\n'
    )
    described = Experiment.from_options(values_of_file(file))
    assert described.timeout == 5.0
    assert len(prepare(described).instances) == 2


@pytest.mark.parametrize("text", ["networks = [", "networks = [1]", "x = 1", "\x00"])
def test_bad_toml(tmp_path: Path, text: str) -> None:
    file = tmp_path / "experiment.toml"
    file.write_text(text)
    with pytest.raises(ExperimentError):
        Experiment.from_options(values_of_file(file))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("networks = 3", "networks 3 must be a file name, or a list"),
        ("networks = {a = 1}", "must be a file name, or a list"),
        ("data = 5", "data 5 must be text"),
        ("data = ['a', 'b']", "must be text"),
        ("domain = [0, 1, 2]", "must be text such as '0:1', or a list such as \\[0, 1\\]"),
        ("domain = 1", "domain 1 must be text"),
        ("domain = 0", "domain 0 must be text"),
        ("domain = ['a', 'b']", "domain .* must be a number, or one number per channel"),
        ("layout = 1", "layout 1 must be text"),
        ("grid = 0.1", "grid 0.1 must be text"),
        ("norm = 2", "norm 2 must be text"),
        ("property = 1", "property 1 must be text"),
        ("search = 1", "search 1 must be text"),
        ("verifier = []", "must be text"),
        ("attack = true", "attack True must be text"),
        ("tool = 1", "tool 1 must be text"),
        ("device = 1", "device 1 must be text"),
        ("cuts = 1", "cuts 1 must be text"),
        ("timeout = [1]", "timeout .* must be a number of seconds"),
        ("timeout = true", "timeout True must be a number of seconds"),
        (
            "timeout = 'soon'",
            "timeout 'soon' must be a number of seconds above 0, or a length of time",
        ),
        ("budget = '2h'", "--budget 2h"),
        ("seed = true", "seed True must be a whole number"),
        ("mean = {a = 1}", "mean .* must be a number, or one number per channel"),
    ],
)
def test_values_of_the_wrong_type(tmp_path: Path, line: str, sentence: str) -> None:
    lines = {"networks": "'net.onnx'", "data": "'digits:test'", "domain": "'0:1'"}
    name, value = line.split(" = ", 1)
    file = tmp_path / "experiment.toml"
    lines[name] = value
    file.write_text("\n".join(f"{name} = {value}" for name, value in lines.items()))
    with pytest.raises(ExperimentError, match=sentence):
        Experiment.from_options(values_of_file(file))


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        ([0, 1], "0:1"),
        ([-0.5, 2], "-0.5:2"),
        ([[0, 0, 0], [1, 1, 1]], "0,0,0:1,1,1"),
    ],
)
def test_a_domain_may_be_two_numbers(domain: list[Any], text: str) -> None:
    told = Experiment.from_options({"networks": "a.onnx", "data": "digits", "domain": domain})
    assert str(told.domain) == text
    assert told.domain.key() == Domain.parse(text).key()


def test_lengths_of_time(linear_file: Path, points_file: Path) -> None:
    assert experiment(linear_file, points_file, timeout="10m").timeout == 600


def test_what_is_no_experiment_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=f"radii show {tmp_path} prints"):
        values_of_file(tmp_path)
    with pytest.raises(ExperimentError, match=r"write --network net\.onnx"):
        values_of_file(Path("net.onnx"))


def test_another_experiment_is_told_apart_in_words(
    linear_file: Path, points_file: Path, tmp_path: Path
) -> None:
    out, name = tmp_path / "out", linear_file.name

    def refused(described: Experiment) -> str:
        with pytest.raises(ExperimentError, match="another experiment") as raised:
            measured(described, out)
        found = re.search(r"\((.*)\)", str(raised.value))
        assert found is not None
        return found[1]

    measured(experiment(linear_file, points_file), out)
    assert refused(experiment(linear_file, points_file, search="binary", verifier="milp")) == (
        "search was native, is binary; verifier was native, is milp"
    )
    assert refused(experiment(linear_file, Path(f"{points_file}[0:2]"))) == "other inputs"
    assert refused(experiment(linear_file, points_file, domain="-1:1")) == (
        "domain was 0.0:1.0, is -1.0:1.0"
    )
    assert refused(experiment(linear_file, points_file, memory="2G")) == (
        "memory was not given, is 2147483648"
    )
    onnx.save(dense_model((2 * np.eye(2), np.zeros(2))), linear_file)
    assert refused(experiment(linear_file, points_file)) == f"the network {name} has changed"
    other = linear_file.rename(linear_file.with_name("other.onnx"))
    assert refused(experiment(other, points_file)) == (
        f"the network other.onnx is new; the network {name} is left out"
    )


def test_networks_of_one_name_keep_apart(
    linear_file: Path, points_file: Path, tmp_path: Path
) -> None:
    for place, slope in (("a", 1.0), ("b", 2.0)):
        (tmp_path / place).mkdir()
        model = dense_model((slope * np.eye(2), np.zeros(2)))
        onnx.save(model, tmp_path / place / linear_file.name)
    files = [str(tmp_path / place / linear_file.name) for place in "ab"]
    told = {"networks": files, "data": str(points_file), "domain": "0:1"}
    plan = prepare(Experiment.from_options(told))
    assert [network.name for network in plan.networks] == ["a/linear.onnx", "b/linear.onnx"]


def test_the_same_network_twice(linear_file: Path, points_file: Path) -> None:
    twice = {"networks": [str(linear_file)] * 2, "data": str(points_file), "domain": "0:1"}
    with pytest.raises(ExperimentError, match="given twice"):
        prepare(Experiment.from_options(twice))


def test_wrong_shapes(linear_file: Path, relu_points_file: Path) -> None:
    with pytest.raises(DataError, match=r"linear\.onnx"):
        prepare(experiment(linear_file, relu_points_file))


def test_an_empty_selection(linear_file: Path, points_file: Path) -> None:
    with pytest.raises((DataError, SpecificationError)):
        prepare(experiment(linear_file, Path(f"{points_file}[2:2]")))


def test_limits_of_the_machine_reach_the_toolbox(
    linear_file: Path, points_file: Path, tmp_path: Path
) -> None:
    file = tmp_path / "experiment.toml"
    file.write_text(
        f'networks = "{linear_file.name}"\ndata = "{points_file.name}"\ndomain = "0:1"\n'
        'memory = "1.5G"\n'
    )
    described = Experiment.from_options(values_of_file(file))
    assert described.memory == 1536 * 2**20
    assert prepare(described)._toolbox().memory_bytes == 1536 * 2**20
    for wrong in ("-1G", "1.5.2G", 0, True, [2]):
        with pytest.raises(InputError, match="must be a size"):
            experiment(linear_file, points_file, memory=wrong)


def test_the_device_is_an_option_of_the_verifier(
    linear_file: Path, points_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Movable(Lying):
        name = "movable"

        def __init__(self, *, device: str = "cpu") -> None:
            self.device = device

    monkeypatch.setattr("radii.verifiers._registry.VERIFIERS", (Movable, Milp))
    monkeypatch.setattr("radii.verifiers.check_device", lambda name: None)
    described = experiment(linear_file, points_file, verifier="movable", device="cuda")
    verifier = prepare(described)._toolbox().verifier
    assert isinstance(verifier, Movable)
    assert verifier.device == "cuda"
    with pytest.raises(SpecificationError, match="'milp' has no option 'device'"):
        experiment(linear_file, points_file, verifier="milp", device="cuda").resolved()
    experiment(linear_file, points_file, verifier="milp").resolved()
