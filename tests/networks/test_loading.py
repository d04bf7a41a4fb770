"""Networks from files and bytes: shapes, types, versions, and what a network offers."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper

from radii.errors import DataError, NetworkError, SpecificationError
from radii.networks import Network, load_network
from radii.problem import Domain
from radii.testing import Sketch

WEIGHT = np.array([[1.0, -2.0], [0.5, 3.0], [-1.0, 0.25]])


def doubled(shape: list[int | str], **options: Any) -> onnx.ModelProto:
    sketch = Sketch(shape, **options)
    return sketch.model(sketch.apply("Mul", "x", sketch.constant(2.0)))


def load(model: onnx.ModelProto, tmp_path: Path, **options: Any) -> Network:
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    return load_network(path, **{"domain": (0, 1), **options})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["batch", 3, 2, 2], (3, 2, 2)),
        ([1, 3, 2, 2], (3, 2, 2)),
        ([1, 784, 1], (784, 1)),
        ([1, 1, 1, 5], (1, 1, 5)),
        (["n", 4], (4,)),
        ([-1, 4], (4,)),
        ([5], (5,)),
        ([1], (1,)),
    ],
)
def test_input_shape(given: list[int | str], expected: tuple[int, ...], tmp_path: Path) -> None:
    network = load(doubled(given), tmp_path)
    assert network.input_shape == expected
    assert network.output_size == int(np.prod(expected))
    x = np.random.default_rng(0).random((3, *expected), dtype=np.float32)
    np.testing.assert_array_equal(network.replay(x), 2 * x.reshape(3, -1))
    torch.testing.assert_close(network(torch.from_numpy(x)), torch.from_numpy(2 * x).flatten(1))


def test_a_file_without_a_batch_axis_may_have_a_long_first_axis(tmp_path: Path) -> None:
    sketch = Sketch([3, 4, 4])
    flat = sketch.apply("Reshape", "x", sketch.constant(np.array([1, 48])))
    output = sketch.apply("MatMul", flat, sketch.constant(np.ones((48, 2))))
    network = load(sketch.model(output), tmp_path)
    assert network.input_shape == (3, 4, 4)
    assert network(torch.ones(2, 3, 4, 4)).tolist() == [[48, 48], [48, 48]]


@pytest.mark.parametrize("opset", range(8, onnx.defs.onnx_opset_version() + 1))
def test_every_opset(opset: int, tmp_path: Path) -> None:
    """The newest opsets too, although ONNX Runtime reads them only later."""
    sketch = Sketch(["b", 3], opset=opset)
    product = sketch.apply("Gemm", "x", sketch.constant(WEIGHT), sketch.constant(np.zeros(2)))
    model = sketch.model(sketch.apply("Relu", product))
    model.ir_version = onnx.IR_VERSION if opset == onnx.defs.onnx_opset_version() else 8
    network = load(model, tmp_path)
    assert network.replay(np.array([[1, 1, 1]], np.float32)).tolist() == [[0.5, 1.25]]


def test_double_precision(tmp_path: Path) -> None:
    sketch = Sketch([1, 1], dtype=np.float64)
    network = load(sketch.model(sketch.apply("Add", "x", sketch.constant(1e-12))), tmp_path)
    assert network.input_dtype == np.float64
    assert network.torch_dtype == torch.float64
    assert network.replay(np.ones((1, 1)))[0, 0] == 1 + 1e-12
    assert network(torch.ones(1, 1, dtype=torch.float64)).item() == 1 + 1e-12
    assert network(torch.ones(1, 1)).dtype == torch.float32


def test_weights_listed_as_inputs(tmp_path: Path) -> None:
    """As in files of the first versions of the format."""
    sketch = Sketch([1, 3], opset=9)
    model = sketch.model(sketch.apply("MatMul", "x", sketch.constant(WEIGHT)))
    weight = model.graph.initializer[0]
    listed = helper.make_tensor_value_info(weight.name, weight.data_type, weight.dims)
    model.graph.input.insert(0, listed)
    model.ir_version = 3
    network = load(model, tmp_path)
    assert network.replay(np.ones((1, 3), np.float32)).tolist() == [[0.5, 1.25]]


def test_functions_of_the_model_are_inlined(tmp_path: Path) -> None:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    steps = [helper.make_node("Neg", ["a"], ["n"]), helper.make_node("Relu", ["n"], ["b"])]
    function = helper.make_function("mine", "NegativePart", ["a"], ["b"], steps, opsets[:1])
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 2]) for n in "xy"]
    node = helper.make_node("NegativePart", ["x"], ["y"], domain="mine")
    graph = helper.make_graph([node], "g", info[:1], info[1:])
    model = helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=8)
    network = load(model, tmp_path)
    assert network(torch.tensor([[-1.0, 2.0]])).tolist() == [[1.0, 0.0]]


def _with_function(domain: str, given: dict[str, Any]) -> onnx.ModelProto:
    """One call of a LeakyRelu whose slope is 2 unless another one is given."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]
    body = helper.make_node("LeakyRelu", ["a"], ["b"])
    body.attribute.add(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="alpha")
    defaults = [helper.make_attribute("alpha", 2.0)]
    function = helper.make_function(
        *(domain, "Gelu", ["a"], ["b"], [body], opsets[:1]), attribute_protos=defaults
    )
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 2]) for n in "xy"]
    node = helper.make_node("Gelu", ["x"], ["y"], domain=domain, **given)
    graph = helper.make_graph([node], "g", info[:1], info[1:])
    return helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=9)


