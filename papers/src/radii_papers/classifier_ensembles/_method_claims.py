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
ROBUST_ROWS = "22, 24 to 31 and 34 to 38"
OTHER_NETWORKS = "whether a row is robust depends on its networks, and these are others"

EQUAL_VALUES = 1e-4
"""Two values that differ by less are the same: solvers' probabilities are rounded by 1e-6."""


def share_of_rows(count: int, total: int, *, above: float) -> ClaimCase:
    """Rows of the benchmark, on networks and encodings of ours."""
    if not total:
        return unclear("rows", ClaimBasis.OURS, 0, "–", "no row was measured")
    interval = share_interval(count, total)
    return within("rows", ClaimBasis.OURS, total, interval, above=above, unit=" %")


def counted_rows(name: str, count: int, total: int, outcome: CaseOutcome, rule: str) -> ClaimCase:
    """Of a claim about rows by count; without a row it is unclear."""
    return ClaimCase(
        name=name, basis=ClaimBasis.OURS, n=total, shows=f"{count} of {total}", rule=rule,
        outcome=outcome if total else CaseOutcome.UNCLEAR,
    )  # fmt: skip


def holds_if(is_so: bool) -> CaseOutcome:
    return CaseOutcome.HOLDS if is_so else CaseOutcome.FAILS


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
            f"{sum(g.seconds for g in games.values()):.1f} s** altogether; our encoding of the "
            f"MILP takes {ratio:.0f} times as long, time-outs counted as the limit, and "
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
            (
                # That it does not end in seconds says nothing about the paper's two hours.
                counted_rows(
                    "robust rows",
                    proven,
                    len(robust),
                    CaseOutcome.FAILS if proven else CaseOutcome.UNCLEAR,
                    f"fails where it ends; {limit:g} s cannot show that it never does",
                ),
            ),
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
    shows = f"the paper's answer in {len(told) - len(different)} of {len(told)} rows"
    return StudyClaim(
        f"The ensembles of rows {ROBUST_ROWS} are robust; those of the others, where MILP ends, "
        "are not",
        "Table 4",
        "exact values of our ensembles",
        (unclear("rows with an answer", ClaimBasis.OURS, len(told), shows, OTHER_NETWORKS),),
        note=f"Rows that differ: {numbers}. The paper's networks are not at hand.",
    )


def max_milp_claims(
    rows: Sequence[BenchmarkRow], games: Answers, milp: Answers, best: Answers
) -> list[Part]:
    attacked = [row for row in rows if _has_attack(best[row.number])]
    # Where the value is below 1 no attack has 1, whoever makes it.
    able = [row for row in attacked if games[row.number].lower >= 1 - EQUAL_VALUES]
    full = sum(best[row.number].lower >= 1 - EQUAL_VALUES for row in able)
    short = [row.number for row in attacked if is_beaten(best[row.number], games[row.number])]
    called = sum(best[number].is_optimal for number in short)
    robust = [row for row in rows if {milp[row.number].answer, best[row.number].answer} == {ROBUST}]
    faster = sum(best[row.number].seconds < milp[row.number].seconds for row in robust)
    return [
        StudyClaim(
            "The value of MaxMILP's attack is always 1",
            "Section 6.2, Table 5",
            "replayed attacks with the value 1, in rows where 1 is attained",
            (
                # A row below 1 ran out of time, or its solver is wrong: the paper's had two hours.
                counted_rows(
                    "rows with an attack",
                    full,
                    len(able),
                    CaseOutcome.HOLDS if full == len(able) else CaseOutcome.UNCLEAR,
                    "all; a row below 1 ran out of time or shows an error of our solver",
                ),
            ),
            note=f"{len(short)} of {len(attacked)} attacks stay below what radii attains; the "
            f"solver calls {called} of them optimal, for the sum or by an error. {ENCODED}",
        ),
        StudyClaim(
            "For robust ensembles MaxMILP sometimes needs less time than MILP",
            "Section 6.2, Table 5",
            "rows that both call robust, in which MaxMILP is faster",
            (counted_rows("robust rows", faster, len(robust), holds_if(faster > 0), "some"),),
            ClaimScope.SOME,
            ENCODED,
        ),
    ]


def _has_attack(answer: MethodAnswer) -> bool:
    return answer.answer == "attack" and answer.is_replayed


def is_beaten(answer: MethodAnswer, *others: MethodAnswer) -> bool:
    """Another replayed attack attains more: then no word of a solver makes this one optimal."""
    return any(other.lower > answer.lower + EQUAL_VALUES for other in others)


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
    # Rows in which neither attains anything, or both attain 1, leave no room to differ.
    pairs = {row.number: (uniform[row.number].lower, alone[row.number].lower) for row in rows}
    some = [
        row
        for row in rows
        if max(pairs[row.number]) > 0 and min(pairs[row.number]) < 1 - EQUAL_VALUES
    ]
    higher = sum(alone[row.number].lower > uniform[row.number].lower for row in some)
    return [
        StudyClaim(
            "Neither the uniform nor the best deterministic attacker reaches the optimum of 1",
            "Section 6.2, Table 6",
            "rows whose exact value is 1 in which the attacker reaches it",
            tuple(
                counted_rows(name, count, len(ones), holds_if(count == 0), "0")
                for name, count in reached.items()
            ),
            note=f"BDA attains the exact value in {everywhere} of all {len(rows)} rows. {ENCODED}",
        ),
        StudyClaim(
            "The best deterministic attacker usually attains more than the uniform one",
            "Section 6.2, Table 6",
            f"share of rows in which one of them attains anything and not both attain 1, {EXACT}",
            (share_of_rows(higher, len(some), above=HALF),),
            note=ENCODED,
        ),
        Paragraph(
            f"**On our ensembles the best deterministic attacker reaches the optimum of 1 in "
            f"{reached['BDA']} of the {len(ones)} rows that have it**, where the paper has 0.25 to "
            "0.75 on its own. Here an attack made for one classifier counts with all that it "
            "fools; this decides nothing about the paper's networks.",
            is_finding=True,
        ),
    ]
