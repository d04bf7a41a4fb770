"""What the tables say about the paper's claims: a verdict by a rule from the measured answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from radii_papers._evidence import (
    CaseOutcome,
    ClaimBasis,
    ClaimCase,
    ClaimScope,
    StudyClaim,
    unclear,
    within,
)
from radii_papers._intervals import share_interval
from radii_papers._steps import (
    Paragraph,
    Part,
    StudySettings,
)
from radii_papers._tables import share_text
from radii_papers.classifier_ensembles._measured import LIMITS, MILP, SMT, MethodAnswer
from radii_papers.classifier_ensembles._numbers import (
    PAPER_SECONDS,
    ROBUST,
    TABLE_4,
    TIMED_OUT,
    BenchmarkRow,
)

Answers = Mapping[int, MethodAnswer]

MINUTE = 60.0
HALF = 50.0
EXACT = "exact interval over rows, some of which share an ensemble"

ENCODED = "Encodings and networks are ours, not the paper's."

EQUAL_VALUES = 1e-4
"""Two values that differ by less are the same: solvers' probabilities are rounded by 1e-6."""


def share_of_rows(count: int, total: int, *, above: float) -> ClaimCase:
    """Rows of the benchmark, on networks and encodings of ours."""
    if not total:
        return unclear("rows", ClaimBasis.OURS, 0, "–", "no row was measured")
    interval = share_interval(count, total)
    return within("rows", ClaimBasis.OURS, total, interval, above=above, unit=" %")


def counted_rows(name: str, count: int, total: int, holds: bool, rule: str) -> ClaimCase:
    """Of a claim about rows by count, which holds or fails as it is."""
    outcome = CaseOutcome.HOLDS if holds else CaseOutcome.FAILS
    return ClaimCase(
        name=name, basis=ClaimBasis.OURS, n=total, shows=f"{count} of {total}", rule=rule,
        outcome=outcome if total else CaseOutcome.UNCLEAR,
    )  # fmt: skip


def decided(answers: Answers, within: float = float("inf")) -> int:
    return sum(each.is_decided and each.seconds <= within for each in answers.values())


def contradicted(rows: Sequence[BenchmarkRow], answers: Answers, games: Answers) -> int:
    """Claims of robustness against which radii has a replayed attack."""
    return sum(
        answers[row.number].answer == "robust" and games[row.number].lower >= row.alpha
        for row in rows
    )


def milp_claims(
    settings: StudySettings, rows: Sequence[BenchmarkRow], games: Answers, milp: Answers
) -> list[Part]:
    limit = LIMITS[settings.scale][MILP]
    quick, count = decided(milp, MINUTE), len(rows)
    broken = sum(each.answer == "attack" and not each.is_replayed for each in milp.values())
    ratio = sum(each.seconds for each in milp.values()) / sum(g.seconds for g in games.values())
    solved = decided(games)
    return [
        StudyClaim(
            "The MILP decides most rows, mostly within a minute",
            "Section 6.2, Table 4",
            f"share of rows decided within {min(limit, MINUTE):g} s, {EXACT}",
            (share_of_rows(quick, count, above=HALF),),
            note=f"{broken} more claim attacks that do not reach alpha when replayed. {ENCODED}",
        ),
        Paragraph(
            f"**radii decides {share_text(solved, count, 'rows')} in "
            f"{sum(g.seconds for g in games.values()):.1f} s** altogether; the MILP takes "
            f"{ratio:.0f} times as long, time-outs counted as the limit, and "
            f"decides {decided(milp)}.",
            is_finding=True,
        ),
    ]


def smt_claims(
    settings: StudySettings, rows: Sequence[BenchmarkRow], games: Answers, smt: Answers
) -> list[Part]:
    limit = LIMITS[settings.scale][SMT]
    robust = [row for row in rows if games[row.number].answer == "robust"]
    proven = sum(smt[row.number].answer == "robust" for row in robust)
    found = decided(smt)
    return [
        StudyClaim(
            "SMT ends for no robust ensemble",
            "Section 6.2, Table 4",
            f"rows that Z3 decides within {limit:g} s, of a limit of {PAPER_SECONDS:g} s",
            (counted_rows("robust rows", proven, len(robust), proven == 0, "0"),),
            note=f"{share_text(found, len(rows), 'rows')} in all. {ENCODED}",
        )
    ]


