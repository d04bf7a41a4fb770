"""The Python face: settings that editors and type checkers know, and where the work is done."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import radii
from conftest import work_in_this_process, write_linear, write_points
from python_scripts import run_script
from radii.api import SettingValues
from radii.cli import main
from radii.errors import ExperimentError, NetworkError
from radii.runs import Settings, options_of
from radii.verifiers import Milp

ROOT = Path(__file__).parents[1]


KEYWORDS = {name: kind.__forward_arg__ for name, kind in SettingValues.__annotations__.items()}
"""The settings that type checkers know, and what each takes, as it is written."""


def test_every_setting_is_a_keyword_and_no_other() -> None:
    assert KEYWORDS.keys() == options_of(Settings).keys()


@pytest.mark.parametrize("name", ["norm", "device"])
def test_keywords_have_the_values_that_shells_complete(name: str) -> None:
    literal = re.search(r"Literal\[(.*?)\]", KEYWORDS[name])
    assert literal is not None
    assert ast.literal_eval(literal[1]) == options_of(Settings)[name].values


def test_notebooks_see_every_setting_with_its_default() -> None:
    parameters = inspect.signature(radii.robustness_distribution).parameters
    assert {*options_of(Settings), "jobs", "progress", "out", "domain"} <= parameters.keys()
    assert parameters["timeout"].default == 60.0
    assert "settings" not in parameters


def test_a_misspelt_setting_is_told_what_was_meant() -> None:
    options: dict[str, Any] = {"timout": 3}
    with pytest.raises(ExperimentError, match=r"option 'timout' .*did you mean 'timeout'\?"):
        radii.robustness_distribution("net.onnx", "digits:test[0:1]", **options)


SCRIPT = """
import radii
def measure(name: str) -> None:
    radii.robustness_distribution(name, name, timeout=3, norm="l2", verifier="milp", grid="mnist")
    radii.robustness_distribution(name, name, timout=3)
    radii.robustness_distribution(name, name, timeout=[3])
    radii.robustness_distribution(name, name, norm="l7")
    radii.robustness_distribution(name, name).counterexample("3")
"""


@pytest.mark.slow
def test_type_checkers_know_the_settings(tmp_path: Path) -> None:
    mypy = pytest.importorskip("mypy.api", reason="mypy is not installed")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    # The settings and the cache of `make check`: with others, mypy would read all of torch anew.
    flags = [f"--config-file={ROOT / 'pyproject.toml'}", f"--cache-dir={ROOT / '.mypy_cache'}"]
    said, _, code = mypy.run([*flags, str(script)])
    errors = [line for line in said.splitlines() if ": error:" in line]
    assert code == 1, said
    assert [int(line.split(":")[1]) for line in errors] == [5, 6, 7, 8], said
    assert 'Unexpected keyword argument "timout"' in errors[0]
    assert 'Argument "timeout"' in errors[1]


def test_a_script_needs_no_main_guard(tmp_path: Path) -> None:
    """Workers are processes of their own, which do not run the script again."""
    write_linear(tmp_path)
    write_points(tmp_path)
    script = tmp_path / "script.py"
    script.write_text(
        "import radii\n"
        "print('once')\n"
        "found = radii.robustness_distribution(\n"
        "    'linear.onnx', 'points.npz', domain=(0, 1), grid='0.05:0.4:0.05', jobs=1)\n"
        "print(found.lower.tolist())\n"
    )
    done = subprocess.run(
        [sys.executable, script.name], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stderr == ""
    first, second = done.stdout.splitlines()
    assert first == "once"
    assert np.allclose(eval(second), [0.05, 0.2, 0, 0])


def test_the_default_is_that_of_the_command_line(
    linear_file: Path, points_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Own(Milp):
        name = "own"

    asked: list[int] = []

    def run(self: Any, store: Any, *, jobs: int, **_: Any) -> None:
        asked.append(jobs)
        raise ExperimentError("enough")

    monkeypatch.setattr("radii.runs.Plan.default_jobs", lambda _: 5)
    monkeypatch.setattr("radii.runs.Plan.run", run)
    choices: list[dict[str, Any]] = [{}, {"verifier": Own()}, {"jobs": 1, "verifier": Own()}]
    for chosen in choices:
        with pytest.raises(ExperimentError, match="enough"):
            radii.robustness_distribution(linear_file, str(points_file), domain=(0, 1), **chosen)
    assert asked == [5, 0, 1]  # a class of a function cannot be sent to a worker


ABS = """
import numpy as np, onnx, radii, torch
from onnx import TensorProto, helper
from radii.networks import Add, Relu, Scale

