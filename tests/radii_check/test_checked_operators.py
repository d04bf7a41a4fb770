"""The checker's reading of ONNX beside radii's: values, numbers of units, and float errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from benchmarks.soundness.operator_models import OPERATOR_MODELS, operator_models
from radii.bounds import FloatErrors, Fusion, fuse, relu_form
from radii.bounds._float_errors import GRANTED
from radii.errors import UnsupportedQuery
from radii.networks import Interval, Network
from radii.problem import REAL, Arithmetic
from radii_check import CertificateError
from radii_check import _network as checked
from radii_check._bounds import Bounds
from radii_check._errors import Rejected
from radii_check._linear_maps import apply_chain
from radii_check._numbers import Numbers
from radii_check._onnx import read_network
from radii_check._regions import Regions

Array = np.ndarray[Any, Any]
NUM = Numbers()
NEVER = {
    "Einsum",
    *("GroupNormalization", "InstanceNormalization", "LayerNormalization", "Pow"),
    *("RMSNormalization", "ReduceL2", "ReduceSumSquare", "Sqrt"),
    *("And", "ArgMax", "ArgMin", "Ceil", "Cos", "CumSum"),
    *("Equal", "Floor", "GRU", "Greater", "GreaterOrEqual", "LSTM"),
    *("Less", "LessOrEqual", "Log", "Not", "Or", "RNN"),
    *("Reciprocal", "ReduceL1", "ReduceMax", "ReduceMin", "Resize", "Round"),
    *("Sign", "Sin", "ThresholdedRelu", "Upsample", "Xor"),
}
"""Operators that the checker does not know."""
REMOVED = {"LogSoftmax", "Softmax"}
"""Operators that have no errors of their own here."""
RELAXED = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def evaluated(network: checked.Network, x: Array) -> Array:
    """The network's output for inputs (entries, columns)."""
    values: list[Array] = []
    for node in network.nodes:
        if isinstance(node, checked.Affine):
            pairs = zip(node.maps, node.inputs, strict=True)
            parts = [apply_chain(chain, NUM, values[source]) for chain, source in pairs]
            values.append(sum(parts) + node.offset[:, None])
        elif node.kind == "Input":
            values.append(x)
        else:
            values.append(of_unit(node, values[node.inputs[0]]))
            if node.function is not None:
                np.testing.assert_allclose(values[-1], node.function(values[node.read]), 1e-9, 1e-9)
    return values[network.output]


def of_unit(node: checked.Unit, z: Array) -> Array:
    match node.kind:
        case "Copy" | "Leaky":
            return z
        case "Relu":
            return np.asarray(np.maximum(z, 0))
    if node.curve is not None:
        return node.curve.values(z, NUM)
    assume(node.is_whole)
    powers = np.exp(z - z.max(0))
    found = powers / powers.sum(0)
    return np.asarray(found if node.kind == "Softmax" else np.log(found))


def read(operator: str, data: st.DataObject) -> tuple[Network, checked.Network]:
    model = data.draw(operator_models(operator))
    network = Network.from_bytes(model.SerializeToString(), domain=(-2, 2), name=operator)
    try:
        return network, read_network(network.onnx_bytes, NUM)[1]
    except CertificateError as error:
        assert "is not known to this checker" in str(error), error
        assume(False)
        raise


def agrees(operator: str, data: st.DataObject) -> None:
    network, mine = read(operator, data)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    inputs = rng.uniform(-2, 2, (3, *network.input_shape))
    expected = network(torch.from_numpy(inputs)).numpy()
    found = evaluated(mine, inputs.reshape(3, -1).T).T
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    try:
        form = relu_form(fuse(network))
    except UnsupportedQuery:
        return
    assert form.units == mine.units
    relus = [node for node in mine.nodes if isinstance(node, checked.Unit) and node.kind == "Relu"]
    firsts = [node.first for node in relus]
    assert firsts == np.cumsum([0, *(layer.shape[0] for layer in form.layers)])[:-1].tolist()


@pytest.mark.parametrize("operator", sorted(set(OPERATOR_MODELS) - NEVER))
@settings(RELAXED, max_examples=15)
@given(data=st.data())
def test_values_and_units(operator: str, data: st.DataObject) -> None:
    agrees(operator, data)


@pytest.mark.slow
@pytest.mark.parametrize("operator", sorted(set(OPERATOR_MODELS) - NEVER))
@settings(RELAXED, max_examples=400, derandomize=False)
@given(data=st.data())
def test_values_and_units_at_length(operator: str, data: st.DataObject) -> None:
    agrees(operator, data)


