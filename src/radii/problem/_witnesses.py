"""The only place where a candidate becomes a counterexample.

A candidate is rounded to the network's own input type, pulled into the region if rounding pushed it
out, and replayed on ONNX Runtime, one input at a time. It counts if the requirement fails on what
ONNX Runtime returned. Anything else fails closed: no witness.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from radii.problem._ball import Ball
from radii.problem._queries import Specification
from radii.problem._verdicts import Array, Witness


class ReplayedNetwork(Protocol):
    """What a network has to offer for a candidate to be replayed on it."""

    @property
    def input_dtype(self) -> np.dtype[Any]: ...

    @property
    def replayed_on(self) -> str: ...

    def replay(self, points: Array) -> Array: ...


def check_witness(
    network: ReplayedNetwork, specification: Specification, candidate: Array | None
) -> Witness | None:
    """The candidate as a replayed witness, or None if it is not one.

    `distance` is measured from the centre of the region's ball; it is 0 where the region is a box.
    """
    if candidate is None or not np.isfinite(candidate).all():
        return None
    region = specification.region
    if candidate.size != int(np.prod(region.shape)):
        return None
    point = region.project(candidate.reshape(region.shape), network.input_dtype)
    if not specification.contains(point):
        return None
    outputs = network.replay(point[None])[0]
    if not np.isfinite(outputs).all():
        return None
    distance = region.distance(point) if isinstance(region, Ball) else 0.0
    if specification.requirement.holds(outputs[None], distance)[0]:
        return None
    return Witness(
        input=point,
        distance=distance,
        predicted=int(np.argmax(outputs)),
        outputs=outputs,
        replayed_on=network.replayed_on,
    )
