"""Proofs of random networks of all families and norms."""

from __future__ import annotations

import numpy as np
import pytest
from form_prover import Prover

from radii.attacks import attack_specification
from radii.problem import Ball, Domain, Halfspaces, LinearRequirement, Norm, Specification
from radii.testing import NetworkFamily, random_network
from radii_check import check


def violations(outputs: int, label: int) -> list[Halfspaces]:
    units = np.eye(outputs)
    return [Halfspaces(units[label] - units[r], np.zeros(1)) for r in range(outputs) if r != label]


def proofs(family: NetworkFamily, norm: Norm, seed: int, arithmetic: str) -> list[Prover]:
    """Of one network around one input, with growing eps as far as they go."""
    network = random_network(family, seed, units=24)
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.2, 0.8, network.input_shape)
    label = int(network.replay(x[None].astype(network.input_dtype))[0].argmax())
    found = []
    for eps in 0.001 * 2.0 ** np.arange(9):
        ball = Ball(x, float(eps), norm, Domain(0.0, 1.0))
        prover = Prover(network, ball, violations(network.output_size, label), arithmetic)
        if not prover.proven():
            break
        found.append(prover)
    return found


def accepted(family: NetworkFamily, norm: Norm, seed: int, arithmetic: str, exact: bool) -> None:
    found = proofs(family, norm, seed, arithmetic)
    for prover in found[-2:]:
        label = int(np.argmax(prover.violations[0].matrix[0]))
        stated = {"kind": "one-to-any", "label": label}
        report = check(prover.certificate(stated), prover.network.onnx_bytes, exact=exact)
        assert report.accepted, report.reason
        assert report.smallest_margin >= 0


@pytest.mark.sampled(14)
@pytest.mark.parametrize("arithmetic", ["float", "real"])
@pytest.mark.parametrize("norm", list(Norm))
@pytest.mark.parametrize("family", list(NetworkFamily))
def test_proofs_are_accepted(family: NetworkFamily, norm: Norm, arithmetic: str) -> None:
    for seed in range(3):
        accepted(family, norm, seed, arithmetic, exact=False)


@pytest.mark.parametrize("family", list(NetworkFamily))
def test_proofs_are_accepted_exactly(family: NetworkFamily) -> None:
    for norm in Norm:
        accepted(family, norm, 1, "float", exact=True)


@pytest.mark.parametrize("family", list(NetworkFamily))
def test_no_claim_reaches_a_counterexample(family: NetworkFamily) -> None:
    """The same proof with a larger eps, where an attack finds something."""
    for seed in range(4):
        found = list(proofs(family, Norm.LINF, seed, "real"))
        if not found:
            continue
        prover = found[-1]
        ball = prover.region
        assert isinstance(ball, Ball)
        larger = Ball(ball.center, 0.4, Norm.LINF, ball.domain)
        specification = Specification(larger, LinearRequirement(tuple(prover.violations)))
        witness = attack_specification(prover.network, specification, seconds=2.0)
        if witness is None:
            continue
        eps = float(np.abs(witness.input - ball.center).max())
        prover.region = Ball(ball.center, eps, Norm.LINF, ball.domain)
        report = check(prover.certificate(), prover.network.onnx_bytes)
        assert not report.accepted
