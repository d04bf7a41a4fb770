"""Where the ascent of every unit's bounds stands, kept from round to round and for children.

A child's best multipliers are near its parent's, so a few steps from there do what many steps from
scratch would. What is kept is a start, never a proof, so half precision and forgetting are safe.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor

from radii.verifiers.branch_and_bound.duals import Multipliers
from radii.verifiers.branch_and_bound.nodes import Nodes

__all__ = ["Memories", "Memory"]

START_GAMMA = 0.1
"""A unit's first multiplier for the assumption of a violation, relative to the node's own."""

LARGEST = 6e4
"""Half precision holds no more."""


class Memory:
    """The multipliers of all open units of some nodes, lower bounds first, then upper."""

    def __init__(self, nodes: Nodes) -> None:
        node, unit = nodes.is_open_unit.nonzero(as_tuple=True)
        self.place = torch.full(nodes.lower.shape, -1, device=node.device)
        self.place[node, unit] = torch.arange(len(node), device=node.device)
        self.has_beta = bool(nodes.signs.any())
        start = nodes.multipliers(node)
        if start.beta is None:
            start.beta = torch.zeros_like(start.slopes)
        parts = [start.slopes, START_GAMMA * start.gamma, START_GAMMA * start.beta]
        self.kept = [part.half().expand(2, -1, -1).clone() for part in parts]

    def __len__(self) -> int:
        return len(self.place)

    @property
    def bytes(self) -> int:
        return sum(part.numel() * part.element_size() for part in self.kept)

    def inherit(self, chosen: Tensor, parent: Memory, rows: Tensor) -> None:
        """Start the chosen nodes where the given rows (nodes) of another memory ended."""
        own, theirs = self.place[chosen], parent.place[rows]
        is_known = (own >= 0) & (theirs >= 0)
        for part, source in zip(self.kept, parent.kept, strict=True):
            part[:, own[is_known]] = source[:, theirs[is_known]]

    def pick(self, chosen: Tensor) -> None:
        """Forget all nodes but the chosen; the rows stay where they are."""
        self.place = self.place[chosen]

    def recall(self, node: Tensor, unit: Tensor) -> Multipliers:
        """Twice the rows: those of the lower bounds, then those of the upper bounds."""
        place = self.place[node, unit]
        found = [part[:, place].flatten(0, 1).float() for part in self.kept]
        return Multipliers.of(found if self.has_beta else found[:2])

    def keep(self, node: Tensor, unit: Tensor, chosen: Multipliers) -> None:
        place = self.place[node, unit]
        for part, found in zip(self.kept, chosen.parts(), strict=False):
            part[:, place] = found.clamp_max(LARGEST).half().view(2, len(place), found.shape[1])


class Memories:
    """The latest memories, as many as fit."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.held: OrderedDict[int, Memory] = OrderedDict()
        self.count = 0

    def begin(self, nodes: Nodes) -> Memory:
        """A memory for these nodes, started from their parents' where that is still there."""
        memory = Memory(nodes)
        for number in set(nodes.home[:, 0].tolist()):
            if number in self.held:
                chosen = (nodes.home[:, 0] == number).nonzero().squeeze(1)
                memory.inherit(chosen, self.held[number], nodes.home[chosen, 1])
        return memory

    def hold(self, nodes: Nodes, memory: Memory) -> None:
        """Keep what the nodes' children will start from."""
        self.count += 1
        self.held[self.count] = memory
        nodes.home = torch.stack(
            [
                torch.full_like(nodes.spec, self.count),
                torch.arange(len(nodes), device=nodes.spec.device),
            ],
            1,
        )
        while len(self.held) > 1 and sum(m.bytes for m in self.held.values()) > self.most_bytes:
            self.held.popitem(last=False)
