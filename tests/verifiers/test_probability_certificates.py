"""Certificates of bounds on probabilities: SCR, and SR on probabilities."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.soundness.certified import is_accepted
from benchmarks.soundness.mutations import closed, opened
from radii.attacks import MinimumNorm
from radii.networks import Network
from radii.problem import (
    Grid,
    Instance,
    Norm,
    ProbabilityBound,
    Query,
    SoftmaxRequirement,
    log_odds,
)
from radii.problem import parse_property as parse
from radii.testing import NetworkFamily, random_instance, random_network
from radii.verifiers import BranchAndBound, Limits, ProbabilityCover, covered
from radii_check import Certificate, check
from radii_check._format import Arrays
from radii_check._network import Numbers
from radii_check._probabilities import covering

GRID = Grid("0.01", "0.4", "0.01")
PROPERTIES = ("scr:eta=0.4", "sr:delta=0.2,on=probabilities")


@functools.cache
def certified(
    family: NetworkFamily, seed: int, spec: str, norm: Norm = Norm.LINF
) -> tuple[Network, Instance, bytes]:
    """The first network from a seed on with a proof, and the certificate of it."""
    while True:
        network = random_network(family, seed, inputs=16)
        plain = random_instance(network, seed, norm=norm)
        instance = Instance(
            *(network.fingerprint, 0, plain.input, plain.label, plain.outputs),
            *(parse(spec), norm, network.domain),
        )
        verifier = BranchAndBound(certificates=True)
        found = verifier.certify(network, instance, GRID.values, Limits(seconds=10))
        if found.proof is not None:
            assert found.proof.certificate is not None
            return network, instance, found.proof.certificate
        seed += 100


@pytest.mark.parametrize("spec", PROPERTIES)
@pytest.mark.parametrize(
    ("family", "norm"),
    [
        (NetworkFamily.DENSE, Norm.LINF),
        (NetworkFamily.RESIDUAL, Norm.L2),
        (NetworkFamily.CLIPPED, Norm.L1),
    ],
)
def test_writer_and_checker_agree(spec: str, family: NetworkFamily, norm: Norm) -> None:
    torch.set_num_threads(1)
    network, instance, certificate = certified(family, 1, spec, norm)
    report = check(certificate, network.onnx_bytes)
    assert report.accepted, report.reason
    requirement = instance.requirement
    assert isinstance(requirement, SoftmaxRequirement)
    stated = report.claim["requirement"]
    assert stated["kind"] == "probabilities"
    assert [each["class"] for each in stated["bounds"]] == [b.index for b in requirement.bounds]


@pytest.mark.slow
@pytest.mark.parametrize("spec", PROPERTIES)
def test_exactly(spec: str) -> None:
    pytest.importorskip("flint")
    network, _, certificate = certified(NetworkFamily.DENSE, 2, spec)
    assert check(certificate, network.onnx_bytes, exact=True).accepted


@pytest.mark.parametrize("spec", PROPERTIES)
def test_no_mutant_is_accepted_that_a_counterexample_refutes(spec: str) -> None:
    torch.set_num_threads(1)
    network, instance, certificate = certified(NetworkFamily.DENSE, 3, spec)
    (attacked,) = MinimumNorm().attack(network, [Query(instance, 0.9)])
    assert attacked.witness is not None
    rng, refuted = np.random.default_rng(0), 0
    header, arrays = opened(certificate)
    names = [name for name in arrays if name.startswith(("cell_", "share")) and arrays[name].size]
    for _ in range(60):
        claim, changed = dict(header["claim"]), {name: a.copy() for name, a in arrays.items()}
        claim["eps"] = max(claim["eps"], attacked.witness.distance * rng.choice([0.5, 1.0, 1.2]))
        changed["eps"][:] = np.maximum(changed["eps"], claim["eps"])
        for name in rng.choice(names, 2):
            flat = changed[name].reshape(-1)
            flat[rng.integers(flat.size)] += rng.choice([-1, 1, 0.5, -0.5, 2.0**-40])
        is_false = claim["eps"] >= attacked.witness.distance
        refuted += is_false
        if is_false:
            assert not is_accepted(closed({**header, "claim": claim}, changed), network)
    assert refuted > 20


def test_a_better_level_needs_a_better_proof() -> None:
    """The same proof for a level that the network does not keep at the input itself."""
    torch.set_num_threads(1)
    network, instance, certificate = certified(NetworkFamily.DENSE, 1, "scr:eta=0.4")
    header, arrays = opened(certificate)
    (bound,) = header["claim"]["requirement"]["bounds"]
    odds = float(log_odds(instance.outputs, bound["class"]))
    bound["above"] = 1 / (1 + np.exp(-odds)) + 1e-6
    assert not is_accepted(closed(header, arrays), network)
    bound["above"] = "0.5"
    assert not is_accepted(closed(header, arrays), network)


# The argument itself: whatever the cuts, slopes and shares are, no violation escapes the polyhedra.


def polyhedra(bound: ProbabilityBound, arrays: dict[str, Any], outputs: int) -> list[Any]:
    word = "below" if bound.is_ceiling else "above"
    stated = {"kind": "probabilities", "bounds": [{"class": bound.index, word: bound.level}]}
    certificate = Certificate({"requirement": stated}, "units", Arrays(arrays), 1.0)
    return covering(certificate, outputs, Numbers())


@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=60)
@given(data=st.data())
def test_all_violations_are_covered(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    outputs, is_ceiling = int(rng.integers(2, 6)), bool(rng.integers(2))
    bound = ProbabilityBound(int(rng.integers(outputs)), float(rng.uniform(0.02, 0.98)), is_ceiling)
    low = rng.normal(-2, 2, outputs - 1)
    cover = ProbabilityCover(bound, low, low + rng.uniform(0.1, 6, outputs - 1))
    if is_ceiling:
        cover.shares = [*rng.dirichlet(np.ones(outputs - 1), 3), np.eye(outputs - 1)[0]]
    for _ in range(int(rng.integers(0, 4))):
        node = int(rng.choice([n for n in range(len(cover.cuts)) if not is_ceiling] or [0]))
        if all(parent != node for parent, *_ in cover.cuts) and not is_ceiling:
            cover.split(node, int(rng.integers(outputs - 1)), float(rng.normal()))
    made = covered([cover], outputs)
    arrays = dict(made.arrays)
    wild = rng.integers(0, 2**40, arrays["cell_slopes"].shape) / 2.0**40
    arrays["cell_slopes"] = np.where(rng.random(wild.shape) < 0.5, wild, arrays["cell_slopes"])
    points = rng.normal(0, 3, (4000, outputs))
    above = log_odds(points, bound.index) - bound.log_odds
    broken = above >= 0 if is_ceiling else above <= 0
    found = polyhedra(bound, arrays, outputs)
    inside = [np.all(points @ m.T + o <= 1e-9, axis=1) for m, o in found]
    assert np.all(np.any(inside, axis=0)[broken])
    # The writer's own polyhedra hold the checker's, row by row.
    for (matrix, offset), own in zip(
        polyhedra(bound, made.arrays, outputs), made.polyhedra, strict=True
    ):
        np.testing.assert_array_equal(matrix, own.matrix)
        assert np.all(own.offset <= offset)
