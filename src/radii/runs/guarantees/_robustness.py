"""R: the share of inputs around which a property holds, within one eps.

Each input of a sample is an instance of an experiment whose grid has that one value, so everything
an experiment has is there: workers with limits, a store, resuming. An input counts as robust where
it is proven, as not robust where a witness was replayed, and is open otherwise.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from radii.errors import ExperimentError
from radii.networks import Network
from radii.problem import Arithmetic, Bracket, Grid, Instance, Result, weigh
from radii.problem import property_family_spec as family_spec
from radii.runs._data_terms import DataTerms
from radii.runs._description import Settings
from radii.runs._plan import Observer, Plan
from radii.runs._plan import plan as plan_run
from radii.runs.guarantees._sources import DataSource, InputSource
from radii.statistics import Demand, Estimate, Tally, estimate_mean
from radii.store import Store
from radii.strategy import Case, Question, QuestionKind

MeasuredBy = Literal["attack", "proof", "both"]
MEASURED_BY: tuple[MeasuredBy, ...] = ("attack", "proof", "both")

PREDICTION_STAYS = "cr:of=prediction"


@dataclass(frozen=True, slots=True)
class SampledInput:
    """One input's value of g or g-bar, between what is proven of it and what is not refuted."""

    index: int
    label: int
    predicted: int
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalRobustness:
    """What a sample says of R or D within eps.

    `attacked` speaks about the attack instead: R as if every input were robust that it did not
    break, or D as if there were no larger change than it found. That bounds the truth on one side
    only. None where no attack was made, and for sequential estimates, whose stop it would not know.
    `arithmetic` is that in which all proofs hold, None without proofs.
    """

    measure: Literal["R", "D"]
    network: str
    asked: str
    norm: str
    eps: float
    by: str
    seed: int
    estimate: Estimate
    attacked: Estimate | None
    reason: str
    inputs: tuple[SampledInput, ...]
    threshold: float | None = None
    arithmetic: Arithmetic | None = None

    @property
    def decision(self) -> bool | None:
        """Is the measure at least the threshold? None if not known, or not asked."""
        return None if self.threshold is None else self.estimate.is_at_least(self.threshold)

    def row(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "measure": self.measure,
            "network": self.network,
            "property": self.asked,
            "norm": self.norm,
            "eps": self.eps,
            "by": self.by,
            "seed": self.seed,
            "arithmetic": None if self.arithmetic is None else str(self.arithmetic),
            "estimate": self.estimate.row(),
            "attack_only": None if self.attacked is None else self.attacked.row(),
            "stopped": self.reason,
            "threshold": self.threshold,
            "decision": self.decision,
            "inputs": [dataclasses.asdict(sampled) for sampled in self.inputs],
        }


def settings_for(
    eps: str | float,
    by: str,
    *,
    property: str = PREDICTION_STAYS,  # noqa: A002
    **options: Any,
) -> Settings:
    """The settings of an experiment that decides each input at one eps, in the way asked for."""
    if by not in MEASURED_BY:
        raise ExperimentError(f"by '{by}' is not one of {', '.join(MEASURED_BY)}")
    options = {name: value for name, value in options.items() if value is not None}
    if by == "attack":
        options = {"attack": "apgd", **options, "search": "attack-only"}
    elif by == "proof":
        options["search"] = "linear"
    else:
        options = {"attack": "apgd", **options}
    return Settings.from_options({"property": property, "grid": Grid.of_one(eps), **options})


