"""What is known of an instance, from earlier steps of a study and earlier runs of this one.

All evidence that earlier steps found counts. Their questions count as answered only as far as they
would be asked again now: by the same attack or verifier, about the same values, with as much time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Self

import numpy as np

from radii.errors import StoreError
from radii.problem import Array, Instance, Result, Verdict, weigh
from radii.processes import Ending
from radii.runs._description import Settings
from radii.store import StepAnswer, Store, StudyStep, counted_in
from radii.strategy import Case, Question, QuestionKind, Search, is_cut_short, open_range

OUTPUT_ROUNDING = 2.0**-13
"""By which part of the largest output a stored one may differ: another processor, or another
version of ONNX Runtime, adds up in another order."""

ATTACK_FIELDS = ("attack", "seed")
"""With another one of these an attack is another question."""

PROOF_FIELDS = ("verifier", "tool", "arithmetic")
"""With another one of these a proof is another question."""


class Retry(StrEnum):
    """Which questions are asked again that earlier steps left without an answer.

    Without any, those that had less time or memory than they may have now.
    """

    TIMEOUTS = "timeouts"
    MEMOUTS = "memouts"
    MISSING = "missing"

    def renews(self, question: Question, result: Result) -> bool:
        is_late = result.ran_out_of_time
        if question.kind is QuestionKind.RADIUS:  # it ends with what it could prove until then
            is_late = is_late or is_cut_short(question, result, float("inf"))
        is_full = result.ran_out_of_memory
        match self:
            case Retry.TIMEOUTS:
                return is_late
            case Retry.MEMOUTS:
                return is_full
            case Retry.MISSING:
                is_proof = not question.kind.begins_with_attack
                return is_late or is_full or (is_proof and result.verdict.is_missing)


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What earlier steps, and earlier runs of this one, found out about the instances of a plan."""

    settings: Settings
    steps: Mapping[int, StudyStep]
    current: int

    @classmethod
    def of(cls, settings: Settings, store: Store) -> Self:
        return cls(settings, {step.number: step for step in store.steps()}, store.step)

    @cached_property
    def retry(self) -> Retry | None:
        """What this step was asked to ask again of the earlier ones."""
        step = self.steps.get(self.current)
        asked = step.described.get("retry") if step else None
        return Retry(asked) if asked else None

    @cached_property
    def _now(self) -> dict[str, Any]:
        return self.settings.to_json()

    @cached_property
    def _then(self) -> dict[int, Settings]:
        return {number: Settings.from_json(step.described) for number, step in self.steps.items()}

    @cached_property
    def _values(self) -> dict[int, frozenset[float]]:
        return {number: frozenset(then.grid.values) for number, then in self._then.items()}

    def tell(self, case: Case, answers: Sequence[StepAnswer]) -> None:
        """Tell a case's search all that is known.

        Of a question that is to be asked again it recalls the evidence; its time does not count.
        """
        search, counted = case.search, [*self._counted(answers)]
        bracket = weigh(result for _, _, result in counted).bracket
        first, last = open_range(search.values, bracket)
        opened = frozenset(search.values[first:last])
        for step, question, result in counted:
            asked = self._settled(step, question, result, search, opened)
            if asked is None:
                search.recall(result)
                continue
            if not asked.kind.begins_with_attack and result.allowed_seconds is None:
                result = replace(result, allowed_seconds=self._seconds(step))
            search.tell(asked, result)
            case.spent += result.own_seconds

    def _counted(self, answers: Sequence[StepAnswer]) -> Iterable[StepAnswer]:
        """Without proofs in a weaker arithmetic than this step's, which do not count here."""
        asked = self.settings.arithmetic
        for step, question, result in answers:
            own = self._then[step].arithmetic if step in self._then else None
            counts = counted_in(asked, own, question, result)
            if counts is not None:
                yield step, question, counts

    def _seconds(self, step: int) -> float:
        return self._then.get(step, self.settings).proof_seconds()

    def _settled(
        self,
        step: int,
        question: Question,
        result: Result,
        search: Search,
        opened: frozenset[float],
    ) -> Question | None:
        """The question that a result answers now; None: it is to be asked again."""
        is_old = step != self.current
        if question.kind is QuestionKind.REPLAY or result.verdict is Verdict.CANCELLED:
            return question
        if self._is_unanswered(step, result):
            return None
        if is_old and self.retry is not None:
            limited = result
            if result.allowed_seconds is None:
                limited = replace(result, allowed_seconds=self._seconds(step))
            if self.retry.renews(question, limited):
                return None
        if not is_old:
            return question
        match question.kind:
            case QuestionKind.ATTACK | QuestionKind.PROBE:
                return self._settled_attack(step, question, result, search)
            case QuestionKind.PROVE:
                return question if self._proves_alike(step) and question.eps in opened else None
            case _:
                is_known = opened <= self._values[step]
                return question if self._proves_alike(step) and is_known else None

    def _settled_attack(
        self, step: int, question: Question, result: Result, search: Search
    ) -> Question | None:
        """An attack need not be repeated up to a smaller eps, nor where it found something."""
        end = search.values[-1]
        covers = question.eps >= end or result.witness is not None
        alike = self._is_alike(step, ATTACK_FIELDS) and covers
        if question.kind is QuestionKind.PROBE:
            alike = alike and self._proves_alike(step)
            alike = alike and self._then[step].grid == self.settings.grid
        return Question(question.kind, end) if alike else None

    def _proves_alike(self, step: int) -> bool:
        return self._is_alike(step, PROOF_FIELDS)

    def _is_alike(self, step: int, names: Iterable[str]) -> bool:
        then = self.steps[step].described
        return all(then.get(name) == self._now.get(name) for name in names)

    def _is_unanswered(self, step: int, result: Result) -> bool:
        """Whether nothing answered it under the limits of the step.

        An ERROR is a worker that was killed, a node that was lost, a verifier that failed. Without
        a stated limit of memory, what was too much depended on the machine, and who else used it.
        """
        then, now = self._then.get(step, self.settings), self.settings
        if result.ran_out_of_memory:
            limit = then.memory
            return now.memory is None or limit is None or limit < now.memory
        had_less = result.ending is Ending.CPU_LIMIT and then.cpu_timeout < now.cpu_timeout
        return result.verdict is Verdict.ERROR or had_less


# --- the instances as they are stored


def output_difference(stored: Array, outputs: Array) -> float | None:
    """By how much outputs differ, if that is more than rounding on another machine explains."""
    off = float(np.abs(np.asarray(outputs, np.float64) - stored).max(initial=0.0))
    return None if off <= OUTPUT_ROUNDING * float(np.abs(outputs).max(initial=0.0)) else off


def as_stored(instances: Sequence[Instance], store: Store) -> Sequence[Instance]:
    """The instances, those that a store knows with its outputs: proofs of stability that are there
    refer to these, and another machine may round otherwise.

    A StoreError if the outputs are those of another network, or were changed.
    """
    known = store.outputs()
    return [_as_stored(one, known.get(one.key), store) for one in instances]


def _as_stored(instance: Instance, stored: Array | None, store: Store) -> Instance:
    if stored is None or np.array_equal(stored, instance.outputs):
        return instance
    same = replace(instance, outputs=stored) if stored.shape == instance.outputs.shape else None
    if (
        same is None
        or output_difference(stored, instance.outputs) is not None
        or (same.predicted, same.correct) != (instance.predicted, instance.correct)
    ):
        raise StoreError(
            f"{store.place}: the outputs that are stored for input {instance.index} are not those "
            f"of the network; radii check {store.place} says more"
        )
    return same