def absolute(call):
    x = call.node(0)
    minus_x = call.emit(Scale(torch.tensor(-1.0, dtype=torch.float64)), x)
    return call.emit(Add(), call.emit(Relu(), x), call.emit(Relu(), minus_x))

ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 2]) for name in "xy"]
graph = helper.make_graph([helper.make_node("Abs", ["x"], ["y"])], "abs", ends[:1], ends[1:])
opsets = [helper.make_opsetid("", 13)]
onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), "abs.onnx")
network = radii.load_network("abs.onnx", domain=(-1, 1), operators={"Abs": absolute})
data = np.float32([[0.82, -0.2]]), np.array([0])  # |x0| = |x1| at a distance of 0.31
(found,) = radii.robustness_distribution(network, data, grid="0.1:0.6:0.1", out="results")
assert found.bracket.lower == 0.3 and 0.31 <= found.bracket.upper < 0.32
try:
    radii.robustness_distribution(network, data, grid="0.1:0.6:0.1", jobs=1)
except radii.errors.ExperimentError as error:
    print(error)
"""


def test_operators_of_a_script_work_in_its_process_and_can_be_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command does not know them, but what it replays is the file."""
    script = tmp_path / "script.py"
    script.write_text(ABS)
    said = run_script(script, tmp_path)
    assert "import what they need: absolute is defined in a script" in said
    assert main(["check", str(tmp_path / "results"), "--json"]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert checked["failed"] == []
    assert checked["witnesses"] == checked["replayed"] == 1
    assert checked["proofs"] >= 1


def test_tensors_in_and_out(linear_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    work_in_this_process(monkeypatch)
    inputs = torch.tensor([[0.5, 0.3], [0.25, 0.75]], requires_grad=True)
    found = radii.robustness_distribution(
        linear_file, (inputs, torch.tensor([0, 1])), domain=(0, 1), grid="0.05:0.4:0.05"
    )
    given, broken = found.counterexample(1).torch()
    assert torch.equal(given, inputs[1])
    assert broken[0] >= broken[1]
    assert (broken - given).abs().max().item() == pytest.approx(found.upper[1], abs=1e-6)


@pytest.mark.parametrize("channels", [1, 3])
def test_modules_for_signals_take_signals(channels: int) -> None:
    """Arrays (N, channels, length) could be grey pictures; the module says that they are not."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv1d(channels, 2, 5), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 8, 2)
    ).eval()
    signals = torch.rand(2, channels, 12)
    labels = module(signals).argmax(dim=1)
    found = radii.robustness_distribution(
        module, (signals, labels), domain=(0, 1), eps=0.001, jobs=0, search="attack-only"
    )
    assert found.inputs.shape == (2, channels, 12) and found.correct.all()
    with pytest.raises(NetworkError, match=r"for inputs of shape \(1, 4, 12\)"):
        radii.robustness_distribution(
            module, (torch.rand(2, 4, 12), labels), domain=(0, 1), eps=0.001, jobs=0
        )


def test_a_directory_grows_and_each_call_returns_what_it_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from radii import demo

    work_in_this_process(monkeypatch)
    first, second = (demo.load_network(f"mlp-{name}") for name in ("standard", "adversarial"))
    options: Any = {"grid": "0.04:0.4:0.04", "out": tmp_path / "study"}
    begun = radii.robustness_distribution(first, "digits:test[0:2]", **options)
    more = radii.robustness_distribution(first, "digits:test[1:4]", **options)
    assert more.column("input").tolist() == [1, 2, 3]
    assert more.lower[0] == begun.lower[1] and more.upper[0] == begun.upper[1]
    both = radii.robustness_distribution([second, first], "digits:test[2:3]", **options)
    assert both.networks == ("mlp-adversarial", "mlp-standard")
    assert both.upper[1] == more.upper[1]
    finer = radii.robustness_distribution(
        first, "digits:test[0:2]", grid="0.01:0.4:0.01", out=tmp_path / "study"
    )
    assert np.all(finer.lower >= begun.lower) and np.all(finer.upper - finer.lower <= 0.01 + 1e-6)
    other = radii.robustness_distribution(
        first, "digits:test[0:1]", norm="l2", eps=0.1, out=tmp_path / "study"
    )
    assert len(other) == 1 and other.lower[0] == 0.1 > finer.lower[0]
    assert other.inputs.shape == (1, 1, 8, 8)
    with pytest.raises(ExperimentError, match="of the split 'test', not 'train'"):
        radii.robustness_distribution(first, "digits:train[0:2]", **options)
