"""From the log of a finished proof to its certificate: only what closes the tree is stated.

The tree is walked as a checker will walk it, with the bounds that are stated, so that both agree on
which units are open where, and so on the slopes that are needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.networks import Network
from radii.problem import Arithmetic, Ball, Specification
from radii.verifiers.certificates._claims import claim_of
from radii.verifiers.certificates._container import Certificate
from radii.verifiers.native._proof_log import CLOSING, LemmaRows, ProofLog

Array = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]

COLUMNS = {
    "node": "<i4",
    "part": "<i4",
    "round": "<i4",
    "unit": "<i4",
    "side": "|i1",
    "bound": "<f4",
    "gamma": "<f8",
    "slopes": "|u1",
    "beta": "<f2",
    "sign_lemma": "<i4",
    "sign_unit": "<i4",
    "sign_beta": "<f8",
}
"""Of all lemmas, in the order in which they are stated."""


def certificate_of(
    network: Network,
    specification: Specification,
    arithmetic: Arithmetic,
    log: ProofLog,
    rows: Sequence[int],
) -> bytes | None:
    """The certificate of the proof in a log; None where the format cannot state it.

    `rows` is how many rows each violation has where the proof states it.
    """
    described = claim_of(network, specification, arithmetic)
    chain = log.chain
    if described is None or any(part.is_too_large or not part.grounds for part in chain):
        return None
    claim, arrays = described
    proof = _Assembly(chain, rows).arrays()
    if proof is None:
        return None
    return Certificate(claim, "units", arrays | proof).to_bytes()


class _Sides:
    """Bounds of all units at one state."""

    def __init__(self, lower: Array, upper: Array, part: int = -1) -> None:
        self.lower, self.upper, self.part = lower, upper, part

    def copy(self) -> _Sides:
        return _Sides(self.lower.copy(), self.upper.copy(), self.part)

    @property
    def is_open(self) -> npt.NDArray[np.bool_]:
        return np.asarray((self.lower < 0) & (self.upper > 0))

    @property
    def is_empty(self) -> bool:
        return bool((self.lower > self.upper).any())

    def intersect(self, lower: Array, upper: Array) -> None:
        np.maximum(self.lower, lower, out=self.lower)
        np.minimum(self.upper, upper, out=self.upper)

    def split(self, unit: int, sign: int) -> None:
        if sign > 0:
            self.lower[unit] = max(self.lower[unit], 0.0)
        else:
            self.upper[unit] = min(self.upper[unit], 0.0)

    def tighten(self, unit: Integers, side: Array, bound: Array) -> None:
        below, above = side > 0, side < 0
        np.maximum.at(self.lower, unit[below], bound[below])
        np.minimum.at(self.upper, unit[above], -bound[above])


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """Where the rows of one (node, part, round) are: numbers of chunks, and rows in them."""

    part: int
    chunks: Integers
    rows: Integers


class _Assembly:
    def __init__(self, chain: Sequence[ProofLog], rows: Sequence[int]) -> None:
        self.chain, self.rows = chain, rows
        self.grounds = [ground for log in chain for ground in log.grounds]
        self.eps = [
            log.region.eps if isinstance(log.region, Ball) else 0.0
            for log in chain
            for _ in log.grounds
        ]
        ends = np.cumsum([len(log.grounds) for log in chain])
        self.chunks: list[tuple[int, LemmaRows]] = [
            (int(end) - 1, lemmas)
            for end, log in zip(ends, chain, strict=True)
            for lemmas in log.lemmas
        ]
        self.columns: dict[str, list[Array]] = {name: [] for name in COLUMNS}
        self.count = 0
        self._read_tree()

    def _read_tree(self) -> None:
        """For each node of the log its children's numbers and the unit between them, or -1."""
        count = self.chain[-1].count
        self.child = np.full((count, 2), -1)
        self.split_unit = np.full(count, -1)
        for log in self.chain:
            for nodes, units, first in log.splits:
                place = np.arange(len(nodes))
                at = nodes.numpy()
                self.child[at, 0] = first + place
                self.child[at, 1] = first + len(place) + place
                self.split_unit[at] = units.numpy()
        self.is_closed = np.zeros(count, dtype=bool)
        for _, lemmas in self.chunks:
            self.is_closed[lemmas.node.numpy()[lemmas.unit.numpy() == CLOSING]] = True

    def arrays(self) -> dict[str, Array] | None:
        """All arrays of the proof; None if the log does not close its tree."""
        tree = self._nodes()
        if not self._lemmas(tree):
            return None
        _, parent, unit, sign, spec = tree
        return {
            "eps": np.array(self.eps, dtype="<f8"),
            "lower": np.stack([_single(g.lower.numpy(), -1) for g in self.grounds]),
            "upper": np.stack([_single(g.upper.numpy(), 1) for g in self.grounds]),
            **self._ground_slopes(),
            "parent": parent.astype("<i4"),
            "split_unit": unit.astype("<i4"),
            "split_sign": sign.astype("|i1"),
            "spec": spec.astype("<i4"),
            **{
                name: np.concatenate([np.zeros(0, dtype), *map(np.ravel, self.columns[name])])
                for name, dtype in COLUMNS.items()
            },
        }

    def _nodes(self) -> tuple[Integers, Integers, Integers, Integers, Integers]:
        """The nodes that count, parents first: number in the log, parent, split, spec."""
        found: list[tuple[int, int, int, int, int]] = []
        waiting = [(spec, -1, -1, 0, spec) for spec in reversed(range(self.chain[0].specs))]
        while waiting:
            one = waiting.pop()
            node, spec, number = one[0], one[4], len(found)
            found.append(one)
            if not self.is_closed[node] and self.split_unit[node] >= 0:
                unit = int(self.split_unit[node])
                below, above = self.child[node, 1], self.child[node, 0]
                waiting.append((int(below), number, unit, -1, spec))
                waiting.append((int(above), number, unit, 1, spec))
        old, parent, unit_, sign, spec_ = np.array(found, dtype=np.int64).reshape(-1, 5).T
        return old, parent, unit_, sign, spec_

    # --- ground bounds

    def _ground_slopes(self) -> dict[str, Array]:
        """The slopes of ground bounds, for the units that are open before them."""
        part, unit, side, slopes = [], [], [], []
        firsts = np.asarray(self.chain[0].layer_firsts, dtype=np.int64)
        for number, ground in enumerate(self.grounds):
            is_open = (ground.lower.numpy() < 0) & (ground.upper.numpy() > 0)
            known = 0 if number == 0 else len(self.grounds[number - 1].slopes)
            is_same = number > 0 and self.eps[number] == self.eps[number - 1]
            for units, sides, rows, names in ground.slopes[known if is_same else 0 :]:
                part.append(np.full(len(units), number))
                unit.append(units.numpy())
                side.append(sides.numpy())
                for one, row in zip(units.tolist(), rows.numpy(), strict=True):
                    whole = np.zeros(len(is_open), np.uint8)
                    whole[names.numpy()] = row
                    until = firsts[np.searchsorted(firsts, one, side="right") - 1]
                    slopes.append(whole[:until][is_open[:until]])
        return {
            "ground_part": np.concatenate([np.zeros(0), *part]).astype("<i4"),
            "ground_unit": np.concatenate([np.zeros(0), *unit]).astype("<i4"),
            "ground_side": np.concatenate([np.zeros(0), *side]).astype("|i1"),
            "ground_slopes": np.concatenate([np.zeros(0, np.uint8), *slopes]),
        }

    # --- lemmas

    def _lemmas(self, tree: tuple[Integers, Integers, Integers, Integers, Integers]) -> bool:
        """State the lemmas of all nodes; False if some leaf is not closed by them."""
        old, parent, unit, sign, spec = tree
        places = self._places(old)
        known = self._known()
        has_children = np.zeros(len(old), dtype=bool)
        has_children[parent[parent >= 0]] = True
        lower, upper = known[0]
        ends: dict[int, _Sides] = {-1: _Sides(lower.copy(), upper.copy(), 0)}
        paths: dict[int, list[tuple[int, int]]] = {-1: []}
        last_child = {int(p): int(n) for n, p in enumerate(parent)}
        for node in range(len(old)):
            above = int(parent[node])
            state, path = ends[above].copy(), list(paths[above])
            if above >= 0:
                state.split(int(unit[node]), int(sign[node]))
                path.append((int(unit[node]), int(sign[node])))
            for place in places.get(node, ()):
                self._state(place, node, int(spec[node]), state, path, known)
            if has_children[node]:
                ends[node], paths[node] = state, path
            elif not self._is_over(int(old[node]), state, path, known):
                return False
            if above >= 0 and last_child[above] == node:
                del ends[above], paths[above]
        return True

    def _known(self) -> list[tuple[Array, Array]]:
        """Ground bounds of each part, with those of all parts before it."""
        known: list[tuple[Array, Array]] = []
        for ground in self.grounds:
            lower, upper = ground.lower.numpy().copy(), ground.upper.numpy().copy()
            if known:
                lower, upper = np.maximum(lower, known[-1][0]), np.minimum(upper, known[-1][1])
            known.append((lower, upper))
        return known

    def _is_over(
        self, old: int, state: _Sides, path: list[tuple[int, int]], known: list[tuple[Array, Array]]
    ) -> bool:
        if self.is_closed[old] or state.is_empty:
            return True
        lower, upper = known[-1]
        if any(lower[u] >= 0 if sign < 0 else upper[u] <= 0 for u, sign in path):
            return True
        state.intersect(lower, upper)
        return state.is_empty

    def _places(self, old: Integers) -> dict[int, list[_Place]]:
        """By node (as it is stated), where its lemmas are, in the order of showing them."""
        new = np.full(self.chain[-1].count, -1)
        new[old] = np.arange(len(old))
        columns = []
        for number, (part, lemmas) in enumerate(self.chunks):
            node = new[lemmas.node.numpy()]
            kept = np.flatnonzero(node >= 0)
            fixed = [np.full(len(kept), v) for v in (part, lemmas.round, number)]
            columns.append(np.stack([node[kept], *fixed, kept]))
        if not columns:
            return {}
        table = np.concatenate(columns, 1)
        table = table[:, np.lexsort(table[::-1])]
        starts = np.flatnonzero(np.any(np.diff(table[:3], axis=1, prepend=-1), axis=0))
        found: dict[int, list[_Place]] = {}
        for first, end in zip(starts, [*starts[1:], table.shape[1]], strict=True):
            rows = table[:, first:end]
            place = _Place(int(rows[1, 0]), rows[3], rows[4])
            found.setdefault(int(rows[0, 0]), []).append(place)
        return found

    def _state(
        self,
        place: _Place,
        node: int,
        spec: int,
        state: _Sides,
        path: list[tuple[int, int]],
        known: list[tuple[Array, Array]],
    ) -> None:
        """State the lemmas of one round, and go on with what they say."""
        if place.part != state.part:
            state.intersect(*known[place.part])
            state.part = place.part
        is_open = state.is_open
        round_ = len(self.columns["node"])
        said = []
        for lemmas, rows in self._chunk_rows(place):
            unit, side = lemmas.unit.numpy()[rows], lemmas.side.numpy()[rows]
            bound = np.where(unit == CLOSING, 0.0, lemmas.bound.numpy()[rows])
            self._add("node", np.full(len(rows), node))
            self._add("part", np.full(len(rows), place.part))
            self._add("round", np.full(len(rows), round_))
            self._add("unit", unit)
            self._add("side", np.where(unit == CLOSING, 0, side))
            self._add("bound", bound)
            self._add("gamma", _folded(lemmas.gamma.numpy()[rows], self.rows[spec]))
            whole = np.zeros((len(rows), len(is_open)), np.uint8)
            whole[:, lemmas.names.numpy()] = lemmas.slopes.numpy()[rows]
            self._add("slopes", whole[:, is_open])
            self._add_signs(lemmas, rows, path)
            self.count += len(rows)
            said.append((unit, side, bound))
        for unit, side, bound in said:
            holds = unit != CLOSING
            state.tighten(unit[holds], side[holds], bound[holds])

    def _chunk_rows(self, place: _Place) -> Iterator[tuple[LemmaRows, Integers]]:
        for number in np.unique(place.chunks):
            yield self.chunks[number][1], place.rows[place.chunks == number]

    def _add_signs(self, lemmas: LemmaRows, rows: Integers, path: list[tuple[int, int]]) -> None:
        """Multipliers of signs: of the splits on the path, and where they are of other units, or
        too precise for half a word, one by one."""
        row, kept, value = (part.numpy() for part in lemmas.split)
        first, end = np.searchsorted(row, rows), np.searchsorted(row, rows, side="right")
        at = np.repeat(np.arange(len(rows)), end - first)
        entry = np.concatenate([np.arange(0), *map(np.arange, first, end)])
        unit, beta = lemmas.names.numpy()[kept[entry]], value[entry]
        places = {one: place for place, (one, _) in enumerate(path)}
        place = np.array([places.get(one, -1) for one in unit.tolist()], dtype=np.int64)
        half = beta.astype(np.float16)
        is_split = (place >= 0) & (half == beta)
        betas = np.zeros((len(rows), len(path)), np.float16)
        betas[at[is_split], place[is_split]] = half[is_split]
        self._add("beta", betas)
        self._add("sign_lemma", self.count + at[~is_split])
        self._add("sign_unit", unit[~is_split])
        self._add("sign_beta", beta[~is_split])

    def _add(self, name: str, values: Array) -> None:
        self.columns[name].append(values.astype(COLUMNS[name]))


def _folded(gamma: Array, count: int) -> Array:
    """Multipliers of a violation's own rows: shorter ones repeat their last row."""
    own = gamma[:, :count].astype(np.float64)
    own[:, -1] += gamma[:, count:].sum(1)
    return own


def _single(values: Array, direction: int) -> Array:
    """Bounds as they are stated: they are numbers of float32, but for what that cannot hold."""
    single = values.astype("<f4")
    is_inside = single.astype(np.float64) * direction < values * direction
    return np.where(is_inside, np.nextafter(single, np.float32(direction * np.inf)), single)
