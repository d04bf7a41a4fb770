"""Splitting inputs agrees with exact answers, with dense samples, and keeps its limits."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from conftest import BUSY_SECONDS
from radii.bounds import LayeredNetwork, Supports, fuse, layered, linear_bounds, propagate
from radii.bounds._crown import output_rows
from radii.errors import UnsupportedQuery
from radii.networks import Interval, Network
from radii.problem import (
    FLOAT,
    REAL,
    Arithmetic,
    Ball,
    Box,
    Domain,
    Halfspaces,
    LinearRequirement,
    Norm,
    Specification,
    Verdict,
    check_witness,
)
from radii.testing import NetworkFamily, Sketch, random_network
from radii.verifiers import Limits, Milp
from radii.verifiers.native._boxes import Boxes
from radii.verifiers.native._cuts import (
    CentredFunctions,
    Statement,
    ViolationCuts,
    _supporting_plane,
    best_mixture,
    clipped,
    least_at_violations,
)
from radii.verifiers.native._dense_chain import DenseChain
from radii.verifiers.native._input_splitting import SplitOutcome, SplitResult, split_inputs
from radii.vnnlib import read_problem


def dense_network(
    seed: int, activation: str, hidden: tuple[int, ...], *, outputs: int = 3, final: str = ""
) -> Network:
    """Five (or, when small, three) inputs in [0, 1], weights as He draws them."""
    rng = np.random.default_rng(seed)
    width = 5 if len(hidden) > 3 else 3
    sketch = Sketch([1, width])
    value = sketch.apply("Sub", "x", sketch.constant(np.float32(0.5)))
    for size in hidden:
        weight = sketch.constant(rng.normal(0, np.sqrt(2 / width), (width, size)))
        bias = sketch.constant(rng.normal(0, 0.1, size))
        value, width = sketch.apply(activation, sketch.apply("Gemm", value, weight, bias)), size
    weight = sketch.constant(rng.normal(0, 1 / np.sqrt(width), (width, outputs)))
    value = sketch.apply("MatMul", value, weight)
    return sketch.network(sketch.apply(final, value, axis=1) if final else value)


def split(
    network: Network, specification: Specification, seconds: float = 20.0
) -> tuple[SplitResult, np.ndarray | None]:
    """The result, and the counterexample behind it, checked as everywhere."""
    found: list[np.ndarray] = []

    def check(points: torch.Tensor) -> bool:
        for point in points.numpy():
            if check_witness(network, specification, point) is not None:
                found.append(point)
                return True
        return False

    result = split_inputs(network, specification, Limits(cpu_seconds=seconds), check)
    assert bool(found) == (result.outcome is SplitOutcome.REFUTED)
    return result, found[-1] if found else None


def statement_of(
    rows: torch.Tensor, offsets: torch.Tensor, polyhedra: list[list[int]] | None = None
) -> Statement:
    """Violations by rows @ outputs + offsets <= 0: each alone, or some at once."""
    parts = polyhedra or [[row] for row in range(len(rows))]
    return Statement(
        rows,
        offsets,
        torch.zeros(0, 1, dtype=torch.float64),
        torch.zeros(0, dtype=torch.float64),
        tuple(torch.tensor(part) for part in parts),
        None,
    )


def outputs_at(network: Network, points: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return network(torch.from_numpy(points.reshape(-1, *network.input_shape))).numpy()


@pytest.mark.sampled(10)
@pytest.mark.parametrize("norm", [*Norm, None], ids=lambda norm: norm or "box")
@pytest.mark.parametrize("family", list(NetworkFamily))
def test_small_networks_agree_with_the_exact_answer(
    family: NetworkFamily, norm: Norm | None
) -> None:
    is_image = family in (NetworkFamily.CONVOLUTIONAL, NetworkFamily.POOLING)
    seed = 0 if norm is None else 1 + list(Norm).index(norm)
    network = random_network(family, seed, units=9 if is_image else 20, inputs=2 + seed % 4)
    rng = np.random.default_rng(seed)
    for eps in (0.05, 0.2) if is_image else (0.1, 0.3, 0.6):
        centre = rng.uniform(0.2, 0.8, network.input_shape).astype(np.float32).astype(np.float64)
        rows = rng.normal(size=(3, network.output_size))
        values = outputs_at(network, centre[None])[0]
        offset = rng.uniform(0.1, 0.5, 3) - rows @ values
        violations = (Halfspaces(rows[:1], offset[:1]), Halfspaces(rows[1:], offset[1:]))
        region: Ball | Box = Ball(centre, eps, norm or Norm.LINF, network.domain)
        if norm is None:
            region = Box(*region.box())
        specification = Specification(region, LinearRequirement(violations))
        result, _ = split(network, specification, 3.0 if is_image else 20.0)
        if norm is Norm.L2:
            points = np.stack([region.project(p) for p in region.sample(rng, 300)])
            holds = specification.requirement.holds(outputs_at(network, points), 0.0).all()
            assert holds or result.outcome is not SplitOutcome.PROVEN
            continue
        answer, _ = Milp().decide(network, specification, Limits(seconds=20))
        expected = {Verdict.ROBUST: SplitOutcome.PROVEN, Verdict.NOT_ROBUST: SplitOutcome.REFUTED}
        if result.outcome is not SplitOutcome.OPEN and answer.verdict in expected:
            assert result.outcome is expected[answer.verdict]
        assert result.outcome is not SplitOutcome.OPEN or is_image


@pytest.mark.parametrize("seed", range(3))
def test_a_polyhedron_of_inputs_is_respected(seed: int) -> None:
    network = random_network(NetworkFamily.DENSE, seed, inputs=3)
    rng = np.random.default_rng(seed)
    plane = rng.normal(size=(2, 3))
    inputs = Halfspaces(plane, -plane @ np.full(3, 0.5) + 0.05)
    points = rng.uniform(0, 1, (20_000, 3))
    points = points[inputs.depth(points) <= 0]
    row = rng.normal(size=(1, 3))
    least = float((outputs_at(network, points) @ row.T).min())
    for gap in (0.1, -0.02):
        violation = Halfspaces(row, np.array([gap - least]))
        specification = Specification(
            Box(np.zeros(3), np.ones(3)), LinearRequirement((violation,)), inputs
        )
        answer, _ = Milp().decide(network, specification, Limits(seconds=20))
        result, _ = split(network, specification)
        if gap < 0:
            assert result.outcome is SplitOutcome.REFUTED
        contradiction = (
            Verdict.NOT_ROBUST if result.outcome is SplitOutcome.PROVEN else Verdict.ROBUST
        )
        assert result.outcome is not SplitOutcome.OPEN and answer.verdict is not contradiction


@pytest.mark.parametrize("activation", ["Sigmoid", "Tanh"])
@pytest.mark.parametrize("final", ["", "Softmax", "LogSoftmax"])
def test_smooth_networks_agree_with_dense_samples(activation: str, final: str) -> None:
    network = dense_network(1, activation, (12, 12), final=final)
    rng = np.random.default_rng(1)
    outputs = outputs_at(network, rng.uniform(0, 1, (100_000, 3)))
    row = np.array([[1.0, -1.0, 0.0]])
    values = outputs @ row.T
    least, spread = float(values.min()), float(np.ptp(values))
    region = Box(np.zeros(3), np.ones(3))
    for gap, expected in ((0.05, SplitOutcome.PROVEN), (-0.01, SplitOutcome.REFUTED)):
        violation = Halfspaces(row, np.array([gap * spread - least]))
        result, _ = split(network, Specification(region, LinearRequirement((violation,))))
        assert result.outcome is expected


def test_a_softmax_is_left_out_where_classes_are_compared() -> None:
    network = dense_network(2, "Tanh", (12, 12), final="Softmax")
    centre = np.full(3, 0.5)
    label = int(outputs_at(network, centre[None]).argmax())
    points = np.random.default_rng(0).uniform(0, 1, (50_000, 3))
    is_other = outputs_at(network, points).argmax(1) != label
    radius = float(np.abs(points[is_other] - centre).max(1).min()) if is_other.any() else 0.5
    rows = -np.eye(3) + np.eye(3)[label]
    violations = tuple(Halfspaces(row[None], np.zeros(1)) for row in np.delete(rows, label, 0))
    for share, expected in ((0.8, SplitOutcome.PROVEN), (1.1, SplitOutcome.REFUTED)):
        ball = Ball(centre, share * radius, Norm.LINF, network.domain)
        result, _ = split(network, Specification(ball, LinearRequirement(violations)))
        assert result.outcome is expected or not is_other.any()


@pytest.mark.parametrize("disjunctive", [True, False])
def test_a_network_like_acas_is_decided(disjunctive: bool) -> None:
    network = dense_network(3, "Relu", (50,) * 6, outputs=5)
    rng = np.random.default_rng(3)
    low = np.full(5, 0.46)
    region = Box(low, low + 0.08)
    values = outputs_at(network, rng.uniform(region.low, region.high, (50_000, 5)))
    rows = np.delete(np.eye(5)[0] - np.eye(5), 0, 0)
    differences = values @ rows.T
    worst = differences.min(0) if disjunctive else np.full(4, differences.max(1).min())
    spread = np.ptp(differences, axis=0).max()
    for gap, expected in ((0.1, SplitOutcome.PROVEN), (-0.05, SplitOutcome.REFUTED)):
        offset = gap * spread - worst
        halves = Halfspaces(rows, offset)
        violations = (
            tuple(Halfspaces(row[None], b[None]) for row, b in zip(rows, offset, strict=True))
            if disjunctive
            else (halves,)
        )
        result, point = split(network, Specification(region, LinearRequirement(violations)))
        assert result.outcome is expected
        if point is not None:
            assert region.contains(point)


def test_time_limits_and_cancellation_end_the_search() -> None:
    network = dense_network(4, "Relu", (50,) * 6, outputs=5)
    values = outputs_at(network, np.random.default_rng(4).uniform(0, 1, (50_000, 5)))
    violation = Halfspaces(np.eye(5)[:1], np.array([1e-3 - values[:, 0].min()]))
    region = Box(np.zeros(5), np.ones(5))
    specification = Specification(region, LinearRequirement((violation,)))
    started = time.monotonic()
    result = split_inputs(network, specification, Limits(seconds=0.5), lambda points: False)
    assert result.outcome is SplitOutcome.OPEN and result.open_boxes > 0
    assert time.monotonic() - started < BUSY_SECONDS
    limits = Limits(cancelled=lambda: True)
    result = split_inputs(network, specification, limits, lambda points: False)
    assert result.outcome is SplitOutcome.OPEN and result.boxes == 0


def test_a_tie_cannot_be_proven_and_ends_open() -> None:
    """The least value is 0: no counterexample in the check's eyes, and no proof either."""
    network = dense_network(5, "Relu", (4,))
    rows = np.zeros((1, 3))
    specification = Specification(
        Box(np.zeros(3), np.ones(3)), LinearRequirement((Halfspaces(rows, np.zeros(1)),))
    )
    result = split_inputs(network, specification, Limits(seconds=0.3), lambda points: False)
    assert result.outcome is SplitOutcome.OPEN


