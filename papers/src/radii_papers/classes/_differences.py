"""Kolmogorov-Smirnov matrices counted: how many pairs differ, and training from testing images."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from radii.errors import InputError
from radii.statistics import Distribution, Float64, KsMatrix, holm, ks_matrix
from radii_papers._evidence import ClaimBasis, ClaimCase, alike, differing
from radii_papers._intervals import paired_p_value
from radii_papers._tables import Beside, Cell, StudyTable, share_text
from radii_papers.classes._numbers import IMAGES_OF_CLASS, SIGNIFICANCE

Side = Literal["lower", "upper"]

Pair = tuple[Float64, Float64]

Part = Literal["train", "test", "splits"]
"""Below the diagonal of a matrix, above it, and on it."""


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """Of one matrix: cells that can be tested and those that differ, by part."""

    matrix: KsMatrix

    def cells(self, part: Part) -> np.ndarray:
        """A mask of the matrix: the cells of a part that have a statistic."""
        size = len(self.matrix.keys)
        shape = {
            "train": np.tri(size, k=-1, dtype=bool),
            "test": np.tri(size, k=-1, dtype=bool).T,
            "splits": np.eye(size, dtype=bool),
        }[part]
        return np.asarray(shape & ~np.isnan(self.matrix.statistics))

    def differ(self, part: Part, *, is_adjusted: bool = False) -> int:
        found = self.matrix.differ(SIGNIFICANCE, is_adjusted=is_adjusted)
        return int(np.count_nonzero(found & self.cells(part)))

    def tested(self, part: Part) -> int:
        return int(np.count_nonzero(self.cells(part)))

    def keys_that_differ(self) -> tuple[Any, ...]:
        """Groups whose training and testing images differ, each test by itself."""
        found = self.matrix.differ(SIGNIFICANCE, is_adjusted=False) & self.cells("splits")
        return tuple(key for key, differs in zip(self.matrix.keys, np.diag(found), strict=True)
                     if differs)  # fmt: skip

    def between_splits(self) -> dict[Any, float]:
        """Of each group with images of both splits, the p-value that they are alike."""
        places = np.flatnonzero(np.diag(self.cells("splits")))
        return {self.matrix.keys[i]: float(self.matrix.p_values[i, i]) for i in places.tolist()}

    def p_values(self, part: Part) -> list[float]:
        """Of each tested cell, by itself."""
        return [float(p) for p in self.matrix.p_values[self.cells(part)]]

    def text(self, part: Part) -> str:
        """`31 of 45 (69 %), 20 after Holm`; of one pair alone `yes (p = 0.001), after Holm too`."""
        tested = self.tested(part)
        if not tested:
            return ""
        plain, adjusted = self.differ(part), self.differ(part, is_adjusted=True)
        if tested > 1:
            return f"{share_text(plain, tested)}, {adjusted} after Holm"
        shown = f"{'yes' if plain else 'no'} (p = {self.p_values(part)[0]:.2g})"
        return shown if not plain else f"{shown}, after Holm {'too' if adjusted else 'no longer'}"


def differences(distribution: Distribution, by: str, side: Side = "upper") -> Differences | None:
    """None where there is nothing to compare: one group, or no value."""
    try:
        return Differences(ks_matrix(distribution, by, side))
    except InputError:
        return None


COLUMNS = ("pairs that differ, train", "pairs that differ, test", "differ between splits")


def differences_table(
    name: str,
    title: str,
    first: str,
    found: Mapping[str, Differences | None],
    paper: Mapping[str, str],
    *,
    others: Sequence[str] = (),
    reason: str = "",
) -> StudyTable:
    """A row for each matrix; the count on the diagonal stands beside the paper's.

    `others` are rows of which only the paper has numbers; `reason` is why counts may differ.
    """
    rows: list[tuple[Cell, ...]] = []
    for key in (*found, *others):
        each = found.get(key)
        own: list[Cell] = [None, None, None, ""]
        if each is not None:
            count = each.differ("splits") if each.tested("splits") else None
            groups = ", ".join(map(str, each.keys_that_differ()))
            own = [each.text("train"), each.text("test"), count, groups or "none"]
        if paper:
            beside = Beside(None if own[2] is None else int(str(own[2])), paper.get(key, ""))
            own[2:] = [beside, own[3], reason if beside.agrees is False else ""]
        rows.append((key, *own))
    columns = (first, *COLUMNS, "which", *(("reason of a difference",) if paper else ()))
    return StudyTable(name, title, columns, tuple(rows))


def of_tests(images: int) -> str:
    """What to say of tests on so many images of each group."""
    text = (
        f"Each test is at {SIGNIFICANCE:g} by itself, as in the paper; then after Holm's "
        "correction over its matrix."
    )
    if images < IMAGES_OF_CLASS:
        text += " With fewer images than the paper's, fewer differences can be shown."
    return text


def why_counts_differ(images: int) -> str:
    """From the paper's, of so many images of each group."""
    fewer = ", and fewer" if images < IMAGES_OF_CLASS else ""
    return f"another draw of images{fewer}; witnessed distances"


