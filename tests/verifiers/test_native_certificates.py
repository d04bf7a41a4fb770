"""Certificates of native's proofs: accepted where they are true, refused where native is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from benchmarks.soundness.certified import certified_case, is_accepted, with_eps
from radii.attacks import MinimumNorm
from radii.bounds import DenseLayers, FloatErrors
from radii.networks import Network, ReluLines, from_torch
from radii.problem import (
    FLOAT,
    REAL,
    Arithmetic,
    Become,
    Instance,
    Norm,
    OneToOne,
    Query,
    StandardRobustness,
    Verdict,
)
from radii.testing import LinearClassifier, NetworkFamily, Sketch, instance_at, random_instance
from radii.testing import random_network as made
from radii.verifiers import BranchAndBound, Limits, Milp
from radii.verifiers.certificates._container import Certificate
from radii.verifiers.native import _certificates
from radii.verifiers.native._attempts import crown_certificate, prove_by_units
from radii.verifiers.native._box_certificates import box_certificate
from radii.verifiers.native._candidates import Candidates
from radii.verifiers.native._session import ProofSession
from radii.verifiers.native._tree import Tree
from radii_check import check, read_certificate

NORMS = list(Norm)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    count = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(count)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("family", NetworkFamily)
@pytest.mark.parametrize("norm", NORMS)
def test_writer_and_checker_agree(family: NetworkFamily, norm: Norm) -> None:
    for seed, arithmetic in ((2, FLOAT), (3, REAL)):
        case = certified_case(family, seed, norm, arithmetic)
        assert case.problem == "", str(case)
        assert case.lower > 0


@pytest.mark.slow
@pytest.mark.parametrize("family", NetworkFamily)
def test_writer_and_checker_agree_exactly(family: NetworkFamily) -> None:
    pytest.importorskip("flint")
    for norm in NORMS:
        assert certified_case(family, 3, norm, exact=True).problem == ""


def proven(network: Network, instance: Instance, eps: float) -> bytes:
    """The certificate of a query."""
    result = BranchAndBound(certificates=True).verify(network, Query(instance, eps))
    assert result.verdict is Verdict.ROBUST
    assert result.proof is not None
    assert result.proof.certificate is not None
    return result.proof.certificate


@pytest.mark.parametrize("norm", NORMS)
def test_a_closed_form(norm: Norm) -> None:
    classifier = LinearClassifier.random(5, inputs=14, outputs=4)
    centre = np.full(14, 0.5, np.float32)
    instance = instance_at(classifier.network, centre, norm=norm)
    radius = classifier.radius(instance.input, instance.label, norm)
    certificate = proven(classifier.network, instance, 0.999 * radius)
    assert check(certificate, classifier.network.onnx_bytes).accepted
    assert not is_accepted(with_eps(certificate, 1.001 * radius), classifier.network)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", [torch.nn.Tanh, torch.nn.Sigmoid])
def test_smooth_networks(kind: type[torch.nn.Module], norm: Norm) -> None:
    """Two layers of smooth units, of which the second one reads curves."""
    torch.manual_seed(3)
    layers = [torch.nn.Linear(4, 6), kind(), torch.nn.Linear(6, 6), kind(), torch.nn.Linear(6, 3)]
    module = torch.nn.Sequential(*layers)
    for weight in module.parameters():
        if weight.dim() == 2:
            torch.nn.init.normal_(weight, std=1.0 if kind is torch.nn.Tanh else 3.0)
    network = from_torch(module, input_shape=(4,), domain=(-3, 3))
    instance = instance_at(network, np.full(4, 0.4), norm=norm)
    (attacked,) = MinimumNorm().attack(network, [Query(instance, 6.0)])
    assert attacked.witness is not None
    certificate = proven(network, instance, 0.2 * attacked.witness.distance)
    report = check(certificate, network.onnx_bytes)
    assert report.accepted, report.reason
    assert not is_accepted(with_eps(certificate, attacked.witness.distance), network)


@pytest.mark.parametrize("norm", [Norm.LINF, Norm.L1])
@pytest.mark.parametrize("family", [NetworkFamily.DENSE, NetworkFamily.POOLING])
def test_what_milp_proves_is_proven_by_the_tree(family: NetworkFamily, norm: Norm) -> None:
    network = made(family, 3, inputs=6)
    instance = random_instance(network, 3, norm=norm)
    (attacked,) = MinimumNorm().attack(network, [Query(instance, 2.0)])
    assert attacked.witness is not None
    query = Query(instance, 0.9 * attacked.witness.distance)
    proof = Milp(certificates=True).verify(network, query).proof
    assert proof is not None
    assert proof.certificate is not None
    assert check(proof.certificate, network.onnx_bytes).accepted
    unasked = Milp().verify(network, query).proof
    assert unasked is not None
    assert unasked.certificate is None


@pytest.mark.parametrize("property_", [OneToOne(1), Become(1)], ids=["one-to-one", "become"])
def test_targets(property_: Any) -> None:
    network = made(NetworkFamily.DENSE, 11, inputs=16, outputs=4)
    for seed in range(40):
        instance = random_instance(network, seed)
        if instance.label != 1 and instance.correct:
            break
    targeted = Instance(
        *(network.fingerprint, 0, instance.input, instance.label, instance.outputs),
        *(property_, Norm.LINF, network.domain),
    )
    result = MinimumNorm().attack(network, [Query(targeted, 0.9)])[0]
    eps = 0.9 * result.witness.distance if result.witness is not None else 0.3
    certificate = proven(network, targeted, eps)
    report = check(certificate, network.onnx_bytes)
    assert report.accepted, report.reason
    assert report.claim["requirement"]["kind"] == property_.spec.split(":")[0]


# Verifiers that are wrong on purpose: each claims a proof where a counterexample lies.


def upper_line_too_low(monkeypatch: pytest.MonkeyPatch) -> None:
    right = ReluLines.of

    def wrong(lower: Any, upper: Any) -> Any:
        found = right(lower, upper)
        return replace(found, upper_offset=found.upper_offset * 0.0)

    monkeypatch.setattr(ReluLines, "of", staticmethod(wrong))


def slope_of_the_wrong_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, on_output: Any, slopes: Any, units: slice) -> tuple[Any, Any]:
        return -(on_output.clamp_max(0) * slopes[:, units]), torch.zeros_like(on_output)

    monkeypatch.setattr(ReluLines, "backward", wrong)


def raised_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    right = DenseLayers.backward

    def wrong(self: Any, *args: Any, **options: Any) -> Any:
        found = right(self, *args, **options)
        found.values = found.values + 10.0
        return found

    monkeypatch.setattr(DenseLayers, "backward", wrong)


def forgotten_children(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Tree.children

    def wrong(self: Any, nodes: Any) -> Any:
        return right(self, nodes).pick(torch.arange(0))

    monkeypatch.setattr(Tree, "children", wrong)
    monkeypatch.setattr(_certificates._Assembly, "_is_over", lambda *_: True)


WRONG: list[Callable[[pytest.MonkeyPatch], None]] = [
    upper_line_too_low,
    slope_of_the_wrong_sign,
    raised_bounds,
    forgotten_children,
]


@pytest.mark.parametrize("make_wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_wrong_verifiers_are_found_out(
    make_wrong: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_wrong(monkeypatch)
    monkeypatch.setattr(Candidates, "try_points", lambda *_: False)  # nor does it look
    claimed = 0
    for seed in range(12):
        network = made(NetworkFamily.DENSE, seed, inputs=16, units=30)
        instance = random_instance(network, seed)
        (attacked,) = MinimumNorm().attack(network, [Query(instance, 0.9)])
        if attacked.witness is None:
            continue
        eps = 1.02 * attacked.witness.distance
        session = ProofSession(network, certifies=True)
        attempt = prove_by_units(session, Query(instance, eps).specification, Limits(seconds=5))
        if attempt.certify is None or (certificate := attempt.certify()) is None:
            continue
        claimed += 1
        assert not is_accepted(certificate, network)
        if claimed == 5:
            break
    assert claimed >= 3


def test_a_dropped_margin_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims for floats that rest on real numbers: refused where the error is what is missing."""
    network = made(NetworkFamily.DENSE, 4, inputs=16)
    instance = random_instance(network, 4)
    right = FloatErrors.of_arguments
    monkeypatch.setattr(FloatErrors, "of_arguments", lambda *args: 0 * right(*args))
    certificate = largest_certificate(network, instance)
    assert not is_accepted(certificate, network)


