"""Attackers that combine optimal attacks on single classifiers."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from benchmarks.literature.baselines import BaselineReply, BaselineResult, ReplayedAttack, play
from radii.balls import Norm
from radii.ensembles import Ensemble, Point, decide_jointly
from radii.ensembles._ensemble import Float64
from radii.verifiers import Limits, Milp, Verifier


def uniform_attacker(
    ensemble: Ensemble,
    points: Sequence[Point],
    *,
    norm: Norm,
    eps: float,
    seconds: float,
    verifier: Verifier | None = None,
) -> BaselineResult:
    """One attack for each classifier, which fools it wherever it can; all equally likely."""
    started = time.perf_counter()
    attacks, is_complete = _single_attacks(ensemble, points, norm, eps, seconds, verifier)
    shares = [1 / len(attacks)] * len(attacks)
    played = play(ensemble, points, norm, eps, shares, attacks)
    return _outcome(played, started, is_complete)


def best_deterministic_attacker(
    ensemble: Ensemble,
    points: Sequence[Point],
    *,
    norm: Norm,
    eps: float,
    seconds: float,
    verifier: Verifier | None = None,
) -> BaselineResult:
    """The one of these attacks that achieves most by itself."""
    started = time.perf_counter()
    attacks, is_complete = _single_attacks(ensemble, points, norm, eps, seconds, verifier)
    all_played = [play(ensemble, points, norm, eps, [1.0], [attack]) for attack in attacks]
    return _outcome(max(all_played, key=lambda each: each.value), started, is_complete)


def _outcome(played: ReplayedAttack, started: float, is_complete: bool) -> BaselineResult:
    reply = BaselineReply.ATTACK if is_complete else BaselineReply.TIMEOUT
    return BaselineResult(reply, time.perf_counter() - started, played)


def _single_attacks(
    ensemble: Ensemble,
    points: Sequence[Point],
    norm: Norm,
    eps: float,
    seconds: float,
    verifier: Verifier | None,
) -> tuple[list[list[Float64]], bool]:
    """For each classifier the perturbed points; False: some could not be decided in time."""
    limits = Limits(seconds)
    chosen = verifier or Milp()
    attacks, is_complete = [], True
    for classifier in range(len(ensemble)):
        attack = []
        for point in points:
            ball = ensemble.ball(point, norm, eps)
            found = decide_jointly(
                ensemble,
                point,
                ball,
                1 << classifier,
                chosen,
                limits,
                arithmetic=chosen.arithmetic,
            )
            is_complete &= not found.verdict.is_missing
            perturbed = point.input if found.fooling is None else found.fooling.input
            attack.append(np.asarray(perturbed, np.float64))
        attacks.append(attack)
    return attacks, is_complete
