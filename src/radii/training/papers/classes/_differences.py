"""Kolmogorov-Smirnov matrices counted: how many pairs differ, and training from testing images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from radii.distributions import Distribution, KsMatrix, ks_matrix
from radii.errors import InputError
from radii.training.papers._steps import ClaimVerdict
from radii.training.papers._tables import Beside, Cell, StudyTable, share_text
from radii.training.papers.classes._numbers import IMAGES_OF_CLASS, SIGNIFICANCE

Side = Literal["lower", "upper"]

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

    def share(self, part: Part) -> float:
        """Of the tested cells, those that differ by a test of their own; NaN without any."""
        tested = self.tested(part)
        return self.differ(part) / tested if tested else float("nan")

    def keys_that_differ(self) -> tuple[Any, ...]:
        """Groups whose training and testing images differ, each test by itself."""
        found = self.matrix.differ(SIGNIFICANCE, is_adjusted=False) & self.cells("splits")
        return tuple(key for key, differs in zip(self.matrix.keys, np.diag(found), strict=True)
                     if differs)  # fmt: skip

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


FEWEST_IMAGES = 15
"""In each of two groups: with fewer, tests miss most differences, and finding none says little."""


def fewest_images(distribution: Distribution, by: str) -> int:
    """Correct images of the smallest group in any network and split."""
    right = distribution.correctly_classified()
    names = dict.fromkeys(("network", by, "split"))
    return min(len(part) for part in right.group_by(*names).values())


def that_they_differ(shares: Sequence[float], images: int, *, most: float = 0.5) -> ClaimVerdict:
    """Confirmed where a share of at least `most` of every kind of pair differs.

    Refuted where none does, although there are enough images; open where there are not.
    """
    if shares and min(shares) >= most:
        return ClaimVerdict.CONFIRMED
    if not shares or images < FEWEST_IMAGES:
        return ClaimVerdict.OPEN
    return ClaimVerdict.DEPENDS if max(shares) > 0 else ClaimVerdict.REFUTED


def that_splits_are_alike(found: Mapping[str, Differences], images: int) -> ClaimVerdict:
    """Refuted where half the groups of a matrix differ between splits; open with few images."""
    tested = [each for each in found.values() if each.tested("splits")]
    if any(2 * each.differ("splits") >= each.tested("splits") for each in tested):
        return ClaimVerdict.REFUTED
    return ClaimVerdict.CONFIRMED if tested and images >= FEWEST_IMAGES else ClaimVerdict.OPEN
