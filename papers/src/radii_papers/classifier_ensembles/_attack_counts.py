"""The number of attacks |A|: what it does to the value, and to what an integer program proves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from radii.ensembles import EnsembleStudy
from radii.problem import Norm
from radii_papers._evidence import StudyClaim, fact
from radii_papers._steps import (
    Paragraph,
    Part,
    StudyFigure,
    StudySettings,
)
from radii_papers._tables import Cell, StudyTable
from radii_papers.classifier_ensembles._consistency import too_few_attacks
from radii_papers.classifier_ensembles._known import few_on_known
from radii_papers.classifier_ensembles._measured import ensemble_of
from radii_papers.classifier_ensembles._networks import EnsembleData, points_of
from radii_papers.classifier_ensembles._numbers import BENCHMARK, BenchmarkRow
from radii_papers.figures import ValueAtEps, draw_game_values

ATTACK_COUNTS = (1, 2, 3)
COUNTS_ON_KNOWN = (1, 2, 3, 4)

SWEPT_ROWS = {
    21: (1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.4, 2.8),
    28: (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    37: (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6),
}
"""Ensembles of the table, by a row, and eps values between which their values grow from 0 to 1."""

SMALL_SWEEP = (1.0, 1.5)

SECONDS_OF_EPS = {"small": 5.0, "machine": 20.0, "full": 600.0}


@dataclass(frozen=True, slots=True)
class FewAttacks:
    """An ensemble at an eps: its bracket, and for each of `ATTACK_COUNTS` that of so few "
    "attacks."""

    row: BenchmarkRow
    eps: float
    lower: float
    upper: float
    few: tuple[tuple[float, float], ...]


def attack_counts_step(data: EnsembleData, settings: StudySettings) -> list[Part]:
    lines, wrong = few_on_known(COUNTS_ON_KNOWN)
    swept = _sweep(data, settings)
    return [
        Paragraph(
            "The paper fixes |A|, the number of deterministic attacks, before it encodes a "
            "problem. radii needs no such number: it finds the best mix, which has at most |C| "
            "attacks. What a smaller |A| leaves out is computed here from the sets of classifiers "
            "that can be fooled together."
        ),
        StudyTable(
            "attack-counts-known",
            "Three classifiers that are fooled one at a time, alpha 0.3",
            ("|X|", "|A|", "value with |A| attacks", "value", "MILP with |A| says"),
            tuple(lines),
        ),
        _swept_table(swept),
        _figure(swept),
        Paragraph(_swept_text(swept)),
        _claim(wrong),
        *_finding(wrong),
    ]


def _sweep(data: EnsembleData, settings: StudySettings) -> list[FewAttacks]:
    """Facts are kept for each ensemble in the step's folder."""
    found = []
    for row in BENCHMARK:
        if row.number not in SWEPT_ROWS or not data.has(row):
            continue
        values: Sequence[float] = settings.pick(SMALL_SWEEP, SWEPT_ROWS[row.number])
        ensemble, points = ensemble_of(data, row, settings), points_of(data, row)
        with EnsembleStudy.open(
            ensemble.networks,
            points,
            norm=Norm.L1,
            timeout=SECONDS_OF_EPS[settings.scale],
            out=settings.folder / f"row-{row.number}",
        ) as study:
            for eps in values:
                game = study.value(eps, budget=SECONDS_OF_EPS[settings.scale])
                pairs = [study.value_of_few(game, count) for count in ATTACK_COUNTS]
                few = tuple((float(lower), float(upper)) for lower, upper in pairs)
                found.append(FewAttacks(row, eps, float(game.lower), float(game.upper), few))
    return found


def _text(lower: float, upper: float) -> str:
    return f"{lower:.4g}" if lower == upper else f"{lower:.4g} to {upper:.4g}"


def _swept_table(swept: Sequence[FewAttacks]) -> StudyTable:
    lines: list[tuple[Cell, ...]] = [
        (
            f"{each.row.name} {each.row.side}x{each.row.side}",
            f"{each.eps:g}",
            *(_text(*pair) for pair in each.few),
            _text(each.lower, each.upper),
        )
        for each in swept
    ]
    columns = ("ensemble", "eps", *(f"|A| = {count}" for count in ATTACK_COUNTS), "value")
    title = "The value by the number of attacks, ensembles of three classifiers and four points"
    return StudyTable("attack-counts", title, columns, tuple(lines))


def _figure(swept: Sequence[FewAttacks]) -> StudyFigure:
    panels: dict[str, dict[str, list[ValueAtEps]]] = {}
    for each in swept:
        series = panels.setdefault(f"{each.row.name} {each.row.side}x{each.row.side}", {})
        for count, (lower, upper) in zip(ATTACK_COUNTS, each.few, strict=True):
            series.setdefault(f"|A| = {count}", []).append(ValueAtEps(each.eps, lower, upper))
    title = "The value over eps (L1) by the number of attacks; shaded where it is not exact"
    return StudyFigure("attack-counts", title, lambda: draw_game_values(panels))


def _swept_text(swept: Sequence[FewAttacks]) -> str:
    exact = [each for each in swept if each.lower == each.upper]
    one = sum(each.few[0][1] < each.lower for each in exact)
    two = sum(each.few[1][1] < each.lower for each in exact)
    largest = max((each.lower - each.few[0][1] for each in exact), default=0.0)
    return (
        f"Of {len(exact)} games with an exact value, one attack is too few in {one} and two are in "
        f"{two}; one attack loses {largest:.2g} at most. With several points a single "
        "deterministic attack may fool one classifier here and another one there, so the number of "
        "attacks matters less the more points there are."
    )


def _claim(wrong: Sequence[str]) -> StudyClaim:
    few = too_few_attacks()
    rows = ", ".join(str(row.number) for row in few)
    counts = " and ".join(dict.fromkeys(wrong))
    return StudyClaim(
        "If no attack is found for the chosen |A|, the ensemble is robust",
        "Section 6.1",
        "a linear program for as many attacks as classifiers; an ensemble known by hand for fewer",
        (
            fact("|A| at least |C|, or alpha 1", True, "an optimal mix has at most |C| attacks"),
            fact(
                "fewer attacks",
                False if wrong else None,
                f"with |A| = {counts} no attack reaches 0.3 on three classifiers whose value is 1/3"
                if wrong
                else "no such ensemble was found",
            ),
        ),
        note="Section 5.1 asks for a sufficient |A|; of the paper's robust rows "
        + (f"row {rows} has fewer." if few else "none has fewer."),
    )


def _finding(wrong: Sequence[str]) -> list[Part]:
    if not wrong:
        return []
    return [
        Paragraph(
            f"**Too few attacks look like robustness**: with |A| = "
            f"{' or '.join(dict.fromkeys(wrong))} no attack reaches alpha 0.3 on three classifiers "
            "whose value is 1/3. |C| attacks are always enough, and can be needed.",
            is_finding=True,
        )
    ]