def largest_certificate(network: Network, instance: Instance) -> bytes:
    """At the largest eps, to 1e-9 of it, that is proven."""
    low, high, best = 0.0, 1.0, b""
    for _ in range(40):
        middle = (low + high) / 2
        limits = Limits(seconds=5)
        session = ProofSession(network, certifies=True)
        attempt = prove_by_units(session, Query(instance, middle).specification, limits)
        if attempt.answer.verdict is Verdict.ROBUST:
            low, best = middle, (attempt.certify and attempt.certify()) or best
        else:
            high = middle
    return best


Written = tuple[list[list[float]], list[float]]
"""Weight and bias of a layer."""


def linear_layers(written: Sequence[Written]) -> list[nn.Linear]:
    """Layers with these weights and biases."""
    layers = [nn.Linear(len(weight[0]), len(weight)) for weight, _ in written]
    with torch.no_grad():
        for layer, (weight, bias) in zip(layers, written, strict=True):
            layer.weight.copy_(torch.tensor(weight))
            layer.bias.copy_(torch.tensor(bias))
    return layers


def test_boxes_are_cut_until_the_checker_closes_them_too() -> None:
    """In front of the last ReLU are -h and 0.05, where h >= 0.1; radii joins the two layers that
    write -h as 2 h - 3 h, and the checker bounds them one after the other."""
    written: list[Written] = [
        ([[1, 0], [0, 1]], [0, 0]),
        ([[1, 1]], [0.1]),
        ([[1], [1]], [0, 0]),
        ([[2, -3]], [0.05]),
        ([[1], [-1]], [0, 0]),
    ]
    first, second, third, fourth, last = linear_layers(written)
    module = nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), third, fourth, nn.ReLU(), last)
    network = from_torch(module, input_shape=(2,), domain=(-1, 1))
    asked = StandardRobustness(0.01)
    instance = instance_at(network, np.array([0.05, 0.05]), property=asked, index=0)
    specification = Query(instance, 0.2).specification
    content = box_certificate(network, specification, FLOAT, 60.0)
    assert content is not None
    assert check(content, network.onnx_bytes).accepted


