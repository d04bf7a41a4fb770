"""Networks that end in a softmax: bounds on what they output."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from radii.networks import Network
from radii.problem import (
    FLOAT,
    Instance,
    LipschitzRobustness,
    OneToAny,
    Property,
    Query,
    SoftmaxRequirement,
    StandardRobustness,
    StrongClassification,
    Verdict,
    probabilities,
)
from radii.testing import Sketch, instance_at
from radii.verifiers import BranchAndBound, Limits
from radii.verifiers._probabilities import logit_question

EPS = 0.05
INPUTS = 20


def softmax_network(seed: int) -> Network:
    """Twenty inputs, so that splitting inputs would get nowhere."""
    rng = np.random.default_rng(seed)
    sketch = Sketch([1, INPUTS], dtype=np.float32)
    weights = [rng.normal(0, 0.4, shape) for shape in ((INPUTS, 8), (8, 3))]
    hidden = sketch.apply("Gemm", "x", sketch.constant(weights[0]), sketch.constant(np.zeros(8)))
    held = sketch.apply("Relu", hidden)
    outputs = sketch.apply("Gemm", held, sketch.constant(weights[1]), sketch.constant(np.zeros(3)))
    return sketch.network(sketch.apply("Softmax", outputs, axis=1), domain=(0.0, 1.0))


def asked(network: Network, wanted: Property) -> Instance:
    point = np.random.default_rng(5).uniform(0, 1, INPUTS)
    return replace(instance_at(network, point, property=wanted), outputs_are_probabilities=True)


@pytest.mark.parametrize("seed", range(3))
def test_probabilities_that_are_outputs(seed: int) -> None:
    network = softmax_network(seed)
    assert network.outputs_are_probabilities
    bare = asked(network, StandardRobustness(1.0))
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (2000, *network.input_shape))
    points = np.clip(bare.ball(EPS).center + EPS * signs, 0, 1).astype(np.float32)
    shares = network.replay(points)
    least = float(shares[:, bare.label].min())
    change = float(np.abs(shares - bare.outputs).max())
    for wanted, expected in (
        (StrongClassification(least + 0.01), Verdict.NOT_ROBUST),
        (StrongClassification(0.6 * least), Verdict.ROBUST),
        (StandardRobustness(0.95 * change), Verdict.NOT_ROBUST),
        (StandardRobustness(3 * change), Verdict.ROBUST),
        (LipschitzRobustness(0.5 * change / EPS), Verdict.NOT_ROBUST),
        (LipschitzRobustness(4 * change / EPS), Verdict.ROBUST),
    ):
        instance = asked(network, wanted)
        result = BranchAndBound().verify(network, Query(instance, EPS), Limits(60.0))
        assert result.verdict is expected, wanted.spec


def test_the_network_in_front_of_its_softmax() -> None:
    network = softmax_network(0)
    instance = asked(network, StrongClassification(0.3))
    found = logit_question(network, Query(instance, EPS).specification, FLOAT)
    assert found is not None
    logits, specification = found
    points = np.random.default_rng(2).uniform(0, 1, (20, 1, INPUTS)).astype(np.float32)
    points = points.reshape(-1, *network.input_shape)
    assert np.allclose(probabilities(logits.replay(points)), network.replay(points), atol=1e-6)
    assert isinstance(specification.requirement, SoftmaxRequirement)
    compared = replace(instance, property=OneToAny())
    assert logit_question(network, Query(compared, EPS).specification, FLOAT) is None


def test_probabilities_that_saturate() -> None:
    """Far apart, float32 has probabilities of exactly 0 and 1: a change of 1 is possible."""
    sketch = Sketch([1, 2], dtype=np.float32)
    outputs = sketch.apply("Gemm", "x", sketch.constant(200 * np.eye(2)))
    network = sketch.network(sketch.apply("Softmax", outputs, axis=1), domain=(0.0, 1.0))
    for on_probabilities in (False, True):
        wanted = StandardRobustness(1.0, on_probabilities=on_probabilities)
        instance = instance_at(network, [1.0, 0.0], property=wanted)
        result = BranchAndBound().verify(network, Query(instance, 1.0), Limits(20.0))
        assert result.verdict is Verdict.NOT_ROBUST


def test_changes_beyond_0_and_1_do_not_matter() -> None:
    network = softmax_network(0)
    instance = asked(network, StandardRobustness(0.7))
    found = logit_question(network, Query(instance, EPS).specification, FLOAT)
    assert found is not None
    requirement = found[1].requirement
    assert isinstance(requirement, SoftmaxRequirement)
    assert all(0 < bound.level < 1 for bound in requirement.bounds)
    assert len(requirement.bounds) < 2 * network.output_size
