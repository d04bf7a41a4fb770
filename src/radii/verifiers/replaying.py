"""How far ONNX Runtime may stray from real arithmetic.

A proof speaks about the network in real arithmetic, a witness about ONNX Runtime in the network's
own type. A proof is accepted only with a margin above what the two differ by: several times the
largest difference seen on points of the region, and never less than a few roundings of the output.
"""

from __future__ import annotations

import numpy as np
import torch

from radii.bounds import Stage, box_of, fuse
from radii.networks import Network
from radii.properties import Halfspaces
from radii.queries import Specification
from radii.verdicts import Array
from radii.verifiers.linear.expressions import Float64

__all__ = ["ReplayNoise"]

SAMPLES = 16
"""Points of the region, and as many corners of its box, at which both are compared."""

SEEN = 8.0
"""Accepted margins are at least this many times the largest difference seen."""

ROUNDINGS = 4.0
"""Accepted margins are at least this many roundings of what the output adds up.

Where hidden units are off at all points sampled, the two agree there to the last bit, but not
everywhere in the region.
"""

HIDDEN_ROUNDINGS = 64.0
"""The same where ONNX Runtime does not show the values that are compared."""

FINEST = 2.0**-44
"""Relative to the same sum, the least margin for float64 networks: hundreds of roundings."""


class ReplayNoise:
    """Compares ONNX Runtime with float64 on a few points of a region; seeded.

    `output` is what a proof is about where that is not the output itself but what a final softmax
    reads: there nothing can be compared, and the roundings count for more.
    """

    def __init__(
        self, network: Network, specification: Specification, output: Stage | None = None
    ) -> None:
        points = _points(network, specification)
        with torch.no_grad():
            values = network.graph.values(torch.from_numpy(points.astype(np.float64)))
        exact = values[network.graph.output].reshape(len(points), -1).numpy()
        self._differences: Float64 = network.replay(points).astype(np.float64) - exact
        own = fuse(network).output
        output = own if output is None else output
        roundings = ROUNDINGS if output is own else HIDDEN_ROUNDINGS
        sizes = np.abs(output.offset)
        for index, matrix in output.maps.items():
            largest = values[index].reshape(len(points), -1).abs().amax(dim=0).numpy()
            sizes = sizes + abs(matrix) @ largest
        unit = float(np.finfo(network.input_dtype).eps) / 2
        self._sizes: Float64 = sizes * max(roundings * unit, FINEST)

    def margin(self, polyhedron: Halfspaces) -> float:
        """The margin for the rows of a polyhedron, in units of the outputs."""
        rows = polyhedron.matrix
        seen = float(np.abs(self._differences @ rows.T).max())
        smallest = float((np.abs(rows) @ self._sizes).max())
        return max(SEEN * seen, smallest)


def _points(network: Network, specification: Specification) -> Array:
    """Points inside the region and corners of its box, in the network's own type."""
    rng = np.random.default_rng(0)
    region = specification.region
    low, high = box_of(region)
    corners = np.where(rng.integers(0, 2, (SAMPLES, len(low))), high, low)
    inside = region.sample(rng, SAMPLES).reshape(SAMPLES, -1)
    both = np.concatenate([inside, corners]).astype(network.input_dtype)
    return both.reshape(2 * SAMPLES, *network.input_shape)
