"""What a tree has shown, kept while it works: bounds with their multipliers, splits, closed nodes.

Any multipliers give a valid bound, so a proof is stated by its splits and its multipliers. They are
rounded to few bits before the bound is evaluated: what was proven is then exactly what is stated.
Bounds that a tree goes on with are numbers of float32, rounded outward, for the same reason.

A log is a chain: an attempt that goes on from what a larger region left open begins a part behind
that of the larger region, and several attempts may go on from the same part.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from radii.bounds import Multipliers, Rows
from radii.problem import Ball, Box

SLOPE_STEPS = 255
"""Slopes are whole multiples of one part in so many: a byte each."""

LARGEST_HALF = 6e4
"""Half precision holds no more."""

CLOSING = -1
"""In place of a unit: the row bounds the node's own specification away."""

MOST_LOG_BYTES = 1 << 29
"""Of one chain: a proof that takes more is not kept."""


def rounded_down(values: Tensor) -> Tensor:
    """The next number of float32 at or below each, in float64; what is no number is -inf."""
    single = values.float()
    below = torch.nextafter(single, single.new_tensor(-torch.inf))
    found = torch.where(single.double() > values, below, single).double()
    return torch.where(found.isnan(), -torch.inf, found)


def slope_bytes(slopes: Tensor) -> Tensor:
    return (slopes * SLOPE_STEPS).round_().to(torch.uint8)


def stated(chosen: Multipliers) -> tuple[Multipliers, Tensor]:
    """Multipliers as a certificate states them, in float64; and the slopes as bytes."""
    bytes_ = slope_bytes(chosen.slopes)
    beta = chosen.beta
    if beta is not None:
        beta = beta.clamp_max(LARGEST_HALF).half().double()
    return Multipliers(bytes_.double() / SLOPE_STEPS, chosen.gamma.double(), beta), bytes_


@dataclass(frozen=True, slots=True, eq=False)
class LemmaRows:
    """Some bounds of one round: of units at nodes, or closing rows. `bound` is on side * argument.

    `slopes` (rows, kept units) are bytes; `split` has the row, the kept unit and the multiplier of
    each sign that a row uses. `names` are the numbers of the kept units among all units.
    """

    round: int
    node: Tensor
    unit: Tensor
    side: Tensor
    bound: Tensor
    gamma: Tensor
    slopes: Tensor
    split: tuple[Tensor, Tensor, Tensor]
    names: Tensor

    @property
    def bytes(self) -> int:
        return self.slopes.numel() + sum(part.numel() * 12 for part in self.split)


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """Bounds of all units over one region, before any split.

    `slopes` are those of bounds that rest on slopes of their own: some units, their sides, bytes
    (rows, kept units), and the numbers of the kept units.
    """

    lower: Tensor
    upper: Tensor
    slopes: tuple[tuple[Tensor, Tensor, Tensor, Tensor], ...] = ()


@dataclass(slots=True, eq=False)
class ProofLog:
    """One part of a chain: a region, its ground bounds, and what a tree has shown on it.

    `layer_firsts` are the first units of the layers. Nodes are numbered through along the chain,
    and so are rounds. `splits` are parents, units, and the number of the first child: first come
    all with the unit at least 0, then all with it at most 0. A node may have been split more than
    once: the last time counts.
    """

    region: Ball | Box
    grounds: tuple[Ground, ...]
    specs: int
    layer_firsts: tuple[int, ...]
    before: ProofLog | None = None
    count: int = 0
    rounds: int = 0
    splits: list[tuple[Tensor, Tensor, int]] = field(default_factory=list)
    lemmas: list[LemmaRows] = field(default_factory=list)
    bytes: int = 0
    is_too_large: bool = False

    def __post_init__(self) -> None:
        if self.before is None:
            self.count = self.specs
        else:
            self.count, self.rounds = self.before.count, self.before.rounds
            self.bytes, self.is_too_large = self.before.bytes, self.before.is_too_large

    def begin_round(self) -> None:
        """Bounds that are shown from now on rest on what is known now."""
        self.rounds += 1

    def split(self, nodes: Tensor, units: Tensor) -> Tensor:
        """Number the two children of each node, split on these units."""
        first = self.count
        self.count += 2 * len(nodes)
        if not self.is_too_large:
            self.splits.append((nodes.clone(), units.clone(), first))
        return torch.arange(first, self.count)

    def keep(
        self,
        node: Tensor,
        rows: Rows,
        bound: Tensor,
        chosen: Multipliers,
        slopes: Tensor,
        names: Tensor,
    ) -> None:
        """Rows that hold, with the multipliers and slopes that they were evaluated with."""
        if self.is_too_large or not len(node):
            return
        unit, side = torch.full_like(node, CLOSING), torch.ones_like(node, dtype=torch.int8)
        if rows.unit is not None and rows.sign is not None:
            unit, side = names[rows.unit], rows.sign.to(torch.int8)
        found = LemmaRows(
            self.rounds,
            node.clone(),
            unit,
            side,
            bound.clone(),
            chosen.gamma,
            slopes,
            _nonzero(chosen.beta),
            names,
        )
        self.lemmas.append(found)
        self.bytes += found.bytes
        if self.bytes > MOST_LOG_BYTES:
            self.is_too_large = True
            self.lemmas.clear()
            self.splits.clear()

    @property
    def chain(self) -> list[ProofLog]:
        """All parts, the first one first."""
        return [*([] if self.before is None else self.before.chain), self]


def _nonzero(beta: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    if beta is None:
        nothing = torch.zeros(0, dtype=torch.int64)
        return nothing, nothing, torch.zeros(0, dtype=torch.float64)
    row, unit = beta.nonzero(as_tuple=True)
    return row, unit, beta[row, unit]
