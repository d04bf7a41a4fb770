"""Linear maps between the values of nodes, in both directions.

A value is an array (entries, columns), where a column is a region. A map W goes `forward` from
arguments to results, W x; and `backward` from coefficients on results to coefficients on arguments,
W^T c, where a column is a row of the proof. Coefficients are sparse: `at` are the entries that some
column has a coefficient on, in ascending order; all others are 0. `terms` bounds how many roundings
of this checker an entry goes through in either direction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from radii_check._format import Array
from radii_check._numbers import Numbers


@dataclass(frozen=True, eq=False)
class Scale:
    """Every entry times a number of its own, or divided by it."""

    factor: Array
    divides: bool = False
    terms = 2

    def forward(self, num: Numbers, x: Array, absolute: bool) -> Array:
        factor = (abs(self.factor) if absolute else self.factor)[:, None]
        return x / factor if self.divides else x * factor

    def backward(self, num: Numbers, at: Array, c: Array) -> tuple[Array, Array]:
        factor = self.factor[at][:, None]
        return at, c / factor if self.divides else c * factor


@dataclass(frozen=True, eq=False)
class Window:
    """Sums over windows: a product with a matrix, a convolution, a mean, or entries moved.

    Arguments have the shape (outer, C, places) and results (outer, M, P), both flattened:

        result[o, m, p] = sum over c, t of weight[m, c, t] argument[o, c, index[p, t]]

    without the terms whose index is -1, which lie in the padding.
    """

    weight: Array
    index: Array
    places: int
    outer: int = 1

    @property
    def terms(self) -> int:
        """The longest sum: of one result (forward), or of one argument (backward)."""
        results, arguments, taps = self.weight.shape
        windows_of_a_place = np.bincount(self.index[self.index >= 0], minlength=1).max()
        return int(max(arguments * taps, results * windows_of_a_place)) + 2

    def forward(self, num: Numbers, x: Array, absolute: bool) -> Array:
        """W x, or |W| x."""
        weight = abs(self.weight) if absolute else self.weight
        results, arguments, _ = weight.shape
        x = x.reshape(self.outer, arguments, self.places, -1).swapaxes(0, 1)
        total: int | Array = 0
        for tap, index in enumerate(self.index.T):
            values = np.where((index >= 0)[:, None], x[:, :, index], 0)
            total = total + num.dot(weight[:, :, tap], values.reshape(arguments, -1))
        assert isinstance(total, np.ndarray)
        by_result = total.reshape(results, self.outer, len(self.index), -1).swapaxes(0, 1)
        return np.asarray(by_result.reshape(self.outer * results * len(self.index), -1))

    def backward(self, num: Numbers, at: Array, c: Array) -> tuple[Array, Array]:
        """W^T c, tap by tap, and only from windows that some column has a coefficient on.

        A window is numbered o P + p, an argument's place o places + index[p, t]: all results (or
        arguments) of one window (or place) are computed by one product of matrices.
        """
        results, arguments, _ = self.weight.shape
        per_image, columns = len(self.index), c.shape[1]
        window_of_entry = at // (per_image * results) * per_image + at % per_image
        windows, position = np.unique(window_of_entry, return_inverse=True)
        block = c  # (results, windows, columns): all of them in order, or some
        if self.outer > 1 or len(at) < results * len(windows):
            block = np.zeros((results, len(windows), columns), c.dtype)
            block[at // per_image % results, position] = c
        block = block.reshape(results, len(windows), columns)

        index = self.index[windows % per_image]
        image = windows[:, None] // per_image
        target = np.where(index >= 0, image * self.places + index, -1)
        reached = np.unique(target[target >= 0])
        sums = np.zeros((arguments, len(reached), columns), c.dtype)
        for tap, place in enumerate(target.T):
            inside = np.flatnonzero(place >= 0)
            part = block if len(inside) == len(target) else block[:, inside]
            product = num.dot(self.weight[:, :, tap].T, part.reshape(results, -1))
            product = product.reshape(arguments, len(inside), columns)
            if arguments == 1:  # several windows may read the same place with one tap
                once, added_up = add_up_places(place[inside], product[0])
                sums[0, np.searchsorted(reached, once)] += added_up
            else:
                sums[:, np.searchsorted(reached, place[inside])] += product
        channel_starts = reached // self.places * arguments + np.arange(arguments)[:, None]
        entries = channel_starts * self.places + reached % self.places
        return add_up_places(entries.ravel(), sums.reshape(-1, columns))


def add_up_places(at: Array, c: Array) -> tuple[Array, Array]:
    """Coefficients in the order of their places, those at the same place added up."""
    if np.all(at[1:] > at[:-1]):
        return at, c
    order = np.argsort(at, kind="stable")
    at, c = at[order], c[order]
    starts = np.flatnonzero(np.diff(at, prepend=-1))
    return (at, c) if len(starts) == len(at) else (at[starts], np.add.reduceat(c, starts))


Chain = tuple[Scale | Window, ...]
"""Maps one after another, the first one first. The empty chain is the identity."""


def apply_chain(chain: Chain, num: Numbers, x: Array, absolute: bool = False) -> Array:
    """W x for the product W of the chain's maps; if `absolute`, with |W| of each."""
    for linear_map in chain:
        x = linear_map.forward(num, x, absolute)
    return x


def apply_chain_backward(chain: Chain, num: Numbers, at: Array, c: Array) -> tuple[Array, Array]:
    """W^T c for the product W of the chain's maps."""
    for linear_map in reversed(chain):
        at, c = linear_map.backward(num, at, c)
    return at, c


def gather(index: Array, size: int) -> Chain:
    """Result i is entry index[i] of `size` entries, or 0 where index[i] is -1."""
    flat = np.reshape(index, (-1, 1))
    is_identity = len(flat) == size and bool((flat[:, 0] == np.arange(size)).all())
    return () if is_identity else (Window(np.ones((1, 1, 1)), flat, size),)


def scatter(places: Array, size: int) -> Chain:
    """Entry i goes to places[i] of `size` results; the others are 0."""
    index = np.full(size, -1)
    index[places] = np.arange(len(places))
    return gather(index, len(places))
