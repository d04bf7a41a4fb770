"""Evidence about a claim as typed records, and the one function that makes a verdict of it.

A claim has cases, such as a network or a data set. Each case says on whose material it was tested,
how many independent instances its smallest cell has, what they show, and whether the claim holds
in it. Only `verdict_of` turns cases into a verdict, so no study can be more certain than the rules
below allow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

CLAIM_LEVEL = 0.05
"""Of every test, and one less it the confidence of every interval, for all cases of a claim."""

FEWEST_INSTANCES = 30
"""Independent instances in the smallest cell of a case: with fewer it decides nothing."""

FEWEST_SEEDS = 3
"""Trainings of a network of ours that differ in nothing but their seed."""


class ClaimVerdict(StrEnum):
    """What became of a claim of a paper; `VERDICTS` has the meaning of each."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    NOT_BORNE_OUT = "not borne out"
    IN_PART = "in part"
    OPEN = "open"
    NOT_TESTABLE = "not testable here"


VERDICTS = {
    ClaimVerdict.CONFIRMED: "it is a fact, or every case that the claim speaks of holds",
    ClaimVerdict.REFUTED: (
        "a fact contradicts it, which anyone can check without statistics: a replayed "
        "counterexample inside a published bound, arithmetic that does not add up, a formula"
    ),
    ClaimVerdict.NOT_BORNE_OUT: (
        "a test on the paper's own networks or rows contradicts it, and no case holds"
    ),
    ClaimVerdict.IN_PART: "some cases hold and others fail",
    ClaimVerdict.OPEN: (
        "it was tested on the paper's own networks or rows, and that cannot tell: too few "
        "instances, an interval on both sides, or an assumption about the paper"
    ),
    ClaimVerdict.NOT_TESTABLE: (
        "the paper's networks, data or settings are not at hand; what networks or encodings of "
        "our own show stands beside it and decides nothing"
    ),
}


class ClaimBasis(StrEnum):
    """On what a case was tested; `BASES` has the meaning of each."""

    FACT = "a fact"
    THEIRS = "theirs"
    SETTINGS = "their settings"
    OURS = "ours"


BASES = {
    ClaimBasis.FACT: "printed numbers, counts of published rows, formulas, replayed witnesses",
    ClaimBasis.THEIRS: "the paper's own networks or published rows",
    ClaimBasis.SETTINGS: "networks that were trained again by all of the paper's settings",
    ClaimBasis.OURS: "networks, encodings or limits of our own",
}


class CaseOutcome(StrEnum):
    HOLDS = "holds"
    FAILS = "fails"
    UNCLEAR = "unclear"


class ClaimScope(StrEnum):
    """How many of its cases a claim speaks of."""

    ALL = "all cases"
    MOST = "most cases"
    SOME = "some case"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimCase:
    """One case of a claim. `n` are the independent instances of its smallest cell; of a fact, what
    was counted, or 0. `seeds` are trainings of ours, 0 where nothing was trained.

    `shows` has the number and its interval or p-value, `rule` the condition for the claim to hold.
    Make one by the functions below: they derive `outcome` from the numbers.
    """

    name: str
    basis: ClaimBasis
    n: int
    shows: str
    rule: str
    outcome: CaseOutcome
    seeds: int = 0

    @property
    def counted(self) -> CaseOutcome:
        """The outcome as far as it counts: too few instances or seeds leave it unclear."""
        if self.basis is ClaimBasis.FACT:
            return self.outcome
        has_enough = self.n >= FEWEST_INSTANCES and not 0 < self.seeds < FEWEST_SEEDS
        return self.outcome if has_enough else CaseOutcome.UNCLEAR

    @property
    def decides(self) -> bool:
        return self.basis is not ClaimBasis.OURS


