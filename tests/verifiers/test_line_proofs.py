"""Networks of many inputs whose units are not split: linear bounds of the whole region."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from radii.bounds import fuse
from radii.networks import Network
from radii.problem import Box, Limits, Query, Verdict
from radii.testing import Sketch, instance_at
from radii.verifiers import BranchAndBound
from radii.verifiers.native._line_proofs import prove_by_lines
from radii.verifiers.native._questions import splits_inputs
from radii.verifiers.native._session import ProofSession

INPUTS = 80


def product_of_means() -> Network:
    """Outputs p (p + 1), p being the mean of the inputs, and 0.56: equal where p is 0.4."""
    sketch = Sketch([1, INPUTS])
    mean = sketch.apply("MatMul", "x", sketch.constant(np.full((INPUTS, 1), 1 / INPUTS)))
    more = sketch.apply("Add", mean, sketch.constant(np.array([[1.0]])))
    product = sketch.apply("Mul", mean, more)
    both = sketch.apply("MatMul", product, sketch.constant(np.array([[1.0, 0.0]])))
    shifted = sketch.apply("Add", both, sketch.constant(np.array([[0.0, 0.56]])))
    return sketch.network(shifted, domain=(0, 1))


@pytest.mark.parametrize(
    ("eps", "verdict"),
    [(0.09, Verdict.ROBUST), (0.0985, Verdict.ROBUST), (0.101, Verdict.NOT_ROBUST)],
)
def test_a_product_is_decided_up_to_its_radius(eps: float, verdict: Verdict) -> None:
    """Its tangent at the centre reaches as far as 0.095, other planes as far as there is."""
    network = product_of_means()
    instance = instance_at(network, np.full(INPUTS, 0.5))
    assert BranchAndBound().verify(network, Query(instance, eps)).verdict is verdict


def test_lines_prove_nothing_that_is_false_or_out_of_time() -> None:
    network = product_of_means()
    session, fusion = ProofSession(network), fuse(network)
    instance = instance_at(network, np.full(INPUTS, 0.5))

    def left(eps: float, seconds: float) -> int:
        specification = Query(instance, eps).specification
        stated = specification.requirement.violations
        assert stated is not None
        return len(prove_by_lines(session, fusion, stated, specification, Limits(seconds)).left)

    assert left(0.0985, 30.0) == 0
    assert left(0.1001, 30.0) == 1
    assert left(0.0985, 0.0) == 1


def test_inputs_that_do_not_vary_are_not_many() -> None:
    network = product_of_means()
    session = ProofSession(network)
    whole = Query(instance_at(network, np.full(INPUTS, 0.5)), 0.1).specification
    low, high = whole.region.box()
    high = np.where(np.arange(INPUTS).reshape(high.shape) < 5, high, low)
    narrow = replace(whole, region=Box(low, high))
    assert splits_inputs(session, narrow) and not splits_inputs(session, whole)


def test_a_glance_at_a_small_smooth_network_proves_by_crown() -> None:
    """There is no tree whose root would be as quick."""
    network = product_of_means()
    instance = instance_at(network, np.full(INPUTS, 0.5))
    assert BranchAndBound().glance(network, instance, 0.09, Limits(30.0)).lower == 0.09
    assert BranchAndBound().glance(network, instance, 0.101, Limits(30.0)).lower == 0.0
