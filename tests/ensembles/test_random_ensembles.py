"""Random tiny ensembles: the exact value against brute force over subsets."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

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
from radii.problem import Norm, Verdict
from radii.testing import NetworkFamily, random_network
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


@pytest.mark.sampled(4)
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
