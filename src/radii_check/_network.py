"""What a network is for a proof: numbers, linear maps, and nodes in order.

Values and coefficients are arrays (entries, columns): a column is a region, or a row of a proof.
Coefficients come with the places `at` that they are on, in ascending order; elsewhere they are 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from radii_check._format import Array, Unreadable

BALL_BITS, CURVES = 256, ("Sigmoid", "Tanh")


class Numbers:
    """float64; or, if exact, balls of python-flint in arrays of objects, which hold the result of
    every operation. `unit` bounds the relative rounding that no ball accounts for."""

    def __init__(self, exact: bool = False) -> None:
        self.exact, self.unit = exact, 0.0 if exact else 2.0**-53
        if exact:
            try:
                import flint
            except ImportError:
                raise Unreadable("the exact check needs python-flint") from None
            flint.ctx.prec, self.flint = BALL_BITS, flint

    def each(self, function: Any, *arrays: Any) -> Array:
        ball = self.flint.arb
        made = np.frompyfunc(lambda *x: function(*map(ball, x)), len(arrays), 1)
        return np.asarray(made(*arrays), object)

    def array(self, x: Any) -> Array:
        """float64 as these numbers, exactly."""
        return self.each(lambda a: a, x) if self.exact else np.asarray(x, np.float64)

    def dot(self, a: Array, b: Array) -> Array:
        """The product of two matrices."""
        if not (self.exact and a.size and b.size):
            return np.asarray(a @ b)
        product = self.flint.arb_mat(a.tolist()) * self.flint.arb_mat(b.tolist())
        return np.array(product.tolist(), object).reshape(len(a), b.shape[1])

    def weighted(self, c: Array, each: Array) -> Array:
        """Sums over the entries: coefficients (entries, rows) times (entries, rows or 1)."""
        return np.asarray(self.dot(each.T, c)[0] if each.shape[1] == 1 else (c * each).sum(0))

    def minimum(self, a: Any, b: Any) -> Array:
        return self.each(lambda x, y: x.min(y), a, b) if self.exact else np.minimum(a, b)

    def maximum(self, a: Any, b: Any) -> Array:
        return self.each(lambda x, y: x.max(y), a, b) if self.exact else np.maximum(a, b)

    def settled(self, a: Array) -> tuple[Array, Array | None]:
        """Exact numbers near these, and how far off they are at most; None if they are exact."""
        if not self.exact:
            return a, None
        return self.each(lambda x: x.mid(), a), self.each(lambda x: x.rad(), a)

    def below(self, a: Any) -> Array:
        """float64 that are not above these; -inf where nothing is known."""
        if self.exact:
            a = np.nextafter(self.each(lambda x: float(x.lower()), a).astype(float), -np.inf)
        return np.where(np.isfinite(a), a, -np.inf)


@dataclass(frozen=True, eq=False)
class Scale:
    """Every entry times, or divided by, a number of its own."""

    factor: Array
    divides: bool = False
    terms = 2

    def push(self, num: Numbers, x: Array, absolute: bool) -> Array:
        factor = (abs(self.factor) if absolute else self.factor)[:, None]
        return x / factor if self.divides else x * factor

    def pull(self, num: Numbers, at: Array, c: Array) -> tuple[Array, Array]:
        factor = self.factor[at][:, None]
        return at, c / factor if self.divides else c * factor


@dataclass(frozen=True, eq=False)
class Window:
    """Sums over windows: a product with a matrix, a convolution, a mean, entries moved.

    Arguments are (outer, C, places), results (outer, M, P), both flattened. Result (o, m, p) is the
    sum of weight[m, c, t] times argument (o, c, index[p, t]), without those whose index is -1.
    """

    weight: Array
    index: Array
    places: int
    outer: int = 1

    @property
    def terms(self) -> int:
        """How often a product is rounded, at most, on its way into a sum of either direction."""
        results, arguments, taps = self.weight.shape
        most = np.bincount(self.index[self.index >= 0], minlength=1).max()
        return int(max(arguments * taps, results * most)) + 2

    def push(self, num: Numbers, x: Array, absolute: bool) -> Array:
        """The results of arguments, or those of |W|."""
        weight, arguments = abs(self.weight) if absolute else self.weight, self.weight.shape[1]
        x = x.reshape(self.outer, arguments, self.places, -1).swapaxes(0, 1)
        total: Any = 0
        for tap, index in enumerate(self.index.T):
            taken = np.where((index >= 0)[:, None], x[:, :, index], 0)
            total = total + num.dot(weight[:, :, tap], taken.reshape(arguments, -1))
        found = total.reshape(len(weight), self.outer, len(self.index), -1).swapaxes(0, 1)
        return np.asarray(found.reshape(self.outer * len(weight) * len(self.index), -1))

    def pull(self, num: Numbers, at: Array, c: Array) -> tuple[Array, Array]:
        """Coefficients on results as ones on arguments: tap by tap, and only from places of windows
        that some row has a coefficient on."""
        (results, arguments, _), spots, columns = self.weight.shape, len(self.index), c.shape[1]
        spot = at // (spots * results) * spots + at % spots
        active, spot = np.unique(spot, return_inverse=True)
        block = c  # all of them in order, or some
        if self.outer > 1 or len(at) < results * len(active):
            block = np.zeros((results, len(active), columns), c.dtype)
            block[at // spots % results, spot] = c
        block = block.reshape(results, len(active), columns)
        index = self.index[active % spots]
        to = np.where(index >= 0, active[:, None] // spots * self.places + index, -1)
        reached = np.unique(to[to >= 0])
        pulled = np.zeros((arguments, len(reached), columns), c.dtype)
        for tap, place in enumerate(to.T):
            kept = np.flatnonzero(place >= 0)
            held = block if len(kept) == len(to) else block[:, kept]
            found = num.dot(self.weight[:, :, tap].T, held.reshape(results, -1))
            found = found.reshape(arguments, len(kept), columns)
            if arguments == 1:  # entries may be copied to several places
                place, once = collected(place[kept], found[0])
                pulled[0, np.searchsorted(reached, place)] += once
            else:
                pulled[:, np.searchsorted(reached, place[kept])] += found
        image = reached // self.places * arguments + np.arange(arguments)[:, None]
        places = image * self.places + reached % self.places
        return collected(places.ravel(), pulled.reshape(-1, columns))


def collected(at: Array, c: Array) -> tuple[Array, Array]:
    """Coefficients at any places, those at the same place added up, in the order of places."""
    if np.all(at[1:] > at[:-1]):
        return at, c
    order = np.argsort(at, kind="stable")
    at, c = at[order], c[order]
    starts = np.flatnonzero(np.diff(at, prepend=-1))
    return (at, c) if len(starts) == len(at) else (at[starts], np.add.reduceat(c, starts))


Chain = tuple[Scale | Window, ...]
"""Maps one after another, the first one first."""


def pushed(maps: Chain, num: Numbers, x: Array, absolute: bool = False) -> Array:
    for each in maps:
        x = each.push(num, x, absolute)
    return x


def gathered(index: Array, size: int) -> Chain:
    """Result i is entry index[i] of `size` ones, or 0 where that is -1."""
    flat = np.reshape(index, (-1, 1))
    is_all = len(flat) == size and bool((flat[:, 0] == np.arange(size)).all())
    return () if is_all else (Window(np.ones((1, 1, 1)), flat, size),)


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """The sum of maps of the inputs, plus the offset.

    The rest is for the float errors. The operator adds up `terms` products at most, without which
    it rounds nothing; if it `starts_sum`, what is added to its result is not added up together with
    what its inputs are sums of. Numbers on the way may be `gain` times larger than with the
    constants as they are here; `single` is the one number that all entries are multiplied with.
    `added` is what the offset adds up, where that is more than itself. A "row" of constants that is
    added to a "product" is its bias, if nothing else reads that.
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
class Unit:
    """A node that reads floats: "Relu", "Sigmoid" and "Tanh", with units numbered from `first` on;
    "Held", which gives what it reads as it is; "Softmax" and "LogSoftmax", over all entries if they
    are `is_whole`; and "Input". What a runtime rounds in giving a "Leaky" value counts with it.

    Operators with other pieces hold what they read, and give the held sum of it and of ReLU units.
    That sum is `function` of what node `read` holds, of which units tell more: for each (i, index,
    knee) of `told`, the arguments of units i, i + 1, ... are its entries `index`, less the knee.
    """

    kind: str
    inputs: tuple[int, ...]
    shape: tuple[int, ...]
    first: int = 0
    is_whole: bool = False
    read: int = 0
    function: Callable[[Array], Array] | None = None
    told: tuple[tuple[int, Array, float], ...] = ()

    @property
    def units(self) -> slice:
        count = math.prod(self.shape) if self.kind in ("Relu", *CURVES) else 0
        return slice(self.first, self.first + count)


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """`is_single`: computed in float32, at least in part. `rounded` names a node whose constants
    runtimes may round differently; `behind` is a final (log-)softmax that was removed."""

    nodes: tuple[Affine | Unit, ...]
    output: int
    units: int
    is_single: bool
    rounded: str
    behind: str = ""

    def size(self, number: int) -> int:
        return math.prod(self.nodes[number].shape)

    def last(self) -> int:
        """The nonlinear node whose value is the output, entry by entry; 0 if there is none."""
        number, chain = self.output, tuple[Any, ...]()
        while isinstance(node := self.nodes[number], Affine):
            if node.terms or len(node.inputs) != 1 or node.offset.any():
                return 0
            number, chain = node.inputs[0], node.maps[0] + chain
        numbers = np.arange(1.0, self.size(number) + 1)[:, None]
        return number if np.array_equal(pushed(chain, Numbers(), numbers), numbers) else 0

    def without(self, number: int, units: int, behind: str = "") -> Network:
        """The network in front of its last nonlinear node, which has so many units."""
        before, output = self.nodes[:number], self.nodes[number].inputs[0]
        return replace(self, nodes=before, output=output, units=self.units - units, behind=behind)