def test_what_cannot_be_stated_is_refused_and_nothing_to_violate_is_proven() -> None:
    network = dense_network(5, "Relu", (4,))

    class Curved(LinearRequirement):
        @property
        def violations(self) -> None:  # type: ignore[override]
            return None

    region = Box(np.zeros(3), np.ones(3))
    with pytest.raises(UnsupportedQuery, match="not linear"):
        split_inputs(network, Specification(region, Curved(())), Limits(), lambda points: False)
    nothing = Specification(region, LinearRequirement(()))
    result = split_inputs(network, nothing, Limits(), lambda points: False)
    assert result.outcome is SplitOutcome.PROVEN
    outside = Ball(np.full(3, 9.0), 0.5, Norm.LINF, network.domain)
    violation = LinearRequirement((Halfspaces(np.eye(3)[:1], np.zeros(1)),))
    result = split_inputs(
        network, Specification(outside, violation), Limits(), lambda points: False
    )
    assert result.outcome is SplitOutcome.OPEN


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(seed=st.integers(0, 10_000), count=st.integers(1, 3), inputs=st.integers(1, 4))
def test_clipping_and_weighing_lose_no_violation(seed: int, count: int, inputs: int) -> None:
    rng = np.random.default_rng(seed)
    low = rng.normal(size=(4, inputs))
    high = low + rng.exponential(size=low.shape) * rng.integers(0, 2, low.shape)
    slopes = rng.normal(size=(4, count, inputs)) * rng.integers(0, 2, (4, count, inputs))
    cuts = ViolationCuts(torch.from_numpy(slopes), torch.from_numpy(rng.normal(size=(4, count))))
    sides = torch.from_numpy(low), torch.from_numpy(high)
    inner_low, inner_high = (side.numpy() for side in clipped(cuts, *sides))
    proven = (best_mixture(cuts, *sides).values > 0).numpy()
    points = rng.uniform(low, high, (2000, *low.shape))
    values = np.einsum("bki,pbi->pbk", slopes, points) + cuts.constants.numpy()
    violates = (values <= 0).all(2)
    inside = ((points >= inner_low) & (points <= inner_high)).all(2)
    assert np.all(inside | ~violates)
    assert not np.any(violates & proven)