def agreement_claim(rows: Sequence[BenchmarkRow], games: Answers) -> StudyClaim:
    """Robust or not, as the paper's MILP says, on networks that are others."""
    told = [row for row in rows if TABLE_4[row.number][2] != TIMED_OUT]
    different = [
        row.number
        for row in told
        if (games[row.number].answer == "robust") != (TABLE_4[row.number][3] == ROBUST)
    ]
    numbers = ", ".join(map(str, different)) or "none"
    return StudyClaim(
        "Which ensembles are robust, by row",
        "Table 4",
        "rows with the paper's answer, by exact values of our ensembles",
        (
            counted_rows(
                "rows with an answer", len(told) - len(different), len(told), not different, "all"
            ),
        ),
        note=f"Rows that differ: {numbers}. The paper's networks are not at hand.",
    )


def max_milp_claims(
    rows: Sequence[BenchmarkRow], games: Answers, milp: Answers, best: Answers
) -> list[Part]:
    attacked = [row for row in rows if _has_attack(best[row.number])]
    full = sum(best[row.number].lower >= 1 - EQUAL_VALUES for row in attacked)
    short = sum(best[row.number].lower < games[row.number].lower - EQUAL_VALUES for row in attacked)
    optimal_short = sum(
        best[row.number].is_optimal
        and best[row.number].lower < games[row.number].lower - EQUAL_VALUES
        for row in attacked
    )
    robust = [row for row in rows if {milp[row.number].answer, best[row.number].answer} == {ROBUST}]
    faster = sum(best[row.number].seconds < milp[row.number].seconds for row in robust)
    return [
        StudyClaim(
            "The value of MaxMILP's attack is always 1",
            "Section 6.2, Table 5",
            "replayed attacks with the value 1",
            (
                counted_rows(
                    "rows with an attack", full, len(attacked), full == len(attacked), "all"
                ),
            ),
            note=f"{short} stay below the exact value, {optimal_short} of them proven optimal for "
            f"the sum. {ENCODED}",
        ),
        StudyClaim(
            "For robust ensembles MaxMILP sometimes needs less time than MILP",
            "Section 6.2, Table 5",
            "rows that both call robust, in which MaxMILP is faster",
            (counted_rows("robust rows", faster, len(robust), faster > 0, "some"),),
            ClaimScope.SOME,
            ENCODED,
        ),
    ]


def _has_attack(answer: MethodAnswer) -> bool:
    return answer.answer == "attack" and answer.is_replayed


def reaching(rows: Sequence[BenchmarkRow], answers: Answers, games: Answers) -> int:
    return sum(answers[row.number].lower >= games[row.number].lower - EQUAL_VALUES for row in rows)


def attacker_claims(
    rows: Sequence[BenchmarkRow], games: Answers, uniform: Answers, alone: Answers
) -> list[Part]:
    ones = [row for row in rows if games[row.number].lower >= 1 - EQUAL_VALUES]
    reached = {
        name: reaching(ones, each, games) for name, each in (("BDA", alone), ("UA", uniform))
    }
    everywhere = reaching(rows, alone, games)
    # Rows in which neither attacker attains anything compare nothing.
    some = [row for row in rows if max(uniform[row.number].lower, alone[row.number].lower) > 0]
    higher = sum(alone[row.number].lower > uniform[row.number].lower for row in some)
    return [
        StudyClaim(
            "Neither the uniform nor the best deterministic attacker reaches the optimum of 1",
            "Section 6.2, Table 6",
            "rows whose exact value is 1 in which the attacker reaches it",
            tuple(
                counted_rows(name, count, len(ones), count == 0, "0")
                for name, count in reached.items()
            ),
            note=f"BDA attains the exact value in {everywhere} of all {len(rows)} rows. {ENCODED}",
        ),
        StudyClaim(
            "The best deterministic attacker usually attains more than the uniform one",
            "Section 6.2, Table 6",
            f"share of rows in which one of them attains anything, {EXACT}",
            (share_of_rows(higher, len(some), above=HALF),),
            note=ENCODED,
        ),
        Paragraph(
            f"**The best deterministic attacker reaches the optimum of 1 in {reached['BDA']} of "
            f"the {len(ones)} rows that have it**, where the paper has 0.25 to 0.75 and says that "
            "it does not. The networks are others; and here an attack made for one classifier "
            "counts with all that it fools.",
            is_finding=True,
        ),
    ]