@dataclass(frozen=True, slots=True)
class StudyClaim:
    """A claim of the paper in our words, where it stands there, and the evidence about it.

    `test` names the test or interval and how it treats instances that depend on each other;
    `note` says what else a reader must know.
    """

    claim: str
    place: str
    test: str
    cases: tuple[ClaimCase, ...]
    scope: ClaimScope = ClaimScope.ALL
    note: str = ""

    @property
    def verdict(self) -> ClaimVerdict:
        return verdict_of(self.cases, self.scope)

    @property
    def found(self) -> str:
        """The cases in short, and the note after a line break."""
        return NOTE_BREAK.join(filter(None, (cases_text(self.cases), self.note)))

    @property
    def tested_on(self) -> str:
        return " and ".join(dict.fromkeys(case.basis.value for case in self.cases)) or "nothing"

    @property
    def instances(self) -> str:
        """Of the cases that decide, else of all: `97 to 100, 3 seeds`."""
        cases = [case for case in self.cases if case.decides] or self.cases
        counts = sorted({case.n for case in cases if case.n})
        seeds = sorted({case.seeds for case in cases if case.seeds})
        if not counts:
            return "–"
        text = " to ".join(f"{n:,}" for n in dict.fromkeys((counts[0], counts[-1])))
        return text if not seeds else f"{text}, {seeds[0]} seed{'s' if seeds[0] > 1 else ''}"


def verdict_of(cases: Sequence[ClaimCase], scope: ClaimScope) -> ClaimVerdict:
    """The verdict about a claim: the only place where one is made."""
    deciding = [case for case in cases if case.decides]
    if not deciding:
        return ClaimVerdict.NOT_TESTABLE if cases else ClaimVerdict.OPEN
    holding = sum(case.counted is CaseOutcome.HOLDS for case in deciding)
    failing = [case for case in deciding if case.counted is CaseOutcome.FAILS]
    enough = {
        ClaimScope.ALL: len(deciding),
        ClaimScope.MOST: len(deciding) // 2 + 1,
        ClaimScope.SOME: 1,
    }[scope]
    if holding >= enough:
        return ClaimVerdict.CONFIRMED
    if len(failing) <= len(deciding) - enough:
        return ClaimVerdict.OPEN
    if holding and scope is ClaimScope.ALL:
        return ClaimVerdict.IN_PART
    is_fact = any(case.basis is ClaimBasis.FACT for case in failing)
    return ClaimVerdict.REFUTED if is_fact else ClaimVerdict.NOT_BORNE_OUT


NOTE_BREAK = "<br>"

SHOWN_CASES = 6
"""More cases than that are counted, and so many of those that fail are named."""


def cases_text(cases: Sequence[ClaimCase]) -> str:
    """The cases of a claim in one cell of a table."""
    if not cases:
        return "Nothing was measured."
    if len(cases) <= SHOWN_CASES:
        return "; ".join(f"{case.name}: {case.shows} ({_counted_text(case)})" for case in cases)
    by_outcome = {o: [case.name for case in cases if case.counted is o] for o in CaseOutcome}
    counts = [f"{o.value} in {len(names)}" for o, names in by_outcome.items() if names]
    failing = by_outcome[CaseOutcome.FAILS]
    named = "; ".join(failing[:SHOWN_CASES]) + ("; ..." if len(failing) > SHOWN_CASES else "")
    text = f"{len(cases)} cases: {', '.join(counts)}"
    return f"{text}. Fails: {named}." if failing else text


def _counted_text(case: ClaimCase) -> str:
    if case.counted is case.outcome:
        return case.outcome.value
    few = f"n = {case.n}" if case.n < FEWEST_INSTANCES else f"seeds: {case.seeds}"
    return f"{case.counted.value}, {few}"


# --- making cases


def fact(name: str, is_true: bool | None, shows: str, n: int = 0, rule: str = "") -> ClaimCase:
    """Something that stands by itself; None where it rests on an assumption or is not at hand."""
    outcome = CaseOutcome.UNCLEAR
    if is_true is not None:
        outcome = CaseOutcome.HOLDS if is_true else CaseOutcome.FAILS
    return ClaimCase(
        name=name, basis=ClaimBasis.FACT, n=n, shows=shows, rule=rule or "true", outcome=outcome
    )


def within(
    name: str,
    basis: ClaimBasis,
    n: int,
    interval: ClaimInterval,
    *,
    above: float = -math.inf,
    below: float = math.inf,
    seeds: int = 0,
    unit: str = "",
    before: str = "",
) -> ClaimCase:
    """The claim holds where the whole interval lies between `above` and `below`, and fails where it
    lies outside; otherwise it is unclear. `before` begins what the case shows."""
    low, high = interval.low, interval.high
    outcome = CaseOutcome.UNCLEAR
    if low > above and high < below:
        outcome = CaseOutcome.HOLDS
    elif high < above or low > below:
        outcome = CaseOutcome.FAILS
    limits = [f"above {above:g}"] if above > -math.inf else []
    limits += [f"below {below:g}"] if below < math.inf else []
    rule = f"{' and '.join(limits)}{unit}"
    shows = f"{before}{interval.text}{unit}"
    return ClaimCase(
        name=name, basis=basis, n=n, shows=shows, rule=rule, outcome=outcome, seeds=seeds
    )