# Errors of floating point, from the same sizes of values.


def errors_agree(network: Network, mine: checked.Network, arithmetic: str, seed: int) -> None:
    try:
        fusion = fuse(network)
        theirs, real = (
            FloatErrors(fusion.graph, fusion.number, each)
            for each in (Arithmetic.parse(arithmetic), REAL)
        )
    except UnsupportedQuery:
        return
    widening = Arithmetic.parse(arithmetic).widening if arithmetic != "real" else 0.0
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-3, 3)
    sizes = {0: rng.uniform(0, scale, network.graph.nodes[0].size)}
    for stage in fusion.stages:
        sizes[stage.node] = rng.uniform(0, scale, fusion.graph.nodes[stage.node].size)
    expected = their_errors(theirs, fusion, sizes)
    found = my_errors(mine, list(sizes.values()), widening)
    if found is None:
        assert not all(np.isfinite(each).all() for each in expected)
        return
    # What radii adds for its own fused maps, and for this checker's sums, is no part of the
    # network's errors: it is all that there is in real arithmetic.
    added = their_errors(real, fusion, sizes)
    for e, f, own in zip(expected, found, added, strict=True):
        assert np.all(f <= e * (1 + 1e-9))
        assert arithmetic == "real" or np.all(f >= (e - own) * (1 - 1e-8))


def their_errors(theirs: FloatErrors, fusion: Fusion, sizes: dict[int, Array]) -> list[Array]:
    held = {node: torch.from_numpy(size)[None] for node, size in sizes.items()}
    errors: dict[int, torch.Tensor] = {}
    found = []
    for stage in (*fusion.stages, fusion.output):
        leaves = {leaf: held[leaf] for leaf in stage.leaves}
        given = {leaf: errors[leaf] for leaf in stage.leaves if leaf in errors}
        each = theirs.of_arguments(stage.source, stage.between, leaves, given)
        found.append(each[0].numpy() / GRANTED)
        if stage is not fusion.output:
            shape = (1, *fusion.graph.nodes[stage.node].shape)
            value = Interval(-held[stage.node].reshape(shape), held[stage.node].reshape(shape))
            before = torch.zeros((1, *stage.shape), dtype=torch.float64)
            computed = theirs.of_values(stage.operator, Interval(before, before), value)
            if computed is not None:
                errors[stage.node] = computed.expand(shape).reshape(1, -1)
    return found


def my_errors(mine: checked.Network, sizes: list[Array], widening: float) -> list[Array] | None:
    """E of every node that radii has as a nonlinear one, too, and of the output."""
    try:
        first, *rest = (size[:, None] for size in sizes)
        region = Regions(-first, first, "box", 0 * first, np.zeros(1))
        bounds = Bounds(mine, region, widening, NUM)
        found, given = [], iter(rest)
        for number, node in enumerate(mine.nodes):
            if isinstance(node, checked.Affine):
                inputs = [bounds.enclosures[source] for source in node.inputs]
                value = bounds.errors.affine(node, inputs, bounds.readers[number])
                bounds.enclosures[number] = value
            elif number:
                # An operator of several pieces holds what it reads, and what it gives.
                is_inner = node.kind == "Relu" and not is_own(mine, number)
                is_first = node.kind == "Copy" and node.function is None
                if node.function is None and not is_inner:
                    source = bounds.enclosures[node.inputs[0]]
                    found.append(bounds.errors.argument_error(source)[:, 0])
                is_given = not is_first and not is_inner
                size = next(given) if is_given else np.ones((mine.size(number), 1))
                error = bounds.errors.value_error(node, size)
                bounds.set_value(number, error - size, size - error, error)
        output = bounds.enclosures[mine.output]
        return [*found, bounds.errors.argument_error(output)[:, 0]]
    except Rejected:
        return None


def is_own(mine: checked.Network, number: int) -> bool:
    """A ReLU of the file: units of other operators stand between two nodes that hold values."""
    later = [node for node in mine.nodes[number:] if isinstance(node, checked.Unit)]
    following = next((n for n in later if n.kind != "Relu" and n.function is not None), None)
    return following is None or following.read > number


@pytest.mark.parametrize("operator", sorted(set(OPERATOR_MODELS) - NEVER - REMOVED))
@settings(RELAXED, max_examples=10)
@given(data=st.data())
def test_float_errors(operator: str, data: st.DataObject) -> None:
    network, mine = read(operator, data)
    arithmetic = data.draw(st.sampled_from(["float", "float:8", "real"]))
    errors_agree(network, mine, arithmetic, data.draw(st.integers(0, 1000)))
