"""The methods of the literature: answers known in closed form, replays, and their refusals."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from radii.ensembles import Ensemble, EnsembleStudy, Point, RandomizedAttack
from radii.errors import InputError
from radii.networks import Network
from radii.problem import Norm
from radii.testing import NetworkFamily, Sketch, random_network
from radii.verifiers import gurobi_refusal
from radii_papers.baselines import (
    BaselineProblem,
    BaselineReply,
    BaselineResult,
    MipSolver,
    run_baseline,
)


def half_plane(normal: Sequence[float], offset: float) -> Network:
    """Class 0 where `normal @ x < offset`, else class 1 (on the line: a tie)."""
    sketch = Sketch([1, len(normal)])
    weight = sketch.constant(np.array([np.zeros(len(normal)), normal]).T)
    bias = sketch.constant(np.array([offset, 0.0]))
    return sketch.network(sketch.apply("Gemm", "x", weight, bias), domain=(-4.0, 4.0))


def point(values: npt.ArrayLike) -> Point:
    return Point(0, 0, np.asarray(values, np.float32))


LEFT, RIGHT = half_plane([-1.0, 0.0], 1.0), half_plane([1.0, 0.0], 1.0)
UP = half_plane([0.0, 1.0], 1.0)


def problem(networks: Any = (LEFT, RIGHT), **more: Any) -> BaselineProblem:
    """The paper's first figure: fooled on the left or on the right, in reach of both."""
    asked: dict[str, Any] = {"norm": Norm.L1, "eps": 2.0, "seconds": 60.0, **more}
    return BaselineProblem(Ensemble(networks), [point([0, 0])], **asked)


SOLVERS = [
    MipSolver.HIGHS,
    pytest.param(
        MipSolver.GUROBI,
        marks=pytest.mark.skipif(gurobi_refusal(10, 10) is not None, reason="Gurobi is not here"),
    ),
]


@pytest.mark.parametrize("solver", SOLVERS)
def test_milp_of_the_first_figure(solver: MipSolver) -> None:
    """1/2 is possible and more is not."""
    found = run_baseline("milp", problem(alpha=0.5), solver=solver)
    assert found.reply is BaselineReply.ATTACK
    assert found.attack is not None and found.attack.value == Fraction(1, 2)
    assert found.is_replayed and found.is_broken
    assert found.solver.lower().startswith(solver.value)
    more = run_baseline("milp", problem(alpha=0.6), solver=solver)
    assert more.reply is BaselineReply.ROBUST and more.covers_all_attacks


def test_smt_of_the_first_figure() -> None:
    pytest.importorskip("z3", reason="the SMT encoding needs z3-solver")
    found = run_baseline("smt", problem(alpha=0.5))
    assert found.reply is BaselineReply.ATTACK and found.is_broken
    assert found.solver.startswith("Z3")
    assert run_baseline("smt", problem(alpha=0.6)).reply is BaselineReply.ROBUST


@pytest.mark.parametrize("method", ["milp", "smt"])
def test_too_few_attacks_look_robust(method: str) -> None:
    """Three classifiers that are fooled one at a time have the value 1/3, but not by two attacks.

    In l1 with eps 1.5 a step to one line leaves no room for another one.
    """
    if method == "smt":
        pytest.importorskip("z3", reason="the SMT encoding needs z3-solver")
    networks = (LEFT, RIGHT, UP)
    with EnsembleStudy.open(networks, [point([0, 0])], norm="l1") as study:
        game = study.value(1.5)
        assert game.lower == game.upper == Fraction(1, 3)
        few = [study.value_of_few(game, attacks) for attacks in (1, 2, 3, 4)]
        assert few == [(0, 0), (0, 0), (Fraction(1, 3),) * 2, (Fraction(1, 3),) * 2]
        assert study.attack(game, attacks=2).value == 0
        assert len(study.attack(game).probabilities) == 3
    two = run_baseline(method, problem(networks, eps=1.5, alpha=0.3, attacks=2))
    assert two.reply is BaselineReply.ROBUST and not two.covers_all_attacks
    three = run_baseline(method, problem(networks, eps=1.5, alpha=0.3))
    assert three.reply is BaselineReply.ATTACK and three.is_broken


