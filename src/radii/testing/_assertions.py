"""Is a network robust enough? `check` says yes, no or undecided; `assert_robust` insists on yes.

The proven side alone says yes and the witnessed side alone says no, as in `radii gate`, whose
requirements decide here, too. Without a confidence the answer is about the given inputs. With one
it is about all inputs that these stand for; at most one of the two claims (yes, no) can be wrong,
so each is made with the whole confidence. That is the confidence of one check. Where several checks
are to hold together, `among` says how many they are, and each may be wrong with that fraction of
the probability (Bonferroni).

Work ends as soon as the remaining inputs cannot change the answer. With many inputs a betting
confidence sequence is updated after each of them, and may end it much earlier. It and the final
estimate share the allowed probability of error, unless there are so few inputs that
the final estimate needs all of it.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from radii import runs
from radii.datasets import Dataset, as_dataset
from radii.errors import DataError, ExperimentError
from radii.networks import Network, as_network
from radii.problem import Domain, Instance, Measurement, Result
from radii.problem import property_family_spec as family_spec
from radii.runs import settings_for
from radii.statistics import (
    FINAL_MISS_SHARE,
    Distribution,
    Population,
    RobustnessRequirement,
    SequentialEstimate,
    StoppingRule,
    parse_requirement,
    proof_scope,
)
from radii.store import Store
from radii.strategy import Agenda, Case, Question


class AnswerKnown(Exception):
    """The answer is known."""


class CheckObserver:
    """An observer of a run. Whatever order inputs end in, `sequential` gets them in theirs."""

    def __init__(
        self,
        instances: Sequence[Instance],
        eps: float,
        *,
        enough_proven: int,
        enough_refuted: int,
        sequential: SequentialEstimate | None,
    ) -> None:
        self._eps = eps
        self._keys = [instance.key for instance in instances]
        self._found: dict[str, tuple[bool, bool]] = {}
        self._proven_left, self._refuted_left = enough_proven, enough_refuted
        self._sequential = sequential

    def started(self, total: int) -> None: ...
    def answered(self, case: Case, question: Question, result: Result, /) -> None: ...
    def held(self, is_held: bool, /) -> None: ...

    def finished(self, case: Case, /) -> None:
        bracket, key = case.search.bracket, case.instance.key
        if key in self._found:
            return
        proven, refuted = bracket.lower >= self._eps, bracket.upper <= self._eps
        self._found[key] = proven, refuted
        self._proven_left -= proven
        self._refuted_left -= refuted
        is_last = len(self._found) == len(self._keys)
        is_decided = self._is_decided() or min(self._proven_left, self._refuted_left) <= 0
        if is_decided and not is_last:
            raise AnswerKnown

    def _is_decided(self) -> bool:
        """Whether the inputs whose turn it was by now decide it, one after the other."""
        known = self._sequential
        if known is None:
            return False
        while known.reason_to_stop is None and len(known) < len(self._keys):
            known_radii = self._found.get(self._keys[len(known)])
            if known_radii is None:
                return False
            proven, refuted = known_radii
            known.add([float(proven)], [float(not refuted)])
        return known.reason_to_stop is not None


SEQUENTIAL_FROM = 200
"""From this many inputs on, they are also evaluated one by one; with fewer, that costs more than it
saves."""


class Decision(StrEnum):
    ROBUST = "robust"
    NOT_ROBUST = "not robust"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """What was decided, the sentence that says why, and the brackets it rests on.

    `brackets` has a row for every input that was given: what was not looked at, because the answer
    was known, is between 0 and infinity. `miss` is how often a statement about all inputs may be
    false: one minus the confidence, divided by the checks it was made among; 0 without one.
    """

    decision: Decision
    reason: str
    requirement: str
    network: str
    data: str
    eps: float
    timeout: float
    brackets: Distribution
    miss: float = 0.0

    @property
    def scope(self) -> str:
        """What the proofs hold for, as a clause; empty without proofs."""
        return proof_scope(self.brackets)

    @property
    def statement(self) -> str:
        """One line: the decision, its reason, and what the proofs hold for."""
        said = f"{self.decision}: {self.reason}"
        return f"{said} {self.scope[0].upper()}{self.scope[1:]}." if self.scope else said


def check_robustness(
    network: Network,
    data: Dataset,
    *,
    eps: float | str,
    at_least: float = 1.0,
    confidence: float | None = None,
    among: int = 1,
    layout: str | None = None,
    out: Path | str | None = None,
    jobs: int = 0,
    **options: Any,
) -> Check:
    """Are at least this share of the inputs right, and robust within eps?

    `among` is how many checks are to hold together with the confidence. `options` are settings of
    an experiment (property, norm, timeout, verifier, arithmetic, attack, seed, ...). With `out` the
    brackets are kept in that directory, and asking again continues there.
    """
    settings = _settings(eps, options)
    at = settings.grid[0]
    requirement = _requirement(at, at_least, confidence, among, len(data))
    if not runs.DataTerms.of(out).is_salted:
        data = data.unsalted()
    sample = data if confidence is None else data.shuffled(settings.seed)
    plan = runs.plan((network,), sample, settings, layout=layout, data=data.title)
    if len(plan.instances) != len(data):
        raise ExperimentError(
            f"property '{family_spec(settings.property)}' asks several things of an input; name one"
        )
    sequential = None
    if confidence is not None and len(data) >= SEQUENTIAL_FROM:
        last_look, betting = _shared_miss(requirement, at_least, confidence, among, data.title)
        if _is_met(last_look, len(data), len(data), at):  # else all of them would not be enough
            requirement, sequential = last_look, betting
    watch = CheckObserver(
        plan.instances,
        at,
        enough_proven=_fewest(len(data), lambda count: _is_met(requirement, count, len(data), at)),
        enough_refuted=_fewest(
            len(data), lambda count: _is_met(requirement.opposite(), count, len(data), at)
        ),
        sequential=sequential,
    )
    brackets = _measured(plan, watch, out, jobs)
    decision, reason = _decided(
        requirement, sequential, brackets, at_least, _confidence_text(confidence, among)
    )
    return Check(
        decision,
        reason,
        _text(eps, at_least, confidence) + (f", one of {among} checks" if among > 1 else ""),
        network.name,
        data.title,
        at,
        settings.timeout,
        brackets,
        0.0 if confidence is None else (1 - confidence) / among,
    )


def _settings(eps: float | str, options: dict[str, Any]) -> runs.Settings:
    options.setdefault("attack", "minimum-norm")  # close witnesses, hence tight radii to report
    try:
        return settings_for(eps, "both", **{"property": "one-to-any", **options})
    except TypeError as error:
        raise ExperimentError(f"not an option of a check: {error}") from None


def _measured(
    plan: runs.Plan, watch: CheckObserver, out: Path | str | None, jobs: int
) -> Distribution:
    """The brackets, once enough of them are known."""
    with Store.in_memory() if out is None else Store.create_or_open(Path(out)) as store:
        with contextlib.suppress(AnswerKnown):
            plan.run(store, jobs=jobs, observer=watch, agenda=_OneByOne())
        return Distribution.from_store(store)


class _OneByOne(Agenda):
    """A check ends with the input that decides it: none is probed together with others."""

    def begin(self, cases: Sequence[Case], now: float) -> None:
        for case in cases:
            case.search.probes = False


def _confidence_text(confidence: float | None, among: int) -> str:
    return f"{100 * (confidence or 0):g} % confidence" + (
        f", together with {among - 1} other {'check' if among == 2 else 'checks'},"
        if among > 1
        else ""
    )


def _text(eps: float | str, at_least: float, confidence: float | None) -> str:
    level = "" if confidence is None else f" @ {100 * confidence:g}%"
    return f"robust_accuracy({eps}) >= {at_least}{level}"


def _requirement(
    eps: float, at_least: float, confidence: float | None, among: int, inputs: int
) -> RobustnessRequirement:
    """What `radii gate` would require; an InputError if no outcome could meet it."""
    if not 0 < at_least <= 1:
        raise ExperimentError(f"at_least {at_least} must be a share above 0 and at most 1")
    if among < 1:
        raise ExperimentError(f"among {among} must be a number of checks, 1 or more")
    required = parse_requirement(_text(eps, at_least, None))
    if confidence is None:
        if among > 1:
            raise ExperimentError(f"among {among}: checks share a confidence's error; give one")
        return required
    if not 0.5 <= confidence < 1:
        raise ExperimentError(f"confidence {confidence} must be at least 0.5 and below 1")
    if at_least == 1:
        raise ExperimentError(
            "no sample shows that every input is robust: with a confidence, at_least must be "
            "below 1"
        )
    fewest = math.ceil(math.log((1 - confidence) / among) / math.log(at_least) - 1e-9)
    if inputs < fewest:
        raise DataError(
            f"{inputs} inputs cannot show with {_confidence_text(confidence, among)} that a share "
            f"of {at_least:g} is robust, even if all of them are: give at least {fewest}, "
            "or leave out the confidence"
        )
    return replace(required, level=confidence, statements=among)


def _shared_miss(
    requirement: RobustnessRequirement, at_least: float, confidence: float, among: int, title: str
) -> tuple[RobustnessRequirement, SequentialEstimate]:
    """The look at all inputs and the betting limits, which together miss as rarely as asked."""
    miss = 1 - confidence
    sequential = SequentialEstimate(
        StoppingRule(threshold=at_least),
        Population(title),
        confidence=1 - (1 - FINAL_MISS_SHARE) * miss / among,
    )
    return replace(requirement, level=1 - FINAL_MISS_SHARE * miss), sequential


def _is_met(requirement: RobustnessRequirement, count: int, inputs: int, eps: float) -> bool:
    """Whether `count` decided inputs meet it, with all others open."""
    is_decided = np.arange(inputs) < count
    lower = np.where(is_decided & requirement.is_proven, eps, 0.0)
    upper = np.where(is_decided & (not requirement.is_proven), eps, np.inf)
    brackets = Distribution.from_arrays(lower, upper, input=np.arange(inputs))
    return requirement.check(brackets)[0].is_met


def _fewest(inputs: int, is_enough: Callable[[int], bool]) -> int:
    """The smallest count that is enough, by halving; one more than there are if none is."""
    low, high = 0, inputs + 1
    while low < high:
        middle = (low + high) // 2
        if middle > inputs or is_enough(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _decided(
    requirement: RobustnessRequirement,
    sequential: SequentialEstimate | None,
    brackets: Distribution,
    at_least: float,
    confidence: str,
) -> tuple[Decision, str]:
    estimate = sequential.estimate if sequential is not None and len(sequential) else None
    answer = None if estimate is None else estimate.is_at_least(at_least)
    if estimate is not None and answer is not None:
        bound = f"at least {estimate.low:.4f}" if answer else f"at most {estimate.high:.4f}"
        reason = (
            f"{estimate.samples} inputs, one after the other, were enough: with "
            f"{confidence} the share is {bound} for all inputs; "
            f"required is >= {at_least:g}."
        )
        return (Decision.ROBUST if answer else Decision.NOT_ROBUST), reason
    eps = requirement.arguments["eps"]
    required = replace(requirement, is_stopped=any(_is_untried(row, eps) for row in brackets))
    met, refuted = (each.check(brackets)[0] for each in (required, required.opposite()))
    if met.is_met:
        return Decision.ROBUST, met.reason
    if refuted.is_met:
        return Decision.NOT_ROBUST, refuted.reason
    return Decision.UNDECIDED, requirement.check(brackets)[0].reason


def _is_untried(row: Measurement, eps: float) -> bool:
    """Open, and no proof of it was tried: the answer was known without it."""
    return row.bracket.lower < eps < row.bracket.upper and not row.missing


# --- what a failed check prints


MOST_ROWS = 10
"""Of the inputs that are named; the counts are of all."""


def failure_text(check: Check) -> str:
    """Several lines, the first of which says it all."""
    rows = list(check.brackets)
    proven = [row for row in rows if row.bracket.lower >= check.eps]
    refuted = [row for row in rows if row.bracket.upper <= check.eps]
    rest = [row for row in rows if row.bracket.lower < check.eps < row.bracket.upper]
    tried = [row for row in rest if not _is_untried(row, check.eps)]
    untried = len(rest) - len(tried)
    lines = [
        f"{check.network} on {check.data} is {_word(check.decision)} at eps {check.eps:g}",
        f"  required  {check.requirement}",
        f"  found     {check.reason}",
        f"  inputs    {len(rows)}: {len(proven)} proven, {len(refuted)} refuted, "
        f"{len(tried)} undecided" + (f", {untried} not needed" if untried else ""),
        *([f"  proofs    {check.scope.removeprefix('proofs ')}"] if check.scope else []),
    ]
    refuted.sort(key=lambda row: row.bracket.upper)
    lines += _table("refuted by a counterexample within eps", map(_refuted, refuted), len(refuted))
    lines += _table("undecided", map(_undecided, tried), len(tried))
    if check.decision is Decision.UNDECIDED:
        lines.append(f"  to do     {_advice(check, len(tried))}")
    return "\n".join(lines)


def _word(decision: Decision) -> str:
    return "neither shown nor refuted to be robust" if decision is Decision.UNDECIDED else decision


def _table(title: str, rows: Iterable[str], count: int) -> list[str]:
    if not count:
        return []
    shown = [f"    {row}" for _, row in zip(range(MOST_ROWS), rows, strict=False)]
    more = [f"    and {count - MOST_ROWS} more"] if count > MOST_ROWS else []
    return [f"  {title}", *shown, *more]


def _refuted(row: Measurement) -> str:
    named = f"input {row.input}, label {row.label}:"
    if row.bracket.upper == 0:
        return f"{named} radius 0, is taken for {row.predicted} as it stands"
    became = "" if row.witness_class is None else f", where it is taken for {row.witness_class}"
    return f"{named} radius below {row.bracket.upper:.6g}{became}"


def _undecided(row: Measurement) -> str:
    why = "the time ran out" if row.timeouts else "no proof and no counterexample was found"
    return f"input {row.input}, label {row.label}: {why}"


def _advice(check: Check, undecided: int) -> str:
    if undecided:
        return (
            f"give proofs more time (timeout=, now {check.timeout:g} s an input) or another "
            "verifier (verifier=)"
        )
    return "give more inputs: the share of these is too close to what is required"


# --- assertions for tests: `radii.testing.assert_robust`, or the pytest fixture of that name


class RobustnessFailure(AssertionError):
    """A model is not robust enough, or that could not be decided; `check` says which."""

    def __init__(self, check: Check) -> None:
        super().__init__(failure_text(check))
        self.check = check


def assert_robust(
    model: Any,
    data: Any,
    *,
    eps: float | str,
    at_least: float = 1.0,
    confidence: float | None = None,
    among: int = 1,
    domain: Domain | tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    mean: npt.ArrayLike | None = None,
    std: npt.ArrayLike | None = None,
    input_shape: tuple[int, ...] | None = None,
    name: str | None = None,
    **options: Any,
) -> Check:
    """At least this share of the inputs are right, and proven to stay so within eps.

    `model` is a radii `Network`, the path of an ONNX file, a torch module (then with `domain`, the
    valid inputs, such as (0, 1)) or a foolbox model. `data` is a data set, a spec, a pair of arrays
    (inputs, labels) or a torch data set. Without `confidence` the statement is about these inputs;
    with it, about all inputs they were drawn from, and this check's own: of several checks that are
    to hold together with it, say `among` how many, and they share the error that it permits.
    `options` are those of `check_robustness`: property, norm, timeout, arithmetic, jobs, seed, out,
    layout, ...

    Raises a RobustnessFailure, an AssertionError, if the opposite is shown by counterexamples, and
    also if neither is shown: what was not decided never passes.
    """
    __tracebackhide__ = True
    dataset = as_dataset(data)
    network = as_network(
        model,
        input_shape=input_shape or dataset.shape,
        domain=domain,
        mean=mean,
        std=std,
        name=name,
    )
    check = check_robustness(
        network,
        dataset,
        eps=eps,
        at_least=at_least,
        confidence=confidence,
        among=among,
        **options,
    )
    if check.decision is not Decision.ROBUST:
        raise RobustnessFailure(check)
    return check
