"""Requirements on a distribution, as `radii gate` takes them.

robust_accuracy(0.02) >= 0.90                   proven for at least 90 % of these inputs
robust_accuracy(0.02) >= 90% @ 95%              of all inputs, with 95 % confidence
not_refuted robust_accuracy(0.02) >= 0.90       no attack got it below 90 %
robust_recall(class=3, 0.02) >= 0.85 @ 99%
worst_recall(0.02) >= 0.80; recall_spread(0.02) <= 0.1
accuracy >= 0.95; median >= 0.03 @ 95%; quantile(0.05) >= 0.01; mean >= 0.04; min > 0
mean_gap <= 0.004

Several requirements are checked together (`check_all`). Limits with 95 % confidence each miss with
up to 5 %, and of many some will. So statements that are made together share the permitted error: of
k statements each may miss a k-th as often (Bonferroni). All limits that are printed then hold at
once. Holm's procedure would meet a few more requirements, but its limits would not hold together.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from radii.errors import DataError, SpecificationError
from radii.statistics._confidence import check_inputs_differ, draw_of_all
from radii.statistics._evidence import why_unsearched, within_search
from radii.statistics._measures import MEASURES, Figure, MeasureArguments
from radii.statistics._targets import over_targets

if TYPE_CHECKING:
    from radii.statistics._distribution import Distribution


RELATIONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}

OPPOSITES = {">=": "<", ">": "<=", "<=": ">", "<": ">="}

REQUIREMENT_FORM = re.compile(
    r"\s*(?:(?P<side>proven|not_refuted)\s+)?(?P<measure>[a-z_]+)\s*(?:\((?P<arguments>[^()]*)\))?"
    r"\s*(?P<relation>>=|<=|>|<)\s*(?P<limit>[^@\s]+)\s*(?:@\s*(?P<level>\S+))?\s*"
)


@dataclass(frozen=True, slots=True)
class RequirementOutcome:
    """Whether one network meets a requirement, the figure that decided it, and why in a sentence.

    `figure` is that of these inputs, or with a confidence `level` the limit for all inputs. Where
    several statements share the error that it permits, this one was `tested_at` a higher one.
    """

    requirement: str
    network: str
    is_met: bool
    figure: float
    reason: str
    level: float | None = None
    tested_at: float | None = None


@dataclass(frozen=True, slots=True)
class RobustnessRequirement:
    """A measure, on one side of the brackets, compared with a limit; with confidence if `level`.

    `statements` is how many statements share the error that the level permits: together they hold
    with that level. `check_all` counts them. Of statements about one network after the other on the
    same inputs, until one is met, `look` is the number of this one: the first gets half of the
    error, the next a sixth, the k-th 1 / (k (k + 1)), however many follow. An opposite `refutes`
    what was required, such as `>= 0.9`. With `is_stopped` some inputs were not looked at, for they
    could not change it: the figure is a limit.
    """

    text: str
    measure: str
    arguments: dict[str, float]
    is_proven: bool
    relation: str
    limit: float
    level: float | None
    statements: int = 1
    look: int | None = None
    refutes: str = ""
    is_stopped: bool = False

    @property
    def tested_at(self) -> float | None:
        """The level of this statement alone."""
        if self.level is None:
            return None
        looks = 1 if self.look is None else self.look * (self.look + 1)
        return 1 - (1 - self.level) / (self.statements * looks)

    def check(self, distribution: Distribution) -> list[RequirementOutcome]:
        """One outcome for each network. An input's brackets for several targets count as one."""
        return [
            self._outcome(name, over_targets(part))
            for name, part in distribution.by_network().items()
        ]

    def opposite(self) -> RobustnessRequirement:
        """That the figure lies beyond the limit, whatever the radii within the brackets are.

        Where it is met, this requirement is refuted; where neither is, nothing is decided.
        """
        other = OPPOSITES[self.relation]
        plain = re.sub(r"^(proven|not_refuted) ", "", self.text)
        text = plain.replace(self.relation, other, 1)
        return replace(
            self,
            text=text,
            relation=other,
            is_proven=not self.is_proven,
            refutes=f"{self.relation} {self.limit:g}",
        )

    def _outcome(self, network: str, part: Distribution) -> RequirementOutcome:
        if self.level is not None:
            check_inputs_differ(part)
        figure = self._figure(part, is_proven=self.is_proven)
        is_met = self._is_met_by(figure)
        if is_met and self._is_from_below and not self.is_proven:
            figure = self._figure(within_search(part), is_proven=False)
            if not self._is_met_by(figure):
                raise DataError(
                    f"{network}: whether {self.text} is not known: {self._why_unsearched(part)}; "
                    "search further, or longer, first"
                )
        reason = self._reason(part, figure, is_met)
        return RequirementOutcome(
            self.text,
            network,
            is_met,
            figure.decisive,
            f"{network}: {reason}",
            self.level,
            self.tested_at,
        )

    def _is_met_by(self, figure: Figure) -> bool:
        # 93 of 100 is stored as 0.93 give or take one bit, and must reach 0.93.
        slack = 1e-12 if self.relation in (">=", "<=") else -1e-12
        sign = 1 if self._is_from_below else -1
        return RELATIONS[self.relation](figure.decisive + sign * slack, self.limit)

    def _why_unsearched(self, part: Distribution) -> str:
        """Where the search ended; a radius of inputs without a counterexample may be any."""
        return why_unsearched(part, self.arguments.get("eps", math.nextafter(math.inf, 0)))

    @property
    def _is_from_below(self) -> bool:
        return self.relation in (">=", ">")

    def _figure(self, part: Distribution, *, is_proven: bool) -> Figure:
        options = MeasureArguments(self.arguments, is_proven, self._is_from_below, self.tested_at)
        return MEASURES[self.measure].figure(part, options)

    def _reason(self, part: Distribution, figure: Figure, is_met: bool) -> str:
        bound = "at least" if self._is_from_below else "at most"
        reason = f"{bound} {figure.words}" if self.is_stopped else figure.words
        if f"{figure.value:.4g}" not in reason and not math.isnan(figure.value):
            reason += f" ({figure.value:.4g})"
        if figure.limit is not None:
            reason += (
                f", so with {100 * (self.level or 0):g} % confidence{self._shared} it is {bound} "
                f"{_outward(figure.decisive, self._is_from_below)} for {figure.population}"
            )
        reason += f"; required is {self.refutes or f'{self.relation} {self.limit:g}'}"
        if self.is_stopped and is_met:
            reason += f"; stopped, the requirement is {'not met' if self.refutes else 'met'}"
        if not is_met and self._is_from_below and self.is_proven:
            reason += self._outlook(part)
        return f"{reason}."

    @property
    def _shared(self) -> str:
        others = self.statements - 1
        shared = f", together with {others} other statement{'s' if others > 1 else ''}"
        asked = "" if self.look is None else f", at look {self.look} on the same inputs"
        return f"{shared if others else ''}{asked}," if others or asked else ""

    def _outlook(self, part: Distribution) -> str:
        """Whether proofs may still show what is not proven; empty if counterexamples forbid it."""
        if not self._is_met_by(self._figure(part, is_proven=False)):
            return ""
        other = self._figure(within_search(part), is_proven=False)
        if not self._is_met_by(other):
            return f". What is not proven was not decided: {self._why_unsearched(part)}"
        if part.lower.any():
            return f". But {other.words}: longer proofs may still show it"
        return f". But {other.words}, and no input has a proof: a search that proves may show it"


