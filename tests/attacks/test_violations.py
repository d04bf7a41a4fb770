"""Violations in torch say what requirements in numpy say, and their gradients do not vanish."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from radii.attacks import softmax_log_odds, violation
from radii.errors import UnsupportedQuery
from radii.problem import Anchor, LipschitzRequirement, OneToAny, Property, Requirement
from radii.problem import log_odds as numpy_log_odds
from radii.problem import parse_property as parse

SPECS = (
    "cr",
    "cr:of=prediction",
    "one-to-one:1",
    "become:1",
    "scr:eta=0.52",
    "scr:eta=0.1",
    "sr:delta=3",
    "sr:delta=0.2,on=probabilities",
    "lr:L=2",
)


def random_rows(seed: int, scale: float, rows: int = 16) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    references = scale * rng.normal(size=(rows, 4))
    outputs = references + scale * rng.normal(size=(rows, 4)) * rng.uniform(0, 2, (rows, 1))
    labels = rng.choice([0, 2, 3], rows)
    return outputs, references, labels, rng.uniform(0, 2, rows)


def violations_of(asked: Property, rows: tuple[np.ndarray, ...], **options: bool) -> np.ndarray:
    outputs, references, labels, distances = map(torch.from_numpy, rows)
    return violation(asked, outputs, references, labels, distances, **options).numpy()


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("literal", [False, True])
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.3, 3.0, 30.0]))
@settings(max_examples=6, deadline=None)
def test_the_sign_is_that_of_the_margin(spec: str, literal: bool, seed: int, scale: float) -> None:
    asked, rows = parse(spec), random_rows(seed, scale)
    found = violations_of(asked, rows, literal=literal)
    for row, (output, reference, label, distance) in enumerate(zip(*rows, strict=True)):
        requirement = asked.at(Anchor(int(label), reference))
        margin = float(requirement.margin(output[None], np.array([distance]))[0])
        if abs(margin) > 1e-9:  # on the boundary itself both are rounding
            assert (found[row] > 0) == (margin < 0) or abs(found[row]) < 1e-12
        if not literal:
            assert found[row] == pytest.approx(-margin, abs=1e-9)


@pytest.mark.parametrize("spec", ["scr:eta=0.52", "sr:delta=0.2,on=probabilities"])
def test_probabilities_that_the_network_gives_itself(spec: str) -> None:
    asked, (outputs, references, labels, distances) = parse(spec), random_rows(3, 2.0)
    of_scores = violations_of(asked, (outputs, references, labels, distances))
    shares = [np.exp(y) / np.exp(y).sum(axis=1, keepdims=True) for y in (outputs, references)]
    given_shares = violations_of(asked, (*shares, labels, distances), probabilities=True)
    assert given_shares == pytest.approx(of_scores, abs=1e-9)


def test_log_odds_are_exact_far_out_and_have_gradients_there() -> None:
    scores = torch.tensor([[90.0, 1.0, -3.0], [-200.0, 4.0, 4.0]], requires_grad=True)
    odds = softmax_log_odds(scores)
    expected = [numpy_log_odds(scores.detach().numpy(), index) for index in range(3)]
    assert odds.detach().numpy() == pytest.approx(np.stack(expected, axis=1), rel=1e-6)
    (gradient,) = torch.autograd.grad(odds[:, 0].sum(), scores)
    assert gradient[:, 0].tolist() == pytest.approx([1.0, 1.0])
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("spec", SPECS)
def test_gradients_are_those_of_finite_differences(spec: str) -> None:
    asked = parse(spec)
    outputs, references, labels, distances = map(torch.from_numpy, random_rows(5, 1.0, rows=6))
    assert torch.autograd.gradcheck(
        lambda y: violation(asked, y, references, labels, distances),
        (outputs.requires_grad_(),),
        eps=1e-7,
        atol=1e-5,
    )


def test_what_cannot_change_that_much_is_not_broken() -> None:
    rows = random_rows(1, 1.0)
    assert np.all(violations_of(parse("sr:delta=1,on=probabilities"), rows) == -np.inf)


class _Foreign(Property):
    spec = "foreign"

    def at(self, anchor: Anchor) -> Requirement:
        return OneToAny().at(anchor)


class _Curved(_Foreign):
    def kind(self, outputs_are_probabilities: bool) -> type[Requirement]:
        return LipschitzRequirement


def test_other_properties_need_polyhedra() -> None:
    rows = random_rows(0, 1.0)
    expected = violations_of(OneToAny(), rows)
    assert violations_of(_Foreign(), rows) == pytest.approx(expected, abs=1e-12)
    with pytest.raises(UnsupportedQuery, match="'foreign'"):
        violations_of(_Curved(), rows)
