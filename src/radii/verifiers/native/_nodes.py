"""The nodes of a tree, in flat tensors, and the frontier: what a tree has left open.

What was proven on a region is proven on every smaller one, so only the open nodes go on there.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from radii.bounds import Multipliers, Rows
from radii.networks import may_bend, prefers_right
from radii.problem import Ball, Box
from radii.verifiers.native._proof_log import LARGEST_HALF, ProofLog
from radii.verifiers.native._reduction import Reduction


@dataclass(slots=True, eq=False)
class Nodes:
    """Bounds of the units, signs of split units, which specification, its value and multipliers.

    `value` is a proven lower bound on the specification at the node, `share` the node's part of its
    tree: 1 at the root, halved by every split. `home` tells where the multipliers of its units'
    bounds are remembered: the memory's number and the place in it. `id` is the node's number in the
    log of the proof.
    """

    lower: Tensor
    upper: Tensor
    signs: Tensor
    spec: Tensor
    value: Tensor
    share: Tensor
    slopes: Tensor
    gamma: Tensor
    beta: Tensor
    home: Tensor
    id: Tensor

    @classmethod
    def roots(cls, lower: Tensor, upper: Tensor, specs: int, parts: int) -> Nodes:
        """One for each specification."""
        wide = lower.expand(specs, -1).clone(), upper.expand(specs, -1).clone()
        slopes = prefers_right(*wide).float()
        return cls(
            *wide,
            torch.zeros(slopes.shape, dtype=torch.int8, device=lower.device),
            torch.arange(specs, device=lower.device),
            lower.new_full((specs,), -torch.inf),
            lower.new_ones(specs),
            slopes,
            slopes.new_full((specs, parts), 1 / parts),
            torch.zeros_like(slopes),
            torch.full((specs, 2), -1, device=lower.device),
            torch.arange(specs, device=lower.device),
        )

    def __len__(self) -> int:
        return len(self.lower)

    def pick(self, chosen: Tensor) -> Nodes:
        return Nodes(*(getattr(self, field.name)[chosen] for field in fields(self)))

    @classmethod
    def join(cls, *parts: Nodes) -> Nodes:
        return cls(*(torch.cat([getattr(part, f.name) for part in parts]) for f in fields(cls)))

    @property
    def is_open_unit(self) -> Tensor:
        return may_bend(self.lower, self.upper)

    @property
    def is_empty(self) -> Tensor:
        """A unit with no value left: no input of the region is a violation there."""
        return (self.lower > self.upper).any(1)

    def rows(self, index: Tensor) -> Rows:
        """Rows that bound the specifications of the indexed nodes."""
        has_splits = bool(self.signs.any())
        signs = self.signs[index].to(self.lower.dtype) if has_splits else None
        return Rows(self.lower[index], self.upper[index], self.spec[index], signs)

    def multipliers(self, index: Tensor) -> Multipliers:
        """Where the ascent of the nodes' own bounds stands, in float32."""
        beta = self.beta[index] if bool(self.signs.any()) else None
        return Multipliers(self.slopes[index], self.gamma[index], beta)

    def remember(self, chosen: Multipliers) -> None:
        self.slopes, self.gamma = chosen.slopes, chosen.gamma
        if chosen.beta is not None:
            self.beta = chosen.beta

    def split(self, unit: Tensor) -> Nodes:
        """Two children of each node: first all with its unit at least 0, then at most 0."""
        count = len(self)
        place = torch.arange(count, device=unit.device)
        children = Nodes.join(self, self)
        children.lower[place, unit] = 0.0
        children.signs[place, unit] = 1
        children.upper[count + place, unit] = 0.0
        children.signs[count + place, unit] = -1
        children.share = children.share / 2
        return children


class NodesAside:
    """Open nodes of a large tree whose turn is far off: moving all of them at every step would take
    longer than bounding a few. `share` is their part of the tree, `worst` their least value."""

    def __init__(self) -> None:
        self.parts: list[Nodes] = []
        self._best: list[float] = []
        self.share, self.worst = 0.0, math.inf

    def exchanged(self, nodes: Nodes, fewest: int, most: int) -> Nodes:
        """The nodes that are worked on: of more than `most` the worse half is put aside, and with
        fewer than `fewest` the part with the best node comes back."""
        if len(nodes) > most:
            order = nodes.value.argsort(descending=True)
            self._put(nodes.pick(order[most // 2 :]))
            return nodes.pick(order[: most // 2])
        if len(nodes) < fewest and self.parts:
            return Nodes.join(nodes, self._take())
        return nodes

    def _put(self, nodes: Nodes) -> None:
        self.parts.append(nodes)
        self._best.append(float(nodes.value.max()))
        self._count()

    def _take(self) -> Nodes:
        place = max(range(len(self.parts)), key=self._best.__getitem__)
        del self._best[place]
        nodes = self.parts.pop(place)
        self._count()
        return nodes

    def _count(self) -> None:
        self.share = sum(float(part.share.sum()) for part in self.parts)
        self.worst = min((float(part.value.min()) for part in self.parts), default=math.inf)


# Where the ascent of every unit's bounds stands, kept from round to round and for children.
#
# A child's best multipliers are near its parent's, so a few steps from there do what many steps
# from scratch would. What is kept is a start, never a proof, so half precision and forgetting are
# safe.


START_GAMMA = 0.1
"""A unit's first multiplier for the assumption of a violation, relative to the node's own."""


class StoredMultipliers:
    """The multipliers of the units asked for at some nodes, lower bounds first, then upper."""

    def __init__(self, nodes: Nodes, asked: Tensor) -> None:
        node, unit = (nodes.is_open_unit & asked).nonzero(as_tuple=True)
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

    def inherit(self, chosen: Tensor, parent: StoredMultipliers, rows: Tensor) -> None:
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
            part[:, place] = (
                found.clamp_max(LARGEST_HALF).half().view(2, len(place), found.shape[1])
            )


class MultiplierCache:
    """The latest memories, as many as fit."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.held: OrderedDict[int, StoredMultipliers] = OrderedDict()
        self.count = 0

    def begin(self, nodes: Nodes, asked: Tensor) -> StoredMultipliers:
        """A memory for units of these nodes, started from their parents' where that is there."""
        memory = StoredMultipliers(nodes, asked)
        for number in set(nodes.home[:, 0].tolist()):
            if number in self.held:
                chosen = (nodes.home[:, 0] == number).nonzero().squeeze(1)
                memory.inherit(chosen, self.held[number], nodes.home[chosen, 1])
        return memory

    def hold(self, nodes: Nodes, memory: StoredMultipliers) -> None:
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


@dataclass(frozen=True, slots=True, eq=False)
class Frontier:
    """Open nodes, the names of the units that their tensors are about, the region, and the log.

    What is closed, and the bounds in open nodes, are statements about the network itself, in the
    arithmetic of the proof: they hold on every part of the region. `closed_share` is the part of
    the tree that is closed.
    """

    nodes: Nodes
    names: Tensor
    region: Ball | Box
    log: ProofLog | None = None
    closed_share: float = 0.0

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
        begun.id = nodes.id
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
