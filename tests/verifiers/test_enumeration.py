"""Enumeration of linear regions, against closed forms, the MILP and brute force in the plane."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from radii.errors import UnsupportedQuery
from radii.problem import REAL, Norm, Query, Verdict
from radii.testing import (
    LinearClassifier,
    NetworkFamily,
    Sketch,
    instance_at,
    random_instance,
    random_network,
)
from radii.verifiers import Enumeration, Limits, Milp
from radii.verifiers._linear_regions import Polyhedron, nearest

ORDER = {Norm.LINF: np.inf, Norm.L2: 2, Norm.L1: 1}
PLANE = [
    NetworkFamily.DENSE,
    NetworkFamily.RESIDUAL,
    NetworkFamily.LEAKY,
    NetworkFamily.PRELU,
    NetworkFamily.CLIPPED,
]


@pytest.mark.parametrize("norm", list(Norm))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_linear_classifiers_have_their_closed_form(norm: Norm, dtype: type) -> None:
    for seed in range(6):
        classifier = LinearClassifier.random(seed, dtype=dtype)
        point = np.random.default_rng(seed).normal(size=5)
        instance = instance_at(classifier.network, point, norm=norm)
        radius = classifier.radius(instance.input, instance.label, norm)
        answer = Enumeration().radius(classifier.network, instance, Limits(30))
        assert answer.optimum == pytest.approx(radius, abs=1e-6)
        assert answer.lower <= radius * (1 + 1e-12)
        assert answer.lower < answer.upper < answer.lower + 2e-5


@pytest.mark.parametrize("family", list(NetworkFamily))
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_it_agrees_with_the_milp(seed: int, family: NetworkFamily) -> None:
    network = random_network(family, seed, units=10)
    for norm in (Norm.LINF, Norm.L1):
        instance = random_instance(network, seed, norm=norm)
        one = Enumeration(max_units=40, arithmetic=REAL).radius(network, instance, Limits(60))
        other = Milp(arithmetic=REAL).radius(network, instance, Limits(60))
        in_floats = Enumeration(max_units=40).radius(network, instance, Limits(60))
        assert in_floats.lower <= min(one.lower, other.upper) * (1 + 1e-9)
        assert in_floats.lower >= 0.98 * one.lower
        assert one.stopped is other.stopped is None
        assert one.lower <= other.upper and other.lower <= one.upper
        if one.optimum is None or other.optimum is None:
            assert one.optimum is other.optimum is None
        else:
            assert one.optimum == pytest.approx(other.optimum, abs=1e-7)


@pytest.mark.parametrize("family", PLANE)
def test_brute_force_in_the_plane(family: NetworkFamily) -> None:
    """A fine mesh over the square finds violations no nearer than proven, and nearly as near."""
    side = 201
    mesh = np.stack(np.meshgrid(*[np.linspace(0, 1, side)] * 2), axis=-1).reshape(-1, 2)
    for seed in range(2):
        network = random_network(family, seed, units=12, inputs=2)
        with torch.no_grad():
            outputs = network(torch.from_numpy(mesh)).numpy()
        for norm in Norm:
            instance = random_instance(network, seed, norm=norm)
            broken = mesh[instance.requirement.margin(outputs, 0.0) <= 0]
            lengths = np.linalg.norm(broken - instance.input, ORDER[norm], axis=1)
            nearest_on_mesh = lengths.min(initial=math.inf)
            verifiers = [Enumeration()] if norm is Norm.L2 else [Enumeration(), Milp()]
            for verifier in verifiers:
                answer = verifier.radius(network, instance, Limits(60))
                assert answer.stopped is None
                assert answer.lower <= nearest_on_mesh
                if nearest_on_mesh < math.inf:
                    assert answer.upper <= nearest_on_mesh + 1e-6
                if answer.upper < math.inf:
                    # Violations of a sizeable part of the plane show on a mesh this fine.
                    assert nearest_on_mesh == math.inf or nearest_on_mesh < answer.upper + 0.1


@pytest.mark.parametrize(
    "family", [NetworkFamily.DENSE, NetworkFamily.LEAKY, NetworkFamily.CLIPPED]
)
def test_queries_on_both_sides_of_an_l2_radius(family: NetworkFamily) -> None:
    network = random_network(family, 4, units=12)
    instance = random_instance(network, 4, norm=Norm.L2)
    verifier = Enumeration(max_units=40)
    answer = verifier.radius(network, instance, Limits(60))
    assert answer.witness is not None
    below = verifier.verify(network, Query(instance, 0.995 * answer.lower), Limits(60))
    above = verifier.verify(network, Query(instance, 1.005 * answer.upper), Limits(60))
    assert (below.verdict, above.verdict) == (Verdict.ROBUST, Verdict.NOT_ROBUST)


def test_large_networks_are_refused_with_the_numbers() -> None:
    network = random_network(NetworkFamily.DENSE, 1, units=40)
    reason = Enumeration(max_units=3).unsupported(network, Norm.L2) or ""
    assert "up to 3" in reason
    with pytest.raises(UnsupportedQuery, match="up to 3"):
        Enumeration(max_units=3).radius(network, random_instance(network, 0))
    sketch = Sketch([1, 2])
    smooth = sketch.network(sketch.apply("Tanh", "x"))
    assert "piecewise linear" in (Enumeration().unsupported(smooth, Norm.L2) or "")


@pytest.mark.parametrize("norm", list(Norm))
def test_distances_to_polyhedra(norm: Norm) -> None:
    """Against the definition: no sampled point is nearer than the bound; the point is as near."""
    rng = np.random.default_rng(3)
    for _ in range(30):
        shape = Polyhedron(rng.normal(size=(4, 3)), rng.normal(size=4))
        centre = rng.normal(size=3)
        where = nearest(shape, centre, norm, Limits())
        samples = centre + rng.normal(size=(4000, 3)) * rng.uniform(0.1, 3, (4000, 1))
        inside = samples[(samples @ shape.matrix.T <= shape.bound).all(axis=1)]
        assert all(norm.length(point - centre) >= where.bound for point in inside)
        if where.point is not None:
            assert shape.contains(where.point, 1e-8)
            assert norm.length(where.point - centre) == pytest.approx(where.bound, abs=1e-7)


@pytest.mark.parametrize("norm", list(Norm))
def test_an_empty_polyhedron_is_infinitely_far(norm: Norm) -> None:
    gap = Polyhedron(np.array([[1.0, 1.0], [-1.0, -1.0]]), np.array([0.0, -1e-3]))
    where = nearest(gap, np.array([0.3, 0.4]), norm, Limits())
    assert where.bound > 1e3
