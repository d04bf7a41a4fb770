"""Branch and bound on the signs of units, with bounds under the assumption of a violation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from radii.verifiers.branch_and_bound.duals import Multipliers, Rows, evaluate, improve
from radii.verifiers.branch_and_bound.leaves import solve_leaf
from radii.verifiers.branch_and_bound.reduction import Reduction

__all__ = ["Nodes", "Tree"]

ROWS_AT_ONCE = 2048
"""Rows bounded together: fills the matrix products and stays within a laptop's caches."""

NODES_AT_ONCE = 16
SPEC_STEPS = 10
"""Steps of ascent for a node's own bound."""
TIGHTEN_STEPS = 3
"""Steps of ascent for the bounds of a node's units."""
ROOT_ROUNDS, NODE_ROUNDS = 10, 4
"""Rounds of tightening at the root, where everything below profits, and at each other node."""
LEAF_STEPS = 300
"""Steps of ascent at a leaf, where only the splits' multipliers are left."""
WORTHWHILE = 0.97
"""Another round only if the last one shrank the units' total width to less than this."""


@dataclass(slots=True, eq=False)
class Nodes:
    """Open nodes in flat tensors: bounds of the units, split signs, which specification, value."""

    lower: Tensor
    upper: Tensor
    signs: Tensor
    spec: Tensor
    value: Tensor

    def __len__(self) -> int:
        return len(self.lower)

    def pick(self, chosen: Tensor) -> Nodes:
        return Nodes(
            self.lower[chosen],
            self.upper[chosen],
            self.signs[chosen],
            self.spec[chosen],
            self.value[chosen],
        )

    @classmethod
    def join(cls, first: Nodes, second: Nodes) -> Nodes:
        return cls(
            torch.cat([first.lower, second.lower]),
            torch.cat([first.upper, second.upper]),
            torch.cat([first.signs, second.signs]),
            torch.cat([first.spec, second.spec]),
            torch.cat([first.value, second.value]),
        )

    @property
    def is_open_unit(self) -> Tensor:
        return (self.lower < 0) & (self.upper > 0)


@dataclass(slots=True, eq=False)
class Memory:
    """The multipliers of the last round, found again by node and unit."""

    place: Tensor
    lower: Multipliers
    upper: Multipliers

    @classmethod
    def of(cls, nodes: Nodes, node: Tensor, unit: Tensor, parts: list[Multipliers]) -> Memory:
        place = torch.full(nodes.lower.shape, -1)
        done = sum(len(part.slopes) for part in parts) // 2
        place[node[:done], unit[:done]] = torch.arange(done)
        halves = []
        for half in (0, 1):
            chunks = [[t.chunk(2)[half] for t in part.parts()] for part in parts]
            joined = [torch.cat(tensors) for tensors in zip(*chunks, strict=True)]
            halves.append(Multipliers(joined[0], joined[1], joined[2] if len(joined) > 2 else None))
        return cls(place, halves[0], halves[1])

    def pick(self, chosen: Tensor) -> Memory:
        return Memory(self.place[chosen], self.lower, self.upper)

    def recall(self, node: Tensor, unit: Tensor) -> Multipliers:
        """Where the same rows ended last time."""
        place = self.place[node, unit]
        halves = zip(self.lower.parts(), self.upper.parts(), strict=True)
        found = [torch.cat([low[place], high[place]]) for low, high in halves]
        return Multipliers(found[0], found[1], found[2] if len(found) > 2 else None)


