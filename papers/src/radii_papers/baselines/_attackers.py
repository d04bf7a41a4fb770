"""The simple attackers, which combine optimal attacks on single classifiers."""

from __future__ import annotations

import time

import numpy as np

from radii.ensembles import RandomizedAttack, decide_jointly
from radii.errors import UnsupportedQuery
from radii.verifiers import Limits, Milp, Verifier
from radii_papers.baselines._base import (
    BaselineProblem,
    BaselineReply,
    BaselineResult,
    Float64,
    replay_attack,
)

UNIFORM, BEST_DETERMINISTIC = "ua", "bda"


def uniform_attacker(problem: BaselineProblem, verifier: Verifier | None = None) -> BaselineResult:
    """One attack for each classifier, which fools it wherever it can; all equally likely."""
    started = time.perf_counter()
    chosen = _checked(verifier or Milp(), problem)
    attacks, is_complete = _single_attacks(problem, chosen)
    found = replay_attack(problem, [1 / len(attacks)] * len(attacks), attacks)
    return _result(UNIFORM, problem, found, started, chosen, is_complete)


def best_deterministic_attacker(
    problem: BaselineProblem, verifier: Verifier | None = None
) -> BaselineResult:
    """The one of these attacks that achieves most by itself."""
    started = time.perf_counter()
    chosen = _checked(verifier or Milp(), problem)
    attacks, is_complete = _single_attacks(problem, chosen)
    all_replayed = [replay_attack(problem, [1.0], [attack]) for attack in attacks]
    best = max(all_replayed, key=lambda each: each.value)
    return _result(BEST_DETERMINISTIC, problem, best, started, chosen, is_complete)


def _checked(verifier: Verifier, problem: BaselineProblem) -> Verifier:
    for classifier in problem.ensemble.classifiers:
        reason = verifier.unsupported(classifier.scores, problem.norm)
        if reason is not None:
            raise UnsupportedQuery(reason)
    return verifier


def _result(
    method: str,
    problem: BaselineProblem,
    found: RandomizedAttack,
    started: float,
    verifier: Verifier,
    is_complete: bool,
) -> BaselineResult:
    """An attack, if every single attack was decided; what was found until then counts all the same.

    The attackers claim nothing about alpha, so what they attain is never short of a claim.
    """
    reply = BaselineReply.ATTACK if is_complete else BaselineReply.TIMEOUT
    solver = f"{verifier.name} ({verifier.version})"
    return BaselineResult(method, problem, reply, time.perf_counter() - started, solver, found)


def _single_attacks(
    problem: BaselineProblem, verifier: Verifier
) -> tuple[list[list[Float64]], bool]:
    """For each classifier the perturbed points; False: some could not be decided in time."""
    ensemble, limits = problem.ensemble, Limits(problem.seconds)
    attacks, is_complete = [], True
    for classifier in range(len(ensemble)):
        attack = []
        for point in problem.points:
            found = decide_jointly(
                ensemble,
                point,
                ensemble.ball(point, problem.norm, problem.eps),
                1 << classifier,
                verifier,
                limits,
                arithmetic=verifier.arithmetic,
            )
            is_complete &= not found.verdict.is_missing
            perturbed = point.input if found.fooling is None else found.fooling.input
            attack.append(np.asarray(perturbed, np.float64))
        attacks.append(attack)
    return attacks, is_complete
