"""A network as a proof sees it: nodes in order, which are affine or read the floats of others.

Between nonlinear nodes the network is affine. Each nonlinear node reads z = A(v) + e, |e| <= E,
where v are the values of earlier nonlinear nodes and E bounds what a runtime rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from radii_check._curves import Curve
from radii_check._format import Array
from radii_check._linear_maps import Chain, apply_chain
from radii_check._numbers import Numbers as Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """value = sum over i of maps[i] (value of inputs[i]) + offset.

    What the rounding of the operator needs to be known of it:

    terms        it adds up at most so many products; 0 if it only moves entries, which is exact
    starts_sum   its result is one float, whatever its inputs were sums of; else a runtime may fuse
                 it with the sums that its inputs are
    factor       the largest constant that it multiplies with (at least 1)
    gain         numbers on the way may be so many times larger than with the constants as they are
                 here, for example before a mean is divided
    single       the one number that all entries are multiplied with, if there is one
    added        absolute values that the offset is the sum of, where these are more than |offset|
    joins        a "row" of constants that is added to a "product" is its bias, if nothing else
                 reads the product: then it is part of the same sum
    """

    inputs: tuple[int, ...]
    maps: tuple[Chain, ...]
    shape: tuple[int, ...]
    offset: Array
    terms: int = 0
    starts_sum: bool = False
    factor: Any = 1.0
    gain: Any = 1.0
    single: float = 0.0
    added: Array | None = None
    joins: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class UnitArguments:
    """Units `first`, `first` + 1, ... have the arguments z[entries] - knee."""

    first: int
    entries: Array
    knee: float


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """A node that reads floats, by its `kind`:

    Input                  the network's input
    Relu, and all with a `curve`    units, numbered from `first` on: one for each entry
    Copy                            gives what it reads as it is
    Leaky                           the same, for a value that a runtime rounds once more
    Softmax, LogSoftmax             over all entries, if `is_whole`

    Operators with other pieces are made of these: a Copy of the argument z, ReLU units of it, and
    another Copy (or Leaky) of their sum. That last node's value is also `function` of the value z
    of node `read`, which gives tighter intervals; and z is known better by the bounds of the units
    whose arguments are entries of it.
    """

    kind: str
    inputs: tuple[int, ...]
    shape: tuple[int, ...]
    first: int = 0
    is_whole: bool = False
    read: int = 0
    function: Callable[[Array], Array] | None = None
    unit_arguments: tuple[UnitArguments, ...] = ()
    curve: Curve | None = None

    @property
    def units(self) -> slice:
        has_units = self.kind == "Relu" or self.curve is not None
        count = math.prod(self.shape) if has_units else 0
        return slice(self.first, self.first + count)

    @property
    def has_units(self) -> bool:
        return bool(self.units.stop > self.units.start)


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """Nodes in an order in which each one stands behind those that it reads; node 0 is the input.

    `units` is the number of units. `is_single` says that the network computes in float32, at least
    in part. `rounded_constant` names a node whose constants runtimes may round differently.
    `removed` is the kind of a final nonlinear node that was removed, if that rounds.
    """

    nodes: tuple[Affine | Unit, ...]
    output: int
    units: int
    is_single: bool
    rounded_constant: str
    removed: str = ""

    def size(self, number: int) -> int:
        return math.prod(self.nodes[number].shape)

    def final_nonlinear(self) -> int:
        """The nonlinear node whose value is the output, entry by entry; 0 if there is none."""
        number, chain = self.output, tuple[Any, ...]()
        while isinstance(node := self.nodes[number], Affine):
            is_linear = not node.terms and len(node.inputs) == 1 and not node.offset.any()
            if not is_linear:
                return 0
            number, chain = node.inputs[0], node.maps[0] + chain
        entries = np.arange(1.0, self.size(number) + 1)[:, None]
        is_identity = np.array_equal(apply_chain(chain, Numbers(), entries), entries)
        return number if is_identity else 0

    def before(self, number: int, unit_count: int, removed: str = "") -> Network:
        """The network in front of its last nonlinear node, which has `unit_count` units."""
        nodes, output = self.nodes[:number], self.nodes[number].inputs[0]
        return replace(
            self, nodes=nodes, output=output, units=self.units - unit_count, removed=removed
        )
