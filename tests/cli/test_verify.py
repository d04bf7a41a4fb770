"""`radii verify` on networks small enough to know the answer by hand."""

from __future__ import annotations

import gzip
import json
import os
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from conftest import BUSY_SECONDS
from misbehaving import hoard
from radii.cli import _verify as verify
from radii.cli import build_parser
from radii.errors import InputError
from radii.problem import FLOAT, REAL, Verdict
from radii.testing import Sketch
from radii.testing._simulated import Lying, hang
from radii.verifiers import Answer
from radii.vnnlib import Outcome, parse_verification, read_problem


def saved(path: Path, nodes: list[onnx.NodeProto], weights: dict[str, list[list[float]]]) -> Path:
    """A model from x, 1x2, to y, 1x2."""
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])],
        [numpy_helper.from_array(np.array(w, np.float32), name) for name, w in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.fixture
def linear(tmp_path: Path) -> Path:
    """y_0 = x_0 + x_1 and y_1 = x_0 - x_1."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    return saved(tmp_path / "linear.onnx", nodes, {"w": [[1, 1], [1, -1]]})


@pytest.fixture
def folded(tmp_path: Path) -> Path:
    """y_0 = |x_0| + |x_1| and y_1 = |x_0| - |x_1|, by four ReLUs."""
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["z"]),
        helper.make_node("Relu", ["z"], ["a"]),
        helper.make_node("MatMul", ["a", "w"], ["y"]),
    ]
    weights: dict[str, list[list[float]]] = {
        "v": [[1, -1, 0, 0], [0, 0, 1, -1]],
        "w": [[1, 1], [1, 1], [1, -1], [1, -1]],
    }
    return saved(tmp_path / "folded.onnx", nodes, weights)


DECLARED = "".join(f"(declare-const {v}_{i} Real)\n" for v in "XY" for i in (0, 1))
UNIT = "(assert (<= 0 X_0 1)) (assert (<= 0 X_1 1))\n"
AROUND = "(assert (<= -1 X_0 1)) (assert (<= -1 X_1 1))\n"


def written(path: Path, body: str) -> Path:
    file = path.parent / "property.vnnlib"
    file.write_text(DECLARED + body)
    return file


def call(*arguments: object) -> int:
    args = build_parser("verify").parse_args(["verify", *map(str, arguments)])
    return int(args.run(args))


def answer(capsys: pytest.CaptureFixture[str], network: Path, file: Path, *more: object) -> Outcome:
    """The outcome; a counterexample is replayed and held against the file here as well."""
    assert call(network, file, *more) == 0
    found = parse_verification(capsys.readouterr().out)
    if found.outcome is Outcome.SAT:
        assert found.inputs is not None
        assert found.outputs is not None
        session = onnxruntime.InferenceSession(network.read_bytes())
        (y,) = session.run(None, {"x": found.inputs.astype(np.float32)[None]})
        assert y.ravel().tolist() == found.outputs.tolist()
        assert read_problem(file).is_solved_by(found.inputs, found.outputs)
    return found.outcome


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (UNIT + "(assert (>= Y_0 1.5))", Outcome.SAT),
        (UNIT + "(assert (>= Y_0 2.5))", Outcome.UNSAT),
        (UNIT + "(assert (and (>= Y_0 1.5) (>= Y_1 0.25)))", Outcome.SAT),
        (UNIT + "(assert (and (>= Y_0 1.5) (>= Y_1 0.75)))", Outcome.UNSAT),
        (UNIT + "(assert (or (and (>= Y_0 2.5)) (and (<= Y_1 -0.5))))", Outcome.SAT),
        (UNIT + "(assert (or (and (>= Y_0 2.5)) (and (<= Y_1 -1.5))))", Outcome.UNSAT),
        (UNIT + "(assert (<= (+ X_0 X_1) 0.5)) (assert (>= Y_0 0.75))", Outcome.UNSAT),
        (UNIT + "(assert (<= (+ X_0 X_1) 0.5)) (assert (>= Y_1 0.25))", Outcome.SAT),
        (UNIT + "(assert (or (and (<= X_0 0.25) (>= Y_0 1.5)) (>= Y_1 1.5)))", Outcome.UNSAT),
        (UNIT + "(assert (or (and (<= X_0 0.25) (>= Y_0 1.5)) (and (>= X_0 0.5) (<= Y_1 0))))",
         Outcome.SAT),
        (UNIT + "(assert (>= X_0 2))", Outcome.UNSAT),
        (UNIT + "(assert (>= X_0 0.5))", Outcome.SAT),
        (UNIT + "(assert (= X_0 0.1)) (assert (>= Y_0 1))", Outcome.SAT),
        (UNIT + "(assert (= X_0 0.1)) (assert (>= Y_0 1.2))", Outcome.UNSAT),
        (UNIT + "(assert (< X_0 0.5)) (assert (> Y_0 1.25))", Outcome.SAT),
        (UNIT + "(assert (< X_0 0.5)) (assert (> Y_0 1.75))", Outcome.UNSAT),
    ],
)  # fmt: skip
def test_linear(
    linear: Path, capsys: pytest.CaptureFixture[str], body: str, outcome: Outcome
) -> None:
    assert answer(capsys, linear, written(linear, body)) is outcome


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (AROUND + "(assert (<= Y_0 -0.125))", Outcome.UNSAT),
        (AROUND + "(assert (<= Y_0 0.125))", Outcome.SAT),
        (AROUND + "(assert (>= Y_0 2.125))", Outcome.UNSAT),
        (AROUND + "(assert (and (>= Y_1 0.5) (<= X_0 0)))", Outcome.SAT),
        (AROUND + "(assert (and (>= Y_1 0.5) (<= X_0 0) (>= X_0 -0.25)))", Outcome.UNSAT),
        (AROUND + "(assert (or (>= Y_0 2.5) (<= Y_1 -1.5) (and (>= X_1 0.5) (>= Y_1 0.75))))",
         Outcome.UNSAT),
    ],
)  # fmt: skip
def test_folded(
    folded: Path, capsys: pytest.CaptureFixture[str], body: str, outcome: Outcome
) -> None:
    assert answer(capsys, folded, written(folded, body)) is outcome


def test_a_tie_is_not_strict(linear: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """y_0 > 2 holds nowhere, but y_0 = 2 at a corner: no proof of the closed set, no witness."""
    file = written(linear, UNIT + "(assert (> Y_0 2))")
    assert answer(capsys, linear, file) is Outcome.UNKNOWN


def test_a_fixed_decimal_is_printed_as_it_stands(
    linear: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(linear, UNIT + "(assert (= X_0 0.1)) (assert (>= Y_0 1))")
    call(linear, file)
    assert "(X_0 0.1)" in capsys.readouterr().out.replace("((", "(")


def test_version_two_and_gzip(linear: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """(vnnlib-version <2.0>)
    (declare-network f (declare-input A float32 [1,2]) (declare-output B float32 [1,2]))
    (assert (and (<= 0 A[0,0] 1) (<= 0 A[0,1] 1)))
    (assert (>= B[0,0] BOUND))"""
    zipped = linear.with_suffix(".onnx.gz")
    zipped.write_bytes(gzip.compress(linear.read_bytes()))
    file = linear.parent / "two.vnnlib.gz"
    for bound, outcome in (("1.5", "sat"), ("2.5", "unsat")):
        file.write_bytes(gzip.compress(text.replace("BOUND", bound).encode()))
        assert call(zipped, file) == 0
        assert capsys.readouterr().out.split()[0] == outcome


def test_time_is_up(folded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(folded, AROUND + "(assert (<= Y_0 -0.125))")
    assert answer(capsys, folded, file, "--timeout", "1e-9") is Outcome.TIMEOUT


def test_even_a_solver_that_hangs_answers_in_time(
    folded: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "decide", hang)
    file = written(folded, AROUND + "(assert (<= Y_0 -0.125))")
    out = folded.parent / "result.txt"
    started = time.monotonic()
    assert answer(capsys, folded, file, "--timeout", 2, "--out", out) is Outcome.TIMEOUT
    assert time.monotonic() - started < 2 + BUSY_SECONDS
    assert out.read_text() == "timeout\n"


@pytest.mark.parametrize("endless", ["property", "network"])
def test_a_file_that_never_ends_is_read_in_time(
    folded: Path, capsys: pytest.CaptureFixture[str], endless: str
) -> None:
    """A pipe that nobody writes to: whoever opens it waits, as for a file of many gigabytes."""
    files = {"network": folded, "property": written(folded, AROUND + "(assert (<= Y_0 -0.125))")}
    pipe = folded.parent / "pipe"
    os.mkfifo(pipe)
    files[endless] = pipe
    started = time.monotonic()
    assert call(files["network"], files["property"], "--timeout", 1) == 0
    assert time.monotonic() - started < 1 + BUSY_SECONDS
    assert capsys.readouterr().out == "timeout\n"


def test_memory_runs_out(
    folded: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "decide", hoard)
    file = written(folded, AROUND + "(assert (<= Y_0 -0.125))")
    assert call(folded, file, "--memory", "400M", "--timeout", 60, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "unknown"
    assert "memory limit" in found["message"]


@pytest.mark.slow
def test_limits_that_suffice_change_nothing(
    linear: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(linear, UNIT + "(assert (>= Y_0 1.5))")
    assert answer(capsys, linear, file, "--timeout", 100, "--memory", "4G") is Outcome.SAT
    file = written(linear, UNIT + "(assert (>= Y_0 2.5))")
    call(linear, file, "--timeout", 100, "--memory", "4G", "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["verifier"].split()[0]) == ("unsat", "native")


def test_the_answer_is_written_too(linear: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(linear, UNIT + "(assert (>= Y_0 1.5))")
    out = linear.parent / "result.txt"
    call(linear, file, "--out", out, "--seed", 3)
    assert out.read_text() == capsys.readouterr().out


def test_json(linear: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(linear, UNIT + "(assert (>= Y_0 1.5))")
    out = linear.parent / "result.txt"
    call(linear, file, "--json", "--out", out)
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "sat"
    assert found["counterexample"]["Y"][0] >= 1.5
    assert found["counterexample"]["replayed_on"].startswith("onnxruntime")
    assert out.read_text().startswith("sat\n((X_0 ")
    call(linear, written(linear, UNIT + "(assert (>= Y_0 2.5))"), "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["counterexample"]) == ("unsat", None)


@pytest.mark.parametrize(
    ("more", "arithmetic"),
    [
        ([], "float"),
        (["--arithmetic", "real"], "real"),
        (["--arithmetic", "float:8", "--verifier", "milp"], "float:8"),
    ],
)
def test_the_arithmetic_of_a_proof(
    linear: Path, more: list[str], arithmetic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    call(linear, written(linear, UNIT + "(assert (>= Y_0 2.5))"), "--json", *more)
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["arithmetic"]) == ("unsat", arithmetic)
    call(linear, written(linear, UNIT + "(assert (>= Y_0 1.5))"), "--json", *more)
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["arithmetic"]) == ("sat", None)


def test_the_weakest_of_several_proofs_counts(
    linear: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A portfolio answers each part of a file by whom it likes: here in turns."""
    told = iter([FLOAT, REAL])

    class Mixed(Lying):
        name = "mixed"

        def run(self, *_: object) -> Answer:
            return Answer(Verdict.ROBUST, arithmetic=next(told))

    monkeypatch.setattr("radii.verifiers._registry.VERIFIERS", (Mixed,))
    left, right = "(and (<= X_0 0.25) (>= Y_0 2.5))", "(and (>= X_0 0.5) (<= Y_1 -1.5))"
    file = written(linear, UNIT + f"(assert (or {left} {right}))")
    call(linear, file, "--json", "--verifier", "mixed")
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["arithmetic"]) == ("unsat", "real")


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--arithmetic", "octal"], "arithmetic 'octal' is not one of float, real"),
        (["--arithmetic", "float", "--verifier", "marabou"], "proves in real arithmetic alone"),
    ],
)
def test_a_bad_arithmetic(linear: Path, more: list[str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call(linear, written(linear, UNIT + "(assert (>= Y_0 2.5))"), *more)


@pytest.mark.parametrize(
    ("body", "more", "sentence"),
    [
        (UNIT + "(assert (<= Y_0 0)", [], "never closed"),
        (UNIT + "(declare-const X_2 Real) (assert (<= 0 X_2 1))", [], "declares 3 inputs"),
        (UNIT + "(declare-const Y_2 Real)", [], "declares 3 outputs"),
        ("(assert (<= 0 X_0 1))", [], "X_1 has no lower bound"),
        (UNIT, ["--timeout", "0"], "--timeout 0"),
        (UNIT, ["--timeout", "nan"], "--timeout nan"),
        (UNIT, ["--out", "/nowhere/at/all.txt"], "cannot be written"),
        (UNIT, ["--verifier", "psychic"], "psychic"),
        (UNIT, ["--verifier", "psychic", "--timeout", "60"], "psychic"),
        (UNIT, ["--memory", "much"], "memory 'much' must be a size above 0, such as 500M or 2G"),
        (UNIT, ["--memory", "0"], "memory '0'"),
        (UNIT, ["--device", "abacus"], "device 'abacus' is not one of cpu"),
        (UNIT, ["--device", "meta"], "device 'meta' is not one of cpu"),
        (UNIT, ["--verifier", "milp", "--device", "cpu"], "'milp' has no option 'device'"),
    ],
)
def test_bad_input_gets_one_sentence(
    linear: Path, body: str, more: list[str], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        call(linear, written(linear, body), *more)
    assert "\n" not in str(caught.value)


def test_a_network_that_onnx_runtime_reads_otherwise_is_refused(linear: Path) -> None:
    """SAME with a stride above the kernel: what ONNX says is not what its runtime does."""
    sketch = Sketch([1, 1, 4])
    kernel = sketch.constant(np.ones((1, 1, 1)))
    options = {"kernel_shape": [1], "strides": [2], "auto_pad": "SAME_LOWER"}
    path = linear.parent / "other.onnx"
    value = sketch.apply("ConvTranspose", "x", kernel, **options)
    path.write_bytes(sketch.model(value).SerializeToString())
    more = "".join(f"(declare-const X_{i} Real) (assert (<= 0 X_{i} 1))" for i in (2, 3))
    outputs = "".join(f"(declare-const Y_{i} Real)" for i in range(2, 8))
    with pytest.raises(InputError, match="a stride above its kernel"):
        call(path, written(linear, f"{UNIT}{more}{outputs}(assert (<= Y_0 0))"))


def test_files_that_are_not_there(linear: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        call(linear, linear.parent / "none.vnnlib")
    file = written(linear, UNIT)
    with pytest.raises(InputError, match="cannot be read"):
        call(linear.parent / "none.onnx", file)
    damaged = linear.parent / "cut.onnx.gz"
    damaged.write_bytes(gzip.compress(linear.read_bytes())[:-9])
    with pytest.raises(InputError, match="damaged gzip"):
        call(damaged, file)
