"""Verifiers with one mistake each, whose certificates claim too much: all are refused.

Others, with mistakes that are larger, are in test_native_certificates.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from radii.attacks import MinimumNorm
from radii.bounds import DenseLayers, _duals
from radii.networks import Network
from radii.problem import Instance, Query
from radii.testing import NetworkFamily, random_instance, random_network
from radii.verifiers import Limits
from radii.verifiers.native import _certificates
from radii.verifiers.native._attempts import prove_by_units
from radii.verifiers.native._candidates import Candidates
from radii.verifiers.native._session import ProofSession
from radii.verifiers.native._tree import Tree
from radii_check import CheckReport, check

Wrong = Callable[[pytest.MonkeyPatch], None]

SEEDS = (0, 3, 5, 6, 10, 12)
"""Networks that each of the mistakes makes a claim about, or two."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    count = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(count)


def forgotten_bias(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the last layer: specifications are taken without their constant."""
    right = DenseLayers.backward

    def wrong(self: Any, *args: Any, **options: Any) -> Any:
        earlier = self.specs.earlier.clone()
        earlier[:, 0] = 0
        return right(replace(self, specs=replace(self.specs, earlier=earlier)), *args, **options)

    monkeypatch.setattr(DenseLayers, "backward", wrong)


def unit_off_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The argument of a unit is bounded, and the bound is taken for that of the one before it."""
    right = _duals.direct_terms

    def wrong(rows: Any, chosen: Any) -> Any:
        if rows.unit is not None:
            rows = replace(rows, unit=(rows.unit + 1) % rows.lower.shape[1])
        return right(rows, chosen)

    monkeypatch.setattr(_duals, "direct_terms", wrong)


def forgotten_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two children the one with the unit at most 0; the writer does not ask for it either."""
    right = Tree.children

    def wrong(self: Any, nodes: Any) -> Any:
        both = right(self, nodes)
        return both.pick(torch.arange(len(both) // 2))

    monkeypatch.setattr(Tree, "children", wrong)
    monkeypatch.setattr(_certificates._Assembly, "_is_over", lambda *_: True)


def stated(network: Network, instance: Instance, eps: float) -> bytes | None:
    """The certificate of what a verifier takes for a proof."""
    specification = Query(instance, eps).specification
    session = ProofSession(network, certifies=True)
    attempt = prove_by_units(session, specification, Limits(seconds=2))
    return None if attempt.certify is None else attempt.certify()


@functools.cache
def broken(seed: int) -> tuple[Network, Instance, float]:
    """A network, an instance, and an eps at which it has a counterexample."""
    network = random_network(NetworkFamily.DENSE, seed, inputs=16, units=30)
    instance = random_instance(network, seed)
    (attacked,) = MinimumNorm().attack(network, [Query(instance, 0.9)])
    assert attacked.witness is not None
    return network, instance, 1.02 * attacked.witness.distance


def reports() -> Iterator[CheckReport]:
    """What the checker says of certificates that are false."""
    for network, instance, eps in map(broken, SEEDS):
        certificate = stated(network, instance, eps)
        if certificate is not None:
            yield check(certificate, network.onnx_bytes)


@pytest.mark.parametrize(
    ("make_wrong", "told"),
    [
        (forgotten_bias, "closes it by 0, but its row gives"),
        (unit_off_by_one, "but its row gives"),
        (forgotten_child, "nothing closes node"),
    ],
)
def test_one_mistake_is_found_out(
    make_wrong: Wrong, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_wrong(monkeypatch)
    monkeypatch.setattr(Candidates, "try_points", lambda *_: False)  # nor does it look
    found = list(reports())
    assert len(found) >= 2
    assert not any(report.accepted for report in found)
    assert any(told in report.reason for report in found), [report.reason for report in found]


def test_without_a_mistake_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a counterexample lies; so the claims above rest on the mistakes alone."""
    monkeypatch.setattr(Candidates, "try_points", lambda *_: False)
    assert not list(reports())
