"""Proofs by splits of units: every lemma's row is evaluated, and every leaf must be closed.

For each violation there is a tree, whose root stands for all inputs of the region that violate the
requirement in this way. A split sends an input to the side of its sign, a >= 0 or a <= 0. A lemma
at a node says side * a >= bound for the inputs there. Its row may use what is known at the node
before it, which is its state: the intersection of

    the ground bounds of the lemma's part (and of earlier parts)
    the splits on the path to the node
    the lemmas of the node's ancestors
    the lemmas of the node itself with a smaller part or round

A leaf is closed by a contradiction: a row above 0 that is at most 0, an empty interval, or a split
that leaves nothing to this side. If all leaves are closed, no input violates the requirement. The
scheme is branch and bound with beta-CROWN (Wang et al., 2021).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from radii_check._bounds import Bounds
from radii_check._errors import Rejected, require, require_format, require_readable
from radii_check._format import Array
from radii_check._ground_bounds import GroundBounds
from radii_check._proof import Proof
from radii_check._regions import Regions
from radii_check._rows import Rows, Terms
from radii_check._states import State
from radii_check._trees import leaves_of

MULTIPLIERS = ("gamma", "slopes", "beta", "sign_beta")
"""Arrays that lemmas take their numbers from, one after another."""
CLOSING = -1
"""The "unit" of a lemma that closes its leaf."""


class UnitProof(Proof):
    """A proof by splits of units."""

    def run(self) -> None:
        self.check_parts()
        self.is_leaf = leaves_of(self.arrays, "parent", "split_unit", "spec", "split_sign")
        self.check_tree()
        self.check_ranges()
        self.check_order_of_lemmas()
        lower, upper = (self.arrays[name].T.astype(np.float64) for name in ("lower", "upper"))
        self.ground = GroundBounds(lower, upper)
        regions = Regions.of_claim(self.certificate, self.arrays["eps"], self.num)
        self.bounds = Bounds(self.network, regions, self.certificate.widening, self.num)
        self.bounds.lower, self.bounds.upper = self.ground.known_lower, self.ground.known_upper
        self.ground.check(self)
        self.check_nodes()

    # Everything is in range and in order.

    def check_parts(self) -> None:
        """Each part holds the claim's region, and each the next one."""
        eps, units = self.arrays["eps"], self.network.units
        self.parts = len(eps)
        shape = (self.parts, units)
        fits = self.arrays["lower"].shape == self.arrays["upper"].shape == shape and self.parts > 0
        require_format(fits, f"its bounds are not those of {self.parts} parts and {units} units")
        is_small = self.parts <= self.max_regions
        require_readable(is_small, "its parts do not fit into the memory")
        if self.certificate.claim["norm"] != "box":
            claimed = self.certificate.claim["eps"]
            require(eps >= claimed, "a part has a smaller eps than the claim")
            require(np.diff(eps) <= 0, "a part has a larger eps than the one before it")

    def check_tree(self) -> None:
        """Every violation has one root, and every node the violation of its root."""
        parent, spec = self.arrays["parent"], self.arrays["spec"]
        is_root = parent < 0
        violations = list(range(len(self.first_rows) - 1))
        has_roots = sorted(spec[is_root].tolist()) == violations
        require(has_roots, "a violation has no root, or several")
        has_one_spec = is_root | (spec == spec[parent])
        require(has_one_spec, "a node has another violation than its parent")

    def check_ranges(self) -> None:
        """Every array of numbers has its length, and every number its range."""
        a, units = self.arrays, self.network.units
        first_unit = np.where(a["parent"] < 0, -1, 0)
        ranges: dict[str, tuple[str, Array | float, float]] = {  # as long as which, from, below
            "split_unit": ("parent", first_unit, units),
            "node": ("node", 0, len(self.is_leaf)),
            "part": ("node", 0, self.parts),
            "unit": ("node", CLOSING, units),
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
        for name, (same_length, low, high) in ranges.items():
            array = a[name]
            require(array.shape == (len(a[same_length]),), f"array '{name}' is of another length")
            in_range = (array >= low) & (array < high)
            require(in_range, f"array '{name}' holds a number out of range")
        is_bound = a["unit"] >= 0
        require(~is_bound | (abs(a["side"]) == 1), "a lemma is of no side")

    def check_order_of_lemmas(self) -> None:
        """Lemmas are sorted by node, part and round, and parts do not decrease along a path."""
        a, nodes = self.arrays, len(self.is_leaf)
        node_step, part_step, round_step = (np.diff(a[name]) for name in ("node", "part", "round"))
        is_later_in_node = (node_step == 0) & (part_step >= 0) & (round_step >= 0)
        require((node_step > 0) | is_later_in_node, "its lemmas are not in order")
        require(np.diff(a["sign_lemma"]) >= 0, "its signs are not in order")
        self.first_lemma = np.searchsorted(a["node"], np.arange(nodes + 1))
        last_part = np.zeros(nodes + 1, int)  # at or above a node; last_part[-1] is above roots
        for node in range(nodes):
            parts = a["part"][self.first_lemma[node] : self.first_lemma[node + 1]]
            part_above = last_part[a["parent"][node]]
            require(parts[:1] >= part_above, f"node {node} has a lemma of too early a part")
            last_part[node] = parts[-1] if len(parts) else part_above

    # The tree.

    def check_nodes(self) -> None:
        """All nodes in order; a state is kept until the last child of its node was there."""
        a = self.arrays
        self.used = dict.fromkeys(MULTIPLIERS, 0)
        self.first_sign = np.searchsorted(a["sign_lemma"], np.arange(len(a["node"]) + 1))
        self.pending = list[tuple[Array, Rows]]()
        rounds, first_round = self.rounds_of_lemmas()
        parents = a["parent"]
        last_child = np.zeros(len(parents) + 1, np.int32)
        np.maximum.at(last_child, parents, np.arange(len(parents), dtype=np.int32))
        root, inner = self.ground.state(0), dict[int, State]()
        for node, parent in enumerate(map(int, parents)):
            split = a["split_unit"][node], a["split_sign"][node]
            state = replace(root) if parent < 0 else inner[parent].child(*split)
            for lemmas in rounds[first_round[node] : first_round[node + 1]]:
                self.check_round(state, int(a["spec"][node]), lemmas)
            if self.is_leaf[node]:
                require(self.is_closed(state, node), f"nothing closes node {node}")
            else:
                inner[node] = state
                is_small = len(inner) <= self.max_states
                require_readable(is_small, "its tree is too wide for the memory")
            if parent >= 0 and last_child[parent] == node:
                del inner[parent]
        self.evaluate_pending()
        is_used_up = [self.used[name] == len(a[name]) for name in MULTIPLIERS]
        require(is_used_up, "it has multipliers that no lemma needs")

    def rounds_of_lemmas(self) -> tuple[list[Array], Array]:
        """Lemmas of one node, part and round, which share a state; and each node's first round."""
        a = self.arrays
        changes = [np.diff(a[name], prepend=-1) != 0 for name in ("node", "part", "round")]
        starts = np.flatnonzero(np.any(changes, axis=0))
        rounds = np.split(np.arange(len(a["node"])), starts[1:]) if len(starts) else []
        return rounds, np.searchsorted(starts, self.first_lemma)

    def check_round(self, state: State, spec: int, lemmas: Array) -> None:
        """Lemmas that rest on the same state, which then has what they say. Their rows are kept
        until there are enough to be bounded together: the proof fails as a whole or not at all."""
        a = self.arrays
        part = a["part"][lemmas[0]]
        state.intersect(self.ground.known_lower[:, part], self.ground.known_upper[:, part])
        for some in np.split(lemmas, range(self.rows_at_once, len(lemmas), self.rows_at_once)):
            self.pending.append((some, self.rows_of(state, spec, some)))
            if sum(len(lemmas) for lemmas, _ in self.pending) >= self.rows_at_once:
                self.evaluate_pending()
        bounding = lemmas[a["unit"][lemmas] >= 0]
        bound = a["bound"][bounding].astype(np.float64)
        state.tighten(a["unit"][bounding], a["side"][bounding], bound)

    def rows_of(self, state: State, spec: int, lemmas: Array) -> Rows:
        """The rows of some lemmas of one state, in order."""
        a, count = self.arrays, len(lemmas)
        is_open = state.is_open
        slopes = np.zeros((len(is_open), count), np.uint8)
        slopes[is_open] = self.next_multipliers("slopes", count, int(is_open.sum())).T
        bounding = np.flatnonzero(a["unit"][lemmas] >= 0)
        own_units = Terms.of(a["unit"][lemmas[bounding]], a["side"][lemmas[bounding]], bounding)
        splits = self.split_terms(state, count)
        signs = self.sign_terms(state, lemmas)
        on_units = Terms.joined([own_units, splits, signs])

        first_row, end_row = self.first_rows[spec : spec + 2]
        gamma = self.next_multipliers("gamma", count, end_row - first_row)
        row, place = np.nonzero(gamma)
        on_violations = Terms.of(first_row + place, gamma[row, place], row)
        regions = a["part"][lemmas]
        return Rows(regions, *state.columns(count), slopes, on_units, on_violations)

    def split_terms(self, state: State, count: int) -> Terms:
        """-beta_d sign_d a_d for the splits d on the path, for each of `count` lemmas."""
        depth = len(state.split_units)
        beta = self.next_multipliers("beta", count, depth).astype(np.float64)
        row, place = np.nonzero(beta)
        weight = -state.split_signs[place] * beta[row, place]
        return Terms.of(state.split_units[place], weight, row)

    def sign_terms(self, state: State, lemmas: Array) -> Terms:
        """-beta a for further units that are on at the state, and beta a for units that are off."""
        a, first, last = self.arrays, lemmas[0], lemmas[-1]
        signs = slice(self.first_sign[first], self.first_sign[last + 1])
        units = a["sign_unit"][signs]
        beta = self.next_multipliers("sign_beta", 1, len(units))[0]
        is_on, is_off = state.lower[units] >= 0, state.upper[units] <= 0
        require(is_on | is_off, f"lemmas {first} to {last}: a sign is not known")
        return Terms.of(units, np.where(is_on, -beta, beta), a["sign_lemma"][signs] - first)

    def next_multipliers(self, name: str, count: int, each: int) -> Array:
        """The next numbers of an array: `each` for each of `count` lemmas."""
        array, start = self.arrays[name], self.used[name]
        self.used[name] = end = start + count * each
        require(end <= len(array), f"its {name} are too few")
        return array[start:end].reshape(count, each)

    def is_closed(self, state: State, node: int) -> bool:
        """A leaf is closed by a closing row, an empty unit, or a split that leaves nothing to it.

        The last: where a unit is on for the whole region (by the last ground bounds), every input
        of the side a <= 0 belongs to the other side as well; where it is off, and not on, every
        input of the side a >= 0. If a = 0 throughout, only the side a <= 0 is vacant: else both
        sides would leave the inputs to each other.
        """
        last_lower, last_upper = self.ground.known_lower[:, -1], self.ground.known_upper[:, -1]
        state.intersect(last_lower, last_upper)
        lemmas = slice(self.first_lemma[node], self.first_lemma[node + 1])
        has_closing_row = bool((self.arrays["unit"][lemmas] == CLOSING).any())
        is_on = last_lower[state.split_units] >= 0
        is_off = last_upper[state.split_units] <= 0
        is_vacant = np.where(state.split_signs < 0, is_on, is_off & ~is_on)
        return has_closing_row or bool(is_vacant.any()) or state.is_empty

    def evaluate_pending(self) -> None:
        """Bound the rows that are pending; each must reach what its lemma states, and a closing
        row must be above 0."""
        if not self.pending:
            return
        lemmas = np.concatenate([lemmas for lemmas, _ in self.pending])
        values = self.lower_bounds_of(Rows.joined([rows for _, rows in self.pending]))
        unit, bound = self.arrays["unit"][lemmas], self.arrays["bound"][lemmas]
        is_closing = unit == CLOSING
        stated = np.where(is_closing, 0.0, bound.astype(np.float64))
        is_shown = np.where(is_closing, values > 0, values >= stated)
        for i in np.flatnonzero(~is_shown):
            raise Rejected(self.failure(lemmas[i], stated[i], values[i]))
        self.margin = min(self.margin, (values - stated).min())
        self.pending.clear()

    def failure(self, lemma: int, stated: float, value: float) -> str:
        unit, side, node = (self.arrays[name][lemma] for name in ("unit", "side", "node"))
        what = "closes it" if unit == CLOSING else f"bounds unit {unit}, side {side:+d},"
        gives = f"but its row gives {value:.9g}: it fails by {stated - value:.3g}"
        return f"lemma {lemma} of node {node} {what} by {stated:.9g}, {gives}"
