"""The paper's tables against themselves, and against what its method can prove.

A value that is printed as 1.00 is 1: losses of all classifiers at all points add up to whole
numbers, so a mix with a mean above |C||X| - 1 has a deterministic attack in it that fools everybody
everywhere. And what is attained at an eps is attained at every larger one.
"""

from __future__ import annotations

from radii_papers._evidence import ClaimCase, StudyClaim, fact
from radii_papers._steps import (
    Paragraph,
    Part,
    StudySettings,
)
from radii_papers._tables import Cell, StudyTable
from radii_papers.classifier_ensembles._networks import EnsembleData
from radii_papers.classifier_ensembles._numbers import (
    BENCHMARK,
    ROBUST,
    TABLE_4,
    TABLE_5,
    BenchmarkRow,
    paper_value,
)

PRINTED_ROUNDING = 0.005
"""Values are printed with two decimals."""


def attained_in_paper(row: BenchmarkRow) -> float:
    """The largest value that the paper prints for a row, by any method; 0 without an attack."""
    printed = (*TABLE_4[row.number][1::2], *TABLE_5.get(row.number, ("",) * 4)[1::2])
    return max((value for text in printed if (value := paper_value(text)) is not None), default=0.0)


def is_always_fooled(row: BenchmarkRow) -> bool:
    """The printed value leaves no room but for 1."""
    rest = (1 - attained_in_paper(row) + PRINTED_ROUNDING) * row.classifiers * row.points
    return attained_in_paper(row) > 0 and rest < 1


def contradictions() -> list[tuple[BenchmarkRow, list[BenchmarkRow]]]:
    """Rows that are called robust, each with rows of its ensemble and points that say otherwise."""
    found = []
    for row in BENCHMARK:
        if TABLE_4[row.number][3] != ROBUST:
            continue
        against = [
            other
            for other in BENCHMARK
            if other.ensemble == row.ensemble and other.eps <= row.eps and is_always_fooled(other)
        ]
        if against:
            found.append((row, against))
    return found


def too_few_attacks() -> list[BenchmarkRow]:
    """Rows called robust whose number of attacks does not cover all randomized attacks.

    As many as classifiers are enough, and a single one for alpha 1.
    """
    return [
        row
        for row in BENCHMARK
        if TABLE_4[row.number][3] == ROBUST and row.attacks < row.classifiers and row.alpha < 1
    ]


def consistency_step(_: EnsembleData, __: StudySettings) -> list[Part]:
    """What follows from the printed numbers alone."""
    found, few = contradictions(), too_few_attacks()
    lines: list[tuple[Cell, ...]] = [
        (
            row.number,
            row.name,
            f"{row.alpha:g}",
            f"{row.eps:g}",
            ", ".join(
                f"{each.number} (eps {each.eps:g}: {attained_in_paper(each):.2f})"
                for each in against
            ),
        )
        for row, against in found
    ]
    columns = ("row called robust", "name", "alpha", "eps", "rows with a value of 1 within its eps")
    return [
        Paragraph(
            "Rows with the same name, |C|, |X| and image size are taken for the same ensemble and "
            "points. A value printed as 1.00 can only be 1: the losses of |C| classifiers at |X| "
            "points are whole numbers. And an attack within an eps is one within every larger eps."
        ),
        StudyTable(
            "consistency", "The paper's rows that exclude each other", columns, tuple(lines)
        ),
        *(_finding(row, against) for row, against in found),
        StudyClaim(
            "Every row that is called robust is robust",
            "Table 4",
            "the paper's rows against each other, and against what its method can prove",
            (
                *(_contradicted_case(row, against) for row, against in found),
                *(
                    fact(
                        f"row {row.number}",
                        None,
                        f"|A| = {row.attacks} for {row.classifiers} classifiers and alpha "
                        f"{row.alpha:g}",
                        rule="as many attacks as classifiers",
                    )
                    for row in few
                ),
            ),
            note="One name may stand for different networks or points, so this refutes nothing.",
        ),
    ]


def _contradicted_case(row: BenchmarkRow, against: list[BenchmarkRow]) -> ClaimCase:
    """Unclear: that rows of one name are of one ensemble is an assumption about the paper."""
    numbers = ", ".join(str(other.number) for other in against)
    shows = f"rows {numbers} have attacks with the value 1 within its eps"
    return fact(f"row {row.number}", None, shows, rule="no such row of the same name")


def _finding(row: BenchmarkRow, against: list[BenchmarkRow]) -> Paragraph:
    numbers = ", ".join(str(other.number) for other in against)
    return Paragraph(
        f"**If one name stands for the same networks and points, row {row.number} of the paper and "
        f"its rows {numbers} exclude each other**: {row.name} is called robust for alpha "
        f"{row.alpha:g} within eps {row.eps:g}, where these rows have an attack that fools every "
        "classifier at every point.",
        is_finding=True,
    )
