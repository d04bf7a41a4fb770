"""Bounds on the softmax of outputs: polyhedra that hold all outputs which break one.

With d_j = y_j - y_c for the classes j other than c, the probability of c is 1 / (1 + sum exp d_j).
It is at most p exactly where sum exp(d_j - t) >= 1, and at least p where log sum exp d <= t, with
t = log(1 / p - 1).

"Below p" is broken on a convex set. For any shares s >= 0 with sum S, s d - sum s log(s / S) is at
most S log sum exp d: so s d <= S t + sum s log(s / S) holds there, for all stated shares at once.

"Above p" is broken on a set that is not convex. Its points have some d_j <= low_j, or some
d_j >= high_j, or lie in a cell of a tree of cuts between these. On a cell exp(d_j - t) lies below
every line that is above it at both ends, s_j d_j + k_j: so s d >= 1 - sum k holds there. The
certificate states the cuts and the slopes s.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from radii_check._format import Array, Certificate, hold, need
from radii_check._network import Numbers
from radii_check._trees import leaves_of, path_to

Violations = list[tuple[Array, Array]]

STEPS, MOST_OUTPUTS = 2.0**40, 4096
"""Slopes and shares are whole multiples of one part in so many, up to 1: their sums are exact."""


def covering(certificate: Certificate, outputs: int, num: Numbers) -> Violations:
    """The polyhedra, those of one bound after those of another."""
    a, bounds, found, floors = certificate.arrays, certificate.bounds(outputs), Violations(), 0
    parts = [a[name] for name in ("cell_low", "cell_high", "cell_slopes", "shares")]
    fits = [part.shape[1] == outputs - 1 < MOST_OUTPUTS for part in parts]
    need(fits, "its cells are of other outputs")
    need([len(part) == len(parts[0]) for part in parts[:2]], "its cells have one side")
    for part in parts[2:]:
        whole = part * STEPS
        need((part >= 0) & (part <= 1) & (whole == np.round(whole)), "a slope is out of range")
    is_leaf = leaves_of(a, "cell_parent", "cell_axis", "cell_cut", "cell_side")
    roots = np.flatnonzero(a["cell_parent"] < 0)
    hold(len(roots) == len(parts[0]) == sum(not b[2] for b in bounds), "a bound has no cells")
    is_cut = (a["cell_axis"] >= 0) & (a["cell_axis"] < outputs - 1)
    need(is_cut | (a["cell_parent"] < 0), "a cell is cut along nothing")
    need(a["cell_slopes"].shape[0] == is_leaf.sum(), "its cells have other numbers of slopes")
    need(len(a["share_bound"]) == len(a["shares"]), "its shares are of no bound")
    for number, (index, level, is_ceiling) in enumerate(bounds):
        rows = np.delete(np.eye(outputs), index, axis=0)
        rows[:, index] = -1.0
        logs = np.log(num.array([1.0, 0.0]) + num.array([-1.0, 1.0]) * num.array(level))
        top, size = logs[0] - logs[1], 1 + abs(logs).sum()
        if is_ceiling:
            shares = a["shares"][a["share_bound"] == number]
            need(len(shares), "a bound has no shares")
            found.append((shares @ rows, _tangents(shares, top, size, num)))
            continue
        low, high, root = parts[0][floors], parts[1][floors], roots[floors]
        floors += 1
        found += [(row[None], -end) for row, end in zip(rows, low[:, None], strict=True)]
        found += [(-row[None], end) for row, end in zip(rows, high[:, None], strict=True)]
        for place, leaf in enumerate(np.flatnonzero(is_leaf).tolist()):
            path = path_to(a["cell_parent"], leaf)
            if path[0] == root:
                slopes = a["cell_slopes"][place]
                found.append(_cell(a, path, rows, (low, high), slopes, (top, size), num))
    return found


def _tangents(shares: Array, top: Any, size: Any, num: Numbers) -> Array:
    """Offsets o of rows s d + o <= 0, rounded down."""
    total, held = shares.sum(1), num.array(shares)
    terms = held * np.log(num.array(np.where(shares > 0, shares, 1.0)))
    sums = num.array(total)
    entropy = sums * np.log(num.array(np.where(total > 0, total, 1.0))) - terms.sum(1)
    lost = 64 * num.unit * shares.shape[1] * (sums * size + abs(terms).sum(1) + abs(entropy))
    return num.below(entropy - sums * top - lost)


def _cell(
    a: Any, path: list[int], rows: Array, box: Any, slopes: Array, level: Any, num: Numbers
) -> tuple[Array, Array]:
    """The row of a cell's chords, and one for each cut on the path to it."""
    (low, high), (top, size) = (side.copy() for side in box), level
    matrix, offset = [-(slopes @ rows)], list[Any]()
    for node in path[1:]:
        axis, cut, side = (a[f"cell_{name}"][node] for name in ("axis", "cut", "side"))
        end, pick = (low, max) if side > 0 else (high, min)
        end[axis] = pick(end[axis], cut)
        matrix.append(-side * rows[axis])
        offset.append(side * cut)
    lines, lost = list[Array](), 1.0
    for end in (num.array(low), num.array(high)):
        power, rise = np.exp(end - top), slopes * end
        lines.append(power - rise)
        lost = lost + ((size + abs(end)) * power + abs(rise)).sum()
    reached = 1 - num.maximum(*lines).sum() - 64 * num.unit * len(low) * lost
    return np.array(matrix), np.array([float(num.below(reached)), *offset])
