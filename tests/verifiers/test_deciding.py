"""How a problem is decided, with a scripted attack and verifier: only evidence counts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from radii.errors import SpecificationError
from radii.networks import Network
from radii.problem import Array, Specification, Verdict
from radii.verifiers import Answer, Limits, Verifier, decide_problem
from radii.verifiers import _problems as deciding
from radii.verifiers._problems import ProblemResult
from radii.vnnlib import Outcome, parse_problem

DECLARED = "(declare-const X_0 Real) (declare-const X_1 Real) (declare-const Y_0 Real)"
UNIT = "(assert (<= 0 X_0 1)) (assert (<= 0 X_1 1))"


class Scripted(Verifier):
    """Gives the listed answers, one a call."""

    name = "scripted"
    version = "1"

    def __init__(self, *answers: Answer) -> None:
        self.answers: Iterator[Answer] = iter(answers)
        self.seen: list[Specification] = []

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        self.seen.append(specification)
        return next(self.answers)


@pytest.fixture(scope="module")
def network() -> Network:
    """y = x_0 + x_1, two inputs to one output."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "sum",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1])],
        [numpy_helper.from_array(np.ones((2, 1), np.float32), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return Network.from_bytes(model.SerializeToString(), domain=(0.0, 1.0), name="sum")


@pytest.fixture(autouse=True)
def no_attack(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are about the verifier's answers."""
    monkeypatch.setattr(deciding, "attack_specification", lambda *args, **options: None)


ROBUST = Answer(Verdict.ROBUST, margin=1e-6)


def at(*values: float) -> Answer:
    candidate: Array = np.array(values)
    return Answer(Verdict.NOT_ROBUST, candidate)


def decided(
    network: Network, body: str, *answers: Answer, limits: Limits | None = None
) -> ProblemResult:
    problem = parse_problem(DECLARED + UNIT + body)
    return decide_problem(network, problem, verifier=Scripted(*answers), limits=limits)


BOTH = "(assert (or (and (<= X_0 0.5) (>= Y_0 1.25)) (and (>= X_0 0.75) (<= Y_0 0.875))))"


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        ([ROBUST, ROBUST], Outcome.UNSAT),
        ([ROBUST, Answer(Verdict.UNKNOWN)], Outcome.UNKNOWN),
        ([Answer(Verdict.TIMEOUT), ROBUST], Outcome.TIMEOUT),
        ([Answer(Verdict.MEMOUT), ROBUST], Outcome.UNKNOWN),
        ([Answer(Verdict.UNKNOWN), at(0.75, 0.0)], Outcome.SAT),
        ([at(0.5, 1.0)], Outcome.SAT),
        ([at(0.5, 0.5), ROBUST], Outcome.UNKNOWN),
    ],
)
def test_answers_of_the_parts(network: Network, answers: list[Answer], outcome: Outcome) -> None:
    found = decided(network, BOTH, *answers)
    assert found.verification.outcome is outcome
    assert (found.witness is not None) == (outcome is Outcome.SAT)


def test_no_part_at_all_is_unsat(network: Network) -> None:
    assert decided(network, "(assert (>= X_0 2))").verification.outcome is Outcome.UNSAT


def test_a_witness_is_replayed(network: Network) -> None:
    found = decided(network, "(assert (>= Y_0 1.25))", at(0.7, 0.7))
    assert found.witness is not None
    assert found.verification.inputs is not None
    assert found.verification.inputs.tolist() == [float(np.float32(0.7))] * 2
    assert found.verification.outputs is not None
    assert found.verification.outputs[0] == found.witness.outputs[0]


def test_a_tie_does_not_satisfy_a_strict_comparison(network: Network) -> None:
    strict = "(assert (> Y_0 1.25))"
    tie, beyond = at(0.5, 0.75), at(0.75, 0.75)
    assert decided(network, strict, tie, ROBUST).verification.outcome is Outcome.UNKNOWN
    assert decided(network, strict, tie, beyond).verification.outcome is Outcome.SAT
    assert decided(network, strict, ROBUST).verification.outcome is Outcome.UNSAT


def test_a_value_between_two_floats_is_rounded_for_the_network(network: Network) -> None:
    """The verifier sees a box with the rounded value inside, the reader the file's decimal."""
    problem = parse_problem(DECLARED + UNIT + "(assert (= X_0 0.1)) (assert (>= Y_0 1))")
    verifier = Scripted(at(0.1, 1.0))
    found = decide_problem(network, problem, verifier=verifier)
    low, high = (side[0] for side in verifier.seen[0].region.box())
    assert low == 0.1
    assert high == float(np.float32(0.1))
    assert found.verification.inputs is not None
    assert found.verification.inputs[0] == 0.1
    assert found.witness is not None
    assert found.witness.input[0] == np.float32(0.1)


def test_bounds_beyond_the_networks_type(network: Network) -> None:
    problem = parse_problem(DECLARED + "(assert (<= 0 X_0 1e39)) (assert (<= 0 X_1 1))")
    with pytest.raises(SpecificationError, match=r"beyond 3\.40282e\+38, the largest float32"):
        decide_problem(network, problem, verifier=Scripted())


def test_expired_limits_ask_nothing(network: Network) -> None:
    late = decided(network, BOTH, limits=Limits(seconds=0.0))
    assert late.verification.outcome is Outcome.TIMEOUT
    stopped = decided(network, BOTH, limits=Limits(cancelled=lambda: True))
    assert stopped.verification.outcome is Outcome.UNKNOWN


def test_what_the_verifier_cannot_do_is_unknown_with_the_reason(network: Network) -> None:
    class Linear(Scripted):
        def unsupported(self, network: Network, norm: object, kind: object = None) -> str:
            return "verifier 'scripted' decides nothing"

    problem = parse_problem(DECLARED + UNIT + BOTH)
    found = decide_problem(network, problem, verifier=Linear())
    assert found.verification.outcome is Outcome.UNKNOWN
    assert found.message == "verifier 'scripted' decides nothing"
