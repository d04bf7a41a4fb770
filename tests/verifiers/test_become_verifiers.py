"""`become` is a conjunction: every verifier decides all its rows at once, with exact radii."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from radii.bounds import fuse
from radii.networks import Network
from radii.problem import Become, Instance, Norm, OneToAny, OneToOne, Query, Specification, Verdict
from radii.testing import NetworkFamily, Sketch, instance_at, random_instance, random_network
from radii.verifiers import Answer, BranchAndBound, Enumeration, Limits, Marabou, Milp, Verifier
from radii.verifiers.native._attempts import prove_by_inputs, prove_by_units
from radii.verifiers.native._form import unwrapped
from radii.verifiers.native._session import ProofSession

SECONDS = 60.0


class ByUnits(BranchAndBound):
    """The native verifier, held to splitting units."""

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        return prove_by_units(ProofSession(network), specification, limits).answer


class ByInputs(BranchAndBound):
    """The native verifier, held to splitting inputs."""

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        return prove_by_inputs(ProofSession(network), specification, limits).answer


VERIFIERS = (ByUnits, ByInputs, Enumeration, Milp, Marabou)


def targets(instance: Instance) -> list[int]:
    return [t for t in range(instance.outputs.size) if t != instance.label]


def become_radii(network: Network, instance: Instance) -> dict[int, float]:
    """By target, from the MILP that minimises the distance; inf where nothing is the target."""
    found = {}
    for target in targets(instance):
        answer = Milp().radius(network, replace(instance, property=Become(target)), Limits(SECONDS))
        assert answer.stopped is None
        assert answer.upper - answer.lower < 2e-3 or answer.upper == np.inf
        found[target] = answer.upper
    return found


@pytest.mark.sampled(4)
@pytest.mark.parametrize("norm", [Norm.LINF, Norm.L1])
@pytest.mark.parametrize("seed", range(4))
def test_radii_are_between_one_to_one_and_any(seed: int, norm: Norm) -> None:
    """At least that of one-to-one for the same target; the least over targets is one-to-any's."""
    network = random_network(NetworkFamily.DENSE, seed, units=10, inputs=3, outputs=4)
    instance = random_instance(network, seed, norm=norm)
    become = become_radii(network, instance)
    for target, radius in become.items():
        one = replace(instance, property=OneToOne(target))
        assert Milp().radius(network, one, Limits(SECONDS)).lower <= radius
    to_any = Milp().radius(network, replace(instance, property=OneToAny()), Limits(SECONDS))
    assert min(become.values()) == pytest.approx(to_any.upper, rel=2e-2, abs=1e-4)


@pytest.mark.parametrize("kind", VERIFIERS)
def test_every_verifier_agrees_with_the_exact_radius(kind: type[Verifier]) -> None:
    verifier = kind()
    if verifier.version == "maraboupy is not installed":
        pytest.skip(verifier.version)
    network = random_network(NetworkFamily.DENSE, 1, units=10, inputs=3, outputs=4)
    instance = random_instance(network, 1)
    radii = become_radii(network, instance)
    assert sum(np.isfinite(list(radii.values()))) >= 2
    for target, radius in radii.items():
        asked = replace(instance, property=Become(target))
        if np.isinf(radius):
            result = verifier.verify(network, Query(asked, 1.0), Limits(SECONDS))
            assert result.verdict is Verdict.ROBUST
            continue
        below = verifier.verify(network, Query(asked, 0.98 * radius), Limits(SECONDS))
        above = verifier.verify(network, Query(asked, 1.02 * radius), Limits(SECONDS))
        assert (below.verdict, above.verdict) == (Verdict.ROBUST, Verdict.NOT_ROBUST)
        assert above.witness is not None
        assert above.witness.outputs[target] == above.witness.outputs.max()


def ended(operator: str, **attributes: int) -> Network:
    """A random dense network that ends in an activation."""
    rng = np.random.default_rng(5)
    sketch = Sketch([1, 3])
    shapes = (3, 6), 6, (6, 4), 4
    first, shift, second, bias = (sketch.constant(rng.normal(size=shape)) for shape in shapes)
    hidden = sketch.apply("Relu", sketch.apply("Gemm", "x", first, shift))
    value = sketch.apply("Gemm", hidden, second, bias)
    return sketch.network(sketch.apply(operator, value, **attributes), domain=(-1, 1))


def test_a_final_relu_leaves_conjunctions_as_they_are() -> None:
    """Only single comparisons are moved in front of it; the tree then relaxes its units."""
    network = ended("Relu")
    instance = instance_at(network, np.array([0.4, -0.3, 0.5]))
    fusion = fuse(network)
    for target in targets(instance):
        given = replace(instance, property=Become(target)).requirement.violations or ()
        bare, violations = unwrapped(fusion, given)
        assert bare is fusion
        assert violations == given


@pytest.mark.parametrize("operator", ["Relu", "Softmax"])
def test_native_behind_a_final_activation(operator: str) -> None:
    """Against dense samples of the ball, and against its own witnesses."""
    network = ended(operator, **({"axis": 1} if operator == "Softmax" else {}))
    instance = instance_at(network, np.array([0.4, -0.3, 0.5]))
    rng = np.random.default_rng(0)
    for target in targets(instance):
        asked = replace(instance, property=Become(target))
        for eps in (0.1, 0.4, 1.0):
            result = BranchAndBound().verify(network, Query(asked, eps), Limits(SECONDS))
            points = asked.ball(eps).sample(rng, 4000).astype(np.float32)
            is_seen = bool((~asked.requirement.holds(network.replay(points), 0.0)).any())
            assert result.verdict in (Verdict.ROBUST, Verdict.NOT_ROBUST)
            if is_seen:
                assert result.verdict is Verdict.NOT_ROBUST
            if result.witness is not None:
                assert result.witness.outputs[target] == result.witness.outputs.max()
