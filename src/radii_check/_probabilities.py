"""Bounds on the softmax of outputs: polyhedra that cover all outputs which break one.

With d_j = y_j - y_c for the classes j other than c, the probability of c is 1 / (1 + sum exp d_j).
With t = log(1 / p - 1) it is at most p exactly where sum exp(d_j - t) >= 1, and at least p exactly
where log sum exp d <= t.

"Below p" is broken on a convex set, log sum exp d <= t. By the duality of log-sum-exp and entropy
(Boyd and Vandenberghe, Convex Optimization, example 3.25), for any shares s >= 0 with sum S

    s d - sum s_j log(s_j / S) <= S log sum exp d <= S t,

so that s d <= S t + sum s_j log(s_j / S) holds there, for all stated shares at once.

"Above p" is broken on a set that is not convex, sum exp(d_j - t) >= 1. Its points have some
d_j <= low_j, or some d_j >= high_j, or lie in a cell of a tree of cuts between these. On a cell
exp(d_j - t) lies below the line s_j d_j + k_j if it does so at both ends, since exp is convex: so

    s d >= 1 - sum k_j

holds there. The certificate states the cuts and the slopes s; this module computes all offsets.
Such bounds of a softmax are those of Wei et al., "Convex Bounds on the Softmax Function" (2023).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from radii_check._errors import require, require_format
from radii_check._format import Array, Certificate
from radii_check._numbers import Numbers
from radii_check._trees import leaves_of, path_to

Violations = list[tuple[Array, Array]]

STEPS = 2.0**40
"""Slopes and shares are whole multiples of 1 / STEPS, from 0 to 1, so that their sums are exact."""
MAX_OUTPUTS = 4096
FEW_UNITS = 64
"""Bounds the rounding of exp, log and of what is computed of them, in units of float64."""


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """t = log((1 - p) / p) for a probability p; `size` bounds |t| and what it is computed from."""

    t: Any
    size: Any

    @classmethod
    def of(cls, probability: float, num: Numbers) -> Level:
        both = num.array([1.0, 0.0]) + num.array([-1.0, 1.0]) * num.array(probability)
        logs = np.log(both)  # of 1 - p, and of p
        return cls(logs[0] - logs[1], 1 + abs(logs).sum())


def covering(certificate: Certificate, outputs: int, num: Numbers) -> Violations:
    """The polyhedra, those of one bound after those of another."""
    arrays, bounds = certificate.arrays, certificate.bounds(outputs)
    floors = sum(not bound.is_ceiling for bound in bounds)
    is_leaf, roots = _check_cells(certificate, outputs, floors)
    low, high = arrays["cell_low"], arrays["cell_high"]
    covers, floor = Violations(), 0
    for number, bound in enumerate(bounds):
        differences = np.delete(np.eye(outputs), bound.class_index, axis=0)  # rows d_j of y
        differences[:, bound.class_index] = -1.0
        level = Level.of(bound.level, num)
        if bound.is_ceiling:
            shares = arrays["shares"][arrays["share_bound"] == number]
            require_format(len(shares), "a bound has no shares")
            covers.append((shares @ differences, _offsets_of_shares(shares, level, num)))
            continue
        box = low[floor], high[floor]
        covers += [(row[None], -end[None]) for row, end in zip(differences, box[0], strict=True)]
        covers += [(-row[None], end[None]) for row, end in zip(differences, box[1], strict=True)]
        for place, leaf in enumerate(np.flatnonzero(is_leaf).tolist()):
            path = path_to(arrays["cell_parent"], leaf)
            if path[0] == roots[floor]:
                slopes = arrays["cell_slopes"][place]
                covers.append(_cell(certificate, path, differences, box, slopes, level, num))
        floor += 1
    return covers


def _check_cells(certificate: Certificate, outputs: int, floors: int) -> tuple[Array, Array]:
    """Which cells are leaves, and the root of each bound "above p", once everything fits."""
    arrays = certificate.arrays
    low, high, slopes, shares = (
        arrays[name] for name in ("cell_low", "cell_high", "cell_slopes", "shares")
    )
    fits = [part.shape[1] == outputs - 1 < MAX_OUTPUTS for part in (low, high, slopes, shares)]
    require_format(fits, "its cells are of other outputs")
    require_format(len(low) == len(high), "cells lack one of their two sides")
    for part in (slopes, shares):
        is_multiple = part * STEPS == np.round(part * STEPS)
        is_slope = (part >= 0) & (part <= 1) & is_multiple
        require_format(is_slope, "a slope is out of range")
    is_leaf = leaves_of(arrays, "cell_parent", "cell_axis", "cell_cut", "cell_side")
    parent, axis = arrays["cell_parent"], arrays["cell_axis"]
    roots = np.flatnonzero(parent < 0)
    require(len(roots) == len(low) == floors, "a bound has no cells")
    is_cut = (axis >= 0) & (axis < outputs - 1)
    require_format(is_cut | (parent < 0), "a cell is cut along nothing")
    has_slopes = len(slopes) == is_leaf.sum()
    require_format(has_slopes, "its cells have other numbers of slopes")
    has_bounds = len(arrays["share_bound"]) == len(shares)
    require_format(has_bounds, "its shares are of no bound")
    return is_leaf, roots


def _offsets_of_shares(shares: Array, level: Level, num: Numbers) -> Array:
    """Offsets o of rows s d + o <= 0, rounded down: o = -sum s_j log(s_j / S) - S t."""
    sums = num.array(shares.sum(1))
    s = num.array(shares)
    s_log_s = s * np.log(num.array(np.where(shares > 0, shares, 1.0)))
    log_sums = np.log(num.array(np.where(shares.sum(1) > 0, shares.sum(1), 1.0)))
    entropy = sums * log_sums - s_log_s.sum(1)
    sizes = sums * level.size + abs(s_log_s).sum(1) + abs(entropy)
    rounding = FEW_UNITS * num.unit * shares.shape[1] * sizes
    return num.floor(entropy - sums * level.t - rounding)


def _cell(
    certificate: Certificate,
    path: list[int],
    differences: Array,
    box: tuple[Array, Array],
    slopes: Array,
    level: Level,
    num: Numbers,
) -> tuple[Array, Array]:
    """The violation of a cell: -s d + 1 - sum k <= 0, and a row for each cut on the path to it."""
    low, high = box[0].copy(), box[1].copy()
    matrix, offset = [-(slopes @ differences)], list[Any]()
    for node in path[1:]:
        axis, cut, side = (certificate.arrays[f"cell_{n}"][node] for n in ("axis", "cut", "side"))
        if side > 0:
            low[axis] = max(low[axis], cut)
        else:
            high[axis] = min(high[axis], cut)
        matrix.append(-side * differences[axis])
        offset.append(side * cut)
    # k_j is the larger one of exp(d - t) - s_j d at the two ends of the cell.
    needed, sizes = list[Array](), 1.0
    for end in (num.array(low), num.array(high)):
        power, rise = np.exp(end - level.t), slopes * end
        needed.append(power - rise)
        sizes = sizes + ((level.size + abs(end)) * power + abs(rise)).sum()
    k = num.maximum(*needed)
    reached = 1 - k.sum() - FEW_UNITS * num.unit * len(low) * sizes
    return np.array(matrix), np.array([float(num.floor(reached)), *offset])
