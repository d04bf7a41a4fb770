"""Certificates of networks that are split by inputs: boxes, each of which CROWN alone closes.

The search for a proof knows more ways to close a box than a checker should have to know. So what it
has proven is proven once more, with more boxes and less thought. The checker is asked in the end:
it bounds the network node by node, where radii joins affine nodes, and may need smaller boxes.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from radii.bounds import (
    LayeredNetwork,
    Supports,
    backward,
    box_of,
    fuse,
    input_influence,
    layered,
    linear_bounds,
    propagate,
    without_softmax,
)
from radii.networks import Interval, Network
from radii.problem import Arithmetic, Ball, Box, Halfspaces, Norm, Specification
from radii.verifiers.certificates._claims import claim_of
from radii.verifiers.certificates._container import Certificate

BOXES_AT_ONCE = 64
MOST_BOXES = 1 << 14
"""Of one certificate: more take longer to check than one would wait."""

CLOSING_SHARE = 1e-6
"""Of the size of what a row adds up: how far above 0 it must be, so that lines that are rounded
otherwise close it as well."""

LEAST_DEPTHS = (0, 2, 4, 6, 8)
"""Of all boxes of a tree, one after the other until the checker closes them too."""

MOST_INFLUENCE_INPUTS = 64
"""Beyond, the widest slope tells where to cut: the influence of each input takes too long."""

Integers = npt.NDArray[np.int64]


def box_certificate(
    network: Network, specification: Specification, arithmetic: Arithmetic, seconds: float
) -> bytes | None:
    """Boxes that CROWN closes, each with its part of the region; None if it takes too long, or if
    the checker does not close them either."""
    described = claim_of(network, specification, arithmetic)
    if described is None:
        return None
    stated = specification.requirement.violations or ()
    fusion, violations = without_softmax(fuse(network), stated, arithmetic)
    ready = layered(fusion, torch.float64, "cpu", arithmetic)
    claim, arrays = described
    deadline = time.monotonic() + seconds
    for depth in LEAST_DEPTHS:
        with torch.no_grad():
            tree = _BoxTree(ready, violations, specification.region)
            if not tree.grow(deadline, depth):
                return None
        content = Certificate(claim, "boxes", arrays | tree.arrays()).to_bytes()
        if not _is_refused(content, network):
            return content
    return None


def _is_refused(content: bytes, network: Network) -> bool:
    """What the checker cannot read is not refused: a later one may know more operators."""
    import radii_check

    return radii_check.check(content, network.onnx_bytes).outcome == "refused"


class _BoxTree:
    def __init__(
        self,
        network: LayeredNetwork,
        violations: tuple[Halfspaces, ...],
        region: Ball | Box,
    ) -> None:
        self.network = network
        self.ends = np.cumsum([len(held.offset) for held in violations])[:-1].tolist()
        self.rows = torch.from_numpy(np.vstack([held.matrix for held in violations]))
        self.offsets = torch.from_numpy(np.concatenate([held.offset for held in violations]))
        self.region = Supports.of([region])
        self.low, self.high = (torch.from_numpy(side)[None] for side in box_of(region))
        self.nodes: list[tuple[int, int, float, int]] = [(-1, -1, 0.0, 0)]

    def grow(self, deadline: float, least_depth: int = 0) -> bool:
        """Until every box is closed and as deep as asked; False once it takes too long."""
        waiting, depths = [(0, self.low, self.high)], {0: 0}
        while waiting:
            if time.monotonic() > deadline or len(self.nodes) > MOST_BOXES:
                return False
            some, waiting = waiting[-BOXES_AT_ONCE:], waiting[:-BOXES_AT_ONCE]
            low = torch.cat([below for _, below, _ in some])
            high = torch.cat([above for _, _, above in some])
            is_closed, axes = self.bounded(low, high)
            is_closed &= torch.tensor([depths[node] >= least_depth for node, _, _ in some])
            for place in (~is_closed).nonzero().squeeze(1).tolist():
                axis = int(axes[place])
                cut = float(low[place, axis] / 2 + high[place, axis] / 2)
                if not low[place, axis] < cut < high[place, axis]:
                    return False
                parent = some[place][0]
                halves = self.halves(parent, axis, cut, low[place], high[place])
                depths.update((node, depths[parent] + 1) for node, _, _ in halves)
                waiting += halves
        return True

    def halves(
        self, node: int, axis: int, cut: float, low: Tensor, high: Tensor
    ) -> list[tuple[int, Tensor, Tensor]]:
        first = len(self.nodes)
        self.nodes += [(node, axis, cut, -1), (node, axis, cut, 1)]
        below, above = high.clone(), low.clone()
        below[axis] = above[axis] = cut
        return [(first, low[None], below[None]), (first + 1, above[None], high[None])]

    def bounded(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """Which boxes are closed, and along which input others are cut best."""
        parts = replace(
            self.region.taken(torch.zeros(len(low), dtype=torch.int64)), box=Interval(low, high)
        )
        state = propagate(self.network, parts, forms=False)
        output = self.network.output
        arguments, loss = output.arguments(state.values, state.errors)
        rows = self.rows.expand(len(low), -1, -1)
        found = linear_bounds(state, output, loss, rows, backward)
        size = arguments.magnitude @ self.rows.abs().T + self.offsets.abs()
        least = found.values + self.offsets - CLOSING_SHARE * size
        least = torch.where(least.isfinite(), least, -torch.inf)
        best = [part.amax(1) for part in torch.tensor_split(least, self.ends, 1)]
        is_closed = (torch.stack(best).amin(0) > 0) | self.is_beyond(low, high)
        widths = high - low
        score = found.slopes.abs().amax(1) * widths
        if low.shape[1] <= MOST_INFLUENCE_INPUTS:
            influence = input_influence(state)
            score = torch.where(influence.amax(1, keepdim=True) > 0, influence, score)
        score = torch.where(score.amax(1, keepdim=True) > 0, score * (widths > 0), widths)
        return is_closed, score.argmax(1)

    def is_beyond(self, low: Tensor, high: Tensor) -> Tensor:
        """Which boxes a ball in L1 or L2 does not reach."""
        centre, eps = self.region.centre, self.region.eps
        if centre is None or eps is None:
            return torch.zeros(len(low), dtype=torch.bool)
        far = torch.maximum(low - centre, centre - high).clamp_min(0)
        order = 1 if self.region.norm is Norm.L1 else 2
        lengths: Tensor = torch.linalg.vector_norm(far, order, dim=1)
        return lengths * (1 - CLOSING_SHARE) > eps

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        parent, axis, cut, side = zip(*self.nodes, strict=True)
        return {
            "parent": np.array(parent, dtype="<i4"),
            "axis": np.array(axis, dtype="<i4"),
            "cut": np.array(cut, dtype="<f8"),
            "side": np.array(side, dtype="|i1"),
        }