def differing(
    name: str, basis: ClaimBasis, n: int, p_value: float, corrected: float | None = None
) -> ClaimCase:
    """Of a claim that two or more samples differ: no p-value shows that they do not.

    `corrected` is the p-value after Holm's correction for all cases, which decides; without it
    there is one case.
    """
    corrected = p_value if corrected is None else corrected
    outcome = CaseOutcome.HOLDS if corrected < CLAIM_LEVEL else CaseOutcome.UNCLEAR
    rule = f"p < {CLAIM_LEVEL:g} after Holm"
    return _tested(name, basis, n, p_value, corrected, rule, outcome)


def alike(
    name: str, basis: ClaimBasis, n: int, p_value: float, corrected: float | None = None
) -> ClaimCase:
    """Of a claim that no significant difference is found: in these words, for a test that finds
    none is no evidence that there is none. Use `contradicted` for a claim of equality.

    It holds by the test alone, as the paper makes it, and fails only after Holm's correction:
    else a correction would turn differences that were found into support.
    """
    corrected = p_value if corrected is None else corrected
    outcome = CaseOutcome.HOLDS if p_value >= CLAIM_LEVEL else CaseOutcome.UNCLEAR
    if corrected < CLAIM_LEVEL:
        outcome = CaseOutcome.FAILS
    rule = f"p ≥ {CLAIM_LEVEL:g} uncorrected; fails at p < {CLAIM_LEVEL:g} after Holm"
    return _tested(name, basis, n, p_value, corrected, rule, outcome)


def contradicted(
    name: str, basis: ClaimBasis, n: int, p_value: float, corrected: float | None = None
) -> ClaimCase:
    """Of a claim that something is so, such as a law or an equality, which a test can reject and
    cannot support: it fails after Holm's correction, or stays unclear."""
    corrected = p_value if corrected is None else corrected
    outcome = CaseOutcome.FAILS if corrected < CLAIM_LEVEL else CaseOutcome.UNCLEAR
    rule = f"no test can tell; fails at p < {CLAIM_LEVEL:g} after Holm"
    return _tested(name, basis, n, p_value, corrected, rule, outcome)


def _tested(
    name: str,
    basis: ClaimBasis,
    n: int,
    p_value: float,
    corrected: float,
    rule: str,
    outcome: CaseOutcome,
) -> ClaimCase:
    if math.isnan(p_value) or math.isnan(corrected):
        outcome = CaseOutcome.UNCLEAR
    shows = p_value_text(p_value, corrected)
    return ClaimCase(name=name, basis=basis, n=n, shows=shows, rule=rule, outcome=outcome)


def p_value_text(p_value: float, corrected: float) -> str:
    """`p = 0.01, 0.2 after Holm`; one number where the correction changes nothing."""
    first, second = f"{p_value:.2g}", f"{corrected:.2g}"
    return f"p = {first}" if first == second else f"p = {first}, {second} after Holm"


def unclear(
    name: str, basis: ClaimBasis, n: int, shows: str, why: str, seeds: int = 0
) -> ClaimCase:
    """A case that cannot count for either side, such as a tie where there is no room to differ."""
    return ClaimCase(
        name=name,
        basis=basis,
        n=n,
        shows=shows,
        rule=f"not judged: {why}",
        outcome=CaseOutcome.UNCLEAR,
        seeds=seeds,
    )


@dataclass(frozen=True, slots=True)
class ClaimInterval:
    """An estimate and its limits; `form` is how all three are written."""

    value: float
    low: float
    high: float
    form: str = "+.3f"

    @property
    def text(self) -> str:
        """`+0.012 [−0.004, +0.031]`."""
        numbers = (format(number, self.form) for number in (self.value, self.low, self.high))
        value, low, high = (number.replace("-", "−") for number in numbers)
        return f"{value} [{low}, {high}]"

    def percent(self, form: str, least: float = -1.0) -> ClaimInterval:
        """Of shares, or of differences of shares, which are no less than `least` and no more than
        1."""
        low, high = max(self.low, least), min(self.high, 1.0)
        return ClaimInterval(100 * self.value, 100 * low, 100 * high, form)
