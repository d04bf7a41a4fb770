"""Random tiny ensembles: the exact value, brute force over subsets, and the paper's methods."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from benchmarks.literature.attackers import best_deterministic_attacker, uniform_attacker
from benchmarks.literature.baselines import BaselineReply, BaselineResult, ReplayedAttack
from benchmarks.literature.milp import solve_milp
from benchmarks.literature.smt import solve_smt
from planar_classifiers import half_plane, point

from radii.balls import Norm
from radii.ensembles import (
    AllowedSets,
    Ensemble,
    EnsembleStudy,
    ListedSets,
    Point,
    decide_jointly,
    solve,
)
from radii.ensembles._ensemble import full_set, maximal, minimal
from radii.ensembles._game import value_of
from radii.testing import NetworkFamily, random_network
from radii.verdicts import Verdict
from radii.verifiers import Milp

QUICK, ALL = 8, 200
SEEDS = [pytest.param(seed, marks=() if seed < QUICK else pytest.mark.slow) for seed in range(ALL)]
FAMILIES = (NetworkFamily.DENSE, NetworkFamily.LEAKY, NetworkFamily.RESIDUAL, NetworkFamily.POOLING)


def random_ensemble(seed: int) -> tuple[Ensemble, list[Point], Norm, float]:
    """Two or three classifiers of two or three classes, two points, a norm, an eps."""
    rng = np.random.default_rng(seed)
    count, classes = int(rng.integers(2, 4)), int(rng.integers(2, 4))
    family = FAMILIES[seed % len(FAMILIES)]
    networks = [
        random_network(family, 100 * seed + c, units=6, inputs=3, outputs=classes)
        for c in range(count)
    ]
    points = []
    for index in range(2):
        x = rng.uniform(0, 1, networks[0].input_shape).astype(np.float32)
        votes = [int(network.replay(x[None])[0].argmax()) for network in networks]
        points.append(Point(index, max(votes, key=votes.count), x))
    norm = (Norm.L1, Norm.LINF)[seed % 2]
    return Ensemble(networks), points, norm, float(rng.uniform(0.02, 0.4))


def brute_force(
    ensemble: Ensemble, points: list[Point], norm: Norm, eps: float
) -> tuple[Fraction, Fraction]:
    """Every subset at every point by MILP; a bracket, since a tie may be undecidable."""
    possible, fooled = [], []
    for each in points:
        ball = ensemble.ball(each, norm, eps)
        verdicts = {
            mask: decide_jointly(ensemble, each, ball, mask, Milp()).verdict
            for mask in range(1, 2 ** len(ensemble))
        }
        fooled.append(
            ListedSets(maximal(m for m, v in verdicts.items() if v is Verdict.NOT_ROBUST))
        )
        never = minimal(m for m, v in verdicts.items() if v is Verdict.ROBUST)
        possible.append(AllowedSets(full_set(len(ensemble)), never))
    count = len(ensemble)
    return solve(fooled, count).lower, solve(possible, count).upper


def replayed(study: EnsembleStudy, eps: float) -> Fraction:
    """The value of the best attack, from what ONNX Runtime says of each perturbed point alone."""
    attack = study.attack(study.value(eps))
    assert len(attack.probabilities) <= len(study.ensemble)
    assert sum(attack.probabilities) == 1
    mixes: list[dict[int, Fraction]] = [{} for _ in study.points]
    for probability, row in zip(attack.probabilities, attack.perturbed, strict=True):
        for place, (each, found) in enumerate(zip(study.points, row, strict=True)):
            assert study.ensemble.ball(each, study.norm, eps).contains(found.input)
            fooled = 0
            for place_of, network in enumerate(study.ensemble.networks):
                outputs = network.replay(found.input.reshape(1, *network.input_shape))[0]
                is_right = all(outputs[each.label] > np.delete(outputs, each.label))
                fooled |= (not is_right) << place_of
            mixes[place][fooled] = mixes[place].get(fooled, Fraction(0)) + probability
    return value_of(mixes, len(study.ensemble))


@pytest.mark.parametrize("seed", SEEDS)
def test_exact_value(seed: int) -> None:
    ensemble, points, norm, eps = random_ensemble(seed)
    low, high = brute_force(ensemble, points, norm, eps)
    with EnsembleStudy.open(ensemble.networks, points, norm=norm, verifier="milp") as study:
        found = study.value(eps)
        assert found.lower <= high
        assert found.upper >= low
        if low == high:  # no subset was within tolerance of a tie
            assert found.lower == found.upper == low
        assert replayed(study, eps) >= found.lower
    arguments: dict[str, Any] = {"norm": norm, "eps": eps, "seconds": 30.0}
    for outcome in (
        uniform_attacker(ensemble, points, **arguments),
        best_deterministic_attacker(ensemble, points, **arguments),
    ):
        assert outcome.played is not None
        assert outcome.played.value <= found.upper


@pytest.mark.parametrize(
    "seed", [pytest.param(s, marks=() if s < 4 else pytest.mark.slow) for s in range(40)]
)
def test_the_papers_program_agrees(seed: int) -> None:
    """With as many attacks as classifiers it finds an attack just below the value, none above."""
    ensemble, points, norm, eps = random_ensemble(seed)
    with EnsembleStudy.open(ensemble.networks, points, norm=norm, verifier="milp") as study:
        found = study.value(eps)
    arguments: dict[str, Any] = {
        "norm": norm,
        "eps": eps,
        "attacks": len(ensemble),
        "seconds": 60.0,
    }
    below, above = float(found.lower) - 1e-3, float(found.upper) + 1e-3
    if below > 0:
        outcome = solve_milp(ensemble, points, alpha=below, **arguments)
        assert outcome.reply is not BaselineReply.ROBUST
        best = solve_milp(ensemble, points, alpha=below, maximise=True, **arguments)
        for played in (outcome.played, best.played):
            assert played is None or played.value <= found.upper
    if above <= 1:
        outcome = solve_milp(ensemble, points, alpha=above, **arguments)
        assert outcome.reply is not BaselineReply.ATTACK


def test_summing_over_classifiers_misses_the_optimum() -> None:
    """Two are fooled on the right, one on the left: the best mix is even, but a sum prefers two."""
    networks = [half_plane([1.0, 0.0], 1.0), half_plane([1.0, 0.0], 1.0)]
    networks.append(half_plane([-1.0, 0.0], 1.0))
    ensemble, points = Ensemble(networks), [point([0, 0])]
    with EnsembleStudy.open(networks, points, norm="l1") as study:
        assert study.value(2.0).lower == Fraction(1, 2)
    arguments: dict[str, Any] = {"norm": Norm.L1, "eps": 2.0, "attacks": 2, "seconds": 30.0}
    found = solve_milp(ensemble, points, alpha=0.1, maximise=True, **arguments)
    assert found.is_optimal
    assert found.played is not None
    assert float(found.played.value) == pytest.approx(0.1, abs=1e-4)
    assert found.is_replayed


def test_an_attack_that_does_not_replay_is_told_apart() -> None:
    """A solver found an attack for 0.9; on the networks themselves it achieves 1/2."""
    for value, is_replayed in (
        (Fraction(1, 2), False),
        (Fraction(9, 10) - Fraction(1, 10**6), True),
    ):
        outcome = BaselineResult(
            BaselineReply.ATTACK, 1.0, ReplayedAttack((Fraction(1),), ((),), value), alpha=0.9
        )
        assert outcome.is_replayed is is_replayed
    assert not BaselineResult(BaselineReply.TIMEOUT, 1.0, alpha=0.9).is_replayed


def test_smt() -> None:
    """The paper's first figure: 1/2 is possible, more is not, and one attack alone gives 0."""
    pytest.importorskip("z3", reason="the SMT encoding needs z3-solver")
    networks = [half_plane([-1.0, 0.0], 1.0), half_plane([1.0, 0.0], 1.0)]
    ensemble, points = Ensemble(networks), [point([0, 0])]
    arguments: dict[str, Any] = {"norm": Norm.L1, "eps": 2.0, "seconds": 60.0}
    found = solve_smt(ensemble, points, alpha=0.5, attacks=2, **arguments)
    assert found.reply is BaselineReply.ATTACK
    more = solve_smt(ensemble, points, alpha=0.6, attacks=2, **arguments)
    assert more.reply is BaselineReply.ROBUST
    alone = solve_smt(ensemble, points, alpha=0.1, attacks=1, **arguments)
    assert alone.reply is BaselineReply.ROBUST