def test_summing_over_classifiers_misses_the_optimum() -> None:
    """Two are fooled on the right, one on the left: the best mix is even, but a sum prefers two."""
    networks = (RIGHT, half_plane([1.0, 0.0], 1.0), LEFT)
    with EnsembleStudy.open(networks, [point([0, 0])], norm="l1") as study:
        assert study.value(2.0).lower == Fraction(1, 2)
    found = run_baseline("maxmilp", problem(networks, alpha=0.1, attacks=2))
    assert found.is_optimal and found.is_replayed
    assert found.attack is not None
    assert float(found.attack.value) == pytest.approx(0.1, abs=1e-4)
    free = run_baseline("maxmilp", problem(networks))  # without alpha the pair gets everything
    assert free.attack is not None and free.attack.value == 0


def test_simple_attackers() -> None:
    """One attack for each: uniform is even, and the best one alone leaves a classifier right."""
    uniform, best = run_baseline("ua", problem()), run_baseline("bda", problem(alpha=0.5))
    assert uniform.attack is not None and uniform.attack.value == Fraction(1, 2)
    assert best.attack is not None and best.attack.value == 0
    assert best.claimed is None and best.is_replayed and not best.is_broken


def test_an_attack_that_does_not_replay_is_told_apart() -> None:
    """A solver found an attack for 0.9; on the networks themselves it achieves 1/2."""
    for value, is_replayed in (
        (Fraction(1, 2), False),
        (Fraction(9, 10) - Fraction(1, 10**6), True),
    ):
        result = BaselineResult(
            "milp",
            problem(alpha=0.9),
            BaselineReply.ATTACK,
            1.0,
            "a solver",
            RandomizedAttack((Fraction(1),), ((),), value),
            claimed=0.9,
        )
        assert result.is_replayed is is_replayed
        assert not result.is_broken  # not even where only rounding is missing
    silent = BaselineResult("milp", problem(alpha=0.9), BaselineReply.TIMEOUT, 1.0, "a solver")
    assert not silent.is_replayed and not silent.is_broken


@pytest.mark.parametrize("method", ["milp", "maxmilp", "smt"])
def test_no_time_is_no_answer(method: str) -> None:
    if method == "smt":
        pytest.importorskip("z3", reason="the SMT encoding needs z3-solver")
    found = run_baseline(method, problem((LEFT, RIGHT, UP), alpha=0.3, attacks=9, seconds=1e-9))
    assert found.reply is BaselineReply.TIMEOUT and found.attack is None


@pytest.mark.parametrize(
    ("method", "more", "words"),
    [
        ("milp", {}, "give --alpha"),
        ("smt", {}, "give --alpha"),
        ("milp", {"alpha": 0.5, "norm": Norm.L2}, "no balls in l2"),
        ("bda", {"norm": Norm.L2}, "l2"),
        ("milp", {"alpha": 2.0}, "alpha 2"),
        ("milp", {"alpha": 0.5, "attacks": 0}, "attacks 0 must be at least 1"),
        ("ua", {"seconds": 0.0}, "timeout 0"),
        ("bda", {"eps": -1.0}, "eps -1"),
        ("nobody", {}, "method 'nobody' is not one of"),
    ],
)
def test_refusals(method: str, more: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        run_baseline(method, problem(**more))


def test_a_licence_that_is_too_small_leaves_it_to_highs() -> None:
    """The licence in the package takes 2,000 columns; a program beyond it says why."""
    reason = gurobi_refusal(10**6, 10**6)
    if reason is None:
        pytest.skip("Gurobi's licence here has no limit")
    assert "Gurobi" in reason or "gurobi" in reason


# --- random tiny ensembles, beside the exact value

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


@pytest.mark.parametrize(
    "seed", [pytest.param(s, marks=() if s < 4 else pytest.mark.slow) for s in range(40)]
)
def test_the_papers_program_agrees(seed: int) -> None:
    """With as many attacks as classifiers it finds an attack just below the value, none above."""
    ensemble, points, norm, eps = random_ensemble(seed)
    with EnsembleStudy.open(ensemble.networks, points, norm=norm, verifier="milp") as study:
        found = study.value(eps)
    problem = BaselineProblem(ensemble, points, norm, eps, seconds=30.0)
    for method in ("ua", "bda"):
        simple = run_baseline(method, problem)
        assert simple.attack is not None
        assert simple.attack.value <= found.upper
    below, above = float(found.lower) - 1e-3, float(found.upper) + 1e-3
    if below > 0:
        problem = BaselineProblem(ensemble, points, norm, eps, below)
        outcome, best = (run_baseline(method, problem) for method in ("milp", "maxmilp"))
        assert outcome.reply is not BaselineReply.ROBUST
        for attack in (outcome.attack, best.attack):
            assert attack is None or attack.value <= found.upper
    if above <= 1:
        problem = BaselineProblem(ensemble, points, norm, eps, above)
        assert run_baseline("milp", problem).reply is not BaselineReply.ATTACK
