"""Networks that end in a softmax: bounds on their outputs become bounds on a softmax of logits.

The network is cut in front of its softmax, so that the rest is decided as any network that outputs
logits. Levels are moved by what the softmax itself may round.
"""

from __future__ import annotations

import numpy as np
import onnx

from radii.bounds import fuse, softmax_error
from radii.networks import Network
from radii.properties import Halfspaces, ProbabilityBound, SoftmaxRequirement
from radii.queries import Specification
from radii.verdicts import Arithmetic

LEVEL_ROUNDING = 2.0**-40
"""What a level may be off for its own computation in float64."""

NETWORKS_KEPT = 4
_bare: dict[str, Network | None] = {}


def logit_question(
    network: Network, specification: Specification, arithmetic: Arithmetic
) -> tuple[Network, Specification] | None:
    """The same question about the logits, a little stricter; None if it is none of probabilities.

    Only for polyhedra that bound a single probability: comparisons of two need no such detour.
    """
    violations = specification.requirement.violations
    if not violations or not network.outputs_are_probabilities:
        return None
    slack = LEVEL_ROUNDING
    if arithmetic.is_float:
        rounding = softmax_error(network.output_size, fuse(network).number.unit)
        slack += rounding * arithmetic.widening
    reachable = [polyhedron for polyhedron in violations if not _is_out_of_reach(polyhedron, slack)]
    bounds = [_bound(polyhedron, slack) for polyhedron in reachable]
    logits = None if None in bounds else _without_softmax(network)
    if logits is None:
        return None
    requirement = SoftmaxRequirement(tuple(bound for bound in bounds if bound is not None))
    return logits, Specification(specification.region, requirement, specification.inputs)


def _is_out_of_reach(polyhedron: Halfspaces, slack: float) -> bool:
    """Whether no probabilities lie in it, by one of its rows alone: each is between 0 and 1."""
    least = np.minimum(polyhedron.matrix, 0).sum(axis=1) + polyhedron.offset
    return bool(np.any(least > slack * (1 + np.abs(polyhedron.matrix).sum(axis=1))))


def _bound(polyhedron: Halfspaces, slack: float) -> ProbabilityBound | None:
    """The bound that a polyhedron y_i <= level or y_i >= level breaks; None if it is another."""
    row = polyhedron.matrix[0]
    places = np.flatnonzero(row)
    if len(polyhedron.matrix) != 1 or len(places) != 1:
        return None
    index = int(places[0])
    is_ceiling = bool(row[index] < 0)
    level = -float(polyhedron.offset[0]) / float(row[index])
    level += -slack if is_ceiling else slack
    return ProbabilityBound(index, level, is_ceiling) if slack < level < 1 - slack else None


def _without_softmax(network: Network) -> Network | None:
    """The network up to the argument of its last node; None if that is no softmax. Remembered."""
    if network.fingerprint not in _bare:
        _bare[network.fingerprint] = _cut(network)
        while len(_bare) > NETWORKS_KEPT:
            _bare.pop(next(iter(_bare)))
    return _bare[network.fingerprint]


def _cut(network: Network) -> Network | None:
    model = onnx.load_from_string(network.onnx_bytes)
    output = model.graph.output[0]
    last = next((node for node in model.graph.node if output.name in node.output), None)
    if last is None or last.op_type != "Softmax":
        return None
    model.graph.node.remove(last)
    output.name = last.input[0]
    domain = (network.domain.low, network.domain.high)
    return Network.from_bytes(model.SerializeToString(), domain=domain, name=network.name)