def test_the_checker_knows_bounds_of_units_through_joined_layers() -> None:
    """b = a - x0 / 2 with a = max(0, x0 + 0.2) is above 0.07 by its own slope. The argument of
    the last unit is (b + p) - p - 0.05: radii joins the two layers and takes b's bound, which
    neither a row through b with CROWN's slopes nor intervals layer by layer show."""
    first, second, third, fourth, last = linear_layers(
        [
            ([[1, 0], [1, 0], [0, 1], [0, 1]], [0.2, 2, 2, 0]),
            ([[1, -0.5, 0, 0], [0, 0, 0, 3]], [1, -1]),
            ([[1, 1], [0, 1]], [0, 0]),
            ([[1, -1], [0, 0]], [-0.05, 1]),
            ([[1, 0], [0, 0]], [0.1, 0]),
        ]
    )
    relu = nn.ReLU()
    module = nn.Sequential(first, relu, second, relu, third, fourth, relu, last)
    network = from_torch(module, input_shape=(2,), domain=(-2, 2))
    content = proven(network, instance_at(network, np.zeros(2)), 1.0)
    assert check(content, network.onnx_bytes).accepted
    certificate = read_certificate(content)
    for unit in (4, 6):
        arrays = {name: array.copy() for name, array in certificate.arrays.items()}
        arrays["lower"][0, unit] += 0.03
        raised = Certificate(dict(certificate.claim), certificate.mode, arrays).to_bytes()
        report = check(raised, network.onnx_bytes)
        assert f"states a bound of unit {unit}" in report.reason


def of_copies(sketch: Sketch, value: str) -> str:
    """The larger of each entry and its copy: the file only moves entries before it compares."""
    doubled = sketch.apply("Gather", value, sketch.constant(np.array([0, 0, 1, 2, 3, 3])), axis=1)
    row = sketch.apply("Reshape", doubled, sketch.constant(np.array([1, 1, 1, 6])))
    pooled = sketch.apply("MaxPool", row, kernel_shape=[1, 2], strides=[1, 2])
    return sketch.apply("Flatten", pooled)


def of_nothing_left(sketch: Sketch, value: str) -> str:
    """7 h - 7 h, which radii joins to a map of zeros."""
    scaled = sketch.apply("Mul", value, sketch.constant(np.array(7.0)))
    left = sketch.apply("Relu", sketch.apply("Sub", scaled, scaled))
    return sketch.apply("Gather", left, sketch.constant(np.array([0, 1, 2])), axis=1)


def of_offsets(sketch: Sketch, value: str) -> str:
    """(h + c) - c, of which radii has the offset 0."""
    offset = sketch.constant(np.array([1e3, 3e3, 1e5, 7e5]))
    moved = sketch.apply("Sub", sketch.apply("Add", value, offset), offset)
    below = sketch.apply("Relu", sketch.apply("Neg", moved))
    return sketch.apply("Gather", below, sketch.constant(np.array([0, 1, 2])), axis=1)


@pytest.mark.parametrize("arithmetic", [FLOAT, REAL], ids=str)
@pytest.mark.parametrize("cancelled", [of_copies, of_nothing_left, of_offsets])
def test_what_cancels_for_radii_is_a_sum_for_the_checker(
    cancelled: Callable[[Sketch, str], str], arithmetic: Arithmetic
) -> None:
    """Arguments that are 0, or no larger than what float64 rounds in adding them up one operator
    after another: their bounds leave room for that, at the tree's root and in a pass of CROWN."""
    rng = np.random.default_rng(1)
    for dtype in (np.float32, np.float64):
        sketch = Sketch([1, 3], dtype=dtype)
        first = (sketch.constant(rng.normal(0, 1, (3, 4))), sketch.constant(rng.normal(0, 0.3, 4)))
        value = cancelled(sketch, sketch.apply("Relu", sketch.apply("Gemm", "x", *first)))
        last = (sketch.constant(rng.normal(0, 1e-6, (3, 3))), sketch.constant([0.1, 3.0, 0.2]))
        network = sketch.network(sketch.apply("Gemm", value, *last))
        specification = Query(instance_at(network, np.full(3, 0.5)), 0.1).specification
        session = ProofSession(network, arithmetic, certifies=True)
        by_tree = prove_by_units(session, specification, Limits(seconds=20)).certify
        by_crown = crown_certificate(session, specification, Limits(seconds=20))
        for certify in (by_tree, by_crown):
            assert certify is not None
            content = certify()
            assert content is not None
            report = check(content, network.onnx_bytes)
            assert report.accepted, report.reason