@pytest.mark.parametrize(("given", "slope"), [({}, 2.0), ({"alpha": 0.5}, 0.5)])
def test_attributes_that_a_call_leaves_out_are_the_functions_own(
    given: dict[str, Any], slope: float, tmp_path: Path
) -> None:
    model = _with_function("mine", given)
    x = np.array([[-1.0, 2.0]], np.float32)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    network = load(model, tmp_path)
    assert network.replay(x).tolist() == expected.tolist() == [[-slope, 2.0]]
    assert network(torch.from_numpy(x)).tolist() == expected.tolist()


def _leaky(name: str, default: float | None, overload: str = "") -> onnx.FunctionProto:
    body = helper.make_node("LeakyRelu", ["a"], ["b"])
    body.attribute.add(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="alpha")
    made = helper.make_function(
        *("mine", name, ["a"], ["b"], [body], [helper.make_opsetid("", 17)]),
        attributes=["alpha"] if default is None else [],
        attribute_protos=[] if default is None else [helper.make_attribute("alpha", default)],
    )
    made.overload = overload
    return made


def _calling(functions: list[onnx.FunctionProto], overload: str = "") -> onnx.ModelProto:
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 2]) for n in "xy"]
    node = helper.make_node(functions[0].name, ["x"], ["y"], domain="mine")
    node.overload = overload
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    graph = helper.make_graph([node], "g", info[:1], info[1:])
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10)


def test_each_overload_of_a_function_has_defaults_of_its_own(tmp_path: Path) -> None:
    model = _calling([_leaky("S", 0.5, "one"), _leaky("S", 0.25, "two")], overload="one")
    x = np.array([[-1.0, 2.0]], np.float32)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    assert load(model, tmp_path).replay(x).tolist() == expected.tolist() == [[-0.5, 2.0]]


def test_a_call_that_leaves_out_what_has_no_default_is_refused(tmp_path: Path) -> None:
    """It may reach a default of a function that is called inside, which onnx's inliner forgets."""
    inner, outer = _leaky("G", 0.5), _leaky("F", None)
    outer.node[0].op_type, outer.node[0].domain = "G", "mine"
    outer.opset_import.append(helper.make_opsetid("mine", 1))
    with pytest.raises(NetworkError, match="without all of its attributes"):
        load(_calling([outer, inner]), tmp_path)


@pytest.mark.parametrize("domain", ["com.microsoft", "ai.onnx.ml"])
def test_functions_that_a_runtime_has_itself_are_refused(domain: str, tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="operators of their own"):
        load(_with_function(domain, {}), tmp_path)


def test_unused_nodes_and_weights_do_not_matter(tmp_path: Path) -> None:
    sketch = Sketch([1, 2])
    output = sketch.apply("Relu", "x")
    sketch.apply("Det", sketch.apply("Erf", "x"))
    sketch.constant(np.full(2, np.nan))
    model = sketch.model(output)
    network = Network.from_bytes(model.SerializeToString(), domain=(0, 1), name="n")
    assert [node.name for node in network.graph.nodes] == ["x", "Relu_0"]


def test_nodes_in_any_order(tmp_path: Path) -> None:
    sketch = Sketch([1, 2])
    model = sketch.model(sketch.apply("Neg", sketch.apply("Relu", "x")))
    nodes = list(reversed(model.graph.node))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    network = Network.from_bytes(model.SerializeToString(), domain=(0, 1), name="n")
    assert network(torch.tensor([[-1.0, 2.0]])).tolist() == [[0.0, -2.0]]


def test_domain_per_channel(tmp_path: Path) -> None:
    model = doubled(["b", 3, 2, 2])
    network = load(model, tmp_path, domain=((0, 0, -1), (1, 2, 3)))
    low, high = network.domain.box(network.input_shape)
    assert low[:, 0, 0].tolist() == [0, 0, -1]
    assert high[:, 1, 1].tolist() == [1, 2, 3]
    tabular = load(doubled(["b", 2]), tmp_path, domain=Domain.parse("0,0:1,5"))
    assert tabular.domain.box((2,))[1].tolist() == [1, 5]
    with pytest.raises(SpecificationError, match="does not fit"):
        load(model, tmp_path, domain=((0, 0), (1, 1)))


def test_pickling_keeps_the_network(tmp_path: Path) -> None:
    network = load(doubled(["b", 3]), tmp_path, domain=((0, 0, 0), (1, 2, 3)), mean=0.5, std=0.25)
    again = pickle.loads(pickle.dumps(network))
    assert (again.name, again.fingerprint) == (network.name, network.fingerprint)
    assert again.domain.key() == network.domain.key()
    x = torch.rand(2, 3)
    assert torch.equal(again(x), network(x))


def test_a_batch_of_another_shape_is_refused(tmp_path: Path) -> None:
    network = load(doubled(["b", 3, 2]), tmp_path)
    for x in (np.zeros((3, 2), np.float32), np.zeros((1, 2, 3), np.float32)):
        with pytest.raises(DataError, match=r"net.onnx: takes .* shape \(3, 2\)"):
            network.replay(x)
        with pytest.raises(DataError, match=r"net.onnx: takes .* shape \(3, 2\)"):
            network(torch.from_numpy(x))
    assert network.replay(np.zeros((0, 3, 2), np.float32)).shape == (0, 6)
    assert network(torch.zeros(0, 3, 2)).shape == (0, 6)


def test_what_a_network_says_of_itself(tmp_path: Path) -> None:
    network = load(doubled(["b", 3]), tmp_path, name="mine")
    assert repr(network).startswith("Network('mine', 3 -> 3, ")
    assert network.replayed_on.startswith("onnxruntime 1.")
    assert network.is_piecewise_linear
    smooth = Sketch(["b", 3])
    assert not load(smooth.model(smooth.apply("Tanh", "x")), tmp_path).is_piecewise_linear


def test_importing_networks_loads_no_onnx_packages() -> None:
    code = "import sys, radii.networks; print([m for m in sys.modules if m.startswith('onnx')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
