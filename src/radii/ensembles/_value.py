"""The value of an ensemble at an eps: attack, then prove only what the game's solution leans on.

Two games bracket the value. In one the attacker may use only sets that a replayed input fools; in
the other every set that is not proven impossible. Where the second one's best attack uses a set
that nobody has fooled yet, that set is attacked, and then its smallest open part is asked about.
Each answer changes one of the games, until they agree.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from radii.ensembles._answerers import Answerer
from radii.ensembles._attack import JointTarget, attack_jointly
from radii.ensembles._ensemble import (
    Ensemble,
    Fooling,
    Point,
    full_set,
    is_within,
    subsets_by_size,
    weight_of,
)
from radii.ensembles._facts import Facts
from radii.ensembles._game import AllowedSets, ListedSets, Solution, solve
from radii.ensembles._proofs import JointQuestion, JointResult, prove_alone
from radii.ensembles._records import Records
from radii.problem import FLOAT, Arithmetic, Norm, Verdict

REPLAY = "replay"
"""Who decides a ball of radius 0: the point itself, on ONNX Runtime."""

QUESTIONS_A_WORKER = 4
"""Questions for each worker before the games are solved again."""

JOINT_ATTACK_SHARE = 0.5
"""Of the time that is left, for attacks at most."""


@dataclass(frozen=True, slots=True, eq=False)
class GameValue:
    """The value at one eps is between `attained.lower` and `limit.upper`.

    `attained` is the game over sets that were fooled, `limit` that over sets not proven impossible:
    the attack of the first and the defence of the second are what there is to show for the bracket.
    """

    eps: float
    attained: Solution
    limit: Solution
    seconds: float
    questions: int

    @property
    def lower(self) -> Fraction:
        return self.attained.lower

    @property
    def upper(self) -> Fraction:
        return self.limit.upper

    @property
    def is_exact(self) -> bool:
        return self.lower == self.upper

    def is_robust(self, alpha: float) -> bool | None:
        """Whether the value is below alpha; None if the bracket does not tell.

        Alpha is the decimal that it is written as: 0.4 is 2/5, whatever its float64.
        """
        limit = Fraction(str(alpha))
        if self.upper < limit:
            return True
        return False if self.lower >= limit else None


@dataclass(slots=True)
class EnsembleSolver:
    """Facts about an ensemble at some points in one norm, and how to learn more.

    `timeout` is wall seconds a question; a question that runs out of them is not asked again.
    `observer` is told every bracket on the way, the first one before anything is done. Bounds prove
    in `arithmetic`.
    """

    ensemble: Ensemble
    points: Sequence[Point]
    norm: Norm
    answerer: Answerer
    timeout: float = 60.0
    seed: int = 0
    records: Records | None = None
    facts: list[Facts] = field(default_factory=list)
    observer: Callable[[GameValue], None] | None = None
    arithmetic: Arithmetic = FLOAT
    _attacked: set[tuple[int, int, float]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.facts = self.facts or [Facts() for _ in self.points]

    def value(
        self, eps: float, *, alpha: float | None = None, budget: float = math.inf
    ) -> GameValue:
        """The bracket of the value; with `alpha`, only until it is clear on which side it lies.

        `budget` is wall seconds for all of it. More facts make a later call start further on.
        """
        return _Round(self, eps, alpha, budget).run()

    def families(self, eps: float) -> tuple[list[ListedSets], list[AllowedSets]]:
        """For each point what was fooled, and what is not proven impossible."""
        everyone = full_set(len(self.ensemble))
        return (
            [ListedSets(facts.witnessed(eps)) for facts in self.facts],
            [AllowedSets(everyone, facts.excluded(eps)) for facts in self.facts],
        )

    def learn_fooling(self, place: int, fooling: Fooling) -> None:
        facts = self.facts[place]
        known = facts.fooling_of(fooling.fooled, fooling.distance)
        if known is None:
            facts.foolings.append(fooling)
            if self.records is not None:
                self.records.keep_fooling(place, fooling)

    def learn_finding(self, place: int, finding: JointResult) -> None:
        self.facts[place].add(finding)
        if self.records is not None:
            self.records.keep_finding(place, finding)

    def attack(self, targets: Iterable[tuple[int, int]], eps: float, seconds: float) -> bool:
        """Attack sets at points, each once an eps; True if any was fooled that was not before."""
        fresh = [
            (place, classifiers)
            for place, classifiers in dict.fromkeys(targets)
            if (place, classifiers, eps) not in self._attacked
            and not self.facts[place].is_witnessed(classifiers, eps)
        ]
        if not fresh or seconds <= 0:
            return False
        self._attacked.update((place, classifiers, eps) for place, classifiers in fresh)
        found = attack_jointly(
            self.ensemble,
            self.points,
            [JointTarget(place, mask, self._nearest(place, mask, eps)) for place, mask in fresh],
            norm=self.norm,
            eps=eps,
            seed=self.seed,
            seconds=seconds,
        )
        is_new = False
        for place, foolings in enumerate(found):
            for fooling in foolings:
                is_new |= not self.facts[place].is_witnessed(fooling.fooled, eps)
                self.learn_fooling(place, fooling)
        return is_new

    def _nearest(self, place: int, classifiers: int, eps: float) -> Fooling | None:
        """The known input that fools most of a set."""
        known = (each for each in self.facts[place].foolings if each.distance <= eps)
        return max(known, key=lambda each: (each.fooled & classifiers).bit_count(), default=None)


@dataclass(slots=True)
class _Round:
    """One value on its way."""

    task: EnsembleSolver
    eps: float
    alpha: float | None
    budget: float
    started: float = field(default_factory=time.monotonic)
    asked: int = 0

    @property
    def left(self) -> float:
        return self.budget - (time.monotonic() - self.started)

    def run(self) -> GameValue:
        self._tell_observer()
        self._look_at_inputs()
        if self.eps > 0:
            self._look_at_bounds()
            self._tell_observer()
            self._attack_each()
        while True:
            found = self._tell_observer() or self._solved()
            if found.is_exact or self.left <= 0:
                return found
            if self.alpha is not None and found.is_robust(self.alpha) is not None:
                return found
            wanted = self._wanted(found)
            if not wanted:
                return found
            if self.task.attack(wanted, self.eps, JOINT_ATTACK_SHARE * self.left):
                continue
            questions = [self._question(place, classifiers) for place, classifiers in wanted]
            most = QUESTIONS_A_WORKER * self.task.answerer.jobs
            for question, finding in self.task.answerer.ask(questions[:most]):
                self.asked += 1
                self.task.learn_finding(question.place, finding)

    def _tell_observer(self) -> GameValue | None:
        """What is known now, if anybody wants to hear of it."""
        if self.task.observer is None:
            return None
        found = self._solved()
        self.task.observer(found)
        return found

    def _solved(self) -> GameValue:
        count = len(self.task.ensemble)
        fooled, possible = self.task.families(self.eps)
        return GameValue(
            self.eps,
            solve(fooled, count),
            solve(possible, count),
            time.monotonic() - self.started,
            self.asked,
        )

    def _look_at_inputs(self) -> None:
        """Whom each point fools as it is; at eps 0 that is all there is to know."""
        task = self.task
        for place, point in enumerate(task.points):
            facts = task.facts[place]
            if not any(fooling.distance == 0 for fooling in facts.foolings):
                ball = task.ensemble.ball(point, task.norm, 0.0)
                found = task.ensemble.replay(point, ball, point.input)
                if found is not None:
                    task.learn_fooling(place, found)
            if self.eps == 0:
                version = task.ensemble.networks[0].replayed_on
                for classifier in range(len(task.ensemble)):
                    if not facts.is_witnessed(1 << classifier, 0.0):
                        task.learn_finding(
                            place,
                            JointResult(1 << classifier, 0.0, Verdict.ROBUST, REPLAY, version, 0.0),
                        )

    def _look_at_bounds(self) -> None:
        """Classifiers that cheap bounds prove right in the whole ball."""
        task = self.task
        for place, point in enumerate(task.points):
            if self.left <= 0:
                return
            facts = task.facts[place]
            known = facts.excluded(self.eps)
            ball = task.ensemble.ball(point, task.norm, self.eps)
            for classifier in range(len(task.ensemble)):
                alone = 1 << classifier
                if alone in known or facts.is_witnessed(alone, self.eps):
                    continue
                finding = prove_alone(
                    task.ensemble, point, ball, classifier, arithmetic=task.arithmetic
                )
                if finding is not None:
                    task.learn_finding(place, finding)

    def _attack_each(self) -> None:
        """Every classifier alone, and all at once that may be fooled."""
        task = self.task
        _, possible = task.families(self.eps)
        targets = []
        for place, family in enumerate(possible):
            single = [c for c in range(len(task.ensemble)) if family.allows(1 << c)]
            targets += [(place, 1 << classifier) for classifier in single]
            everyone = sum(1 << classifier for classifier in single)
            if everyone and family.allows(everyone):
                targets.append((place, everyone))
        task.attack(targets, self.eps, JOINT_ATTACK_SHARE * self.left)

    def _wanted(self, found: GameValue) -> list[tuple[int, int]]:
        """The open sets that matter most: those the optimist's attack uses, by their share.

        If all of these were given up, sets that would raise what is attained.
        """
        shares = {
            (place, mask): share
            for place, mix in enumerate(found.limit.attack)
            for mask, share in mix.items()
            if self._is_open(place, mask)
        }
        if not shares:
            weights = found.attained.defence
            fooled, possible = self.task.families(self.eps)
            for place, family in enumerate(possible):
                best = family.heaviest(weights)
                known = fooled[place].heaviest(weights)
                gain = weight_of(best, weights) - weight_of(known, weights)
                if gain > 0 and self._is_open(place, best):
                    shares[place, best] = Fraction(gain)
        return sorted(shares, key=lambda wanted: (-shares[wanted], wanted))

    def _is_open(self, place: int, classifiers: int) -> bool:
        facts = self.task.facts[place]
        return not facts.is_witnessed(classifiers, self.eps) and not facts.is_given_up(
            classifiers, self.eps, self.task.timeout
        )

    def _question(self, place: int, classifiers: int) -> JointQuestion:
        """The smallest open part of a set; once a part was given up, the set itself, which is
        easier to prove."""
        facts, seconds = self.task.facts[place], self.task.timeout
        witnessed = facts.witnessed(self.eps)
        chosen = classifiers
        for part in subsets_by_size(classifiers):
            if any(is_within(part, larger) for larger in witnessed):
                continue
            if not facts.is_given_up(part, self.eps, seconds):
                chosen = part
            break
        return JointQuestion(place, chosen, self.eps, max(0.1, min(seconds, self.left)))
