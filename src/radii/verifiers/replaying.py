"""How far ONNX Runtime strays from real arithmetic, as measured.

A proof speaks about the network in real arithmetic, a witness about ONNX Runtime in the network's
own type. A proof is accepted only with a margin above what the two may differ by.
"""

from __future__ import annotations

import numpy as np
import torch

from radii.networks import Network
from radii.properties import Halfspaces
from radii.queries import Specification
from radii.verifiers.linear.expressions import Float64

__all__ = ["ReplayNoise"]

SAMPLES = 16
"""Points of the region at which both are compared."""

FACTOR = 8.0
"""Accepted margins are this many times the largest difference seen."""

FLOOR = 2.0**-44
"""Smallest margin, relative to the outputs: that of float64 sums of some hundred terms."""


class ReplayNoise:
    """Compares ONNX Runtime with float64 on a few points of a region; seeded."""

    def __init__(self, network: Network, specification: Specification) -> None:
        rng = np.random.default_rng(0)
        region = specification.region
        samples = [region.project(x, network.input_dtype) for x in region.sample(rng, SAMPLES)]
        points = np.stack(samples).reshape(SAMPLES, *network.input_shape)
        with torch.no_grad():
            exact = network(torch.from_numpy(points.astype(np.float64))).numpy()
        self._differences: Float64 = network.replay(points).astype(np.float64) - exact
        self._sizes: Float64 = np.abs(exact).max(axis=0)

    def margin(self, polyhedron: Halfspaces) -> float:
        """The margin for the rows of a polyhedron, in units of the outputs."""
        rows = polyhedron.matrix
        seen = float(np.abs(self._differences @ rows.T).max())
        smallest = float((np.abs(rows) @ self._sizes + np.abs(polyhedron.offset)).max()) * FLOOR
        return max(FACTOR * seen, smallest)