def chain_network(rng: np.random.Generator, sizes: list[int], scale: float = 1.0) -> Network:
    """A chain of ReLU layers, some of whose units are dead, or always on."""
    sketch, value = Sketch([1, sizes[0]]), "x"
    for place, (width, size) in enumerate(pairwise(sizes)):
        weight = scale * rng.normal(0, np.sqrt(2 / width), (width, size))
        bias = scale * rng.normal(0, 0.2, size) + scale * 3 * rng.choice([0, 0, 0, 0, -1, 1], size)
        value = sketch.apply("Gemm", value, sketch.constant(weight), sketch.constant(bias))
        if place < len(sizes) - 2:
            value = sketch.apply("Relu", value)
    return sketch.network(value, domain=(-1, 1))


def chain_of(network: LayeredNetwork) -> DenseChain | None:
    """For boxes within [-2, 2]."""
    ends = torch.full((1, network.inputs), 2.0, dtype=torch.float64)
    return DenseChain.of(network, Interval(-ends, ends))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("arithmetic", [FLOAT, REAL], ids=str)
@pytest.mark.parametrize("seed", range(8))
def test_bounds_of_a_chain_hold_and_are_as_tight_as_crown(
    seed: int, arithmetic: Arithmetic
) -> None:
    rng = np.random.default_rng(seed)
    depth, width = int(rng.integers(1, 6)), int(rng.integers(1, 20))
    network = chain_network(rng, [int(rng.integers(1, 7)), *[width] * depth, 3])
    ready = layered(fuse(network), arithmetic=arithmetic)
    chain = chain_of(ready)
    assert chain is not None
    inputs = ready.inputs
    reach = rng.choice([0.0, 1e-9, 0.01, 0.1, 0.5, 1.0], (40, inputs))
    middle = rng.uniform(-1, 1, (40, inputs))
    low, high = torch.from_numpy(middle - reach), torch.from_numpy(middle + reach)
    rows = torch.from_numpy(rng.normal(size=(4, 3)))
    points = torch.from_numpy(rng.uniform(middle - reach, middle + reach, (500, 40, inputs)))
    values = torch.from_numpy(outputs_at(network, points.numpy())).reshape(500, 40, 3) @ rows.t()
    anything = statement_of(rows, torch.full((4,), -1e6, dtype=torch.float64))
    with torch.no_grad():
        state = propagate(ready, Supports(Interval(low, high)))
        _, loss = ready.output.arguments(state.values, state.errors)
        crown = linear_bounds(state, ready.output, loss, output_rows(state, rows)).values
        least = []
        for tight in (False, True):
            found = chain.bounds(Boxes(low, high), anything, lambda: None, tight=tight)
            lines = torch.einsum("bri,pbi->pbr", found.slopes, points) + found.constants
            assert bool((lines <= values + 1e-12 * (1 + values.abs())).all())
            cuts = ViolationCuts(found.slopes, found.constants)
            least.append(cuts.least(low, high))
            narrow = torch.from_numpy(reach.max(1) == 0)
            gaps = (values.amin(0) - least[-1])[narrow]
            allowed = 1e-3 if arithmetic is FLOAT else 1e-6
            assert bool((gaps < allowed).all())  # nothing is loose at a point
    assert bool((least[1] >= crown - 1e-3 * (values.amax(0) - crown) - 1e-6).float().mean() > 0.9)
    assert float((least[1] - least[0]).mean()) >= -1e-9


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(12))
def test_narrowed_bounds_hold_wherever_a_violation_is(seed: int) -> None:
    """Also in pieces of a box, which inherit what is known of it."""
    rng = np.random.default_rng(seed)
    network = chain_network(rng, [3, *[8] * int(rng.integers(1, 5)), 3])
    chain = chain_of(layered(fuse(network)))
    assert chain is not None
    middle, reach = rng.uniform(-0.5, 0.5, (60, 3)), rng.uniform(0.02, 0.4, (60, 1))
    rows = torch.from_numpy(rng.normal(size=(3, 3)))
    points = torch.from_numpy(rng.uniform(middle - reach, middle + reach, (2000, 60, 3)))
    values = torch.from_numpy(outputs_at(network, points.numpy())).reshape(2000, 60, 3) @ rows.t()
    offsets = -values.flatten(0, 1).quantile(0.2, dim=0)
    statement = statement_of(rows, offsets, [[0, 1], [2]])
    is_low = values + offsets <= 0
    violates = (is_low[..., 0] & is_low[..., 1]) | is_low[..., 2]
    boxes = Boxes(torch.from_numpy(middle - reach), torch.from_numpy(middle + reach))
    narrowed = 0
    for _ in range(3):
        with torch.no_grad():
            loose = chain.bounds(Boxes(boxes.low, boxes.high), statement, lambda: None, tight=False)
            found = chain.bounds(boxes, statement, lambda: None, tight=True)
        inside = ((points >= boxes.low) & (points <= boxes.high)).all(2) & violates
        assert not bool((inside & found.is_proven).any())
        lines = torch.einsum("bri,pbi->pbr", found.slopes, points) + found.constants
        is_below = (lines <= values + 1e-12 * (1 + values.abs())).all(2)
        assert bool((is_below | ~inside).all())
        held = points
        for number, interval in enumerate(found.known):
            held = held @ chain.turned[number] + chain.offsets[number]
            is_within = (held >= interval.low - 1e-12) & (held <= interval.high + 1e-12)
            assert bool((is_within.all(2) | ~inside).all())
            before = loose.known[number]
            narrowed += int((interval.high - interval.low < before.high - before.low).sum())
            held = held.clamp_min(0)
        half = boxes.low / 2 + boxes.high / 2
        place = torch.from_numpy(rng.integers(3, size=(60, 1)))
        low = boxes.low.scatter(1, place, half.gather(1, place))
        boxes = Boxes(low, boxes.high, found.known)
    assert narrowed > 0


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 10_000))
def test_least_values_where_a_cut_holds_are_those_of_linear_programs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    inputs = int(rng.integers(1, 7))
    slopes = rng.normal(size=(1, 4, inputs)) * rng.choice([0.0, 1.0], (1, 4, inputs))
    cut_slopes = rng.normal(size=(1, 1, inputs)) * rng.choice([0.0, 1.0, 1.0], inputs)
    reach = float(np.abs(cut_slopes).sum())
    constant = float(rng.uniform(-1.1, 0.99)) * reach
    functions = CentredFunctions(torch.from_numpy(slopes), torch.zeros(1, 4, dtype=torch.float64))
    cut = CentredFunctions(
        torch.from_numpy(cut_slopes), torch.full((1, 1), constant, dtype=torch.float64)
    )
    found = least_at_violations(functions, cut)[0].numpy()
    for slope, value in zip(slopes[0], found, strict=True):
        solved = linprog(slope, A_ub=cut_slopes[0], b_ub=[-constant], bounds=[(-1, 1)] * inputs)
        assert value <= solved.fun + 1e-9
        assert value >= solved.fun - 1e-7