def estimate_robustness(
    network: Network,
    source: InputSource,
    settings: Settings,
    demand: Demand,
    store: Store,
    *,
    layout: str | None = None,
    path: str = "",
    jobs: int = 0,
    observer: Observer | None = None,
) -> GlobalRobustness:
    """Draw inputs, decide them, and say what follows. The same store continues where it stopped."""
    tally = Tally(demand, source.population, source.available)
    if isinstance(source, DataSource) and not DataTerms.of(store).is_salted:
        source = source.unsalted()
    dataset = source.draw(tally.needed, settings.seed)
    plan = plan_run(
        (network,),
        dataset,
        settings,
        layout=layout,
        paths=(path,) if path else (),
        data=source.population.name,
    )
    if len(plan.instances) != len(dataset):
        raise ExperimentError(
            f"property '{family_spec(settings.property)}' asks several things of an input; R needs "
            "one"
        )
    watch = _SampleObserver(plan, tally, observer)
    with contextlib.suppress(_EnoughInputs):
        plan.run(store, jobs=jobs, observer=watch)
    counted = plan.instances[: tally.counted]
    eps = watch.eps
    return GlobalRobustness(
        measure="R",
        network=network.name,
        asked=family_spec(settings.property),
        norm=settings.norm,
        eps=eps,
        by=_settings_text(settings),
        seed=settings.seed,
        estimate=tally.estimate(),
        attacked=_attack_estimate(store, plan, demand, source, eps),
        reason=tally.reason,
        inputs=tuple(
            SampledInput(
                instance.index, instance.label, instance.predicted, *watch.values[instance.key]
            )
            for instance in counted
        ),
        threshold=demand.threshold,
        arithmetic=_weakest(store, counted),
    )


def _weakest(store: Store, counted: Sequence[Instance]) -> Arithmetic | None:
    answers = store.results([instance.key for instance in counted])
    arithmetics = (weigh(result for _, result in own).arithmetic for own in answers.values())
    return min(filter(None, arithmetics), key=lambda each: each.strength, default=None)


class _EnoughInputs(Exception):
    """No further input is needed."""


class _SampleObserver:
    """Counts inputs as they are finished, and stops the run once there are enough."""

    def __init__(self, plan: Plan, tally: Tally, inner: Observer | None) -> None:
        self.eps = plan.settings.grid[0]
        self.values: dict[str, tuple[float, float]] = {}
        self._places = {instance.key: place for place, instance in enumerate(plan.instances)}
        self._tally = tally
        self._inner = inner

    def started(self, total: int) -> None:
        if self._inner is not None:
            self._inner.started(total)

    def answered(self, case: Case, question: Question, result: Result, /) -> None:
        if self._inner is not None:
            self._inner.answered(case, question, result)

    def held(self, is_held: bool, /) -> None:
        if self._inner is not None:
            self._inner.held(is_held)

    def finished(self, case: Case, /) -> None:
        if self._inner is not None:
            self._inner.finished(case)
        key = case.instance.key
        self.values[key] = _value(case.search.bracket, self.eps)
        place = self._places[key]
        if self._tally.put(place, *self.values[key]) and place < len(self._places) - 1:
            raise _EnoughInputs


def _value(bracket: Bracket, eps: float) -> tuple[float, float]:
    """g, at least and at most: a witness at distance eps itself is in the closed ball."""
    return float(bracket.lower >= eps), float(bracket.upper > eps)


def _attack_estimate(
    store: Store, plan: Plan, demand: Demand, source: InputSource, eps: float
) -> Estimate | None:
    """R as if what the attack did not break were robust."""
    if demand.is_sequential:
        return None
    keys = [instance.key for instance in plan.instances]
    answers = store.results(keys)
    attacks = [_attack_answers(answers.get(key, [])) for key in keys]
    if not any(question.kind.begins_with_attack for own in attacks for question, _ in own):
        return None
    survived = [
        float(all(r.witness is None or r.witness.distance > eps for _, r in own)) for own in attacks
    ]
    return estimate_mean(
        survived,
        population=source.population,
        confidence=demand.confidence,
        method=demand.method,
    )


def _attack_answers(answers: Sequence[tuple[Question, Result]]) -> list[tuple[Question, Result]]:
    """Also that an input breaks the property as it stands: there is nothing to attack then."""
    return [
        (q, r) for q, r in answers if q.kind.begins_with_attack or q.kind is QuestionKind.REPLAY
    ]


def _settings_text(settings: Settings) -> str:
    names = settings.to_json()
    match names["search"]:
        case "attack-only":
            return str(names["attack"])
        case "linear":
            return str(names["verifier"])
        case _:
            return f"{names['attack']}, then {names['verifier']}"
