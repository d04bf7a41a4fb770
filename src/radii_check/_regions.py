"""Regions of inputs, and the least value of a linear function over one.

A region is a box, or the intersection of a box and a ball in L1 or L2; a ball in Linf is a box.
Over a box the least value of c x is c m - |c| r with its midpoint m and half-width r. Over a ball
it is bounded by Lagrangian duality: for every price p >= 0, with steps s = x - centre,

    L1    c x >= c centre + min over the box of (c s + p |s|) - p eps
    L2    c x >= c centre + min over the box of (c s + p s^2) - p eps^2

Each minimum is a sum over inputs and known in closed form. Since every price gives a valid bound,
the price may be searched for in plain floating point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from radii_check._enclosures import Enclosure
from radii_check._errors import require_format
from radii_check._format import Array, Certificate
from radii_check._numbers import Numbers

BISECTIONS = 28
"""Of the price in L2."""
SMALLEST_PRICE = 2.0**-300


@dataclass(frozen=True, slots=True, eq=False)
class Regions:
    """Several regions of one norm with one centre: `low` and `high` are (inputs, regions), `centre`
    (inputs, 1), `eps` (regions). The ball only counts in L1 and L2."""

    low: Array
    high: Array
    norm: str
    centre: Array
    eps: Array

    @classmethod
    def of_claim(cls, certificate: Certificate, eps: Array, num: Numbers) -> Regions:
        """The claim's region, once with each of these eps, rounded outward."""
        arrays, norm = certificate.arrays, certificate.claim["norm"]
        few_units = 4 * num.unit
        low, high = (num.array(arrays[name])[:, None] + 0 * eps for name in ("low", "high"))
        centre = num.array(arrays.get("input", arrays["low"]))[:, None]
        if norm != "box":
            scale = num.array(arrays.get("scale", np.ones(len(low))))[:, None]
            reach = num.array(eps) * scale * (1 + few_units)
            below, above = centre - reach, centre + reach
            low = num.maximum(low, below - few_units * abs(below))
            high = num.minimum(high, above + few_units * abs(above))
        require_format(low <= high, "its region is empty")
        return cls(low, high, norm, centre, num.array(eps))

    def parts_within(self, low: Array, high: Array, num: Numbers) -> tuple[Array, Regions]:
        """Of boxes (inputs, boxes) the numbers of those that this one region may reach into, and
        its parts there.

        A box is too far from the centre if its distance exceeds eps: with d_i, how far coordinate i
        lies outside, in units of eps, if sum d_i > 1 in L1, or sum d_i^2 > 1 in L2.
        """
        is_empty = np.asarray(low > high, bool).any(0)
        if self.norm in ("l1", "l2"):
            outside = num.maximum(num.maximum(low - self.centre, self.centre - high), 0.0)
            distance = outside / self.eps
            length = (distance if self.norm == "l1" else distance * distance).sum(0)
            rounded_share = 4 * (len(distance) + 8) * num.unit
            is_empty |= num.floor(length * (1 - rounded_share)) > 1
        reached = np.flatnonzero(~is_empty)
        eps = np.repeat(self.eps, len(reached))
        return reached, Regions(low[:, reached], high[:, reached], self.norm, self.centre, eps)

    def least(
        self, num: Numbers, inputs: Enclosure, at: Array, c: Array, columns: Any
    ) -> tuple[Array, Array]:
        """Lower bounds of sum c_i x_i for coefficients (entries `at`, rows), each over the region
        that `columns` selects for it; and the sums of absolute values that these add up, to which
        their rounding is proportional. `inputs` encloses the boxes."""
        middle, radius, size = (
            x[at][:, columns] for x in (inputs.centre, inputs.radius, inputs.size)
        )
        over_box = num.weighted_sums(c, middle) - num.weighted_sums(abs(c), radius)
        size_of_sum = num.weighted_sums(abs(c), size)
        if self.norm not in ("l1", "l2") or not len(at):  # a sum of nothing is 0
            return over_box, size_of_sum

        low, high = self.low[at][:, columns], self.high[at][:, columns]
        centre, eps, widened = self.centre[at], self.eps[columns], 1 + 4 * num.unit
        down = num.minimum(low - centre, 0.0) * widened
        up = num.maximum(high - centre, 0.0) * widened
        price = self._price(*(num.floor(x) for x in (c, down, up, eps)))
        if self.norm == "l1":  # min of c s + p |s| is 0, or at the end against c if |c| > p
            reach = num.maximum(abs(down) * (c > 0), up * (c <= 0))
            steps = -num.maximum(abs(c) - price, 0.0) * reach
            budget = price * eps
        else:  # at s = -c / 2p; if s is off by some units, c s + p s^2 changes by their square
            step = num.minimum(num.maximum(-c / (2 * price), down), up)
            steps = c * step + price * step * step
            budget = price * eps * eps
        over_ball = (c * centre + steps).sum(0) - budget
        size_of_ball = (abs(c * centre) + abs(c) * num.maximum(abs(down), up)).sum(0) + 2 * budget
        return num.maximum(over_box, over_ball), size_of_sum + size_of_ball

    def _price(self, c: Array, down: Array, up: Array, eps: Array) -> Array:
        """For each row of coefficients a price that makes the bound large, as plain float64."""
        if self.norm == "l1":
            return _price_in_l1(c, down, up, eps)
        return _price_in_l2(c, down, up, eps)


def _price_in_l1(c: Array, down: Array, up: Array, eps: Array) -> Array:
    """The best step spends eps on the largest |c| first; the price is that of the last input that
    it reaches, or 0 if it reaches the end of all."""
    order = np.argsort(-abs(c), axis=0)
    reach = np.take_along_axis(np.where(c > 0, -down, up), order, axis=0)
    is_spent = np.cumsum(reach, axis=0) >= eps
    sorted_sizes = np.take_along_axis(abs(c), order, axis=0)
    last = sorted_sizes[is_spent.argmax(0), range(c.shape[1])]
    return np.where(is_spent.any(0), last, 0.0)


def _price_in_l2(c: Array, down: Array, up: Array, eps: Array) -> Array:
    """The least price at which the best step, -c / 2p within the box, is no longer than eps; by
    bisection between 0 and |c| / 2 eps."""
    largest = np.linalg.norm(c, axis=0) / np.where(eps > 0, 2 * eps, 1.0)
    high = np.where(eps > 0, largest, 1.0)
    low = np.zeros_like(high)
    for _ in range(BISECTIONS):
        middle = np.maximum((low + high) / 2, SMALLEST_PRICE)
        step = np.clip(-c / (2 * middle), down, up)
        is_too_long = np.linalg.norm(step, axis=0) > eps
        low, high = np.where(is_too_long, middle, low), np.where(is_too_long, high, middle)
    return np.maximum(high, SMALLEST_PRICE)
