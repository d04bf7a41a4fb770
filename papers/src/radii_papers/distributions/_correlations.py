"""Are the same images hard for every network? Figures 6 and 7, and Section 4.5."""

from __future__ import annotations

import numpy as np

from radii.statistics import Correlations, spearman_matrix
from radii.views import draw_correlations, draw_scatter
from radii_papers._steps import Paragraph, Part, StudyFigure, StudySettings
from radii_papers._tables import Beside, Cell, StudyTable, reasons_of, share_text
from radii_papers.distributions._image_claims import correlation_claims
from radii_papers.distributions._numbers import SPEARMAN, SPEARMAN_PAIR
from radii_papers.distributions._public import (
    NETWORKS_OF_SECTION_4,
    SPLIT_NAMES,
    SPLITS,
    PublicResults,
    Split,
)


def _correlations(results: PublicResults, split: Split) -> Correlations | None:
    joined = results.joined(NETWORKS_OF_SECTION_4, split)
    if joined is None or len(joined.networks) < 2:
        return None
    return spearman_matrix(joined)


def correlation_maps(results: PublicResults, _: StudySettings) -> list[Part]:
    """Figure 6, and what Section 4.5 says of it."""
    found = {split: _correlations(results, split) for split in SPLITS}
    rows = tuple(_coefficients_row(split, found[split]) for split in SPLITS)
    pair = " and ".join(SPEARMAN_PAIR[0])
    columns = (
        *("images", "smallest", "mean", "largest", pair, "smallest pair", "largest pair"),
        "reason of a difference",
    )
    parts: list[Part] = [
        StudyTable("section-4-5", "Section 4.5: Spearman's coefficients", columns, rows)
    ]
    train, test, smaller = found["train"], found["test"], ""
    if train is not None and test is not None and train.networks == test.networks:
        above = np.triu_indices(len(train.networks), 1)
        lower = test.coefficients[above] < train.coefficients[above]
        smaller = share_text(int(lower.sum()), lower.size, "pairs")
        parts.append(
            Paragraph(
                "The paper finds smaller coefficients on testing images for every pair but one. "
                "In the files they are smaller for "
                f"{smaller}. "
                "Part of the difference is chance, and the coefficients are of claimed radii, of "
                "which the audit below refutes many."
            )
        )
    for letter, split in zip("ab", SPLITS, strict=True):
        joined = results.joined(NETWORKS_OF_SECTION_4, split)
        if joined is not None and found[split] is not None:
            title = f"Figure 6{letter}: Spearman's coefficients on {SPLIT_NAMES[split]} images"
            parts.append(
                StudyFigure(f"figure-6{letter}", title, lambda j=joined: draw_correlations(j))  # type: ignore[misc]
            )
    return [*parts, *correlation_claims(results, smaller)]


def _coefficients_row(split: Split, found: Correlations | None) -> tuple[Cell, ...]:
    paper = SPEARMAN[split]
    names, printed = SPEARMAN_PAIR[0], SPEARMAN_PAIR[1][split]
    title = f"{SPLIT_NAMES[split]} images"
    if found is None:
        return (title, *(Beside(None, number) for number in (*paper, printed)), "", "", "")
    values = found.coefficients[np.triu_indices(len(found.networks), 1)]
    numbers = (float(np.nanmin(values)), found.mean, float(np.nanmax(values)))
    cells = [Beside(ours, number) for ours, number in zip(numbers, paper, strict=True)]
    pair = None
    if set(names) <= set(found.networks):
        pair = float(found.frame().loc[names[0], names[1]])
    ends = [_pair_at(found, number) for number in (numbers[0], numbers[2])]
    columns = ("smallest", "mean", "largest", " and ".join(names))
    compared = dict(zip(columns, (*cells, Beside(pair, printed)), strict=True))
    return (title, *compared.values(), *ends, reasons_of(title, compared, {}))


def _pair_at(found: Correlations, value: float) -> str:
    first, second = np.argwhere(found.coefficients == value)[0]
    return f"{found.networks[first]}, {found.networks[second]}"


def correlation_points(results: PublicResults, _: StudySettings) -> list[Part]:
    """Figure 7: the most and the least correlated pair of either split."""
    parts: list[Part] = []
    for letters, split in zip(("ab", "cd"), SPLITS, strict=True):
        joined = results.joined(NETWORKS_OF_SECTION_4, split)
        if joined is None or len(joined.networks) < 2:
            parts.append(
                Paragraph(f"The files hold no two networks on {SPLIT_NAMES[split]} images.")
            )
            continue
        title = (
            f"Figure 7{letters[0]} and {letters[1]}: the most and the least correlated pair, "
            f"{SPLIT_NAMES[split]} images"
        )
        parts.append(
            StudyFigure(f"figure-7{letters}", title, lambda j=joined: draw_scatter(j))  # type: ignore[misc]
        )
    return parts
