"""Trees on a network's own maps: against samples, against matrices of open units, exact radii."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from radii.bounds import (
    CrownPasses,
    Fusion,
    HeldValues,
    MappedLayers,
    Multipliers,
    Rows,
    evaluate,
    fuse,
    improve,
)
from radii.networks import Network, Relu, ReluLines
from radii.problem import REAL, Box, Halfspaces, Instance, Norm, Query, Verdict
from radii.testing import NetworkFamily, Sketch, random_instance, random_network
from radii.verifiers import BranchAndBound, Limits, Milp
from radii.verifiers.native import _form as form
from radii.verifiers.native._attempts import prove_by_units
from radii.verifiers.native._mapped_reduction import keeps_structure, mapped_reduction
from radii.verifiers.native._reduction import PossibleOverflow, Reduction
from radii.verifiers.native._session import ProofSession
from radii.verifiers.native._settings import ProofSettings, RootSettings

SECONDS = 60.0

MAXIMA_SECONDS = 5.0
"""For integer programs of maxima over windows that overlap: what is proven by then counts."""

NEAR_SECONDS = 2.0
"""For a query within 0.1 % of the radius, which need not be decided: a claim must be right, and
most are made by then. The slow test has a minute for it."""


def residual_network(seed: int, *, scale: float = 1.0) -> Network:
    """Convolutions with strides and pads, two residual sums, one of them of two ReLUs alone."""
    rng = np.random.default_rng(seed)
    sketch = Sketch([1, 2, 6, 6])

    def convolved(value: str, channels: int, size: int, kernel: int, stride: int, pad: int) -> str:
        spread = scale / np.sqrt(channels * kernel)
        weight = sketch.constant(rng.normal(0, spread, (size, channels, kernel, kernel)))
        bias = sketch.constant(rng.normal(0, 0.2, size))
        pads, strides = [pad, pad, pad, pad], [stride, stride]
        return sketch.apply("Conv", value, weight, bias, pads=pads, strides=strides)

    first = sketch.apply("Relu", convolved("x", 2, 3, 3, 1, 1))
    second = sketch.apply("Relu", convolved(first, 3, 4, 3, 2, 1))
    third = sketch.apply("Relu", convolved(second, 4, 4, 3, 1, 1))
    joined = sketch.apply("Relu", sketch.apply("Add", third, second))
    skipped = sketch.apply("Add", convolved(joined, 4, 4, 3, 1, 1), convolved(first, 3, 4, 1, 2, 0))
    flat = sketch.apply("Flatten", sketch.apply("Relu", skipped))
    weight = sketch.constant(rng.normal(0, scale / 6, (36, 3)))
    return sketch.network(sketch.apply("Gemm", flat, weight, sketch.constant(rng.normal(size=3))))


def reduced(
    network: Network, instance: Instance, eps: float, *, seconds: float = 0.0, gain: float = 1.5
) -> Reduction:
    violations = instance.requirement.violations
    assert violations is not None
    ball = instance.ball(eps)
    state = CrownPasses().state(fuse(network), [ball], REAL)
    settings = RootSettings(dense_gain=gain)
    return mapped_reduction(state, ball, violations, root_seconds=seconds, settings=settings)


def random_rows(reduction: Reduction, seed: int, count: int = 40) -> tuple[Rows, Multipliers]:
    """Nodes with some splits, asked for a specification or a unit, and multipliers of all kinds."""
    generator = torch.Generator().manual_seed(seed)
    layers, units = reduction.layers, reduction.layers.units
    lower, upper = reduction.lower.repeat(count, 1), reduction.upper.repeat(count, 1)
    signs = torch.randint(-30, 31, lower.shape, generator=generator)
    signs = torch.where(signs.abs() == 30, signs.sign(), 0).double()
    lower, upper = torch.where(signs > 0, 0.0, lower), torch.where(signs < 0, 0.0, upper)
    specs = layers.spec_rows // layers.parts
    spec = torch.randint(specs, (count,), generator=generator)
    rows = Rows(lower, upper, spec, signs)
    slopes, gamma, beta = (
        torch.rand(count, size, generator=generator, dtype=torch.float64)
        for size in (units, layers.parts, units)
    )
    return rows, Multipliers(slopes, gamma, 0.3 * beta)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(6))
def test_maps_and_matrices_of_open_units_agree(seed: int) -> None:
    network = residual_network(seed)
    reduction = reduced(network, random_instance(network, seed), 0.2, gain=0.0)
    mapped = reduction.layers
    assert isinstance(mapped, MappedLayers)
    dense = mapped.condensed(reduction.upper.clamp_min(0))
    rows, chosen = random_rows(reduction, seed)
    first, second = evaluate(mapped, rows, chosen), evaluate(dense, rows, chosen)
    torch.testing.assert_close(first.values, second.values, atol=1e-8, rtol=1e-8)
    torch.testing.assert_close(first.losses, second.losses, atol=1e-10, rtol=1e-10)
    assert bool((second.values <= first.values + 1e-12).all())  # more roundings are subtracted
    folded, single = mapped.to(torch.float32, "cpu"), dense.to(torch.float32, "cpu")
    with pytest.raises(ValueError, match="prove nothing"):
        folded.to(torch.float64, "cpu")
    rows32, chosen32 = rows.to(torch.float32), chosen.to(torch.float32)
    lines = ReluLines.of(rows32.lower, rows32.upper)
    passes = [each.backward(rows32, chosen32, lines, proven=False) for each in (folded, single)]
    torch.testing.assert_close(passes[0].values, passes[1].values, atol=1e-4, rtol=1e-4)
    gradients = [
        each.gradients(rows32, chosen32, lines, passed).parts()
        for each, passed in zip((folded, single), passes, strict=True)
    ]
    for own, other in zip(*gradients, strict=True):
        torch.testing.assert_close(own, other, atol=1e-3, rtol=1e-3)
    is_active = reduction.upper > -reduction.lower
    for own, other in zip(
        mapped.functions_of_steps(is_active), dense.functions_of_steps(is_active), strict=True
    ):
        torch.testing.assert_close(own, other)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("norm", list(Norm))
@pytest.mark.parametrize("gain", [0.0, np.inf])
def test_no_input_lies_below_a_bound(seed: int, norm: Norm, gain: float) -> None:
    """Specifications at samples that satisfy a node's splits, for any multipliers."""
    network = residual_network(seed)
    instance = random_instance(network, seed, norm=norm)
    eps = {Norm.LINF: 0.1, Norm.L2: 0.5, Norm.L1: 2.0}[norm]
    reduction = reduced(network, instance, eps, seconds=10.0, gain=gain)
    assert isinstance(reduction.layers, MappedLayers) == (gain == 0)
    rows, chosen = random_rows(reduction, seed)
    points = instance.ball(eps).sample(np.random.default_rng(seed), 2000)
    arguments = arguments_of(network, points)[:, reduction.names.numpy()]
    violations = instance.requirement.violations or ()
    outputs = network(torch.from_numpy(points)).numpy()
    assert bool((arguments >= reduction.lower.numpy() - 1e-9).all())
    assert bool((arguments <= reduction.upper.numpy() + 1e-9).all())
    better, _ = improve(reduction.layers, rows, chosen, 5)
    for multipliers in (chosen, better):
        values = evaluate(reduction.layers, rows, multipliers).values.numpy()
        for row, signs in enumerate(rows.signs.numpy() if rows.signs is not None else ()):
            inside = (arguments * signs >= 0).all(1)
            polyhedron = violations[int(rows.spec[row])]
            own = outputs[inside] @ polyhedron.matrix[0] + polyhedron.offset[0]
            weight = float(multipliers.gamma[row, 0])
            assert own.size == 0 or values[row] <= weight * own.min() + 1e-9


