"""The sets that refinement asks about hold every violation, and slopes bound every change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from radii.problem import REAL, Features, Halfspaces, LipschitzRobustness, Norm, Query, Verdict
from radii.testing import NetworkFamily, Sketch, instance_at, random_instance, random_network
from radii.verifiers import BranchAndBound, Limits
from radii.verifiers._jacobian import steepness
from radii.verifiers._probabilities import (
    Cell,
    Tangents,
    differences,
    first_cell,
    halfspaces_of_rivals,
    log_sum_exp,
)

POINTS = npst.arrays(np.float64, (20, 4), elements=st.floats(-30, 30))
TOPS = st.floats(-5, 5)


def holds(shape: Halfspaces | None, outputs: np.ndarray) -> np.ndarray:
    return np.zeros(len(outputs), np.bool_) if shape is None else shape.depth(outputs) <= 1e-9


@settings(deadline=None)
@given(POINTS, st.integers(0, 3), TOPS, st.lists(st.integers(0, 19), max_size=6))
def test_cells_cover_every_violation(
    outputs: np.ndarray, index: int, top: float, cuts: list[int]
) -> None:
    rows = differences(index, 4)
    points = outputs @ rows.T
    cell = first_cell(points.min(axis=0), points.max(axis=0), top)
    cells: list[Cell] = [] if cell is None else [cell]
    for cut in cuts:
        if cells:
            cell = cells.pop(0)
            cells.extend(cell.divided(*cell.cut(points[cut])))
    covered = np.zeros(len(outputs), np.bool_)
    for rival in halfspaces_of_rivals(rows, top, points.max(axis=0)):
        covered |= holds(rival, outputs)
    for each in cells:
        covered |= holds(each.polyhedron(rows), outputs)
    broken = np.array([log_sum_exp(point) for point in points]) >= top
    assert not (broken & ~covered).any()


@given(POINTS, st.integers(0, 3), TOPS, st.lists(st.integers(0, 19), max_size=6))
def test_tangents_cover_every_violation(
    outputs: np.ndarray, index: int, top: float, cuts: list[int]
) -> None:
    rows = differences(index, 4)
    points = outputs @ rows.T
    tangents = Tangents(rows, top, points.min(axis=0))
    for cut in cuts:
        tangents.add(points[cut])
    broken = np.array([log_sum_exp(point) for point in points]) <= top
    assert not (broken & ~holds(tangents.polyhedron, outputs)).any()


@pytest.mark.parametrize("family", list(NetworkFamily))
@pytest.mark.parametrize("norm", list(Norm))
def test_rates_bound_every_change(family: NetworkFamily, norm: Norm) -> None:
    rng = np.random.default_rng(3)
    for seed in range(3):
        network = random_network(family, seed, units=24)
        instance = random_instance(network, seed, norm=norm)
        for eps in (0.05, 0.4):
            ball = instance.ball(eps)
            points = np.concatenate([ball.center[None], ball.sample(rng, 400)])
            with torch.no_grad():
                outputs = network(torch.from_numpy(points)).numpy()
            changes = np.abs(outputs[1:] - outputs[0]).max(axis=1)
            distances = np.array([ball.distance(point) for point in points[1:]])
            rate = steepness(network, ball, REAL).rate
            assert (changes <= rate * distances + 1e-12).all()


def test_rates_of_an_affine_piece_are_exact() -> None:
    network = random_network(
        NetworkFamily.DENSE, 0, units=12, dtype=np.float64, domain=(-50.0, 50.0)
    )
    instance = random_instance(network, 0)
    x = torch.from_numpy(np.asarray(instance.input, np.float64))[None].requires_grad_()
    (slopes,) = torch.autograd.functional.jacobian(lambda v: network(v)[0], (x,))
    exact = float(slopes.flatten(1).abs().sum(1).max())
    rate = steepness(network, instance.ball(1e-9), REAL).rate
    assert rate == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(
    ("constant", "verdict"), [(121.0, Verdict.ROBUST), (119.0, Verdict.NOT_ROBUST)]
)
def test_rates_count_in_the_scales_of_features(constant: float, verdict: Verdict) -> None:
    """A distance of 1 moves the features by 10 and by 2, and the output by 10 * 10 + 10 * 2."""
    sketch = Sketch([1, 3])
    value = sketch.apply("Gemm", "x", sketch.constant(np.array([[10.0], [10.0], [10.0]])))
    network = sketch.network(value, domain=(-100.0, 100.0))
    plain = instance_at(network, [1.0, 2.0, 3.0], property=LipschitzRobustness(constant))
    features = Features.of(["far", "near", "staying"], [10.0, 2.0, 0.0])
    instance = replace(plain, features=features)
    rate = steepness(network, instance.ball(0.05), REAL).rate
    assert rate == pytest.approx(120.0)
    result = BranchAndBound().verify(network, Query(instance, 0.05), Limits(seconds=5))
    assert result.verdict is verdict
