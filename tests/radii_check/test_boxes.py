"""Proofs by splits of inputs, and the lines around smooth units that they rest on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from handmade import digest, packed
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from radii_check import check
from radii_check._curves import Curve
from radii_check._numbers import Numbers
from radii_check.operators._smooth import Elu
from radii_check.operators._tanh import Sigmoid, Tanh

Array = np.ndarray[Any, Any]
KINDS = ("Relu", "Tanh", "Sigmoid", "LeakyRelu", "Elu")


def model_of(kind: str, weights: list[Array]) -> bytes:
    """Two layers with units of a kind between them."""
    names = ("w0", "b0", "w1", "b1")
    stored = [
        numpy_helper.from_array(w.astype(np.float32), n)
        for w, n in zip(weights, names, strict=True)
    ]
    nodes = [
        helper.make_node("Gemm", ["x", "w0", "b0"], ["z"], transB=1),
        helper.make_node(kind, ["z"], ["v"]),
        helper.make_node("Gemm", ["v", "w1", "b1"], ["y"], transB=1),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, weights[0].shape[1]])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "smooth", inputs, outputs, stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    return bytes(model.SerializeToString(deterministic=True))


def function_of(kind: str, weights: list[Array], x: Array) -> Array:
    z = x @ weights[0].T + weights[1]
    value = {
        "Relu": np.maximum(z, 0),
        "LeakyRelu": np.where(z < 0, np.float32(0.01) * z, z),
        "Elu": np.where(z < 0, np.expm1(z), z),
        "Tanh": np.tanh(z),
        "Sigmoid": 1 / (1 + np.exp(-z)),
    }[kind]
    return np.asarray(value @ weights[2].T + weights[3])


def halved(low: Array, high: Array, depth: int) -> dict[str, Any]:
    """All axes in turn, each cut in the middle."""
    found: dict[str, list[Any]] = {"parent": [-1], "axis": [0], "cut": [0.0], "side": [0]}

    def split(node: int, low: Array, high: Array, left: int) -> None:
        if not left:
            return
        axis = int(np.argmax(high - low))
        cut = float((low[axis] + high[axis]) / 2)
        for side in (-1, 1):
            number = len(found["parent"])
            for name, value in zip(found, (node, axis, cut, side), strict=True):
                found[name].append(value)
            lower, upper = low.copy(), high.copy()
            (upper if side < 0 else lower)[axis] = cut
            split(number, lower, upper, left - 1)

    split(0, low, high, depth)
    return found


def certificate(
    model: bytes,
    x: Array,
    eps: float,
    label: int,
    arithmetic: str,
    depth: int,
    norm: str = "linf",
) -> bytes:
    claim = {
        "network": digest(model),
        "norm": norm,
        "eps": eps,
        "requirement": {"kind": "one-to-any", "label": label},
        "arithmetic": arithmetic,
    }
    arrays = {"input": x, "low": np.full(len(x), -3.0), "high": np.full(len(x), 3.0)}
    return packed(claim, "boxes", arrays | halved(x - eps, x + eps, depth))


def example(kind: str, seed: int) -> tuple[list[Array], bytes, Array, int]:
    rng = np.random.default_rng(seed)
    shapes = ((4, 2), (4,), (3, 4), (3,))
    weights = [np.float32(rng.normal(0, 1, shape)).astype(float) for shape in shapes]
    x = np.float32(rng.uniform(-1, 1, 2)).astype(float)
    return weights, model_of(kind, weights), x, int(function_of(kind, weights, x[None])[0].argmax())


@pytest.mark.parametrize("arithmetic", ["real", "float"])
@pytest.mark.parametrize("kind", KINDS)
def test_finer_boxes_prove_no_less_and_nothing_false(kind: str, arithmetic: str) -> None:
    proven, true = {0: 0, 4: 0}, 0
    for seed in range(4):
        weights, model, x, label = example(kind, seed)
        grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 81)] * 2), -1).reshape(-1, 2)
        for eps in 0.05 * 1.3 ** np.arange(12):
            outputs = function_of(kind, weights, np.clip(x + eps * grid, -3, 3))
            rivals = np.delete(outputs, label, axis=1).max(1)
            is_broken = bool((outputs[:, label] <= rivals).any())
            true += not is_broken
            for depth in proven:
                content = certificate(model, x, float(eps), label, arithmetic, depth)
                report = check(content, model)
                assert not (report.accepted and is_broken)
                proven[depth] += report.accepted
    assert 0 < proven[0] <= proven[4]
    assert proven[4] > 0.9 * true


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("kind", KINDS)
def test_parts_of_balls(kind: str, norm: str) -> None:
    """Boxes with what lies in them of a ball: nothing false, and all that the box around it has."""
    proven, of_the_box, true = 0, 0, 0
    order = 1 if norm == "l1" else 2
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 81)] * 2), -1).reshape(-1, 2)
    grid = grid[np.linalg.norm(grid, order, axis=1) <= 1]
    for seed in range(3):
        weights, model, x, label = example(kind, seed)
        for eps in 0.05 * 1.6 ** np.arange(7):
            outputs = function_of(kind, weights, np.clip(x + eps * grid, -3, 3))
            rivals = np.delete(outputs, label, axis=1).max(1)
            is_broken = bool((outputs[:, label] <= rivals).any())
            claimed = (model, x, float(eps), label, "float", 5)
            is_accepted = check(certificate(*claimed, norm), model).accepted
            assert not (is_accepted and is_broken)
            proven, true = proven + is_accepted, true + (not is_broken)
            of_the_box += check(certificate(*claimed), model).accepted
    assert 0 < of_the_box <= proven
    assert proven > 0.8 * true


@pytest.mark.parametrize("norm", ["linf", "l1", "l2"])
@pytest.mark.parametrize("kind", KINDS)
def test_balls_agree(kind: str, norm: str) -> None:
    _, model, x, label = example(kind, 1)
    for eps in (0.02, 0.1, 0.5):
        content = certificate(model, x, eps, label, "float", 2, norm)
        float64, exact = check(content, model), check(content, model, exact=True)
        assert float64.accepted == exact.accepted
        assert float64.smallest_margin <= exact.smallest_margin + 1e-12


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("norm", ["linf", "l1", "l2"])
def test_a_row_that_ends_before_the_input(norm: str, exact: bool) -> None:
    """A log-softmax at the end is bounded by intervals: no coefficient reaches any input. Its first
    output is -log 2 at x = 0, and -log(1 + exp(0.5)) = -0.974 where z is (-0.25, 0.25)."""
    weights = [np.eye(2), np.zeros(2)]
    stored = [
        numpy_helper.from_array(w.astype(np.float32), n)
        for w, n in zip(weights, ("w", "b"), strict=True)
    ]
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["z"], transB=1),
        helper.make_node("LogSoftmax", ["z"], ["y"]),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "logarithms", inputs, outputs, stored)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model = bytes(made.SerializeToString(deterministic=True))
    claim = {
        "network": digest(model),
        "norm": norm,
        "eps": 0.25,
        "requirement": {"kind": "violations", "rows": [1]},
        "arithmetic": "real",
    }
    arrays = {"input": np.zeros(2), "low": np.full(2, -3.0), "high": np.full(2, 3.0)}
    tree = {"parent": [-1], "axis": [0], "cut": [0.0], "side": [0]}
    for bound, is_shown in ((0.98, True), (0.69, False)):  # y_0 <= -bound is the violation
        stated = {"violation_matrix": [[1.0, 0.0]], "violation_offset": [bound]}
        report = check(packed(claim, "boxes", arrays | tree | stated), model, exact=exact)
        assert report.outcome == ("accepted" if is_shown else "refused"), report.reason


def test_a_missing_box_is_noticed() -> None:
    _, model, x, label = example("Tanh", 1)
    claim_eps = 0.02
    arrays = halved(x - claim_eps, x + claim_eps, 2)
    cut = {name: held[:-1] for name, held in arrays.items()}
    whole = {"input": x, "low": np.full(2, -3.0), "high": np.full(2, 3.0)}
    claim = {
        "network": digest(model),
        "norm": "linf",
        "eps": claim_eps,
        "requirement": {"kind": "one-to-any", "label": label},
        "arithmetic": "real",
    }
    assert check(packed(claim, "boxes", whole | arrays), model).accepted
    assert not check(packed(claim, "boxes", whole | cut), model).accepted


@settings(deadline=None, max_examples=200)
@given(
    middle=st.floats(-40, 40),
    width=st.floats(0, 60) | st.floats(0, 1e-6),
    curve=st.sampled_from([Tanh(), Sigmoid(), Elu(1.0), Elu(0.25), Elu(8.0)]),
)
def test_lines_hold(middle: float, width: float, curve: Curve) -> None:
    num = Numbers()
    low, high = np.array([[middle - width]]), np.array([[middle + width]])
    lines = curve.lines(low, high, num)
    z = np.linspace(low[0, 0], high[0, 0], 501)
    value = curve.values(z, num)
    rounding = 1e-15 * (1 + abs(value).max())
    below = lines.slope_below[0, 0] * z + lines.offset_below[0, 0]
    above = lines.slope_above[0, 0] * z + lines.offset_above[0, 0]
    assert np.all(below <= value + rounding)
    assert np.all(above >= value - rounding)
    assert lines.low[0, 0] <= value.min() + rounding
    assert lines.high[0, 0] >= value.max() - rounding
