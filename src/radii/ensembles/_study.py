"""An ensemble, its points and all that is known of them: values, attacks, curves, certificates.

with EnsembleStudy.open(networks, data, norm="l1") as study:
    game = study.value(0.5)
    game.lower, game.upper      # fractions; equal where the value is known exactly
    study.attack(game)          # at most as many deterministic attacks as classifiers
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Self

from radii import verifiers
from radii.datasets import Dataset
from radii.ensembles._answerers import Answerer
from radii.ensembles._defence import (
    BEST_MIX,
    UNIFORM_MIX,
    Defence,
    allowed_as_listed,
    best_of_few,
    defence_of,
)
from radii.ensembles._ensemble import Ensemble, Fooling, Point
from radii.ensembles._facts import EnsembleResults, Play
from radii.ensembles._game import RandomizedAttack, couple
from radii.ensembles._proofs import JointResult
from radii.ensembles._records import Records
from radii.ensembles._value import EnsembleSolver, GameValue
from radii.errors import SpecificationError, UnsupportedQuery
from radii.networks import Network
from radii.problem import Arithmetic, Norm
from radii.verifiers import Verifier, VnnComp


def coarse_to_fine(count: int) -> Iterator[int]:
    """Both ends, then the middle of every gap: so that facts reach far."""
    waiting = [(0, count - 1)]
    yield from dict.fromkeys((count - 1, 0))
    while waiting:
        first, last = waiting.pop(0)
        if last - first > 1:
            middle = (first + last) // 2
            yield middle
            waiting += [(first, middle), (middle, last)]


def monotone(brackets: Sequence[GameValue]) -> list[GameValue]:
    """Brackets that also use their neighbours': what is attained at an eps is attained beyond."""
    result = list(brackets)
    for index in range(1, len(result)):
        if result[index].lower < result[index - 1].lower:
            result[index] = replace(result[index], attained=result[index - 1].attained)
    for index in range(len(result) - 2, -1, -1):
        if result[index].upper > result[index + 1].upper:
            result[index] = replace(result[index], limit=result[index + 1].limit)
    return result


def last_that_holds(count: int, holds: Callable[[int], bool]) -> int:
    """The last index at which a condition holds that, once false, stays false; -1 if nowhere."""
    low, high = -1, count
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


@dataclass(frozen=True, slots=True, eq=False)
class ImpossibleSet:
    """A set of classifiers that no perturbation of a point fools together, and who proved it."""

    place: int
    finding: JointResult


@dataclass(frozen=True, slots=True)
class CriticalEps:
    """The ensemble is proven robust at `lower` and broken at `upper`; None: not known."""

    alpha: float
    lower: float | None
    upper: float | None


def check_alpha(alpha: float) -> float:
    """A robustness bound: above 0 and up to 1."""
    if not 0 < alpha <= 1:
        raise SpecificationError(f"alpha {alpha:g} must be above 0 and at most 1")
    return alpha


def _check_verifier(verifier: Verifier, ensemble: Ensemble, norm: Norm) -> None:
    if isinstance(verifier, VnnComp):
        raise UnsupportedQuery(
            f"verifier '{verifier.name}' reads ONNX files, but a question about several networks "
            "is in none: choose native or milp"
        )
    for classifier in ensemble.classifiers:
        reason = verifier.unsupported(classifier.scores, norm)
        if reason is not None:
            raise UnsupportedQuery(reason)