def test_only_chains_of_relu_are_bounded_as_chains() -> None:
    for family in NetworkFamily:
        network = random_network(family, 3, inputs=3)
        is_dense = family in (NetworkFamily.DENSE,)
        assert (chain_of(layered(fuse(network))) is not None) or not is_dense
    smooth = dense_network(1, "Tanh", (4, 4))
    assert chain_of(layered(fuse(smooth))) is None


@pytest.mark.parametrize("scale", [1e3, 1e12, 1e30])
def test_huge_weights_prove_nothing_that_is_false(scale: float) -> None:
    """Float32 holds the weights; what the layers add up leaves it, and for the last, all types."""
    rng = np.random.default_rng(7)
    network = chain_network(rng, [2, 6, 6, 6, 2], scale)
    points = rng.uniform(-1, 1, (2000, 2))
    with np.errstate(all="ignore"):
        values = outputs_at(network, points)
    region = Box(np.full(2, -1.0), np.full(2, 1.0))
    row = np.array([[1.0, -1.0]])
    heights = values @ row[0]
    for threshold in (float(np.median(heights)), float(heights.min())):
        violation = Halfspaces(row, np.array([-threshold]))
        specification = Specification(region, LinearRequirement((violation,)))
        result = split_inputs(network, specification, Limits(seconds=1), lambda points: False)
        assert result.outcome is not SplitOutcome.PROVEN


