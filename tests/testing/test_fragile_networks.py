"""Fragile networks really break on the runtime, and the search finds where."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks.soundness.executions import SummationOrder
from benchmarks.soundness.families import FRAGILE_FAMILIES, fragile
from benchmarks.soundness.known import KNOWN_CASES
from benchmarks.soundness.search import breaks, find_break, find_break_in_orders
from radii.networks import Softmax
from radii.problem import Query, check_witness
from radii.testing import LinearClassifier, Sketch, instance_at

OFTEN = 0.6
"""Of the variants of a known case, at least so many break within what the search looks at."""


@pytest.mark.parametrize("family", sorted(KNOWN_CASES))
def test_known_cases_break_within_their_radius(family: str) -> None:
    broken = 0
    for seed in range(8):
        case = fragile(family, seed)
        assert case.instance.holds
        found = find_break(case.network, case.instance, case.eps, seed=seed)
        broken += found is not None
        if found is not None:
            assert found.distance <= case.eps
            specification = Query(case.instance, case.eps).specification
            witness = check_witness(case.network, specification, found.input)
            assert (witness is not None) == found.is_finite
    assert broken >= OFTEN * 8


@pytest.mark.parametrize("family", sorted(KNOWN_CASES))
def test_known_cases_hold_in_real_arithmetic_where_they_break(family: str) -> None:
    """In float64 the logits still have the margin at the very input that breaks the property."""
    for seed in range(4):
        case = fragile(family, seed)
        found = find_break(case.network, case.instance, case.eps, seed=seed)
        if found is None:
            continue
        x = torch.from_numpy(found.input[None].astype(np.float64))
        graph = case.network.graph
        last = graph.nodes[graph.output]
        logits = last.inputs[0] if isinstance(last.operator, Softmax) else graph.output
        exact = graph.values(x)[logits].numpy()
        assert case.instance.requirement.margin(exact, 0.0)[0] > 0


@pytest.mark.parametrize("family", sorted(FRAGILE_FAMILIES))
def test_generated_networks_hold_at_the_centre_and_some_break(family: str) -> None:
    cases = [fragile(family, seed) for seed in range(4)]
    assert all(case.instance.holds for case in cases)
    found = [find_break(c.network, c.instance, c.eps, seed=c.seed) for c in cases]
    assert any(found)


def test_the_same_seed_gives_the_same_network() -> None:
    for family in (*KNOWN_CASES, *FRAGILE_FAMILIES):
        assert fragile(family, 5).network.fingerprint == fragile(family, 5).network.fingerprint
        assert fragile(family, 5).network.fingerprint != fragile(family, 6).network.fingerprint


@pytest.mark.parametrize("seed", range(4))
def test_the_search_finds_what_a_closed_form_says(seed: int) -> None:
    """Just above the radius of a linear classifier there is a break, and below there is none."""
    classifier = LinearClassifier.random(seed, dtype=np.float32)
    x = np.random.default_rng(seed).uniform(-1, 1, 5)
    instance = instance_at(classifier.network, x)
    radius = classifier.radius(instance.input, instance.label, instance.norm)
    assert find_break(classifier.network, instance, 1.001 * radius) is not None
    assert find_break(classifier.network, instance, 0.999 * radius) is None


def test_a_point_outside_the_ball_or_of_the_right_class_is_no_break() -> None:
    case = fragile("distant-corner", 0)
    found = find_break(case.network, case.instance, case.eps)
    assert found is not None
    assert breaks(case.network, case.instance, 0.9 * found.distance, found.input) is None
    assert breaks(case.network, case.instance, case.eps, case.instance.input) is None


def test_an_execution_in_another_order_breaks_what_one_order_keeps() -> None:
    """2^25 - 2^25 + 1 is 1 forward; backward the 1 is lost, and a tie is a break."""
    sketch = Sketch(["n", 3])
    weight = np.array([[2.0**25, 0.0], [-(2.0**25), 0.0], [1.0, 0.0]])
    network = sketch.network(sketch.apply("MatMul", "x", sketch.constant(weight)), domain=(0, 1))
    instance = instance_at(network, np.ones(3), label=0)
    found = find_break_in_orders(network, instance, 2.0**-30)
    assert found is not None
    order, broken = found
    assert order is SummationOrder.BACKWARD
    assert broken.outputs.tolist() == [0.0, 0.0]