def _outward(value: float, is_from_below: bool) -> str:
    """Four decimals, rounded so that "at least" and "at most" stay true."""
    if not math.isfinite(value):
        return str(value)
    rounded = math.floor if is_from_below else math.ceil
    return f"{rounded(round(value * 1e4, 6)) / 1e4:g}"


def parse_requirement(text: str) -> RobustnessRequirement:
    """Read a requirement; what it does not understand it names.

    Without `proven` or `not_refuted` the side that can be relied on is taken: proven for a limit
    from below, not refuted for one from above.
    """
    match = REQUIREMENT_FORM.fullmatch(text)
    if match is None:
        raise SpecificationError(
            f"requirement '{text}' is not of the form 'robust_accuracy(0.02) >= 0.90 @ 95%'"
        )
    name = match["measure"]
    if name not in MEASURES:
        raise SpecificationError(
            f"requirement '{text}': '{name}' is not one of {', '.join(MEASURES)}"
        )
    if match["side"] is not None and not MEASURES[name].has_sides:
        raise SpecificationError(f"requirement '{text}': '{name}' has no side '{match['side']}'")
    level = None if match["level"] is None else _level(text, match["level"])
    is_from_below = match["relation"] in (">=", ">")
    return RobustnessRequirement(
        text=" ".join(text.split()),
        measure=name,
        arguments=_arguments(text, name, match["arguments"] or ""),
        is_proven=is_from_below if match["side"] is None else match["side"] == "proven",
        relation=match["relation"],
        limit=_limit(text, name, match["limit"]),
        level=level,
    )


def _arguments(text: str, name: str, given: str) -> dict[str, float]:
    parameters, optional = MEASURES[name].parameters, MEASURES[name].optional
    arguments: dict[str, float] = {}
    unnamed = []
    for part in filter(None, (piece.strip() for piece in given.split(","))):
        key, is_named, value = part.rpartition("=")
        if not is_named:
            unnamed.append(_number(text, value))
        elif key.strip() not in (*parameters, *optional) or key.strip() in arguments:
            raise SpecificationError(f"requirement '{text}': '{name}' has no use for '{part}'")
        else:
            arguments[key.strip()] = _number(text, value)
    open_ = [parameter for parameter in parameters if parameter not in arguments]
    if len(unnamed) != len(open_):
        needed = ", ".join(parameters) or "no arguments"
        raise SpecificationError(f"requirement '{text}': '{name}' needs {needed}")
    arguments |= dict(zip(open_, unnamed, strict=True))
    if not all(value >= 0 for value in arguments.values()):
        raise SpecificationError(f"requirement '{text}': arguments are numbers >= 0")
    for whole in ("class", "classes"):
        if arguments.get(whole, 0) != int(arguments.get(whole, 0)):
            raise SpecificationError(f"requirement '{text}': '{whole}' is a whole number")
    return arguments


