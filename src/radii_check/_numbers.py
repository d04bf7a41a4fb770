"""The numbers in which bounds are computed: float64, or balls with 256 bits.

In float64 every sum and product is rounded, by at most `unit` = 2^-53 relative; whoever computes
adds that up and subtracts it in the end. A ball of python-flint (Arb) is a midpoint with a radius
that holds the exact result of every operation, so that nothing has to be subtracted: `unit` is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from radii_check._errors import Unreadable
from radii_check._format import Array

BALL_BITS = 256


class Numbers:
    """float64; or, if `exact`, balls in numpy arrays of objects."""

    def __init__(self, exact: bool = False) -> None:
        self.exact = exact
        self.unit = 0.0 if exact else 2.0**-53
        if exact:
            try:
                import flint
            except ImportError:
                raise Unreadable("the exact check needs python-flint") from None
            flint.ctx.prec = BALL_BITS
            self.flint = flint

    def map_balls(self, function: Any, *arrays: Any) -> Array:
        """A function of balls, entry by entry."""
        ball = self.flint.arb
        mapped = np.frompyfunc(lambda *x: function(*map(ball, x)), len(arrays), 1)
        return np.asarray(mapped(*arrays), object)

    def array(self, x: Any) -> Array:
        """float64 as these numbers, exactly."""
        return self.map_balls(lambda a: a, x) if self.exact else np.asarray(x, np.float64)

    def dot(self, a: Array, b: Array) -> Array:
        """The product of two matrices."""
        if not (self.exact and a.size and b.size):
            return np.asarray(a @ b)
        product = self.flint.arb_mat(a.tolist()) * self.flint.arb_mat(b.tolist())
        return np.array(product.tolist(), object).reshape(len(a), b.shape[1])

    def weighted_sums(self, weights: Array, values: Array) -> Array:
        """For each column the sum over i of weights[i, column] values[i, column]; `values` may have
        one column for all."""
        if values.shape[1] == 1:
            return np.asarray(self.dot(values.T, weights)[0])
        return np.asarray((weights * values).sum(0))

    def minimum(self, a: Any, b: Any) -> Array:
        return self.map_balls(lambda x, y: x.min(y), a, b) if self.exact else np.minimum(a, b)

    def maximum(self, a: Any, b: Any) -> Array:
        return self.map_balls(lambda x, y: x.max(y), a, b) if self.exact else np.maximum(a, b)

    def midpoints(self, a: Array) -> tuple[Array, Array | None]:
        """Exact numbers near these, and how far off these are at most; None if they are exact."""
        if not self.exact:
            return a, None
        return self.map_balls(lambda x: x.mid(), a), self.map_balls(lambda x: x.rad(), a)

    def floor(self, a: Any) -> Array:
        """float64 that are not above these numbers; -inf for what is NaN or infinite."""
        if self.exact:
            nearest = self.map_balls(lambda x: float(x.lower()), a).astype(float)
            a = np.nextafter(nearest, -np.inf)
        return np.where(np.isfinite(a), a, -np.inf)

    def outward(self, x: Array, direction: int) -> Array:
        """Moved down (-1) or up (+1) by eight times what one operation may have rounded."""
        return x if self.exact else np.asarray(x + direction * 8 * self.unit * abs(x))