FARTHEST = 1.0
"""Between two images with pixels in [0, 1]: a distance without a witness is at most that."""


def fewest_images(distribution: Distribution, by: str) -> int:
    """Correct images of the smallest group in any network and split."""
    right = distribution.correctly_classified()
    names = dict.fromkeys(("network", by, "split"))
    return min(len(part) for part in right.group_by(*names).values())


def values_by_image(part: Distribution, side: Side = "upper") -> dict[tuple[str, int], float]:
    """By split and number of each correct image: one side of its bracket."""
    right = part.correct
    splits, numbers = part.column("split")[right].tolist(), part.column("input")[right].tolist()
    values = np.minimum((part.upper if side == "upper" else part.lower)[right], FARTHEST).tolist()
    return dict(zip(zip(splits, numbers, strict=True), values, strict=True))


def paired_values(one: Distribution, two: Distribution, side: Side = "upper") -> Pair:
    """Of the images that both networks classify correctly, in one order."""
    first, second = values_by_image(one, side), values_by_image(two, side)
    shared = [key for key in first if key in second]
    return np.array([first[key] for key in shared]), np.array([second[key] for key in shared])


def signed_ranks(differences: Float64) -> float:
    """Ranks of what is larger less those of what is smaller. A median would be 0 where most images
    have the same radius on the grid."""
    from scipy.stats import rankdata

    some = differences[differences != 0]
    return float(np.sum(np.sign(some) * rankdata(np.abs(some))))


ATTACK_SLACK = 0.1
"""Of a witnessed distance: where brackets of mnist-net close, nine of ten witnesses lie within so
much of the radius. What two networks differ by less may be the attack's doing."""


def lead_p_value(first: Float64, second: Float64) -> float:
    """In pairs, with the distances of the network that is ahead taken as too large by the slack; 1
    where it then is not ahead."""
    ahead, other = (first, second) if signed_ranks(first - second) >= 0 else (second, first)
    least = (1 - ATTACK_SLACK) * ahead
    return paired_p_value(least, other) if signed_ranks(least - other) > 0 else 1.0


def kruskal_p_value(groups: Sequence[Float64]) -> float:
    """That independent groups are alike; 1 where nothing varies."""
    from scipy.stats import kruskal

    if len(groups) < 2 or not np.ptp(np.concatenate(groups)):
        return 1.0
    return float(kruskal(*groups).pvalue)


def networks_differ(parts: Mapping[str, Distribution]) -> list[ClaimCase]:
    """Of each part, that every two networks have different distances on the same images, by more
    than attacks may be off."""
    tested = {}
    for name, part in parts.items():
        for pair in combinations(part.networks, 2):
            one, two = (part.only(network=network) for network in pair)
            first, second = paired_values(one, two)
            case = f"{name}, {' and '.join(pair)}"
            tested[case] = (len(first), lead_p_value(first, second))
    return _differing(tested)


def groups_differ(parts: Mapping[str, Distribution], by: str, side: Side) -> list[ClaimCase]:
    """Of each part, that groups of different images differ; `n` is the smallest group's."""
    tested = {}
    for name, part in parts.items():
        right = part.correctly_classified()
        groups = [
            own.upper if side == "upper" else own.lower for own in right.group_by(by).values()
        ]
        tested[name] = (min(map(len, groups)), kruskal_p_value(groups))
    return _differing(tested)


def targets_differ(parts: Mapping[str, Distribution]) -> list[ClaimCase]:
    """Of each part, that the targets of the same images differ, by Friedman's test."""
    from scipy.stats import friedmanchisquare

    tested = {}
    for name, part in parts.items():
        columns = [values_by_image(own) for own in part.group_by("target").values()]
        shared = set.intersection(*(set(column) for column in columns))
        rows = [[column[key] for key in sorted(shared)] for column in columns]
        p_value = math.nan
        if len(columns) > 2 and len(shared) > 1 and np.ptp(rows, axis=0).any():
            p_value = float(friedmanchisquare(*rows).pvalue)
        tested[name] = (len(shared), p_value)
    return _differing(tested)


def splits_alike(matrices: Mapping[str, Differences], images: int) -> list[ClaimCase]:
    """Of every group of each matrix, that no difference between the splits is found: by each test
    alone, as the paper says it, while a contradiction needs Holm's correction."""
    tested = {
        f"{name}, {key}": p_value
        for name, each in matrices.items()
        for key, p_value in each.between_splits().items()
    }
    adjusted = holm(list(tested.values())).tolist()
    return [
        alike(name, ClaimBasis.THEIRS, images, p_value, corrected)
        for (name, p_value), corrected in zip(tested.items(), adjusted, strict=True)
    ]


def _differing(tested: Mapping[str, tuple[int, float]]) -> list[ClaimCase]:
    adjusted = holm([p for _, p in tested.values()]).tolist()
    return [
        differing(name, ClaimBasis.THEIRS, n, p_value, corrected)
        for (name, (n, p_value)), corrected in zip(tested.items(), adjusted, strict=True)
    ]
