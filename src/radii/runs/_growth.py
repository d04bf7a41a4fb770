"""How a study grows: the step that a plan begins or goes on with, and what is known of an instance.

A step of a study asks for more inputs, more networks, another grid, property, norm or arithmetic,
or for more time. All evidence that earlier steps found counts in it. Their questions count as
answered only as far as they would be asked again now: by the same attack or verifier, about the
same values, with as much time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from radii.datasets import are_words
from radii.problem import Grid, Result, Verdict, weigh
from radii.processes import Ending
from radii.runs._data_terms import SALTED_DRAW, DataTerms
from radii.runs._description import Experiment, Settings
from radii.runs._fields import differences, options_of
from radii.runs._joining import changed_inputs, joining_inputs
from radii.store import StepAnswer, Store, StudyStep, counted_in
from radii.strategy import Case, Question, QuestionKind, Search, is_cut_short, open_range

if TYPE_CHECKING:
    from radii.runs._plan import Plan

ATTACK_FIELDS = ("attack", "seed")
"""With another one of these an attack is another question."""

PROOF_FIELDS = ("verifier", "tool", "arithmetic")
"""With another one of these a proof is another question."""

FEEDING_FIELDS = ("domain", "mean", "std", "layout", "label", "threshold")

PART_FIELDS = ("property", "norm", "arithmetic")


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


# --- the step that a plan is


def feeding_of(experiment: Experiment) -> dict[str, Any]:
    """How inputs get into the networks, as a store keeps it and `Experiment` reads it."""
    options, values = options_of(Experiment), {}
    for name in FEEDING_FIELDS:
        value = getattr(experiment, name)
        values[name] = None if value is None else options[name].form.write(value)
    return values


def same_step(plan: Plan, store: Store, *, retry: Retry | None, is_grown: bool) -> StudyStep | None:
    """The step that this plan goes on with; None if it asks for something else.

    Where the store may not grow it is all of a step that is all of the store.
    """
    identity, keys = plan.identity(), {one.key for one in plan.instances}
    steps = store.steps()
    latest = next(reversed(_same_part(steps, identity)), None)
    if latest is None or _setting_changes(latest.described, identity):
        return None
    own = store.step_keys([latest.number])
    if not (keys <= own if is_grown else keys == own and len(steps) == 1):
        return None
    if changed_inputs(plan, store):  # the store has their former labels as well
        return None
    if retry is None:
        return latest
    is_under_way = latest.described.get("retry") == retry and latest.ended_at is None
    return latest if is_under_way else None


def _same_part(steps: Iterable[StudyStep], identity: Mapping[str, Any]) -> list[StudyStep]:
    """The steps of the part that a plan is of, in order."""
    own = [identity[name] for name in PART_FIELDS]
    return [step for step in steps if [step.described.get(n) for n in PART_FIELDS] == own]


def other_arithmetics(plan: Plan, store: Store) -> list[str]:
    """In which a store has proofs of the plan's question, if it has none in the plan's own."""
    identity = plan.identity()
    same = [
        step.described.get("arithmetic")
        for step in store.steps()
        if all(step.described.get(n) == identity[n] for n in ("property", "norm"))
    ]
    proven = [text for text in same if text]
    is_new = identity["arithmetic"] is not None and identity["arithmetic"] not in proven
    return proven if is_new else []


def _setting_changes(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    apart = ("networks", "domain", "data", "whole")
    return differences(was, {name: now[name] for name in now if name not in apart})


@dataclass(frozen=True, slots=True)
class NewStep:
    """What a store keeps of a step that begins, and what that adds to the others, in words.

    `replaced` are the inputs about which everything that is stored is dropped.
    """

    described: Mapping[str, Any]
    summary: str
    replaced: tuple[int, ...] = ()


def new_step(plan: Plan, store: Store, retry: Retry | None, *, replace_changed: bool) -> NewStep:
    """The step that begins with a plan; an ExperimentError says why it cannot join the others.

    With `replace_changed`, inputs that have another label or other values than when they were
    measured are measured anew; otherwise they are refused.
    """
    changed = joining_inputs(plan, store, replace_changed=replace_changed)
    described, words = _described(plan, store, retry)
    if changed:
        words.append(f"{_count(len(changed), 'changed input')} measured anew")
    return NewStep(described, "; ".join(words) or UNCHANGED, tuple(changed))


UNCHANGED = "the latest settings for more of it"
"""The summary of a step that adds nothing else."""


def _described(plan: Plan, store: Store, retry: Retry | None) -> tuple[dict[str, Any], list[str]]:
    identity, steps = plan.identity(), store.steps()
    part = _same_part(steps, identity)
    latest = part[-1] if part else None
    indices = {one.index for one in plan.instances}
    known: dict[str, set[int]] = {}
    asked = store.step_keys(step.number for step in part)
    for record in store.unanswered_records() if steps else ():
        if record.key in asked:
            known.setdefault(record.facts.fingerprint, set()).add(record.facts.input)
    inputs: set[int] = set().union(*known.values())
    sources = dict(plan.sources or {plan.data: plan.data})
    if latest is not None and not inputs <= indices:
        sources = {**latest.sources, **sources}
    terms = DataTerms.of(store)
    classes = plan.class_names or terms.classes
    has_names = bool(plan.feature_names) and plan.settings.features is None
    described = {
        **identity,
        "source": " and ".join(sources),
        "sources": sources,
        "split": plan.split,
        **({"feature_names": list(plan.feature_names)} if has_names else {}),
        **({"class_names": list(classes)} if are_words(classes) else {}),
        **({"draw": SALTED_DRAW} if terms.is_salted else {}),
        **({"retry": retry.value} if retry else {}),
    }
    if not steps:
        return described, [_first_summary(plan)]
    words = _new_words(plan, known, inputs) if latest else _new_part_words(plan, steps, identity)
    before = (latest or steps[-1]).described
    changed = {name: now for name, now in identity.items() if latest or name not in PART_FIELDS}
    words += _setting_changes(_worded(before), _worded(changed))
    words += [f"{retry} are asked again"] if retry else []
    return described, words


def _worded(described: Mapping[str, Any]) -> dict[str, Any]:
    """With a grid of one value as people ask for it: eps 0.1."""
    text = described.get("grid")
    values = Grid.parse(text).values if isinstance(text, str) else ()
    return {**described, "grid": f"eps {values[0]:g}"} if len(values) == 1 else dict(described)


def _first_summary(plan: Plan) -> str:
    inputs = len({one.index for one in plan.instances})
    return f"{_count(inputs, 'input')} of {plan.data} on {_names(plan)}"


def _new_part_words(
    plan: Plan, steps: Sequence[StudyStep], identity: Mapping[str, Any]
) -> list[str]:
    """As in: norm l2 beside linf."""
    beside = []
    for name in PART_FIELDS:
        others = dict.fromkeys(step.described.get(name) for step in steps)
        if identity[name] not in others:
            beside.append(f"{name} {identity[name]} beside {' and '.join(map(str, others))}")
    return [*(beside or ["another question"]), _first_summary(plan)]


def _new_words(plan: Plan, known: Mapping[str, set[int]], inputs: set[int]) -> list[str]:
    new = [network.name for network in plan.networks if network.fingerprint not in known]
    more = len({one.index for one in plan.instances} - inputs)
    words = [f"{_count(more, 'more input')} of {plan.data}"] if more else []
    return [*words, *(f"the network {name} is new" for name in new)]


def _names(plan: Plan) -> str:
    return ", ".join(network.name for network in plan.networks)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


# --- what is known of an instance


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

        Of a question that is to be asked again it recalls what was found, and the time that it took
        is not held against it.
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
        """Proofs in a weaker arithmetic than this one's are none here."""
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
        """It was nobody's answer under the limits of the step.

        An ERROR is a worker that was killed, a node that was lost, a verifier that failed. Without
        a stated limit of memory, what was too much depended on the machine, and who else used it.
        """
        then, now = self._then.get(step, self.settings), self.settings
        if result.ran_out_of_memory:
            limit = then.memory
            return now.memory is None or limit is None or limit < now.memory
        had_less = result.ending is Ending.CPU_LIMIT and then.cpu_timeout < now.cpu_timeout
        return result.verdict is Verdict.ERROR or had_less
