"""Proofs by splits of units: every lemma's row is evaluated, every leaf must be closed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from radii_check._bounds import Bounds, Regions
from radii_check._format import Array, Rejected, hold, need
from radii_check._network import Unit
from radii_check._proof import Proof
from radii_check._rows import Row
from radii_check._trees import leaves_of


class UnitProof(Proof):
    """A proof by splits of units."""

    def run(self) -> None:
        a, eps, units = self.arrays, self.arrays["eps"], self.network.units
        self.parts = len(eps)
        fits = a["lower"].shape == a["upper"].shape == (self.parts, units) and self.parts > 0
        need(fits, f"its bounds are not those of {self.parts} parts and {units} units")
        need(self.parts <= self.most_regions, "its parts do not fit into the memory")
        if self.certificate.claim["norm"] != "box":
            hold(eps >= self.certificate.claim["eps"], "a part has a smaller eps than the claim")
            hold(np.diff(eps) <= 0, "a part has a larger eps than the one before it")
        self.is_leaf = leaves_of(a, "parent", "split_unit", "spec", "split_sign")
        self.check_lemmas()
        self.lower, self.upper = (a[name].T.astype(np.float64) for name in ("lower", "upper"))
        self.known = np.maximum.accumulate(self.lower, 1), np.minimum.accumulate(self.upper, 1)
        regions = Regions.of(self.certificate, eps, self.num)
        self.bounds = Bounds(self.network, regions, self.certificate.widening, self.num)
        self.bounds.lower, self.bounds.upper = self.known
        self.ground()
        self.lemmas()

    def check_lemmas(self) -> None:
        """Everything is in range and in order."""
        a, nodes, units = self.arrays, len(self.is_leaf), self.network.units
        parent, spec, is_root = a["parent"], a["spec"], a["parent"] < 0
        roots = sorted(spec[is_root].tolist())
        hold(roots == list(range(len(self.violations))), "a violation has no root, or several")
        hold(is_root | (spec == spec[parent]), "a node has another violation than its parent")
        ranges = {
            "split_unit": ("parent", np.where(is_root, -1, 0), units),
            "node": ("node", 0, nodes),
            "part": ("node", 0, self.parts),
            "unit": ("node", -1, units),
            "side": ("node", -1, 2),
            "ground_part": ("ground_part", 0, self.parts),
            "ground_unit": ("ground_part", 0, units),
            "ground_side": ("ground_part", -1, 2),
            "sign_lemma": ("sign_lemma", 0, len(a["node"])),
            "sign_unit": ("sign_lemma", 0, units),
            "sign_beta": ("sign_lemma", 0, np.inf),
            "gamma": ("gamma", 0, np.inf),
            "beta": ("beta", 0, np.inf),
            "round": ("node", -np.inf, np.inf),
            "bound": ("node", -np.inf, np.inf),
        }
        for name, (like, low, high) in ranges.items():
            hold(a[name].shape == (len(a[like]),), f"array '{name}' is of another length")
            hold((a[name] >= low) & (a[name] < high), f"array '{name}' holds a number out of range")
        steps = [np.diff(a[name]) for name in ("node", "part", "round")]
        is_later = (steps[0] == 0) & (steps[1] >= 0) & (steps[2] >= 0)
        hold((steps[0] > 0) | is_later, "its lemmas are not in order")
        hold((a["unit"] < 0) | (abs(a["side"]) == 1), "a lemma is of no side")
        hold(np.diff(a["sign_lemma"]) >= 0, "its signs are not in order")
        self.first = np.searchsorted(a["node"], np.arange(nodes + 1))
        last = np.zeros(nodes + 1, int)  # the last part at or above a node; none is above a root
        for node in range(nodes):
            own = a["part"][self.first[node] : self.first[node + 1]]
            hold(own[:1] >= last[parent[node]], f"node {node} has a lemma of too early a part")
            last[node] = own[-1] if len(own) else last[parent[node]]

    # Bounds before any split.

    def ground(self) -> None:
        """By intervals, an earlier part, or a row: with slopes of its own, CROWN's or flat ones."""
        wanted = {side: np.zeros(self.lower.shape, bool) for side in (1, -1)}

        def compare(mine: slice, low: Array, high: Array) -> None:
            wanted[1][mine] = self.lower[mine] > self.num.below(low)
            wanted[-1][mine] = -self.upper[mine] > self.num.below(-high)

        self.bounds.forward(compare)
        wanted[1][:, 1:] &= self.lower[:, 1:] > self.known[0][:, :-1]
        wanted[-1][:, 1:] &= self.upper[:, 1:] < self.known[1][:, :-1]
        start, order = np.zeros(len(self.lower), int), [np.zeros(0, int)]
        for node in self.network.nodes:
            if isinstance(node, Unit) and node.kind == "Relu":  # neighbours together
                place = np.arange(math.prod(node.shape)) % max(1, math.prod(node.shape[2:]))
                order.append(node.first + np.argsort(place, kind="stable"))
                start[order[-1]] = node.first
        given, units = self.given_slopes(start), np.concatenate(order).tolist()
        for part, (lower, upper, crown) in enumerate(self.columns(self.lower, self.upper)):
            left = [(u, s) for s in wanted for u in units if wanted[s][u, part]]
            short: dict[Any, float] = {}
            for is_flat in (False, True):
                rows = [Row(part, lower, upper, given.get((part, *p), crown), [p]) for p in left]
                stated = np.array([lower[u] if s > 0 else -upper[u] for u, s in left])
                over = self.evaluated(rows, is_flat) - stated
                self.margin = min(self.margin, over[over >= 0].min(initial=math.inf))
                pairs = [(p, -o) for p, o in zip(left, over, strict=True) if not o >= 0]
                short, left = {p: min(o, short.get(p, o)) for p, o in pairs}, [p for p, _ in pairs]
            for (unit, side), by in short.items():
                what = (
                    f"part {part} states a bound of unit {unit}, side {side:+d}, that no row shows"
                )
                raise Rejected(f"{what}: it fails by {by:.3g}")

    def given_slopes(self, start: Array) -> dict[Any, Array]:
        """Slopes for (part, unit, side) that have their own; units of a layer begin at `start`."""
        part, unit, side = (self.arrays[f"ground_{name}"] for name in ("part", "unit", "side"))
        slopes, is_open = self.arrays["ground_slopes"], (self.lower < 0) & (self.upper > 0)
        counts = np.vstack([np.zeros((1, self.parts), int), np.cumsum(is_open, 0)])
        ends = np.cumsum([0, *counts[start[unit], part]])
        hold(slopes.shape == (ends[-1],), "its ground lemmas have other numbers of slopes")
        found = {}
        for i, key in enumerate(zip(part.tolist(), unit.tolist(), side.tolist(), strict=True)):
            found[key] = np.zeros(len(start), np.uint8)
            before = is_open[: start[key[1]], key[0]]
            found[key][: len(before)][before] = slopes[ends[i] : ends[i + 1]]
        return found

    # The tree.

    def state(self, part: int, path: list[int], end: int) -> tuple[Array, Array]:
        """Bounds of units at a node, with its ancestors' lemmas and its own before `end`."""
        a, first = self.arrays, self.first
        lower, upper = self.known[0][:, part].copy(), self.known[1][:, part].copy()
        split, sign = a["split_unit"][path[1:]], a["split_sign"][path[1:]]
        ranges = [np.arange(first[node], first[node + 1]) for node in path[:-1]]
        used = np.concatenate([*ranges, np.arange(first[path[-1]], end)])
        used = used[a["unit"][used] >= 0]
        unit = np.concatenate([split, a["unit"][used]])
        side = np.concatenate([sign, a["side"][used]])
        bound = np.concatenate([np.zeros(len(split)), a["bound"][used].astype(np.float64)])
        np.maximum.at(lower, unit[side > 0], bound[side > 0])
        np.minimum.at(upper, unit[side < 0], -bound[side < 0])
        return lower, upper

    def lemmas(self) -> None:
        """All lemmas in order, many at once, and whether each leaf is closed."""
        a, used = self.arrays, {"gamma": 0, "slopes": 0, "beta": 0, "sign_beta": 0}
        numbers: list[int] = []
        rows: list[Row] = []

        def take(name: str, count: int) -> Array:
            used[name] += count
            hold(used[name] <= len(a[name]), f"its {name} are too few")
            return a[name][used[name] - count : used[name]]

        signs = np.searchsorted(a["sign_lemma"], np.arange(len(a["node"]) + 1))
        for node in range(len(self.is_leaf)):
            path, begun = self.path(node), (-1, -1)
            split, sign = a["split_unit"][path[1:]], a["split_sign"][path[1:]]
            violation = self.violations[a["spec"][node]]
            for lemma in range(self.first[node], self.first[node + 1]):
                if begun != (a["part"][lemma], a["round"][lemma]):
                    begun = a["part"][lemma], a["round"][lemma]
                    lower, upper = self.state(begun[0], path, lemma)
                    is_open = (lower < 0) & (upper > 0)
                gamma, slopes = take("gamma", len(violation[1])), np.zeros(len(lower), np.uint8)
                slopes[is_open] = take("slopes", int(is_open.sum()))
                terms = list(
                    zip(split, -sign * take("beta", len(split)).astype(float), strict=True)
                )
                if signs[lemma] < signs[lemma + 1]:
                    more = a["sign_unit"][signs[lemma] : signs[lemma + 1]]
                    is_known = (lower[more] >= 0) | (upper[more] <= 0)
                    hold(is_known, f"lemma {lemma}: a sign is not known")
                    weights = np.where(lower[more] >= 0, -1.0, 1.0) * take("sign_beta", len(more))
                    terms += zip(more, weights, strict=True)
                if a["unit"][lemma] >= 0:
                    terms.append((a["unit"][lemma], float(a["side"][lemma])))
                rows.append(Row(begun[0], lower, upper, slopes, terms, violation, gamma))
                numbers.append(lemma)
                if len(rows) == self.at_once:
                    self.prove(numbers, rows)
            hold(
                not self.is_leaf[node] or self.is_closed(node, path), f"nothing closes node {node}"
            )
        self.prove(numbers, rows)
        hold(
            [used[name] == len(a[name]) for name in used], "it has multipliers that no lemma needs"
        )

    def is_closed(self, node: int, path: list[int]) -> bool:
        """By a closing row, an empty unit, or a split that leaves nothing to this side."""
        a, (lower, upper) = self.arrays, self.state(self.parts - 1, path, self.first[node + 1])
        is_closing = a["unit"][self.first[node] : self.first[node + 1]] == -1
        split, sign = a["split_unit"][path[1:]], a["split_sign"][path[1:]]
        is_on, is_off = self.known[0][split, -1] >= 0, self.known[1][split, -1] <= 0
        is_vacant = np.where(sign < 0, is_on, is_off & ~is_on)
        return bool(is_closing.any() or is_vacant.any() or (lower > upper).any())

    def prove(self, numbers: list[int], rows: list[Row]) -> None:
        """The rows of some lemmas, which are done then."""
        unit, side, bound, node = (
            self.arrays[name][numbers] for name in ("unit", "side", "bound", "node")
        )
        values, stated = self.evaluated(rows), np.where(unit < 0, 0.0, bound.astype(np.float64))
        for i in np.flatnonzero(~np.where(unit < 0, values > 0, values >= stated)):
            what = "closes it" if unit[i] < 0 else f"bounds unit {unit[i]}, side {side[i]:+d},"
            told = (
                f"lemma {numbers[i]} of node {node[i]} {what} by {stated[i]:.9g}, but its row gives"
            )
            raise Rejected(f"{told} {values[i]:.9g}: it fails by {stated[i] - values[i]:.3g}")
        self.margin = min(self.margin, (values - stated).min(initial=math.inf))
        numbers.clear()
        rows.clear()
