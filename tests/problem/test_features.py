"""Scales, fixed, whole and categorical features against closed forms, on every way to decide."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radii import attacks, verifiers
from radii.errors import SpecificationError, UnsupportedQuery
from radii.networks import Network
from radii.problem import (
    FLOAT,
    REAL,
    Arithmetic,
    Ball,
    Domain,
    Features,
    Instance,
    Norm,
    Query,
    Verdict,
)
from radii.testing import LinearClassifier, NetworkFamily, instance_at, random_network

SCALE = np.array([1.0, 0.0, 30.0, 0.02, 4.0])
WIDE = Domain(-1000.0, 1000.0)


def features(
    scale: np.ndarray, whole: tuple[int, ...] = (), groups: tuple[tuple[int, ...], ...] = ()
) -> Features:
    plain = Features.of([f"f{place}" for place in range(len(scale))], scale)
    return dataclasses.replace(
        plain,
        is_whole=np.isin(np.arange(len(scale)), whole),
        groups={f"g{place}": group for place, group in enumerate(groups)},
    )


def scaled(network: Network, x: np.ndarray, kinds: Features, **more: object) -> Instance:
    return dataclasses.replace(instance_at(network, x, **more), features=kinds)  # type: ignore[arg-type]


def closed_form(linear: LinearClassifier, x: np.ndarray, label: int, scale: np.ndarray) -> float:
    """The margin over the sum of |w| s, for the nearest rival."""
    outputs = linear.weights @ x + linear.bias
    gaps = np.delete(outputs[label] - outputs, label)
    slopes = np.delete(np.abs(linear.weights[label] - linear.weights), label, 0) @ scale
    return float((gaps / slopes).min())


def linear_case(seed: int) -> tuple[LinearClassifier, Instance, float]:
    linear = LinearClassifier.random(seed)
    x = np.random.default_rng(seed).normal(size=5)
    instance = scaled(linear.network, x, features(SCALE))
    return linear, instance, closed_form(linear, x, instance.label, SCALE)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("arithmetic", [FLOAT, REAL])
@pytest.mark.parametrize("name", ["native", "milp", "enumeration"])
def test_verifiers_decide_beside_the_closed_form(
    seed: int, arithmetic: Arithmetic, name: str
) -> None:
    linear, instance, radius = linear_case(seed)
    verifier = verifiers.get(name, arithmetic=arithmetic)
    below = verifier.verify(linear.network, Query(instance, 0.999 * radius))
    above = verifier.verify(linear.network, Query(instance, 1.001 * radius))
    assert below.verdict is Verdict.ROBUST
    assert above.verdict is Verdict.NOT_ROBUST
    assert above.witness is not None
    assert above.witness.distance <= 1.001 * radius
    assert above.witness.input[1] == instance.input[1]  # a scale of 0: it stays


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["milp", "enumeration"])
def test_measured_radii_are_the_closed_form(seed: int, name: str) -> None:
    linear, instance, radius = linear_case(seed)
    verifier = verifiers.get(name)
    assert isinstance(verifier, verifiers.RadiusVerifier)
    answer = verifier.radius(linear.network, instance)
    assert answer.lower <= radius * (1 + 1e-9)
    assert answer.lower == pytest.approx(radius, rel=1e-5)
    assert answer.upper == pytest.approx(radius, rel=1e-3)
    assert answer.optimum == pytest.approx(radius, rel=1e-5)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["minimum-norm", "pgd", "apgd"])
def test_attacks_reach_the_closed_form(seed: int, name: str) -> None:
    linear, instance, radius = linear_case(seed)
    (result,) = attacks.get(name).attack(linear.network, [Query(instance, 1.2 * radius)])
    assert result.witness is not None
    assert radius * (1 - 1e-6) <= result.witness.distance <= 1.2 * radius
    (missed,) = attacks.get(name).attack(linear.network, [Query(instance, 0.99 * radius)])
    assert missed.verdict is Verdict.UNKNOWN


def test_the_minimum_norm_attack_finds_the_radius() -> None:
    linear, instance, radius = linear_case(1)
    (result,) = attacks.get("minimum-norm").attack(linear.network, [Query(instance, 2 * radius)])
    assert result.witness is not None
    assert result.witness.distance == pytest.approx(radius, rel=1e-4)


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
def test_fixed_features_stay_in_every_norm(norm: Norm) -> None:
    scale = np.array([1.0, 0.0, 1.0, 0.0, 1.0])
    linear = LinearClassifier.random(7)
    x = np.random.default_rng(7).normal(size=5)
    instance = scaled(linear.network, x, features(scale), norm=norm)
    free = np.flatnonzero(scale)
    dual = {Norm.L1: np.inf, Norm.L2: 2}[norm]
    outputs, label = linear.weights @ x + linear.bias, instance.label
    radius = min(
        (outputs[label] - outputs[r])
        / np.linalg.norm((linear.weights[label] - linear.weights[r])[free], dual)
        for r in range(len(outputs))
        if r != label
    )
    verifier = verifiers.get("native")
    assert verifier.verify(linear.network, Query(instance, 0.99 * radius)).verdict is Verdict.ROBUST
    broken = Query(instance, 1.01 * radius)
    assert verifier.verify(linear.network, broken).verdict is Verdict.NOT_ROBUST
    (result,) = attacks.get("minimum-norm").attack(linear.network, [broken])
    assert result.witness is not None
    assert np.array_equal(result.witness.input[[1, 3]], instance.input[[1, 3]])


@pytest.mark.parametrize("seed", range(6))
def test_native_agrees_with_enumeration_on_small_networks(seed: int) -> None:
    network = random_network(list(NetworkFamily)[seed], seed, units=12, inputs=4)
    count = int(np.prod(network.input_shape))
    rng = np.random.default_rng(seed)
    low, high = network.domain.box(network.input_shape)
    scale = rng.choice([0.0, 0.1, 1.0, 3.0], count)
    scale[0] = 1.0
    instance = scaled(network, rng.uniform(low, high), features(scale))
    judges = [verifiers.get("native"), verifiers.get("enumeration", max_units=64)]
    for eps in (0.01, 0.1, 0.4):
        seen = {v.verify(network, Query(instance, eps)).verdict for v in judges}
        assert not {Verdict.ROBUST, Verdict.NOT_ROBUST} <= seen
        proven = Verdict.ROBUST in seen
        points = instance.ball(eps).sample(np.random.default_rng(0), 200)
        holds = instance.requirement.holds(network.replay(points.astype(network.input_dtype)), 0.0)
        assert holds.all() or not proven


# --- whole numbers and categories, against all of them


def discrete_case(seed: int) -> tuple[LinearClassifier, Instance]:
    """A number, an integer and a category of three, as one-hot."""
    linear = LinearClassifier.random(seed, inputs=5, outputs=2)
    rng = np.random.default_rng(seed)
    category = np.eye(3)[rng.integers(3)]
    x = np.concatenate([rng.normal(size=1), [float(rng.integers(-3, 4))], category])
    kinds = features(np.array([1.0, 2.0, 1.25, 1.25, 1.25]), (1,), ((2, 3, 4),))
    return linear, scaled(linear.network, x, kinds)


def is_broken_somewhere(linear: LinearClassifier, instance: Instance, eps: float) -> bool:
    """By trying every whole number and category; the number is linear, so at its ends."""
    x, label = np.asarray(instance.input, np.float64), instance.label
    most = int(np.floor(eps * 2.0 + 1e-12))
    categories = np.eye(3) if eps >= 1 / 1.25 else x[None, 2:]
    for sign, step, category in itertools.product((-1, 1), range(-most, most + 1), categories):
        point = np.concatenate([[x[0] + sign * eps, x[1] + step], category])
        outputs = linear.weights @ point + linear.bias
        if outputs[1 - label] >= outputs[label]:
            return True
    return False


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["native", "milp"])
def test_proofs_and_witnesses_know_whole_numbers_and_categories(seed: int, name: str) -> None:
    linear, instance = discrete_case(seed)
    verifier, attack = verifiers.get(name), attacks.get("minimum-norm")
    for eps in (0.3, 0.6, 0.9, 1.6):
        query, is_broken = Query(instance, eps), is_broken_somewhere(linear, instance, eps)
        result = verifier.verify(linear.network, query)
        (attacked,) = attack.attack(linear.network, [query])
        assert result.verdict is not (Verdict.ROBUST if is_broken else Verdict.NOT_ROBUST)
        assert is_broken or attacked.verdict is Verdict.UNKNOWN
        assert not is_broken or attacked.verdict is Verdict.NOT_ROBUST
        for witness in (result.witness, attacked.witness):
            if witness is not None:
                assert witness.input[1] == round(float(witness.input[1]))
                assert sorted(witness.input[2:].tolist()) == [0, 0, 1]
                assert witness.distance <= eps


class Alternating(verifiers.Verifier):
    """Calls everything robust, in one arithmetic after the other."""

    name = "alternating"
    version = "1"

    def __init__(self, spoken: list[Arithmetic], own: Arithmetic = REAL) -> None:
        self.spoken, self.arithmetic = itertools.cycle(spoken), own

    def run(self, *_: object) -> verifiers.Answer:
        return verifiers.Answer(Verdict.ROBUST, arithmetic=next(self.spoken))


def test_a_proof_of_many_categories_is_as_strong_as_the_weakest() -> None:
    linear, instance = discrete_case(0)
    result = Alternating([REAL, FLOAT, FLOAT]).verify(linear.network, Query(instance, 0.9))
    assert result.proof is not None and result.proof.arithmetic == REAL


def test_a_proof_in_less_than_a_verifier_promises_is_none() -> None:
    linear, instance = discrete_case(0)
    for eps in (0.3, 0.9):
        result = Alternating([REAL], FLOAT).verify(linear.network, Query(instance, eps))
        assert (result.verdict, result.proof) == (Verdict.UNKNOWN, None)
        assert result.message == "its proof holds in real arithmetic, not for floating point"


@pytest.mark.parametrize("seed", range(8))
def test_a_climb_goes_on_where_categories_change(seed: int) -> None:
    linear, instance = discrete_case(seed)
    verifier = verifiers.get("native")
    assert isinstance(verifier, verifiers.GridVerifier)
    values = [0.1 * k for k in range(1, 20)]
    broken = [eps for eps in values if is_broken_somewhere(linear, instance, eps)]
    result = verifier.certify(linear.network, instance, values)
    if result.proof is not None:
        assert result.proof.eps < min(broken, default=np.inf)
    else:
        assert is_broken_somewhere(linear, instance, 0.4)
    if result.witness is not None:
        assert instance.ball(result.witness.distance).contains(result.witness.input)


# --- the ball itself


@given(st.integers(0, 2**32), st.floats(0.01, 3), st.sampled_from([np.float32, np.float64]))
def test_projection_is_valid_and_inside(seed: int, eps: float, dtype: type) -> None:
    rng = np.random.default_rng(seed)
    kinds = features(np.array([1.0, 0.0, 7.0, 0.5, 0.5, 0.5]), (2,), ((3, 4, 5),))
    center = np.concatenate([rng.uniform(0, 1, 2), [3.0], np.eye(3)[rng.integers(3)]])
    center = center.astype(np.float32).astype(np.float64)
    ball = Ball(center, eps, Norm.LINF, Domain(-50.0, 50.0), kinds)
    low, high = ball.box()
    for point in rng.normal(size=(5, 6)) * 4:
        inside = ball.project(point, dtype)
        assert inside.dtype == dtype
        assert ball.contains(inside)
        assert np.all(inside >= low)
        assert np.all(inside <= high)
    for piece in ball.pieces():
        assert ball.contains(ball.project(piece.low))
    for point in ball.sample(rng, 5):
        assert kinds.flaw(point) is None
        assert np.all(point >= low)
        assert np.all(point <= high)


def test_distance_counts_in_scales() -> None:
    ball = Ball(np.zeros(2), 1.0, Norm.LINF, WIDE, features(np.array([10.0, 0.5])))
    assert ball.distance([5.0, 0.0]) == 0.5
    assert ball.distance([5.0, 1.0]) == 2.0
    assert ball.contains([10.0, -0.5])
    assert not ball.contains([0.0, 0.6])
    still = Ball(np.zeros(2), 1.0, Norm.LINF, WIDE, features(np.array([1.0, 0.0])))
    assert still.distance([0.0, 1e-9]) == np.inf


def test_a_category_moves_from_one_over_its_scale_on() -> None:
    kinds = features(np.array([4.0, 4.0]), groups=((0, 1),))
    assert not Ball(np.array([1.0, 0.0]), 0.24, Norm.LINF, WIDE, kinds).pieces()
    assert len(Ball(np.array([1.0, 0.0]), 0.25, Norm.LINF, WIDE, kinds).pieces()) == 2


def test_bad_features_are_refused() -> None:
    with pytest.raises(SpecificationError, match="scale -1"):
        features(np.array([1.0, -1.0]))
    with pytest.raises(SpecificationError, match="of one scale"):
        features(np.array([1.0, 2.0]), groups=((0, 1),))


def test_the_key_tells_scales_apart_and_is_as_ever_without() -> None:
    _, instance, _ = linear_case(0)
    plain = dataclasses.replace(instance, features=None)
    other = dataclasses.replace(instance, features=features(2 * SCALE))
    assert len({plain.key, instance.key, other.key}) == 3


def test_exact_radii_of_categories_are_refused() -> None:
    linear, instance = discrete_case(0)
    verifier = verifiers.get("milp")
    assert isinstance(verifier, verifiers.RadiusVerifier)
    with pytest.raises(UnsupportedQuery, match="ask queries"):
        verifier.radius(linear.network, instance)


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
def test_other_scales_have_no_balls_but_those_of_linf(norm: Norm) -> None:
    """Bounds of L1 and L2 know no scales: a proof on the ball would be one on a smaller one."""
    whole = Domain(np.float64(0), np.float64(1))
    scaled = dataclasses.replace(Features.of(("a", "b")), scale=np.array([10.0, 1.0]))
    with pytest.raises(SpecificationError, match="other scales need linf"):
        Ball(np.zeros(2), 0.1, norm, whole, features=scaled)
    fixed = dataclasses.replace(scaled, scale=np.array([0.0, 1.0]))
    assert Ball(np.zeros(2), 0.1, norm, whole, features=fixed).eps == 0.1
