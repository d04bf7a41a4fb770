"""SCR, SR and LR against their definitions, and what one of them implies for another."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from radii.errors import SpecificationError
from radii.problem import (
    Anchor,
    LinearRequirement,
    LipschitzRequirement,
    OneToAny,
    SoftmaxRequirement,
    log_odds,
    probabilities,
    resolution,
)
from radii.problem import parse_property as parse

OUTPUTS = npst.arrays(np.float64, (7, 4), elements=st.floats(-30, 30))
CLOSE = 1e-9


def test_the_class_stays_by_any_name() -> None:
    assert parse("cr") == OneToAny() == parse("cr:of=label")
    anchor = Anchor(2, np.array([0.0, 3.0, 1.0]))
    mine = parse("cr:of=prediction").at(anchor)
    assert mine.holds([[0.0, 3.0, 1.0], [4.0, 3.0, 1.0]], 0.0).tolist() == [True, False]
    assert not parse("cr:of=prediction").uses_label
    assert parse("cr").uses_label


@given(OUTPUTS, st.integers(0, 3), st.floats(0.01, 0.99))
def test_scr_is_a_bound_on_the_softmax(outputs: np.ndarray, label: int, eta: float) -> None:
    requirement = parse(f"scr:eta={eta!r}").at(Anchor(label, np.zeros(4)))
    assert isinstance(requirement, SoftmaxRequirement)
    excess = probabilities(outputs)[:, label] - eta
    clear = np.abs(excess) > CLOSE
    assert np.array_equal(requirement.holds(outputs, 0.0)[clear], (excess > 0)[clear])


@given(OUTPUTS, st.integers(0, 3))
def test_scr_above_one_half_implies_cr(outputs: np.ndarray, label: int) -> None:
    anchor = Anchor(label, np.zeros(4))
    strong = parse("scr:eta=0.500001").at(anchor).holds(outputs, 0.0)
    assert not (strong & ~OneToAny().at(anchor).holds(outputs, 0.0)).any()


@given(OUTPUTS, st.floats(0.001, 20))
def test_sr_is_a_bound_on_the_largest_change(outputs: np.ndarray, delta: float) -> None:
    reference = outputs[0]
    requirement = parse(f"sr:delta={delta!r}").at(Anchor(0, reference))
    assert isinstance(requirement, LinearRequirement)
    excess = delta - np.abs(outputs - reference).max(axis=1)
    clear = np.abs(excess) > CLOSE
    assert np.array_equal(requirement.holds(outputs, 0.0)[clear], (excess > 0)[clear])
    assert np.allclose(requirement.margin(outputs, 0.0), excess)


@pytest.mark.parametrize("are_given", [False, True])
@given(outputs=OUTPUTS, delta=st.floats(0.001, 1.5))
def test_sr_on_probabilities(are_given: bool, outputs: np.ndarray, delta: float) -> None:
    chances = probabilities(outputs)
    seen = chances if are_given else outputs
    asked = parse(f"sr:delta={delta!r},on=probabilities")
    requirement = asked.at(Anchor(0, seen[0], are_given))
    assert type(requirement) is asked.kind(are_given)
    excess = delta - np.abs(chances - chances[0]).max(axis=1)
    clear = np.abs(excess) > CLOSE
    assert np.array_equal(requirement.holds(seen, 0.0)[clear], (excess > 0)[clear])


@given(st.floats(-1e6, 1e6, width=32), st.floats(-1e6, 1e6, width=32), st.floats(1e-30, 1e6))
def test_sr_is_exact_for_floats_even_if_delta_is_tiny(y: float, moved: float, delta: float) -> None:
    requirement = parse(f"sr:delta={delta!r}").at(Anchor(0, np.array([y])))
    assert requirement.holds([[y]], 0.0)[0]
    is_near = abs(Fraction(moved) - Fraction(y)) < Fraction(delta)
    assert requirement.holds([[moved]], 0.0)[0] == is_near
    edge = y + delta
    is_near = abs(Fraction(edge) - Fraction(y)) < Fraction(delta)
    assert requirement.holds([[edge]], 0.0)[0] == is_near


def test_sr_counts_probabilities_that_float32_rounds_to_0_and_1() -> None:
    anchor = Anchor(0, np.array([1.0, 0.0]), outputs_are_probabilities=True)
    for spec in ("sr:delta=1", "sr:delta=1,on=probabilities"):
        assert parse(spec).at(anchor).holds([[1.0, 0.0], [0.0, 1.0]], 0.0).tolist() == [True, False]


def test_sr_on_probabilities_of_a_confident_network() -> None:
    reference = np.array([800.0, 0.0, 1.0])
    requirement = parse("sr:delta=1e-12,on=probabilities").at(Anchor(0, reference))
    outputs = np.array([[800.0, 0.0, 1.0], [30.0, 0.0, 1.0], [20.0, 0.0, 1.0]])
    assert requirement.holds(outputs, 0.0).tolist() == [True, True, False]


def test_scr_of_probabilities_is_linear() -> None:
    requirement = parse("scr:eta=0.6").at(Anchor(1, np.zeros(3), outputs_are_probabilities=True))
    assert isinstance(requirement, LinearRequirement)
    seen = [[0.2, 0.7, 0.1], [0.3, 0.6, 0.1], [0.5, 0.5, 0.0]]
    assert requirement.holds(seen, 0.0).tolist() == [True, False, False]


@given(OUTPUTS, st.floats(0.01, 20), st.floats(0, 2))
def test_lr_is_a_slope(outputs: np.ndarray, constant: float, distance: float) -> None:
    reference = outputs[0]
    requirement = parse(f"lr:L={constant!r}").at(Anchor(0, reference))
    assert isinstance(requirement, LipschitzRequirement)
    assert requirement.tau == resolution(reference)
    allowed = constant * distance + requirement.tau
    margin = requirement.margin(outputs, distance)
    assert np.allclose(margin, allowed - np.abs(outputs - reference).max(axis=1))
    assert requirement.holds(reference[None], distance)[0]
    near = parse(f"sr:delta={allowed!r}").at(Anchor(0, reference))
    clear = np.abs(margin) > CLOSE
    assert np.array_equal((margin > 0)[clear], near.holds(outputs, 0.0)[clear])


ORDERS = {"linf": np.inf, "l2": 2, "l1": 1}


@pytest.mark.parametrize("metric", ORDERS)
@given(OUTPUTS, st.floats(0.01, 20), st.floats(0, 2))
def test_changes_are_measured_in_a_metric(
    metric: str, outputs: np.ndarray, delta: float, distance: float
) -> None:
    reference = outputs[0]
    lengths = np.linalg.norm(outputs - reference, ORDERS[metric], axis=1)
    requirement = parse(f"sr:delta={delta!r},in={metric}").at(Anchor(0, reference))
    clear = np.abs(lengths - delta) > CLOSE
    assert np.array_equal(requirement.holds(outputs, 0.0)[clear], (lengths < delta)[clear])
    slope = parse(f"lr:L={delta!r},in={metric}").at(Anchor(0, reference))
    allowed = delta * distance + resolution(reference)
    assert np.allclose(slope.margin(outputs, distance), allowed - lengths)


@pytest.mark.parametrize("outputs", [2, 5, 11])
@pytest.mark.parametrize("metric", ORDERS)
def test_polyhedra_of_a_length(metric: str, outputs: int) -> None:
    """Proofs avoid polyhedra that hold all that is too long, attacks aim at some that is."""
    rng = np.random.default_rng(outputs)
    reference = 1e4 * rng.normal(size=outputs)
    requirement = parse(f"sr:delta=0.3,in={metric}").at(Anchor(0, reference))
    assert isinstance(requirement, LinearRequirement)
    changes = rng.normal(size=(500, outputs))
    changes /= np.linalg.norm(changes, ORDERS[metric], axis=1, keepdims=True)
    points = reference + 0.3 * changes * rng.choice([0.9, 1 - 1e-9, 1 + 1e-9, 1.2, 4], (500, 1))
    broken = ~requirement.holds(points, 0.0)
    assert 100 < broken.sum() < 400
    covered = np.min([each.depth(points) for each in requirement.violations], axis=0) <= 0
    aimed_at = np.min([each.depth(points) for each in requirement.attacked], axis=0) <= 0
    assert covered[broken].all() and broken[aimed_at].all() and aimed_at.any()
    if metric == "linf" or (metric == "l1" and outputs < 11):
        assert np.array_equal(covered, broken)  # decided exactly


@given(OUTPUTS, st.sampled_from(["l2", "l1"]), st.floats(0, 1))
def test_a_slope_of_each_output_implies_that_of_all(
    outputs: np.ndarray, metric: str, distance: float
) -> None:
    requirement = parse(f"lr:L=3,in={metric}").at(Anchor(0, outputs[0]))
    assert isinstance(requirement, LipschitzRequirement)
    implied = requirement.of_each_output.holds(outputs, distance)
    assert requirement.holds(outputs, distance)[implied].all()


def test_log_odds_do_not_saturate() -> None:
    assert log_odds([[900.0, 0.0, -900.0]], 0)[0] == pytest.approx(900)
    assert log_odds([[-900.0, 0.0, -900.0]], 0)[0] == pytest.approx(-900)
    assert not SoftmaxRequirement(()).margin([[0.0, 1.0]])[0] < np.inf


@pytest.mark.parametrize(
    "spec",
    [
        "top:k=2",
        "scr:eta=0.52",
        "sr:delta=10",
        "sr:delta=0.1,on=probabilities",
        "lr:L=10",
        "sr:delta=10,in=l2",
        "lr:L=10,in=l1",
        "cr:of=prediction",
    ],
)
def test_specs_round_trip(spec: str) -> None:
    assert parse(spec).spec == spec
    assert parse(spec) == parse(spec)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("scr", "'scr' needs eta, a number between 0 and 1"),
        ("top:k=0", "k must be a whole number above 0, not 0"),
        ("top:k=1.5", "k must be a whole number, not 1.5"),
        ("top", "property 'top' needs k, a number of classes: top:k=NUMBER"),
        ("scr:eta=0", "eta must lie between 0 and 1, but is 0"),
        ("scr:eta=1.5", "eta must lie between 0 and 1, but is 1.5"),
        ("scr:eta=much", "eta must be a number between 0 and 1, but is 'much'"),
        ("scr:0.52", "'0.52' is not an option of the form name=value"),
        ("sr", "'sr' needs delta, a number above 0"),
        ("sr:delta=-1", "delta must be above 0, but is -1"),
        ("sr:delta=inf", "delta must be above 0, but is inf"),
        ("sr:delta=nan", "delta must be a number above 0"),
        ("sr:delta=1,delta=2", "given once"),
        ("sr:delta=1,on=logits", "on can be outputs or probabilities"),
        ("sr:delta=1,in=l3", "in can be linf or l2 or l1"),
        ("sr:delta=0.1,in=l2,on=probabilities", "on=probabilities compares each by itself"),
        ("lr:L=0", "L must be above 0, but is 0"),
        ("lr:L=1,on=probabilities", "on can be outputs"),
        ("lr:delta=1", "'lr' needs L"),
        ("sr:delta=1e-17,on=probabilities", "at least 1e-12 on probabilities, but is 1e-17"),
        ("one-to-one:²", "is not one of"),
        ("sr:delta=1,eta=3", "'sr' has no parameter 'eta'"),
        ("cr:of=truth", "of can be label or prediction"),
        ("sl:delta=1", "is not one of"),
    ],
)
def test_bad_parameters_are_named(spec: str, words: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        parse(spec)
    assert words in str(caught.value)


def test_low_eta_is_allowed_with_a_warning() -> None:
    assert "use eta > 0.5" in (parse("scr:eta=0.4").warning or "")
    assert parse("scr:eta=0.52").warning is None


def test_probabilities_need_two_outputs() -> None:
    for spec in ("scr:eta=0.6", "sr:delta=0.1,on=probabilities"):
        with pytest.raises(SpecificationError, match="at least two outputs"):
            parse(spec).at(Anchor(0, np.zeros(1)))


def test_the_label_stays_among_the_largest() -> None:
    """By counting: the label is among the k largest where fewer than k others reach it."""
    rng = np.random.default_rng(5)
    for k in (1, 2, 3):
        outputs = rng.integers(-2, 3, (200, 5)).astype(float)
        requirement = parse(f"top:k={k}").at(Anchor(2, np.zeros(5)))
        reached = (np.delete(outputs, 2, axis=1) >= outputs[:, 2:3]).sum(axis=1)
        assert requirement.holds(outputs, np.zeros(200)).tolist() == (reached < k).tolist()


@pytest.mark.parametrize(("k", "outputs", "why"), [(3, 3, "always holds"), (5, 43, "850,668")])
def test_top_k_that_cannot_be_asked(k: int, outputs: int, why: str) -> None:
    with pytest.raises(SpecificationError, match=why):
        parse(f"top:k={k}").at(Anchor(0, np.zeros(outputs)))
