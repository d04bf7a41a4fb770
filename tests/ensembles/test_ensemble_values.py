"""Values of ensembles: closed forms, a grid of the plane, brackets, curves, attacks, bad input."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from planar_classifiers import half_plane, point

from radii.datasets import from_arrays
from radii.ensembles import EnsembleStudy, GameValue, ListedSets, solve
from radii.ensembles._ensemble import maximal
from radii.errors import InputError
from radii.networks import Network
from radii.problem import Norm, Specification
from radii.testing import NetworkFamily, Sketch, random_network
from radii.verifiers import Answer, Enumeration, Limits

LEFT = half_plane([-1.0, 0.0], 1.0)  # fooled where x <= -1
RIGHT = half_plane([1.0, 0.0], 1.0)  # fooled where x >= 1


@pytest.mark.parametrize("norm", list(Norm))
@pytest.mark.parametrize("verifier", ["native", "milp", "enumeration"])
def test_the_papers_first_figure(norm: Norm, verifier: str) -> None:
    """Left fools one, right the other, nothing both: within 2 the attacker gets 1/2."""
    if verifier == "milp" and norm is Norm.L2:
        pytest.skip("milp decides no balls in L2")
    with EnsembleStudy.open([LEFT, RIGHT], [point([0, 0])], norm=norm, verifier=verifier) as study:
        found = study.value(2.0)
        assert found.lower == found.upper == Fraction(1, 2)
        attack = study.attack(found)
        assert attack.value == Fraction(1, 2)
        assert sorted(attack.probabilities) == [Fraction(1, 2), Fraction(1, 2)]
        assert found.limit.defence == (Fraction(1, 2), Fraction(1, 2))
        assert study.value(0.9).upper == 0
        (first,) = study.impossible(2.0)
        assert first.finding.classifiers == 0b11


def spokes(count: int) -> list[Network]:
    """Half-planes around the origin, `count` directions, each one away by 1."""
    angles = 2 * np.pi * np.arange(count) / count
    return [half_plane([math.cos(angle), math.sin(angle)], 1.0) for angle in angles]


def on_a_grid(networks: list[Network], centre: list[float], eps: float, norm: Norm) -> Fraction:
    """Brute force: whom each of many inputs of the ball fools."""
    sides = np.linspace(-eps, eps, 301)
    steps = np.stack(np.meshgrid(sides, sides), -1).reshape(-1, 2)
    order = {Norm.LINF: np.inf, Norm.L2: 2, Norm.L1: 1}[norm]
    steps = steps[np.linalg.norm(steps, order, axis=1) <= eps]
    inputs = (np.array(centre) + steps).astype(np.float32)
    fooled = np.zeros(len(inputs), int)
    for place, network in enumerate(networks):
        outputs = network.replay(inputs)
        fooled |= (outputs[:, 0] <= outputs[:, 1]).astype(int) << place
    family = ListedSets(maximal(np.unique(fooled).tolist()))
    return solve([family], len(networks)).lower


IN_THE_PLANE = [(3, 1.33, norm) for norm in Norm]
MORE_IN_THE_PLANE = [(count, eps, norm) for count, eps in ((4, 1.2), (5, 1.6)) for norm in Norm]


@pytest.mark.parametrize(
    ("count", "eps", "norm"),
    IN_THE_PLANE + [pytest.param(*each, marks=pytest.mark.slow) for each in MORE_IN_THE_PLANE],
)
def test_linear_classifiers_in_the_plane(count: int, eps: float, norm: Norm) -> None:
    networks = spokes(count)
    expected = on_a_grid(networks, [0.1, 0.05], eps, norm)
    with EnsembleStudy.open(networks, [point([0.1, 0.05])], norm=norm) as study:
        found = study.value(eps)
        assert found.lower == found.upper == expected
        assert study.attack(found).value == expected


@pytest.mark.parametrize("count", range(2, 7))
def test_matching_pennies_of_networks(count: int) -> None:
    """In L1 within 1, one coordinate a classifier: exactly one at a time can be fooled."""
    networks = [half_plane(np.eye(count)[c].tolist(), 0.9) for c in range(count)]
    with EnsembleStudy.open(networks, [point(np.zeros(count))], norm="l1") as study:
        found = study.value(1.0)
        assert found.lower == found.upper == Fraction(1, count)
        attack = study.attack(found)
        assert len(attack.probabilities) == count
        assert attack.value == Fraction(1, count)


@pytest.mark.parametrize("head", ["Relu", "Softmax", "LogSoftmax"])
def test_a_final_step_changes_nothing(head: str) -> None:
    networks = [half_plane([-1.0, 0.0], 1.0, head=head), RIGHT]
    with EnsembleStudy.open(networks, [point([0, 0])], verifier="milp") as study:
        assert study.value(2.0).lower == study.value(2.0).upper == Fraction(1, 2)
        assert study.value(0.9).upper == 0


def test_misclassified_points_count_as_fooled() -> None:
    """Wrong for both: fooled at eps 0. Wrong for one of two: that one is."""
    with EnsembleStudy.open([LEFT, RIGHT], [point([0, 0], label=1)]) as study:
        assert study.value(0.0).lower == 1
        assert study.value(0.5).lower == 1
    with EnsembleStudy.open([LEFT, RIGHT], [point([2, 0]), point([0, 0])]) as study:
        found = study.value(0.0)
        assert found.lower == found.upper == 0
        assert study.fooled(0.0) == ((0b10,), (0,))


def test_curve_and_critical_eps() -> None:
    """Two points at 0 and 0.5 on the line: the value steps up where balls reach the lines."""
    points = [point([0, 0]), point([0.5, 0], index=1)]
    values = [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75]
    with EnsembleStudy.open([LEFT, RIGHT], points) as study:
        curve = study.curve(values)
        assert all(found.is_exact for found in curve)
        # The right classifier falls at 0.5 on the second point, the left one at 1 on the first.
        expected = [0, 0, 0, 0, Fraction(1, 2), Fraction(1, 2), Fraction(1, 2), Fraction(1, 2)]
        assert [found.lower for found in curve] == expected
        critical = study.critical(values, 0.5)
        assert (critical.lower, critical.upper) == (0.75, 1.0)
        assert study.critical(values, 0.6) == type(critical)(0.6, 1.75, None)


def test_what_is_undecided_leaves_a_bracket() -> None:
    """Without time nothing is proven: the value is somewhere between attack and everything."""
    networks = spokes(3)
    with EnsembleStudy.open(networks, [point([0, 0])]) as study:
        found = study.value(1.33, budget=1e-9)
        assert found.lower == 0
        assert found.upper == 1
        assert found.is_robust(0.5) is None
        later = study.value(1.33)
        assert found.lower <= later.lower <= later.upper <= found.upper
        assert later.is_exact


def test_alpha_ends_the_work_early() -> None:
    networks = spokes(5)
    with EnsembleStudy.open(networks, [point([0, 0])]) as study:
        early = study.value(1.6, alpha=0.2)
        assert early.is_robust(0.2) is False
        assert early.questions == 0


def test_workers_and_resuming(tmp_path: Path) -> None:
    networks = [random_network(NetworkFamily.DENSE, seed, units=12, inputs=4) for seed in range(3)]
    rng = np.random.default_rng(0)
    inputs = rng.uniform(0.2, 0.8, (3, 4)).astype(np.float32)
    labels = networks[0].replay(inputs).argmax(axis=1)
    data = from_arrays(inputs, labels)
    with EnsembleStudy.open(
        networks, data, norm="l1", verifier="milp", out=tmp_path, jobs=2
    ) as study:
        first = study.value(0.3)
        facts = study.fooled(0.3), [each.finding.classifiers for each in study.impossible(0.3)]
    with EnsembleStudy.open(networks, data, norm="l1", verifier="milp", out=tmp_path) as study:
        again = study.value(0.3)
        assert again.questions == 0
        assert (again.lower, again.upper) == (first.lower, first.upper)
        assert (
            study.fooled(0.3),
            [each.finding.classifiers for each in study.impossible(0.3)],
        ) == facts
    with pytest.raises(InputError, match="another norm"):
        EnsembleStudy.open(networks, data, norm="linf", out=tmp_path)
    with pytest.raises(InputError, match="another list of networks"):
        EnsembleStudy.open(networks[:2], data, norm="l1", out=tmp_path)


def test_an_observer_sees_the_bracket_close() -> None:
    networks = [random_network(NetworkFamily.DENSE, seed, units=12, inputs=4) for seed in range(3)]
    inputs = np.random.default_rng(0).uniform(0.2, 0.8, (3, 4)).astype(np.float32)
    data = from_arrays(inputs, networks[0].replay(inputs).argmax(axis=1))
    told: list[GameValue] = []
    with EnsembleStudy.open(
        networks, data, norm="l1", verifier="milp", observer=told.append
    ) as study:
        found = study.value(0.3)
    assert told[0].lower == 0 and told[0].upper == 1
    assert all(a.lower <= b.lower and b.upper <= a.upper for a, b in pairwise(told))
    assert (told[-1].lower, told[-1].upper) == (found.lower, found.upper)


class Interrupted(Enumeration):
    """Somebody presses Ctrl-C at the first question."""

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        raise KeyboardInterrupt


def test_an_interrupted_run_keeps_its_facts(tmp_path: Path) -> None:
    points = [point([0, 0])]
    with (
        pytest.raises(KeyboardInterrupt),
        EnsembleStudy.open([LEFT, RIGHT], points, verifier=Interrupted(), out=tmp_path) as study,
    ):
        study.value(2.0)
    with EnsembleStudy.open([LEFT, RIGHT], points, verifier="enumeration", out=tmp_path) as study:
        assert study.fooled(2.0) == ((0b01, 0b10),)
        assert study.value(2.0).lower == study.value(2.0).upper == Fraction(1, 2)


def test_bad_input() -> None:
    flat = random_network(NetworkFamily.DENSE, 0, inputs=3)
    others = {
        "shape": random_network(NetworkFamily.DENSE, 0, inputs=4),
        "this number of classes: 4": random_network(NetworkFamily.DENSE, 0, inputs=3, outputs=4),
        r"in 0.0:2.0": random_network(NetworkFamily.DENSE, 0, inputs=3, domain=(0.0, 2.0)),
        "type float64": random_network(NetworkFamily.DENSE, 0, inputs=3, dtype=np.float64),
    }
    somewhere = [point([0.5, 0.5, 0.5])]
    for reason, other in others.items():
        with pytest.raises(InputError, match=reason):
            EnsembleStudy.open([flat, other], somewhere)
    with pytest.raises(InputError, match="at least one network"):
        EnsembleStudy.open([], somewhere)
    with pytest.raises(InputError, match="at least one point"):
        EnsembleStudy.open([flat], [])
    with EnsembleStudy.open([flat], somewhere) as study:
        for alpha in (0.0, -1.0, 1.5, math.nan):
            with pytest.raises(InputError, match="alpha"):
                study.value(0.1, alpha=alpha)
        for eps in (-1.0, math.nan, math.inf):
            with pytest.raises(InputError, match="eps"):
                study.value(eps)


def test_a_network_without_an_answer_is_neither_right_nor_fooled() -> None:
    """Its outputs overflow at the point, though not everywhere in the domain."""
    sketch = Sketch([1, 2])
    steep = sketch.constant(np.array([[2e38, 0.0], [2e38, 0.0]]))
    overflowing = sketch.network(sketch.apply("MatMul", "x", steep), domain=(-4.0, 4.0))
    with pytest.raises(InputError, match="not finite at point 7"):
        EnsembleStudy.open([LEFT, overflowing], [point([0.0, 0.0]), point([3.0, 3.0], index=7)])
