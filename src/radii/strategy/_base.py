"""What a search is: pure ask and tell over a grid of eps values. No processes, files or clocks.

The driver calls `ask` whenever it could start something, starts what it returns, and calls `tell`
with each result as it ends; then it cancels what `settled` says nobody needs any more. A resumed
run tells the stored results first. The search holds what was told and derives everything else from
it, so the same results in any order leave the same bracket.

A question that nobody answered (an ERROR: its worker was killed, its node lost, or its verifier
failed) is asked once more; the second such result settles it. A resumed run `recall`s these results
instead of telling them: what they found counts, and the question is open again.

A run with a budget gives questions little time first and more later. It sets how much by
`allow`: what was cut short with less is then open again, and what it found is kept.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, final

from radii.problem import Bracket, Disagreement, Grid, Result, Verdict, weigh


class QuestionKind(StrEnum):
    """What is asked: a close witness, a proof at one eps, the largest proven eps, or one look at
    the input itself. A probe asks for both sides in a moment: an attack that is quick, and a
    proof just below what it finds, for as long as a thorough one would take."""

    ATTACK = "attack"
    PROBE = "probe"
    PROVE = "prove"
    RADIUS = "radius"
    REPLAY = "replay"

    @property
    def begins_with_attack(self) -> bool:
        """Instances are attacked together, and no limit of a proof holds for it."""
        return self in (QuestionKind.ATTACK, QuestionKind.PROBE)

    @property
    def searches_radius(self) -> bool:
        """It is asked up to an eps, and answered at the one that could be proven."""
        return self in (QuestionKind.RADIUS, QuestionKind.PROBE)


@dataclass(frozen=True, slots=True)
class Question:
    """Something a search wants to know, up to an eps or at it."""

    kind: QuestionKind
    eps: float

    def repeats(self, other: Question) -> bool:
        """It is the same question; one for the radius is so whatever eps it is asked up to."""
        is_radius = self.kind is other.kind is QuestionKind.RADIUS
        return is_radius or self == other


def is_cut_short(
    question: Question, result: Result, seconds: float, *, spent_share: float = 0.25
) -> bool:
    """Whether the question had less time than `seconds`, and might be answered better with them.

    What stopped before `spent_share` of the allowed time had a reason of its own: more time would
    not help.
    """
    allowed, verdict = result.allowed_seconds, result.verdict
    if allowed is not None and question.kind.begins_with_attack:
        return verdict is Verdict.TIMEOUT  # it was stopped: attacks have no limit of their own
    if allowed is None or allowed >= seconds:
        return False
    is_decided = not verdict.is_missing and question.kind is not QuestionKind.RADIUS
    if is_decided or result.ran_out_of_memory or verdict is Verdict.ERROR:
        return False
    return result.ran_out_of_time or result.seconds >= spent_share * allowed


def open_range(values: Sequence[float], bracket: Bracket) -> tuple[int, int]:
    """Indices [first, last) of increasing values that a bracket leaves open."""
    first = bisect_right(values, bracket.lower)
    return first, max(first, bisect_left(values, bracket.upper))


class Search(ABC):
    """Narrows one instance's bracket by asking questions about grid values.

    `default_k` is how many questions run at once unless told otherwise, None where there is no
    choice. `seconds` is what a question may take: see `allow`. With `probes`, a search that has a
    use for it begins with a quick look.
    """

    name: ClassVar[str]
    default_k: ClassVar[int | None] = None
    needs_attack: ClassVar[bool] = False
    needs_verifier: ClassVar[bool] = True
    needs_radius: ClassVar[bool] = False

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.values = grid.values
        self.seconds = math.inf
        self.probes = False
        self.answers: dict[Question, Result] = {}
        self.cut_short: list[tuple[Question, Result]] = []
        self.recalled: list[Result] = []
        self.lost: list[tuple[Question, Result]] = []
        self.outstanding: set[Question] = set()
        self.bracket = Bracket()
        self.disagreements: tuple[Disagreement, ...] = ()

    @abstractmethod
    def next_question(self) -> Question | None:
        """What to ask now, given `answers`, `bracket` and `outstanding`; None if nothing."""

    @final
    def ask(self) -> Question | None:
        """The next question to start, which then counts as outstanding; None: wait, or done."""
        question = self.next_question()
        if question is not None:
            if question in self.answers or question in self.outstanding:
                raise AssertionError(f"{self.name} asked {question} twice")
            self.outstanding.add(question)
        return question

    @final
    def tell(self, question: Question, result: Result) -> None:
        """Take in a result, also one that was never asked for, as of a misclassified input.

        A cancelled question may be asked again, one that was cut short, and once one that nobody
        answered; any other is settled.
        """
        self.outstanding.discard(question)
        if result.verdict is Verdict.CANCELLED:
            return
        if self.is_first_loss(question, result):
            self.lost.append((question, result))
        else:
            self._settle(question, result)
        self.bracket, self.disagreements, _ = weigh(self.results)

    @final
    def recall(self, result: Result) -> None:
        """Take in what an earlier run stored of a question that this one is to ask again."""
        self.recalled.append(result)
        self.bracket, self.disagreements, _ = weigh(self.results)

    @final
    def is_first_loss(self, question: Question, result: Result) -> bool:
        """Nobody answered, and it is not yet the second time: the question is asked once more."""
        return result.verdict is Verdict.ERROR and not self.is_repeated(question)

    @final
    def is_repeated(self, question: Question) -> bool:
        """The question was asked in this run, and nobody answered it."""
        return any(question.repeats(asked) for asked, _ in self.lost)

    def _settle(self, question: Question, result: Result) -> None:
        if is_cut_short(question, result, self.seconds):
            self.cut_short.append((question, result))
        else:
            if question in self.answers:  # in another run, with less time; what it found counts
                self.cut_short.append((question, self.answers[question]))
            self.answers[question] = result

    @property
    def results(self) -> list[Result]:
        """All results, recalled ones and those that were cut short or lost included."""
        again = (result for _, result in (*self.cut_short, *self.lost))
        return [*self.answers.values(), *again, *self.recalled]

    @final
    def allow(self, seconds: float) -> None:
        """Questions may take this long from now on; those that had less may be asked again.

        What was found counts as before, so that the bracket stays.
        """
        answered = [*self.cut_short, *self.answers.items()]
        self.seconds = seconds
        self.answers, self.cut_short = {}, []
        for question, result in answered:
            self._settle(question, result)

    @final
    def gains_from_time(self) -> bool:
        """Some answer might be better with more time."""
        return any(
            is_cut_short(question, result, math.inf) for question, result in self.answers.items()
        )

    @final
    def settled(self) -> set[Question]:
        """Outstanding questions that the bracket answers already: they are to be cancelled.

        They count as outstanding until they are told, as CANCELLED or as what they ended with.
        """
        lower, upper = self.bracket.lower, self.bracket.upper
        return {
            question
            for question in self.outstanding
            if question.kind is QuestionKind.PROVE and not lower < question.eps < upper
        }

    @property
    def done(self) -> bool:
        """Nothing runs and nothing is left to ask."""
        return not self.outstanding and self.next_question() is None

    def open_range(self) -> tuple[int, int]:
        """Grid indices [first, last) that the bracket leaves open: above lower, below upper."""
        return open_range(self.values, self.bracket)

    def index_of(self, question: Question) -> int:
        """Which grid value a question is about."""
        return bisect_left(self.values, question.eps)

    def missing_indices(self) -> list[int]:
        """Open grid indices at which a proof was tried and gave no answer, in order."""
        first, last = self.open_range()
        indices = {self.index_of(q) for q in self.answers if q.kind is QuestionKind.PROVE}
        return sorted(index for index in indices if first <= index < last)