def test_sums_that_overflow_are_no_bounds() -> None:
    chain = chain_of(layered(fuse(chain_network(np.random.default_rng(1), [2, 3, 3, 2]))))
    assert chain is not None
    chain.weights = [weight * 1e200 for weight in chain.weights]
    chain.turned = [weight * 1e200 for weight in chain.turned]
    chain.magnitudes = [weight * 1e200 for weight in chain.magnitudes]
    low = -torch.ones(3, 2, dtype=torch.float64)
    rows = torch.eye(2, dtype=torch.float64)
    statement = statement_of(rows, torch.zeros(2, dtype=torch.float64))
    for tight in (False, True):
        found = chain.bounds(Boxes(low, -low), statement, lambda: None, tight=tight)
        assert not bool(found.is_proven.any())
        cuts = ViolationCuts(found.slopes, found.constants)
        assert not bool((cuts.least(low, -low) > 0).any())


def control_property(rng: np.random.Generator, network: Network, gap: float) -> str:
    """VNN-LIB of a few ways to violate, each a conjunction, `gap` beyond what samples reach.

    Some inputs are fixed.
    """
    inputs, outputs = int(np.prod(network.input_shape)), network.output_size
    low = np.round(rng.uniform(-1, 0.5, inputs) * 64) / 64  # exact in float32
    reach = rng.choice([0.0, 0.125, 0.5, 0.5], inputs)
    reach[int(rng.integers(inputs))] = 0.5
    high = low + reach
    values = outputs_at(network, rng.uniform(low, high, (20_000, inputs)))
    ways = []
    for _ in range(int(rng.integers(1, 4))):
        pairs = [rng.choice(outputs, 2, replace=False) for _ in range(int(rng.integers(1, 4)))]
        heights = np.min([values[:, i] - values[:, j] for i, j in pairs], axis=0)
        threshold = float(heights.max() + gap * (np.ptp(heights) + 1e-3))
        ways.append(" ".join(f"(>= (- Y_{i} Y_{j}) {threshold!r})" for i, j in pairs))
    lines = [f"(declare-const X_{i} Real)" for i in range(inputs)]
    lines += [f"(declare-const Y_{j} Real)" for j in range(outputs)]
    for i, (least, most) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        lines += [f"(assert (>= X_{i} {least!r}))", f"(assert (<= X_{i} {most!r}))"]
    lines += ["(assert (or", *(f"(and {way})" for way in ways), "))"]
    return "\n".join(lines)


