"""What the tables say about the paper's claims: a verdict by a rule from the measured answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from radii.training.papers._steps import (
    ClaimVerdict,
    Paragraph,
    Part,
    StudyClaim,
    StudySettings,
)
from radii.training.papers._tables import share_text
from radii.training.papers.classifier_ensembles._measured import LIMITS, MILP, SMT, MethodAnswer
from radii.training.papers.classifier_ensembles._numbers import (
    PAPER_SECONDS,
    ROBUST,
    TABLE_4,
    TIMED_OUT,
    BenchmarkRow,
)

Answers = Mapping[int, MethodAnswer]

MINUTE = 60.0

EQUAL_VALUES = 1e-4
"""Two values that differ by less are the same: solvers' probabilities are rounded by 1e-6."""


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
    verdict = ClaimVerdict.CONFIRMED if 2 * quick > count else ClaimVerdict.REFUTED
    if limit < MINUTE and verdict is ClaimVerdict.REFUTED:
        verdict = ClaimVerdict.OPEN
    broken = sum(each.answer == "attack" and not each.is_replayed for each in milp.values())
    ratio = sum(each.seconds for each in milp.values()) / sum(g.seconds for g in games.values())
    solved = decided(games)
    return [
        StudyClaim(
            "The MILP decides most rows, mostly within a minute",
            "Section 6.2, Table 4",
            verdict,
            f"within {min(limit, MINUTE):g} s {share_text(quick, count, 'rows')}; {broken} more "
            "claim attacks that do not reach alpha when replayed",
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
    if proven:
        verdict = ClaimVerdict.REFUTED
    elif limit >= PAPER_SECONDS:
        verdict = ClaimVerdict.CONFIRMED
    else:
        verdict = ClaimVerdict.OPEN
    found = decided(smt)
    return [
        StudyClaim(
            "SMT ends for no robust ensemble",
            "Section 6.2, Table 4",
            verdict,
            f"within {limit:g} s Z3 decides {proven} of the {len(robust)} robust rows, and "
            f"{share_text(found, len(rows), 'rows')} in all"
            + ("" if limit >= PAPER_SECONDS else "; the paper's limit needs `--scale full`"),
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
    numbers = ", ".join(map(str, different))
    found = f"{len(told) - len(different)} of {len(told)} rows have the same answer" + (
        f"; not rows {numbers}" if different else ""
    )
    return StudyClaim(
        "Which ensembles are robust, by row",
        "Table 4",
        ClaimVerdict.CONFIRMED if not different else ClaimVerdict.DEPENDS,
        f"{found}: the networks are others",
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
            _all_or_none(full, len(attacked)),
            f"{full} of {len(attacked)} replayed attacks have the value 1; {short} stay below the "
            f"exact value, {optimal_short} of them proven optimal for the sum",
        ),
        StudyClaim(
            "For robust ensembles MaxMILP sometimes needs less time than MILP",
            "Section 6.2, Table 5",
            _some(faster, len(robust)),
            f"in {faster} of {len(robust)} rows that both call robust",
        ),
    ]


def _has_attack(answer: MethodAnswer) -> bool:
    return answer.answer == "attack" and answer.is_replayed


def _all_or_none(count: int, total: int) -> ClaimVerdict:
    """A claim about all: refuted by one that is not so, open without any."""
    if not total:
        return ClaimVerdict.OPEN
    return ClaimVerdict.CONFIRMED if count == total else ClaimVerdict.REFUTED


def _some(count: int, total: int) -> ClaimVerdict:
    """A claim that there are some."""
    if not total:
        return ClaimVerdict.OPEN
    return ClaimVerdict.CONFIRMED if count else ClaimVerdict.REFUTED


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
    verdict = ClaimVerdict.REFUTED if sum(reached.values()) else ClaimVerdict.CONFIRMED
    return [
        StudyClaim(
            "Neither the uniform nor the best deterministic attacker reaches the optimum of 1",
            "Section 6.2, Table 6",
            verdict if ones else ClaimVerdict.OPEN,
            f"of {len(ones)} rows whose value is 1, BDA reaches it in {reached['BDA']} and UA in "
            f"{reached['UA']}; BDA attains the exact value in {everywhere} of all {len(rows)} rows",
        ),
        StudyClaim(
            "The best deterministic attacker usually attains more than the uniform one",
            "Section 6.2, Table 6",
            ClaimVerdict.OPEN
            if not some
            else ClaimVerdict.CONFIRMED
            if 2 * higher > len(some)
            else ClaimVerdict.REFUTED,
            f"in {higher} of the {len(some)} rows in which one of them attains anything",
        ),
        Paragraph(
            f"**The best deterministic attacker reaches the optimum of 1 in {reached['BDA']} of "
            f"the {len(ones)} rows that have it**, where the paper has 0.25 to 0.75 and says that "
            "it does not. The networks are others; and here an attack made for one classifier "
            "counts with all that it fools.",
            is_finding=True,
        ),
    ]
