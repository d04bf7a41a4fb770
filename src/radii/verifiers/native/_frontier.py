"""What a tree has left open, kept for the same question about a smaller region.

What was proven on the larger region is proven on the smaller one, so only the open nodes go on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from radii.balls import Ball, Box
from radii.verifiers.native._nodes import Nodes
from radii.verifiers.native._reduction import Reduction


@dataclass(frozen=True, slots=True, eq=False)
class Frontier:
    """Open nodes, the names of the units that their tensors are about, and the region.

    What is closed, and the bounds in open nodes, are statements about the network itself, in the
    arithmetic of the proof: they hold on every part of the region.
    """

    nodes: Nodes
    names: Tensor
    region: Ball | Box

    def within(self, reduction: Reduction) -> Nodes:
        """The open nodes over a smaller region.

        A node that asks for the sign that a unit no longer takes is dropped: its sibling, which
        is closed or open here too, holds all inputs that are left.
        """
        if not _is_within(reduction.region, self.region):
            raise ValueError("open nodes say nothing about a region that is not within theirs")
        signs = reduction.signs[self.names]
        is_gone = ((self.nodes.signs * signs) < 0).any(1)
        nodes = self.nodes.pick(~is_gone)
        places = torch.full(reduction.signs.shape, -1)
        places[self.names] = torch.arange(len(self.names))
        old = places[reduction.names]
        new = (old >= 0).nonzero().squeeze(1)
        old = old[new]
        begun = Nodes.roots(reduction.lower, reduction.upper, len(nodes), nodes.gamma.shape[1])
        begun.lower[:, new] = torch.maximum(begun.lower[:, new], nodes.lower[:, old])
        begun.upper[:, new] = torch.minimum(begun.upper[:, new], nodes.upper[:, old])
        begun.signs[:, new] = nodes.signs[:, old]
        begun.slopes[:, new], begun.beta[:, new] = nodes.slopes[:, old], nodes.beta[:, old]
        begun.spec, begun.share, begun.gamma = nodes.spec, nodes.share, nodes.gamma
        return begun


def _is_within(smaller: Ball | Box, larger: Ball | Box) -> bool:
    if isinstance(smaller, Ball) and isinstance(larger, Ball):
        is_same = smaller.norm is larger.norm and np.array_equal(smaller.center, larger.center)
        if not is_same or smaller.eps > larger.eps:
            return False
    elif isinstance(larger, Ball):
        return False
    (low, high), (least, greatest) = smaller.box(), larger.box()
    return bool((low >= least).all() and (high <= greatest).all())