def check_control(seed: int, folder: Path) -> tuple[SplitOutcome, Verdict]:
    """A small network like those of controllers against mixed-integer programming."""
    rng = np.random.default_rng(seed)
    depth = int(rng.integers(1, 5))
    widths = rng.integers(2, max(3, 26 // depth), depth).tolist()
    network = chain_network(rng, [int(rng.integers(2, 7)), *widths, int(rng.integers(2, 6))])
    gap = float(rng.choice([0.1, 0.02, 1e-3, -1e-3, -0.05]))
    file = folder / f"{seed}.vnnlib"
    file.write_text(control_property(rng, network, gap))
    (specification,) = read_problem(file).specifications(network.input_shape)
    result, _ = split(network, specification, 20.0)
    exact, _ = Milp().decide(network, specification, Limits(seconds=30))
    if result.outcome is SplitOutcome.PROVEN:
        assert exact.verdict is not Verdict.NOT_ROBUST, f"seed {seed}: a wrong proof"
    if result.outcome is SplitOutcome.REFUTED:
        assert exact.verdict is not Verdict.ROBUST, f"seed {seed}: a wrong proof by the oracle"
    return result.outcome, exact.verdict


def test_small_control_networks_agree_with_the_exact_answer(tmp_path: Path) -> None:
    answers = [check_control(seed, tmp_path) for seed in range(16)]
    decided = [outcome for outcome, _ in answers if outcome is not SplitOutcome.OPEN]
    assert len(decided) >= 14 and len(set(decided)) == 2


@pytest.mark.slow
def test_many_control_networks_agree_with_the_exact_answer(tmp_path: Path) -> None:
    answers = [check_control(seed, tmp_path) for seed in range(1000, 1300)]
    decided = [outcome for outcome, _ in answers if outcome is not SplitOutcome.OPEN]
    assert len(decided) >= 285


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
@pytest.mark.parametrize("centre", [1e-170, 1e-150, -1e-130, 0.01])
def test_a_plane_around_a_ball_holds_all_of_it(norm: Norm, centre: float) -> None:
    """Also in the direction of a point so near that the square of the way there underflows."""
    ball = Ball(np.full(2, centre), 0.2, norm, Domain(np.array(-1.0), np.array(1.0)))
    inside = torch.from_numpy(ball.sample(np.random.default_rng(0), 100))
    points = torch.tensor([[0.0, 0.0], [centre, 0.0], [0.3, -0.1]], dtype=torch.float64)
    slope, constant = _supporting_plane(ball, points)
    assert bool((inside @ slope.t() + constant <= 0).all())