def arguments_of(network: Network, points: np.ndarray) -> np.ndarray:
    """What all ReLU units read, layer by layer, in float64."""
    fusion = fuse(network)
    flat = torch.from_numpy(points.reshape(len(points), -1))
    values, found = {0: flat}, []
    for stage in fusion.stages:
        read = torch.from_numpy(stage.offset) + sum(
            held.pushed(values[source]) for source, held in stage.maps.items()
        )
        values[stage.node] = read.clamp_min(0)
        found.append(read)
    return torch.cat(found, 1).numpy()


def is_plain(fusion: Fusion) -> bool:
    return all(isinstance(stage.operator, Relu | HeldValues) for stage in fusion.stages)


@pytest.fixture
def always_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every network of ReLU units alone keeps its maps, whatever their size."""
    monkeypatch.setattr(form, "keeps_structure", is_plain)
    settings = ProofSettings(splittable_inputs=0, root=RootSettings(dense_gain=0.0))
    monkeypatch.setattr(BranchAndBound, "settings", settings)


def pooled_network(seed: int) -> Network:
    """A maximum of any window, with padding or without: behind a ReLU, before one, both or none."""
    rng = np.random.default_rng(seed)
    sketch = Sketch([1, 1, 4, 4])
    value = "x"
    if seed % 5:  # else the maximum comes first
        weight = sketch.constant(rng.normal(0, 0.6, (2, 1, 3, 3)))
        bias = sketch.constant(rng.normal(0, 0.3, 2))
        value = sketch.apply("Conv", "x", weight, bias, pads=[1, 1, 1, 1])
    is_behind, is_before = rng.integers(2, size=2)
    value = sketch.apply("Relu", value) if is_behind else value
    kernel, stride, pad = int(rng.integers(2, 4)), int(rng.integers(1, 3)), int(rng.integers(2))
    dilation = int(rng.integers(1, 3)) if kernel == 2 else 1
    value = sketch.apply(
        "MaxPool",
        value,
        kernel_shape=[kernel] * 2,
        strides=[stride] * 2,
        pads=[pad] * 4,
        dilations=[dilation] * 2,
        ceil_mode=int(rng.integers(2)),
    )
    value = sketch.apply("Relu", value) if is_before else value
    flat = sketch.apply("Flatten", value)
    size = int(sketch.network(flat).output_size)
    weight = sketch.constant(rng.normal(0, 1.0, (size, 3)))
    return sketch.network(sketch.apply("Gemm", flat, weight, sketch.constant(rng.normal(size=3))))


@pytest.mark.sampled(4)
@pytest.mark.usefixtures("always_mapped")
@pytest.mark.parametrize("seed", range(12))
def test_maxima_agree_with_the_exact_radius(seed: int) -> None:
    network = pooled_network(seed)
    agrees_on(network, random_instance(network, seed), MAXIMA_SECONDS)


@pytest.mark.slow  # a minute for each query beside the radius
@pytest.mark.usefixtures("always_mapped")
@pytest.mark.parametrize("seed", range(100))
def test_maxima_agree_with_the_exact_radius_at_length(seed: int) -> None:
    network = pooled_network(seed)
    agrees_on(network, random_instance(network, seed), MAXIMA_SECONDS, near_seconds=SECONDS)


def agrees_with_the_exact_radius(seed: int, near_seconds: float = NEAR_SECONDS) -> None:
    families = (
        NetworkFamily.DENSE,
        NetworkFamily.CONVOLUTIONAL,
        NetworkFamily.RESIDUAL,
        NetworkFamily.POOLING,
    )
    norm = Norm.L1 if seed % 5 == 0 else Norm.LINF
    network = random_network(families[seed % 4], seed, units=20)
    agrees_on(network, random_instance(network, seed, norm=norm), near_seconds=near_seconds)


def agrees_on(
    network: Network,
    instance: Instance,
    seconds: float = SECONDS,
    *,
    near_seconds: float = NEAR_SECONDS,
) -> None:
    """Verdicts on both sides of the radius that an integer program has `seconds` to find."""
    if not instance.holds:
        return
    exact = Milp().radius(network, instance, Limits(seconds))
    native = BranchAndBound()
    for factor, allowed in ((0.9, SECONDS), (0.999, near_seconds)):
        query = Query(instance, factor * exact.lower)
        result = native.verify(network, query, Limits(allowed))
        assert result.verdict is not Verdict.NOT_ROBUST
        if factor <= 0.9 and exact.lower > 0:
            assert result.verdict is Verdict.ROBUST
    if exact.witness is not None:
        for factor in (1.001, 1.1):
            query = Query(instance, factor * exact.upper)
            result = native.verify(network, query, Limits(near_seconds))
            assert result.verdict is not Verdict.ROBUST


@pytest.mark.sampled(4)
@pytest.mark.usefixtures("always_mapped")
@pytest.mark.parametrize("seed", range(12))
def test_agrees_with_the_exact_radius(seed: int) -> None:
    agrees_with_the_exact_radius(seed)


@pytest.mark.slow  # 2,000 networks
@pytest.mark.usefixtures("always_mapped")
@pytest.mark.parametrize("start", range(0, 2000, 100))
def test_agrees_with_the_exact_radius_at_length(start: int) -> None:
    for seed in range(start, start + 100):
        agrees_with_the_exact_radius(seed, SECONDS)


@pytest.mark.sampled(1)
@pytest.mark.usefixtures("always_mapped")
@pytest.mark.parametrize("seed", range(3))
def test_conditions_on_inputs_hold_in_violations(seed: int) -> None:
    """As many verdicts as with matrices: a region cut by a halfspace of inputs."""
    network = residual_network(seed, scale=1.5)
    instance = random_instance(network, seed)
    cut = Halfspaces(np.ones((1, 72)), np.array([-float(instance.input.sum())]))
    for eps in (0.01, 0.05):
        query = Query(instance, eps).specification
        specification = type(query)(query.region, query.requirement, cut)
        session = ProofSession(network)
        attempt = prove_by_units(session, specification, Limits(20.0), attacks=True)
        found = [attempt.answer.verdict]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(form, "keeps_structure", lambda _: False)
            attempt = prove_by_units(session, specification, Limits(20.0), attacks=True)
            found.append(attempt.answer.verdict)
        assert {Verdict.ROBUST, Verdict.NOT_ROBUST} - set(found)


def test_overflow_is_no_proof() -> None:
    network = residual_network(0, scale=1e9)
    box = Box(np.zeros((2, 6, 6)), np.full((2, 6, 6), 1e6))
    violation = Halfspaces(np.array([1.0, -1.0, 0.0]), np.zeros(1))
    with pytest.raises(PossibleOverflow):
        mapped_reduction(CrownPasses().state(fuse(network), [box]), box, [violation])


def test_structure_is_kept_where_maps_are_smaller_than_matrices() -> None:
    assert keeps_structure(fuse(residual_network(0)))
    assert not keeps_structure(fuse(random_network(NetworkFamily.DENSE, 0)))
    assert not keeps_structure(fuse(random_network(NetworkFamily.POOLING, 0)))
