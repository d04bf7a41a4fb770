"""Every operator: the same as ONNX Runtime, in batches, in both precisions, and differentiable."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.soundness.operator_models import OPERATOR_MODELS, operator_models
from radii.networks import Network
from radii.networks._building import PASSED_THROUGH
from radii.networks.operators._base import TRANSLATORS

BATCH = 3
STEP = 1e-7

RELAXED = settings(
    deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)


def test_every_supported_operator_has_a_generator() -> None:
    assert set(OPERATOR_MODELS) == {*TRANSLATORS, *PASSED_THROUGH, "Shape"}


@pytest.mark.parametrize("operator", sorted(OPERATOR_MODELS))
@settings(RELAXED, max_examples=20, derandomize=True)
@given(data=st.data())
def test_operator(operator: str, data: st.DataObject) -> None:
    check(operator, data)


@pytest.mark.slow
@pytest.mark.parametrize("operator", sorted(OPERATOR_MODELS))
@settings(RELAXED, max_examples=400)
@given(data=st.data())
def test_operator_at_length(operator: str, data: st.DataObject) -> None:
    check(operator, data)


def check(operator: str, data: st.DataObject) -> None:
    model = data.draw(operator_models(operator))
    assert operator in {node.op_type for node in model.graph.node}
    network = Network.from_bytes(model.SerializeToString(), domain=(-2, 2), name=operator)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    inputs = rng.uniform(-2, 2, (BATCH, *network.input_shape)).astype(network.input_dtype)
    agrees_with_onnx_runtime(network, inputs)
    agrees_with_itself(network, inputs)
    differentiates(network, inputs, rng)


def agrees_with_onnx_runtime(network: Network, inputs: np.ndarray) -> None:
    expected = network.replay(inputs)
    assert np.isfinite(expected).all()
    tolerance = 1e-5 if network.input_dtype == np.float32 else 1e-12
    for dtype in (network.torch_dtype, torch.float64):
        outputs = network(torch.from_numpy(inputs).to(dtype))
        assert outputs.dtype == dtype
        error = np.abs(outputs.numpy() - expected).max(initial=0)
        assert error <= tolerance * (1 + np.abs(expected).max(initial=0))


def agrees_with_itself(network: Network, inputs: np.ndarray) -> None:
    """All nodes have the shapes they state, and no input of a batch touches another."""
    batch = torch.from_numpy(inputs).double()
    values = network.graph.values(batch)
    for node, value in zip(network.graph.nodes, values, strict=True):
        assert tuple(value.shape) == (BATCH, *node.shape)
    alone = torch.cat([network(x[None]) for x in batch])
    torch.testing.assert_close(network(batch), alone, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(
        values[network.graph.output].reshape(BATCH, -1), alone, rtol=0, atol=1e-12
    )


def differentiates(network: Network, inputs: np.ndarray, rng: np.random.Generator) -> None:
    """The derivative along a random direction is that of finite differences.

    Inputs are moved to double precision numbers, so that no two tie and no kink is hit exactly.
    """
    x = torch.from_numpy(inputs + rng.normal(0, 1e-3, inputs.shape)).requires_grad_()
    outputs = network(x)
    weights = torch.from_numpy(rng.normal(size=outputs.shape))
    direction = torch.from_numpy(rng.normal(size=inputs.shape))
    (gradient,) = torch.autograd.grad((outputs * weights).sum(), x)
    with torch.no_grad():
        ahead, behind = network(x + STEP * direction), network(x - STEP * direction)
    expected = ((ahead - behind) * weights).sum() / (2 * STEP)
    scale = 1 + float((gradient.abs() * direction.abs()).sum())
    assert abs(float((gradient * direction).sum() - expected)) <= 1e-5 * scale


def test_a_model_that_reads_its_input_twice_and_late() -> None:
    """A residual connection around a reshape that moves the batch axis away."""
    helper = onnx.helper
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]),
        helper.make_node("Relu", ["t"], ["r"]),
        helper.make_node("Transpose", ["r"], ["u"], perm=[1, 0]),
        helper.make_node("Add", ["u", "x"], ["y"]),
    ]
    info = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1, 4]) for n in "xy"]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    network = Network.from_bytes(model.SerializeToString(), domain=(-1, 1), name="residual")
    x = torch.tensor([[-1.0, 0.5, 0.0, 1.0], [0.25, -0.5, -0.75, 0.125]])
    torch.testing.assert_close(network(x), x.relu() + x, rtol=0, atol=0)