class Tree:
    """All nodes not yet proven, over all specifications of one region.

    `check` is called with candidate inputs (N, inputs) and the specification each should violate;
    it returns True to stop the search. `margin` is what a proven value must exceed.
    """

    def __init__(
        self,
        reduction: Reduction,
        *,
        margin: float,
        is_over: Callable[[], bool],
        check: Callable[[Tensor, Tensor], bool],
    ) -> None:
        self.layers = reduction.layers
        self.region = reduction.region
        self.fast = reduction.layers.to(torch.float32, "cpu")
        self.specs = _padded(reduction.specs)
        self.margin = margin
        self.is_over = is_over
        self.check = check
        self.is_refuted = False
        self.undecided = 0
        self.visited = 0
        count = len(reduction.specs)
        self.open = Nodes(
            reduction.lower.expand(count, -1).clone(),
            reduction.upper.expand(count, -1).clone(),
            torch.zeros(count, self.layers.units, dtype=torch.int8),
            torch.arange(count),
            torch.full((count,), -torch.inf, dtype=torch.float64),
        )

    @property
    def is_proven(self) -> bool:
        return len(self.open) == 0 and self.undecided == 0

    def start(self) -> None:
        """Bound the root: proves what needs no branching."""
        self.open = self.bounded(self.open, ROOT_ROUNDS)

    def grow(self) -> None:
        """Branch until everything is proven, a counterexample is found, or it is over."""
        while len(self.open) and not self.is_refuted and not self.is_over():
            order = self.open.value.argsort(descending=True)
            now, later = order[:NODES_AT_ONCE], order[NODES_AT_ONCE:]
            chosen, rest = self.open.pick(now), self.open.pick(later)
            is_leaf = ~chosen.is_open_unit.any(1)
            self.finish(chosen.pick(is_leaf))
            children = self.split(chosen.pick(~is_leaf))
            self.visited += len(children)
            self.open = Nodes.join(rest, self.bounded(children, NODE_ROUNDS))

    # --- bounding

    def bounded(self, nodes: Nodes, rounds: int) -> Nodes:
        """The nodes that remain open after their own bound and some rounds of tightening."""
        nodes, _ = self.still_open(nodes)
        memory = None
        for _ in range(rounds):
            if self.is_refuted or self.is_over() or not bool(nodes.is_open_unit.any()):
                break
            before = (nodes.upper - nodes.lower).sum(1)
            nodes, memory = self.tightened(nodes, memory)
            nodes, kept = self.still_open(nodes)
            memory = memory.pick(kept)
            after = (nodes.upper - nodes.lower).sum(1)
            if len(nodes) == len(before) and bool((after > WORTHWHILE * before).all()):
                break
        return nodes

    def still_open(self, nodes: Nodes) -> tuple[Nodes, Tensor]:
        """The nodes that are neither empty nor proven by their own bound, and which these are."""
        kept = (~(nodes.lower > nodes.upper).any(1)).nonzero().squeeze(1)
        nodes = nodes.pick(kept)
        if not len(nodes):
            return nodes, kept
        rows = self.rows(nodes, torch.arange(len(nodes)))
        fast = rows.to(torch.float32)
        chosen, _ = improve(self.fast, fast, Multipliers.start(fast), SPEC_STEPS)
        found = evaluate(self.layers, rows, chosen.to(torch.float64))
        nodes.value = found.values
        is_open = found.values <= self.margin
        if bool(is_open.any()) and self.check(found.points[is_open], nodes.spec[is_open]):
            self.is_refuted = True
        return nodes.pick(is_open), kept[is_open]

    def tightened(self, nodes: Nodes, memory: Memory | None) -> tuple[Nodes, Memory]:
        """New bounds for every open unit of every node, assuming that the node is violated."""
        node, unit = nodes.is_open_unit.nonzero(as_tuple=True)
        lower, upper = nodes.lower.clone(), nodes.upper.clone()
        parts = []
        for first in range(0, len(node), ROWS_AT_ONCE // 2):
            n, i = (index[first : first + ROWS_AT_ONCE // 2] for index in (node, unit))
            count = len(n)
            rows = self.rows(nodes, torch.cat([n, n]))
            seed = torch.zeros_like(rows.lower)
            seed[torch.arange(count), i] = 1.0
            seed[count + torch.arange(count), i] = -1.0
            rows.seed = seed
            fast = rows.to(torch.float32)
            start = Multipliers.start(fast) if memory is None else memory.recall(n, i)
            chosen, _ = improve(self.fast, fast, start, TIGHTEN_STEPS)
            values = evaluate(self.layers, rows, chosen.to(torch.float64)).values
            lower[n, i] = torch.maximum(lower[n, i], values[:count])
            upper[n, i] = torch.minimum(upper[n, i], -values[count:])
            parts.append(chosen)
            if self.is_over():
                break
        tighter = Nodes(lower, upper, nodes.signs, nodes.spec, nodes.value)
        return tighter, Memory.of(nodes, node, unit, parts)

    def rows(self, nodes: Nodes, index: Tensor) -> Rows:
        is_split = bool(nodes.signs.any())
        return Rows(
            nodes.lower[index],
            nodes.upper[index],
            self.specs[nodes.spec[index]],
            nodes.signs[index].double() if is_split else None,
        )

    # --- leaves: every unit has a sign, so the network is linear there

    def finish(self, leaves: Nodes) -> None:
        """Decide leaves one by one; `undecided` counts what even that leaves open."""
        for place in range(len(leaves)):
            row = self.rows(leaves, torch.tensor([place]))
            solved = solve_leaf(self.layers, row, self.region)
            if solved is None:
                chosen, _ = improve(self.layers, row, Multipliers.start(row), LEAF_STEPS)
                points = evaluate(self.layers, row, chosen).points
            else:
                chosen, points = solved
                if row.signs is None:
                    row.signs = torch.zeros_like(row.lower)
            if bool(evaluate(self.layers, row, chosen).values[0] > self.margin):
                continue
            self.undecided += 1
            if self.check(points, leaves.spec[place : place + 1]):
                self.is_refuted = True
            if self.is_refuted or self.is_over():
                return

    # --- splitting

    def split(self, nodes: Nodes) -> Nodes:
        """Two children a node, split where the relaxation loses most."""
        if not len(nodes):
            return nodes
        rows = self.rows(nodes, torch.arange(len(nodes)))
        fast = rows.to(torch.float32)
        chosen, _ = improve(self.fast, fast, Multipliers.start(fast), SPEC_STEPS // 2)
        losses = -evaluate(self.fast, fast, chosen).losses
        losses[~nodes.is_open_unit] = -1.0
        unit, place = losses.argmax(1), torch.arange(len(nodes))
        children = Nodes.join(nodes, nodes)
        children.lower[place, unit] = 0.0
        children.signs[place, unit] = 1
        children.upper[len(nodes) + place, unit] = 0.0
        children.signs[len(nodes) + place, unit] = -1
        return children


def _padded(specs: tuple[Tensor, ...]) -> Tensor:
    """(P, S, columns): shorter specifications repeat their last row."""
    longest = max(len(spec) for spec in specs)
    return torch.stack([spec[[min(i, len(spec) - 1) for i in range(longest)]] for spec in specs])
