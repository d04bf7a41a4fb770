"""Proofs by splits of units: every lemma's row is evaluated, every leaf must be closed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from radii_check._bounds import Bounds, Regions
from radii_check._format import Array, Rejected, hold, need, readable
from radii_check._network import Unit
from radii_check._proof import Proof, crown_slopes
from radii_check._rows import NOTHING, Rows, terms
from radii_check._trees import leaves_of


@dataclass(slots=True, eq=False)
class State:
    """What is known at a node: bounds of all units, and the splits on the path to it."""

    lower: Array
    upper: Array
    split: Array = field(default_factory=lambda: np.zeros(0, int))
    sign: Array = field(default_factory=lambda: np.zeros(0, int))

    def columns(self, count: int) -> list[Array]:
        """Its bounds, for so many rows."""
        return [np.broadcast_to(x[:, None], (len(x), count)) for x in (self.lower, self.upper)]

    def child(self, unit: int, sign: int) -> State:
        split, signs = np.append(self.split, unit), np.append(self.sign, sign)
        found = State(self.lower, self.upper, split, signs)
        found.tighten(split[-1:], signs[-1:], np.zeros(1))
        return found

    def intersect(self, known: tuple[Array, Array], part: int) -> None:
        self.lower = np.maximum(self.lower, known[0][:, part])
        self.upper = np.minimum(self.upper, known[1][:, part])

    def tighten(self, unit: Array, side: Array, bound: Array) -> None:
        """side * argument >= bound."""
        below, above = side > 0, side < 0
        self.lower, self.upper = self.lower.copy(), self.upper.copy()
        np.maximum.at(self.lower, unit[below], bound[below])
        np.minimum.at(self.upper, unit[above], -bound[above])


class UnitProof(Proof):
    """A proof by splits of units."""

    def run(self) -> None:
        a, eps, units = self.arrays, self.arrays["eps"], self.network.units
        self.parts = len(eps)
        fits = a["lower"].shape == a["upper"].shape == (self.parts, units) and self.parts > 0
        need(fits, f"its bounds are not those of {self.parts} parts and {units} units")
        readable(self.parts <= self.most_regions, "its parts do not fit into the memory")
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
        hold(roots == list(range(len(self.firsts) - 1)), "a violation has no root, or several")
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
        wanted = np.zeros((2, *self.lower.shape), bool)  # a lower bound, an upper bound

        def compare(node: Unit, low: Array, high: Array) -> None:
            need(node.kind == "Relu", f"operator {node.kind} needs a proof by boxes")
            mine = node.units
            wanted[0, mine] = self.lower[mine] > self.num.below(low)
            wanted[1, mine] = -self.upper[mine] > self.num.below(-high)

        self.bounds.forward(compare)
        wanted[0, :, 1:] &= self.lower[:, 1:] > self.known[0][:, :-1]
        wanted[1, :, 1:] &= self.upper[:, 1:] < self.known[1][:, :-1]
        start, order = np.zeros(len(self.lower), int), [np.zeros(0, int)]
        for node in self.network.nodes:
            if isinstance(node, Unit) and node.kind == "Relu":  # neighbours together
                place = np.arange(math.prod(node.shape)) % max(1, math.prod(node.shape[2:]))
                order.append(node.first + np.argsort(place, kind="stable"))
                start[order[-1]] = node.first
        given, units = self.given_slopes(start), np.concatenate(order)
        for part in range(self.parts):
            which, place = np.nonzero(wanted[:, units, part])
            self.ground_rows(part, units[place], 1 - 2 * which, given)

    def ground_rows(self, part: int, unit: Array, side: Array, given: Any) -> None:
        """Whether some row shows each of these bounds of a part."""
        state = State(self.lower[:, part], self.upper[:, part])
        stated = np.where(side > 0, state.lower[unit], -state.upper[unit])
        short, crown = np.full(len(unit), math.inf), crown_slopes(state.lower, state.upper)

        def rows(some: Array) -> Rows:
            keys = zip(unit[some].tolist(), side[some].tolist(), strict=True)
            found = (given(part, *key) for key in keys)
            slopes = np.stack([crown if own is None else own for own in found], 1)
            lower, upper = state.columns(len(some))
            units = terms(unit[some], side[some])
            return Rows(np.full(len(some), part), lower, upper, slopes, units, NOTHING)

        for is_flat in (False, True):
            left = np.flatnonzero(short > 0)
            over = self.evaluated(left, rows, is_flat) - stated[left]
            self.margin = min(self.margin, over[over >= 0].min(initial=math.inf))
            short[left] = np.minimum(short[left], -over)
        for i in np.flatnonzero(~(short <= 0)):
            what = f"part {part} states a bound of unit {unit[i]}, side {side[i]:+d}"
            raise Rejected(f"{what}, that no row shows: it fails by {short[i]:.3g}")

    def given_slopes(self, start: Array) -> Any:
        """Gives the slopes of a (part, unit, side) that has its own; layers begin at `start`."""
        part, unit, side = (self.arrays[f"ground_{name}"] for name in ("part", "unit", "side"))
        slopes, is_open = self.arrays["ground_slopes"], (self.lower < 0) & (self.upper > 0)
        counts = np.vstack([np.zeros((1, self.parts), int), np.cumsum(is_open, 0)])
        ends = np.cumsum([0, *counts[start[unit], part]])
        hold(slopes.shape == (ends[-1],), "its ground lemmas have other numbers of slopes")
        keys = (part.astype(np.int64) * len(start) + unit) * 3 + side
        order = np.argsort(keys)

        def given(part: int, unit: int, side: int) -> Array | None:
            key = (part * len(start) + unit) * 3 + side
            place = np.searchsorted(keys, key, sorter=order)
            if place == len(keys) or keys[i := order[place]] != key:
                return None
            found, before = np.zeros(len(start), np.uint8), is_open[: start[unit], part]
            found[: len(before)][before] = slopes[ends[i] : ends[i + 1]]
            return found

        return given

    # The tree.

    def lemmas(self) -> None:
        """All lemmas in order, many at once, and whether each leaf is closed."""
        a, inner = self.arrays, dict[int, State]()
        self.used = {"gamma": 0, "slopes": 0, "beta": 0, "sign_beta": 0}
        self.signs = np.searchsorted(a["sign_lemma"], np.arange(len(a["node"]) + 1))
        self.waiting: list[tuple[Array, Rows]] = []
        is_next = [np.diff(a[name], prepend=-1) != 0 for name in ("node", "part", "round")]
        starts = np.flatnonzero(np.any(is_next, axis=0))
        rounds = np.split(np.arange(len(a["node"])), starts[1:]) if len(starts) else []
        begun, parents = np.searchsorted(starts, self.first), a["parent"]
        last_child = np.zeros(len(parents) + 1, np.int32)
        np.maximum.at(last_child, parents, np.arange(len(parents), dtype=np.int32))
        root = State(self.known[0][:, 0], self.known[1][:, 0])
        for node, parent in enumerate(map(int, parents)):
            split = a["split_unit"][node], a["split_sign"][node]
            state = replace(root) if parent < 0 else inner[parent].child(*split)
            for lemmas in rounds[begun[node] : begun[node + 1]]:
                self.round(state, int(a["spec"][node]), lemmas)
            if self.is_leaf[node]:
                hold(self.is_closed(state, node), f"nothing closes node {node}")
            else:
                inner[node] = state
                readable(len(inner) <= self.most_states, "its tree is too wide for the memory")
            if parent >= 0 and last_child[parent] == node:
                del inner[parent]
        self.prove()
        is_used = [self.used[name] == len(a[name]) for name in self.used]
        hold(is_used, "it has multipliers that no lemma needs")

    def round(self, state: State, spec: int, lemmas: Array) -> None:
        """Lemmas of one round, which rest on the same state; then it has what they say."""
        a = self.arrays
        state.intersect(self.known, a["part"][lemmas[0]])
        for some in np.split(lemmas, range(self.at_once, len(lemmas), self.at_once)):
            self.waiting.append((some, self.rows(state, spec, some)))
            if sum(len(each) for each, _ in self.waiting) >= self.at_once:
                self.prove()
        said = lemmas[a["unit"][lemmas] >= 0]
        state.tighten(a["unit"][said], a["side"][said], a["bound"][said].astype(np.float64))

    def rows(self, state: State, spec: int, lemmas: Array) -> Rows:
        """The rows of some lemmas of one state, in order."""
        a, count, (first, end) = self.arrays, len(lemmas), self.firsts[spec : spec + 2]
        is_open = (state.lower < 0) & (state.upper > 0)
        slopes = np.zeros((len(is_open), count), np.uint8)
        slopes[is_open] = self.take("slopes", count, int(is_open.sum())).T
        beta = self.take("beta", count, len(state.split)).astype(np.float64)
        row, place = np.nonzero(beta)
        signs = slice(self.signs[lemmas[0]], self.signs[lemmas[-1] + 1])
        more = a["sign_unit"][signs]
        is_on, weights = state.lower[more] >= 0, self.take("sign_beta", 1, len(more))[0]
        is_known = np.all(is_on | (state.upper[more] <= 0))
        hold(is_known, f"lemmas {lemmas[0]} to {lemmas[-1]}: a sign is not known")
        own = np.flatnonzero(a["unit"][lemmas] >= 0)
        units = (
            terms(a["unit"][lemmas[own]], a["side"][lemmas[own]], own),
            terms(state.split[place], -state.sign[place] * beta[row, place], row),
            terms(more, np.where(is_on, -weights, weights), a["sign_lemma"][signs] - lemmas[0]),
        )
        gamma = self.take("gamma", count, end - first)
        row, place = np.nonzero(gamma)
        stated, (lower, upper) = terms(first + place, gamma[row, place], row), state.columns(count)
        return Rows(a["part"][lemmas], lower, upper, slopes, np.concatenate(units, 1), stated)

    def take(self, name: str, count: int, each: int) -> Array:
        """The next multipliers: so many for each of `count` lemmas."""
        held, first = self.arrays[name], self.used[name]
        self.used[name] = end = first + count * each
        hold(end <= len(held), f"its {name} are too few")
        return held[first:end].reshape(count, each)

    def is_closed(self, state: State, node: int) -> bool:
        """By a closing row, an empty unit, or a split that leaves nothing to this side."""
        state.intersect(self.known, -1)
        is_closing = self.arrays["unit"][self.first[node] : self.first[node + 1]] == -1
        is_on, is_off = self.known[0][state.split, -1] >= 0, self.known[1][state.split, -1] <= 0
        is_vacant = np.where(state.sign < 0, is_on, is_off & ~is_on)
        return bool(is_closing.any() or is_vacant.any() or (state.lower > state.upper).any())

    def prove(self) -> None:
        """The rows that wait."""
        if not self.waiting:
            return
        lemmas = np.concatenate([each for each, _ in self.waiting])
        unit, side, bound, node = (
            self.arrays[name][lemmas] for name in ("unit", "side", "bound", "node")
        )
        values = self.bounds_of(Rows.joined([rows for _, rows in self.waiting]))
        stated = np.where(unit < 0, 0.0, bound.astype(np.float64))
        for i in np.flatnonzero(~np.where(unit < 0, values > 0, values >= stated)):
            what = "closes it" if unit[i] < 0 else f"bounds unit {unit[i]}, side {side[i]:+d},"
            told = f"lemma {lemmas[i]} of node {node[i]} {what} by {stated[i]:.9g}"
            fails = f"it fails by {stated[i] - values[i]:.3g}"
            raise Rejected(f"{told}, but its row gives {values[i]:.9g}: {fails}")
        self.margin = min(self.margin, (values - stated).min())
        self.waiting.clear()