def _limit(text: str, name: str, given: str) -> float:
    limit = _number(text, given)
    if MEASURES[name].is_share and not 0 <= limit <= 1:
        meant = f": write {limit / 100:g} or {limit:g}%" if 1 < limit <= 100 else ""
        raise SpecificationError(
            f"requirement '{text}': '{name}' is a share between 0 and 1, not {given}{meant}"
        )
    return limit


def _number(text: str, given: str) -> float:
    """0.9, 90% and 8/255 are numbers."""
    stripped = given.strip()
    is_percent = stripped.endswith("%")
    over, _, under = stripped.removesuffix("%").partition("/")
    try:
        value = float(over) / (float(under) if under else 1.0) / (100 if is_percent else 1)
    except (ValueError, ZeroDivisionError):
        raise SpecificationError(f"requirement '{text}': '{stripped}' is not a number") from None
    if not math.isfinite(value):
        raise SpecificationError(f"requirement '{text}': '{stripped}' is not a finite number")
    return value


def _level(text: str, given: str) -> float:
    level = _number(text, given)
    if not 0.5 <= level < 1:
        raise SpecificationError(
            f"requirement '{text}': a confidence is at least 50% and below 100%, not {given}"
        )
    return level


@dataclass(frozen=True, slots=True)
class Judgement:
    """One outcome for each requirement and network.

    `statements` of them have a confidence. `together` is the confidence with which all that
    are met hold at once, None if no statement has one. Without `is_corrected` every confidence is
    its own, and that of all together is smaller. Of the networks `in_order` the inputs were taken
    in the order of their file, which confidence takes as random.
    """

    outcomes: tuple[RequirementOutcome, ...]
    statements: int
    is_corrected: bool
    together: float | None
    in_order: tuple[str, ...] = ()

    @property
    def is_met(self) -> bool:
        """Whether every network meets every requirement."""
        return all(outcome.is_met for outcome in self.outcomes)

    def __str__(self) -> str:
        """Sentences on what the confidence of several statements is together, and on inputs that
        were not drawn at random; empty if there is nothing to say.
        """
        if self.together is None:
            return ""
        return " ".join(filter(None, (self._together_words(), self._order_words())))

    def _order_words(self) -> str:
        if not self.in_order:
            return ""
        return (
            f"The inputs of {', '.join(self.in_order)} were taken in the order of their file, not "
            "drawn at random: a confidence holds if that order is as good as random."
        )

    def _together_words(self) -> str:
        if self.together is None or self.statements < 2:
            return ""
        count = f"{self.statements} statements have a confidence"
        if self.is_corrected:
            return (
                f"{count}, and share the error that it permits (Bonferroni, 1/{self.statements} "
                f"each): all that are met hold together with {100 * self.together:.4g} % "
                "confidence."
            )
        least = f"at least {100 * self.together:.4g} %" if self.together > 0 else "any"
        return (
            f"{count}, each its own (uncorrected): that all which are met hold together has "
            f"{least} confidence."
        )


def check_all(
    requirements: Sequence[RobustnessRequirement],
    distribution: Distribution,
    *,
    is_corrected: bool = True,
    look: int | None = None,
) -> Judgement:
    """Hold every network against every requirement; one that is named twice is one statement.

    Statements with a confidence share its miss, whatever they are about: networks on the same
    inputs, or several measures of one network, may go together. Who asks again about another
    network on the same inputs, until the requirements are met, numbers the judgements by `look`:
    then what is met at last holds with the confidence, however often it was asked.
    """
    if look is not None and look < 1:
        raise SpecificationError(f"look {look} must be 1 or more")
    distinct = list({required.text: required for required in requirements}.values())
    misses = [
        1 - required.level
        for required in distinct
        if required.level is not None
        for _ in distribution.networks
    ]
    sharing = max(1, len(misses)) if is_corrected else 1
    outcomes = tuple(
        outcome
        for required in distinct
        for outcome in replace(required, statements=sharing, look=look).check(distribution)
    )
    together = max(0.0, 1 - sum(misses) / sharing) if misses else None
    in_order = tuple(
        name for name, part in distribution.by_network().items() if draw_of_all(part).is_ordered
    )
    return Judgement(outcomes, len(misses), is_corrected, together, in_order)
