"""From candidates to the closest witness: the last step of every attack, on ONNX Runtime.

torch and ONNX Runtime round differently, so a point on the boundary for one may not be over it for
the other. What counts is ONNX Runtime, and the segment to the input is searched with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from radii.balls import Ball
from radii.networks import Network
from radii.queries import Specification
from radii.verdicts import Array, Witness
from radii.witnesses import check_witness

__all__ = ["closest_witness"]

OUTWARD = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
"""How much further out a candidate is tried that does not replay, as parts of its distance."""
INWARD = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5)
"""How much closer a witness is tried, as parts of its distance, until it is none any more."""
PRECISION = 5e-7
"""Parts of the distance at which halving stops: some units in the last place of a float32."""
SAFETY = 1e-6
"""How much further out than the closest witness the final one lies, as a part of its distance, so
that it is one, too, for a runtime that rounds differently."""


def closest_witness(
    network: Network, specification: Specification, ball: Ball, candidates: Sequence[Array]
) -> Witness | None:
    """The closest witness on the segments from the ball's centre to the candidates, best first.

    A candidate further away than a witness that is known already is not looked at.
    """
    best: Witness | None = None
    for candidate in candidates:
        point = ball.project(candidate.reshape(ball.shape))
        if best is None or ball.distance(point) < best.distance:
            found = _Segment(network, specification, ball, point).closest()
            if found is not None and (best is None or found.distance < best.distance):
                best = found
    return best


class _Segment:
    """The ray from the centre through a candidate, which is at place 1."""

    def __init__(
        self, network: Network, specification: Specification, ball: Ball, point: Array
    ) -> None:
        self._network, self._specification, self._center = network, specification, ball.center
        self._offset = np.asarray(point, np.float64) - ball.center

    def closest(self) -> Witness | None:
        """The closest witness that stepping and then halving finds; None without any."""
        if (witness := self._at(1.0)) is not None:
            intact, broken, witness = self._inward(witness)
        else:
            intact, broken, witness = self._outward()
        if witness is None:
            return None
        while broken - intact > PRECISION:
            middle = (intact + broken) / 2
            if (closer := self._at(middle)) is not None:
                broken, witness = middle, closer
            else:
                intact = middle
        return self._at(broken * (1 + SAFETY)) or witness

    def _inward(self, witness: Witness) -> tuple[float, float, Witness]:
        broken = 1.0
        for step in INWARD:
            closer = self._at(1 - step)
            if closer is None:
                return 1 - step, broken, witness
            broken, witness = 1 - step, closer
        return 0.0, broken, witness

    def _outward(self) -> tuple[float, float, Witness | None]:
        intact = 1.0
        for step in OUTWARD:
            if (witness := self._at(1 + step)) is not None:
                return intact, 1 + step, witness
            intact = 1 + step
        return 1.0, 1.0, None

    def _at(self, place: float) -> Witness | None:
        return check_witness(
            self._network, self._specification, self._center + place * self._offset
        )