class EnsembleStudy:
    """Facts about one ensemble at some points in one norm. Use as a context manager.

    Every value, attack and curve starts from all that is known by then.
    """

    def __init__(
        self, measuring: EnsembleSolver, resources: ExitStack, records: Records | None = None
    ) -> None:
        self.ensemble: Ensemble = measuring.ensemble
        self.points: Sequence[Point] = measuring.points
        self.norm: Norm = measuring.norm
        self.arithmetic: Arithmetic = measuring.arithmetic
        """What proofs speak of, unless one says otherwise of itself."""
        self._measuring = measuring
        self._resources = resources
        self._records = records
        self._place = None if records is None else records.directory
        self._plays = {} if records is None else {play.eps: play for play in records.plays()}

    @classmethod
    def open(
        cls,
        networks: Sequence[Network],
        data: Dataset | Sequence[Point],
        *,
        norm: Norm | str = Norm.LINF,
        verifier: Verifier | str = "native",
        arithmetic: Arithmetic | None = None,
        timeout: float = 60.0,
        jobs: int = 0,
        memory_bytes: int | None = None,
        out: Path | str | None = None,
        layout: str | None = None,
        seed: int = 0,
        observer: Callable[[GameValue], None] | None = None,
    ) -> Self:
        """`timeout` is wall seconds a question. With `out` facts are kept there, and used again.

        `jobs` 0 works in this process; in N workers the limits are hard. `observer` is told every
        bracket on the way. Proofs are in `arithmetic`, by default that of the verifier.
        """
        ensemble = Ensemble(networks)
        points = ensemble.points(data, layout=layout) if isinstance(data, Dataset) else tuple(data)
        if not points:
            raise SpecificationError("an ensemble needs at least one point, but none was given")
        ensemble.check_outputs(points)
        if isinstance(verifier, str):
            spoken = verifiers.arithmetic_of(verifier, arithmetic)
            chosen = verifiers.get(verifier, arithmetic=spoken)
        else:
            chosen, spoken = verifier, arithmetic or verifier.arithmetic
        distance = Norm.parse(norm)
        if not timeout > 0:
            raise SpecificationError(f"timeout {timeout:g} must be a number of seconds above 0")
        _check_verifier(chosen, ensemble, distance)
        with ExitStack() as stack:
            records = None
            if out is not None:
                records = Records.create_or_open(Path(out), ensemble, points, distance, spoken)
                stack.enter_context(records)
            answerer = Answerer(
                ensemble,
                points,
                distance,
                chosen,
                jobs=jobs,
                memory_bytes=memory_bytes,
                arithmetic=spoken,
            )
            stack.enter_context(answerer)
            measuring = EnsembleSolver(
                ensemble,
                points,
                distance,
                answerer,
                timeout=timeout,
                seed=seed,
                records=records,
                observer=observer,
                arithmetic=spoken,
            )
            if records is not None:
                measuring.facts = records.facts(points)
            return cls(measuring, stack.pop_all(), records)

    @property
    def disagreements(self) -> tuple[ImpossibleSet, ...]:
        """Claims of proofs that a replayed input contradicts."""
        return tuple(
            ImpossibleSet(place, finding)
            for place, facts in enumerate(self._measuring.facts)
            for finding in facts.disagreements
        )

    def value(
        self, eps: float, *, alpha: float | None = None, budget: float = math.inf
    ) -> GameValue:
        """The bracket of the value at `eps`; with `alpha`, until the two can be compared."""
        if not (math.isfinite(eps) and eps >= 0):
            raise SpecificationError(f"eps {eps:g} must be a finite number >= 0")
        if alpha is not None:
            check_alpha(alpha)
        game = self._measuring.value(eps, alpha=alpha, budget=budget)
        self._keep(game)
        return game

    def attack(self, game: GameValue, *, attacks: int | None = None) -> RandomizedAttack:
        """The best randomized attack known, its perturbed points replayed on every network.

        It has at most as many deterministic attacks as there are classifiers, or `attacks`.
        """
        attempts = couple(game.attained.attack)
        if attacks is not None and attacks < len(attempts):
            fooled, _ = self._measuring.families(game.eps)
            _, attempts = best_of_few(fooled, len(self.ensemble), attacks)
        perturbed = tuple(
            tuple(self._perturbed(place, mask, game.eps) for place, mask in enumerate(each.sets))
            for each in attempts
        )
        probabilities = [each.probability for each in attempts]
        return RandomizedAttack.measured(probabilities, perturbed, len(self.ensemble))

    def value_of_few(self, game: GameValue, attacks: int) -> tuple[Fraction, Fraction]:
        """The bracket of the value against mixes of at most `attacks` deterministic attacks.

        The lower side is attained by replayed inputs; the upper one is believed, as the integer
        program that finds it is solved by HiGHS.
        """
        fooled, possible = self._measuring.families(game.eps)
        count = len(self.ensemble)
        lower, _ = best_of_few(fooled, count, attacks)
        upper, _ = best_of_few([allowed_as_listed(each) for each in possible], count, attacks)
        return lower, min(upper, game.upper)

    def defences(self, game: GameValue) -> tuple[Defence, ...]:
        """What mixes of classifiers lose: the best one, all alike, and each network alone."""
        count = len(self.ensemble)
        mixes = [(BEST_MIX, game.limit.defence), (UNIFORM_MIX, (Fraction(1, count),) * count)]
        for place, name in enumerate(self.ensemble.names):
            alone = tuple(Fraction(int(c == place)) for c in range(count))
            mixes.append((f"{name} alone", alone))
        families = self._measuring.families(game.eps)
        return tuple(defence_of(name, weights, *families) for name, weights in mixes)

    def impossible(self, eps: float) -> tuple[ImpossibleSet, ...]:
        """The certificate of an upper value: the smallest sets that cannot be fooled together."""
        return tuple(
            ImpossibleSet(place, finding)
            for place, facts in enumerate(self._measuring.facts)
            for finding in facts.certificate(eps)
        )

    def fooled(self, eps: float) -> tuple[tuple[int, ...], ...]:
        """For each point the largest sets that a replayed input within `eps` fools."""
        return tuple(facts.witnessed(eps) for facts in self._measuring.facts)

    def undecided(self, eps: float) -> tuple[tuple[int, ...], ...]:
        """For each point the sets that were asked about at `eps` without an answer."""
        return tuple(facts.undecided(eps) for facts in self._measuring.facts)

    @property
    def known(self) -> EnsembleResults:
        """All that is known by now, as a report shows it."""
        return EnsembleResults(
            self.ensemble.names,
            tuple(self.points),
            self.norm,
            self.ensemble.domain.key(),
            tuple(self._measuring.facts),
            tuple(self._plays[eps] for eps in sorted(self._plays)),
            self._place,
            self.arithmetic,
        )

    def curve(self, values: Iterable[float], *, budget: float = math.inf) -> list[GameValue]:
        """The bracket at each of increasing eps values; `budget` is wall seconds an eps.

        The value grows with eps, so between two values that agree there is nothing to ask.
        """
        increasing = sorted(set(values))
        if not increasing:
            return []
        games: dict[int, GameValue] = {}
        for index in coarse_to_fine(len(increasing)):
            below = max((i for i in games if i < index), default=None)
            above = min((i for i in games if i > index), default=None)
            is_flat = (
                below is not None
                and above is not None
                and games[below].is_exact
                and games[above].is_exact
                and games[below].lower == games[above].lower
            )
            share = 0.0 if is_flat else budget
            games[index] = self.value(increasing[index], budget=share)
        for index, known in games.items():
            if not known.is_exact:  # what was learned at other values may settle it
                again = self.value(increasing[index], budget=0.0)
                seconds = known.seconds + again.seconds
                games[index] = replace(again, seconds=seconds, questions=known.questions)
        curve = monotone([games[index] for index in range(len(increasing))])
        for each in curve:
            self._keep(each)
        return curve

    def critical(
        self, values: Iterable[float], alpha: float, *, budget: float = math.inf
    ) -> CriticalEps:
        """Between which of increasing eps values the ensemble stops being alpha-robust.

        `budget` is wall seconds an eps. Values that cannot be decided widen the bracket.
        """
        check_alpha(alpha)
        increasing = sorted(set(values))
        answers: dict[int, bool | None] = {}

        def is_robust(index: int) -> bool | None:
            if index not in answers:
                game = self.value(increasing[index], alpha=alpha, budget=budget)
                answers[index] = game.is_robust(alpha)
            return answers[index]

        robust = last_that_holds(len(increasing), lambda index: is_robust(index) is True)
        safe = last_that_holds(len(increasing), lambda index: is_robust(index) is not False)
        return CriticalEps(
            alpha,
            increasing[robust] if robust >= 0 else None,
            increasing[safe + 1] if safe + 1 < len(increasing) else None,
        )

    def _keep(self, game: GameValue) -> None:
        play = Play(game.eps, couple(game.attained.attack), game.limit.defence)
        self._plays[game.eps] = play
        if self._records is not None:
            self._records.keep_play(play, game.lower, game.upper)

    def _perturbed(self, place: int, mask: int, eps: float) -> Fooling:
        known = self._measuring.facts[place].fooling_of(mask, eps)
        assert known is not None, "an attack uses only sets that were fooled"
        ball = self.ensemble.ball(self.points[place], self.norm, eps)
        again = self.ensemble.replay(self.points[place], ball, known.input)
        assert again is not None
        return again

    def close(self) -> None:
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
