"""A classifier of an ensemble: the network itself, and the scores that decide its class.

A final softmax changes no comparison between outputs, and behind a final ReLU the label ties with
the others wherever its score is 0 or below. So proofs are about the scores in front of them, which
are piecewise linear where the network is; witnesses are replayed on the network itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx

from radii.balls import Ball
from radii.bounds import NumberType, crown_bounds, log_softmax_error, softmax_ratio
from radii.networks import LogSoftmax, Network, Relu, Softmax
from radii.verdicts import Arithmetic

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Classifier:
    """A network and its scores.

    `has_floor`: the label is also beaten where its score is 0 or below. `behind` is a final
    (log-)softmax that the scores leave out.
    """

    network: Network
    scores: Network
    has_floor: bool = False
    behind: Softmax | LogSoftmax | None = None

    @classmethod
    def of(cls, network: Network) -> Classifier:
        """The classifier of a network, with the scores in front of its last step."""
        graph = network.graph
        node = graph.nodes[graph.output]
        match node.operator:
            case Relu():
                body = _without_last(network, "Relu")
                return cls(network, body or network, has_floor=body is not None)
            case Softmax() | LogSoftmax() if node.shape[node.operator.axis] == node.size:
                body = _without_last(network, "Softmax", "LogSoftmax")
                return cls(network, body or network, behind=node.operator if body else None)
        return cls(network, network)

    def slack(self, ball: Ball, arithmetic: Arithmetic) -> float:
        """How far a rival's score may stay below the label's and yet tie with it in the ball.

        Softmax gives equal floats for scores that differ by little, and log-softmax rounds numbers
        as large as the scores.
        """
        if self.behind is None or not arithmetic.is_float:
            return 0.0
        number = NumberType.of(self.network.computed_in)
        if isinstance(self.behind, Softmax):
            return softmax_ratio(number.unit) * arithmetic.widening
        bounds = crown_bounds(self.scores, [ball], arithmetic=arithmetic)
        largest = float(bounds.magnitude.max())
        if not 2 * largest < number.largest:
            return math.inf  # differences of scores overflow: two that do are equal
        error = log_softmax_error(largest, self.scores.output_size, number.unit)
        return 2 * error * arithmetic.widening

    def rivals(self, label: int) -> Float64:
        """A row for each way to beat the label: it does so where `row @ scores` is 0 or above."""
        rows = np.eye(self.scores.output_size)
        rows[:, label] -= 1.0
        rows = np.delete(rows, label, axis=0)
        if not self.has_floor:
            return rows
        floor = np.zeros((1, self.scores.output_size))
        floor[0, label] = -1.0
        return np.concatenate([rows, floor])


def _without_last(network: Network, *operators: str) -> Network | None:
    """The network up to what its last node reads; None if that node is not one of these."""
    model = onnx.load_model_from_string(network.onnx_bytes)
    output = model.graph.output[0]
    last = next((node for node in model.graph.node if output.name in node.output), None)
    if last is None or last.op_type not in operators:
        return None
    kind = output.type.tensor_type.elem_type
    del model.graph.output[:]
    model.graph.output.append(onnx.helper.make_tensor_value_info(last.input[0], kind, None))
    return Network.from_bytes(
        model.SerializeToString(deterministic=True), domain=network.domain, name=network.name
    )
