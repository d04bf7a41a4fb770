"""What the checker makes of odd ONNX files is what ONNX Runtime makes of them, or it refuses.

The files use what exporters rarely write: inputs that are computed where weights are expected,
paddings that are not stated, one name twice, functions named as operators. A checker that reads
such a file in another way than the runtime proves something about another network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from test_checked_operators import evaluated

from radii_check import CertificateError
from radii_check._network import Unit
from radii_check._numbers import Numbers
from radii_check._onnx import read_network

Array = np.ndarray[Any, Any]
node = helper.make_node

TOTAL = node("ReduceSum", ["x", "axes"], ["s"], keepdims=0)
"""Something scalar, or one number a channel, that is computed from the input."""
MATRIX, IMAGE = (1, 4), (1, 2, 5, 6)


def drawn(*shape: int) -> Array:
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def whole(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


def model(
    nodes: Sequence[onnx.NodeProto],
    stored: Mapping[str, Any] | None = None,
    shape: Sequence[int] = MATRIX,
    opset: int = 13,
    kind: int = TensorProto.FLOAT,
) -> onnx.ModelProto:
    tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in (stored or {}).items()]
    inputs = [helper.make_tensor_value_info("x", kind, shape)]
    outputs = [helper.make_tensor_value_info("y", kind, None)]
    graph = helper.make_graph(nodes, "odd", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def by_runtime(content: bytes, x: Array) -> Array | None:
    """The outputs; None if the runtime does not take the file."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(content, options)
        return np.asarray(session.run(None, {"x": x})[0])
    except Exception:  # whatever it is named in this version of the runtime
        return None


def reads_as_the_runtime(file: onnx.ModelProto) -> bool:
    """Whether it is read; then it must be as the runtime reads it, if that does."""
    content = file.SerializeToString()
    try:
        network = read_network(content, Numbers())[1]
    except CertificateError as error:
        assert len(str(error).splitlines()) == 1
        return False
    rng = np.random.default_rng(2)
    for _ in range(3):
        x = rng.normal(0, 2, network.nodes[0].shape).astype(np.float32)
        expected = by_runtime(content, x)
        if expected is not None:
            found = evaluated(network, x.astype(np.float64).reshape(-1, 1))
            np.testing.assert_allclose(found.ravel(), expected.ravel(), rtol=1e-4, atol=1e-4)
    return True


COMPUTED = {
    "Clip from below": model([TOTAL, node("Clip", ["x", "s"], ["y"])], {"axes": whole(0, 1)}),
    "Clip from above": model([TOTAL, node("Clip", ["x", "", "s"], ["y"])], {"axes": whole(0, 1)}),
    "PRelu": model([node("PRelu", ["x", "x"], ["y"])]),
    "PRelu of a constant": model([node("PRelu", ["c", "x"], ["y"])], {"c": drawn(1, 4)}),
    "bias of Conv": model(
        [TOTAL, node("Conv", ["x", "w", "s"], ["y"])],
        {"axes": whole(0, 2, 3), "w": drawn(2, 2, 1, 1)},
        IMAGE,
    ),
    "weight of Conv": model([node("Conv", ["c", "x"], ["y"])], {"c": drawn(1, 2, 5, 6)}, IMAGE),
    **{
        f"input {place} of BatchNormalization": model(
            [
                TOTAL,
                node(
                    "BatchNormalization",
                    [*("x", "c", "c", "c", "c")[:place], "s", *("c",) * (4 - place)],
                    ["y"],
                ),
            ],
            {"axes": whole(0, 2, 3), "c": abs(drawn(2))},
            IMAGE,
        )
        for place in range(1, 5)
    },
    "Dropout of a constant": model(
        [TOTAL, node("Dropout", ["c", "s"], ["t"]), node("Add", ["x", "t"], ["y"])],
        {"axes": whole(0, 1), "c": np.float32(0)},
    ),
    "MatMul": model([node("Transpose", ["x"], ["t"]), node("MatMul", ["t", "x"], ["y"])]),
    "Mul": model([node("Mul", ["x", "x"], ["y"])]),
    "divisor": model([node("Div", ["c", "x"], ["y"])], {"c": drawn(1, 4)}),
}
"""Inputs that are computed, where this checker knows constants only."""


@pytest.mark.parametrize("what", COMPUTED)
def test_computed_inputs_are_refused(what: str) -> None:
    assert not reads_as_the_runtime(COMPUTED[what])


def test_computed_inputs_that_are_known() -> None:
    assert reads_as_the_runtime(
        model([node("Gemm", ["x", "w", "x"], ["y"], alpha=0.5, beta=2.0)], {"w": drawn(4, 4)})
    )
    assert reads_as_the_runtime(model([node("MatMul", ["c", "x"], ["y"])], {"c": drawn(2, 1)}))
    pads = {"axes": whole(0, 1), "p": whole(0, 1, 0, 2)}
    assert reads_as_the_runtime(model([TOTAL, node("Pad", ["x", "p", "s"], ["y"])], pads))


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
@pytest.mark.parametrize("dilation", [1, 2])
def test_paddings(auto_pad: str, dilation: int) -> None:
    """Runtimes disagree on how far a dilated window reaches when they choose the padding."""
    is_read = []
    for side in (1, 2, 3, 4):
        for stride in (1, 2, 3):
            given: dict[str, Any] = {
                "auto_pad": auto_pad,
                "strides": [stride] * 2,
                "dilations": [dilation] * 2,
            }
            pooled: dict[str, Any] = {"kernel_shape": [side] * 2, **given}
            weights = {"w": drawn(2, 2, side, side)}
            is_read += [
                reads_as_the_runtime(
                    model([node("Conv", ["x", "w"], ["y"], **given)], weights, IMAGE)
                ),
                reads_as_the_runtime(model([node("MaxPool", ["x"], ["y"], **pooled)], {}, IMAGE)),
            ]
            del pooled["dilations"]
            for count in (0, 1) if dilation == 1 else ():
                mean = node("AveragePool", ["x"], ["y"], count_include_pad=count, **pooled)
                is_read.append(reads_as_the_runtime(model([mean], {}, IMAGE)))
    assert any(is_read) == (dilation == 1 or not auto_pad.startswith("SAME"))


def computed(operator: str, *inputs: Any, **attributes: Any) -> onnx.ModelProto:
    """The input plus a constant that a node computes."""
    names = [f"i{place}" for place in range(len(inputs))]
    nodes = [
        node(operator, names, ["c"], **attributes),
        node("Cast", ["c"], ["f"], to=TensorProto.FLOAT),
        node("Add", ["x", "f"], ["y"]),
    ]
    return model(nodes, dict(zip(names, inputs, strict=True)), opset=17)


NOT_AS_THE_RUNTIME = {
    "a quantised constant": computed(
        "QuantizeLinear", np.float32(-3e9), np.float32(0.1), np.int8(-2)
    ),
    "unique entries": computed("Unique", whole(-1, 4, 2, 3), sorted=0),
    "a normed constant": computed("LpNormalization", -abs(drawn(1, 4)), p=1),
    "responses": computed("LRN", 9 * drawn(1, 4, 1, 4), size=3),
    "a pool of constants": computed(
        "MaxPool", -abs(drawn(1, 1, 4)), kernel_shape=[2], ceil_mode=1, pads=[0, 1], strides=[2]
    ),
    "AveragePool, strides far above its kernel": model(
        [
            node(
                *("AveragePool", ["x"], ["y"]),
                kernel_shape=[1, 1, 1],
                strides=[2, 3, 3],
                auto_pad="SAME_UPPER",
                count_include_pad=1,
            )
        ],
        {},
        (1, 2, 4, 6, 5),
    ),
    "a constant NaN": model(
        [node("Concat", ["x", "c"], ["y"], axis=1)], {"c": np.full((1, 1), np.nan, np.float32)}
    ),
}
"""What onnx's own implementation makes of these is not what the runtime makes of them, or NaN."""


@pytest.mark.parametrize("what", NOT_AS_THE_RUNTIME)
def test_what_runtimes_read_in_another_way_is_refused(what: str) -> None:
    assert not reads_as_the_runtime(NOT_AS_THE_RUNTIME[what])


def test_clips_in_float64_at_the_largest_float32() -> None:
    """There are numbers beyond it, which such a Clip does not keep."""
    largest = float(np.finfo(np.float32).max)
    stored = {"k": np.float64(1e39), "a": np.float64(-largest), "b": np.float64(largest)}
    nodes = [
        node("Mul", ["x", "k"], ["t"]),
        node("Clip", ["t", "a", "b"], ["c"]),
        node("Div", ["c", "k"], ["y"]),
    ]
    file = model(nodes, stored, kind=TensorProto.DOUBLE).SerializeToString()
    network, x = read_network(file, Numbers())[1], np.array([[-1.5, 0.1, 1.5, 0.0]])
    expected = by_runtime(file, x)
    assert expected is not None
    np.testing.assert_allclose(evaluated(network, x.T).ravel(), expected.ravel(), atol=1e-6)


PLAIN = {
    "Gemm, beta 0": model(
        [node("Gemm", ["x", "w", "b"], ["y"], beta=0.0)], {"w": drawn(4, 3), "b": drawn(3)}
    ),
    "Gemm, alpha 0": model(
        [node("Gemm", ["x", "w", "b"], ["y"], alpha=0.0)], {"w": drawn(4, 3), "b": drawn(3)}
    ),
    "Gemm, a bias for each row": model(
        [node("Gemm", ["x", "w", "b"], ["y"], beta=-2.0)],
        {"w": drawn(4, 3), "b": drawn(3, 1)},
        (3, 4),
    ),
    "Conv, four pads": model(
        [node("Conv", ["x", "w"], ["y"], pads=[0, 1, 2, 3], strides=[2, 1])],
        {"w": drawn(2, 2, 3, 3)},
        IMAGE,
    ),
    "MaxPool, four pads": model(
        [node("MaxPool", ["x"], ["y"], pads=[0, 1, 2, 1], kernel_shape=[3, 3], strides=[2, 2])],
        {},
        IMAGE,
    ),
    "AveragePool, four pads": model(
        [
            node(
                "AveragePool",
                ["x"],
                ["y"],
                pads=[0, 1, 2, 1],
                kernel_shape=[3, 3],
                count_include_pad=1,
            )
        ],
        {},
        IMAGE,
    ),
    "Clip, low above high": model(
        [node("Clip", ["x", "a", "b"], ["y"])], {"a": np.float32(1), "b": np.float32(-1)}
    ),
    "Clip, attributes": model([node("Clip", ["x"], ["y"], min=-0.5, max=0.7)], opset=10),
    "LeakyRelu, negative": model([node("LeakyRelu", ["x"], ["y"], alpha=-0.3)]),
    "Sub from a constant": model([node("Sub", ["c", "x"], ["y"])], {"c": drawn(2, 4)}),
    "Sum of four": model(
        [node("Relu", ["x"], ["r"]), node("Sum", ["c", "x", "r", "x"], ["y"])], {"c": drawn(2, 4)}
    ),
    "Slice from far behind": model(
        [node("Slice", ["x", "a", "b", "c"], ["y"])],
        {"a": whole(-100), "b": whole(-1), "c": whole(1)},
    ),
    "Split, uneven": model(
        [node("Split", ["x"], ["a", "y"], axis=1, num_outputs=2)], {}, (1, 5), 18
    ),
    "division of whole numbers": model(
        [node("Div", ["a", "b"], ["i"]), node("Gather", ["x", "i"], ["y"], axis=1)],
        {"a": whole(-7), "b": whole(2)},
    ),
    "ReduceSum, no axes": model(
        [node("ReduceSum", ["x", "a"], ["y"])], {"a": np.zeros(0, np.int64)}
    ),
    "ReduceMean, nothing to do": model(
        [node("ReduceMean", ["x"], ["y"], noop_with_empty_axes=1)], opset=18
    ),
}


@pytest.mark.parametrize("what", PLAIN)
def test_rare_settings(what: str) -> None:
    assert reads_as_the_runtime(PLAIN[what])


@pytest.mark.parametrize(
    ("opset", "given", "is_whole"),
    [(11, {}, True), (11, {"axis": 2}, False), (13, {}, False), (13, {"axis": 1}, True)],
)
def test_what_a_softmax_normalises(opset: int, given: dict[str, Any], is_whole: bool) -> None:
    """All axes from the given one on in old files, one axis in new ones."""
    file = model([node("Softmax", ["x"], ["y"], **given)], {}, (1, 4, 1), opset)
    network = read_network(file.SerializeToString(), Numbers())[1]
    last = network.nodes[network.final_nonlinear()]
    assert isinstance(last, Unit)
    assert last.is_whole == is_whole
    outputs = by_runtime(file.SerializeToString(), drawn(1, 4, 1))
    assert outputs is not None
    assert np.isclose(outputs.sum(), 1.0) == is_whole


def relu() -> onnx.ModelProto:
    return model([node("Relu", ["x"], ["y"])])


def with_two_opsets(file: onnx.ModelProto) -> None:
    file.opset_import.append(helper.make_opsetid("ai.onnx", 11))


def with_a_function_named_relu(file: onnx.ModelProto) -> None:
    body = [node("Neg", ["a"], ["b"])]
    opsets = [helper.make_opsetid("", 13)]
    file.functions.append(helper.make_function("", "Relu", ["a"], ["b"], body, opsets))


def with_one_name_twice(file: onnx.ModelProto) -> None:
    file.graph.node.append(node("Neg", ["x"], ["y"]))


def with_weights_elsewhere(file: onnx.ModelProto) -> None:
    tensor = numpy_helper.from_array(drawn(4), "c")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    file.graph.initializer.append(tensor)
    file.graph.node[0].CopyFrom(node("Add", ["x", "c"], ["y"]))


def with_an_attribute_twice(file: onnx.ModelProto) -> None:
    file.graph.node[0].CopyFrom(node("LeakyRelu", ["x"], ["y"], alpha=0.1))
    file.graph.node[0].attribute.append(helper.make_attribute("alpha", 0.9))


def with_an_infinite_clip(file: onnx.ModelProto) -> None:
    file.graph.node[0].CopyFrom(node("Clip", ["x", "c"], ["y"]))
    file.graph.initializer.append(numpy_helper.from_array(np.array(np.inf, np.float32), "c"))


def with_statistics_of_its_batch(file: onnx.ModelProto) -> None:
    """Before opset 14 a BatchNormalization that gives these normalises by them."""
    outputs = ["y", "mean", "variance", "saved mean", "saved variance"]
    file.graph.node[0].CopyFrom(node("BatchNormalization", ["x", *"abcd"], outputs))
    file.graph.initializer.extend(numpy_helper.from_array(abs(drawn(4)), each) for each in "abcd")


def with_nothing_in_it(file: onnx.ModelProto) -> None:
    file.graph.node[0].CopyFrom(node("Slice", ["x", "a", "a", "b"], ["y"]))
    file.graph.initializer.extend(numpy_helper.from_array(whole(1), name) for name in "ab")


@pytest.mark.parametrize(
    "changed",
    [
        with_two_opsets,
        with_a_function_named_relu,
        with_one_name_twice,
        with_weights_elsewhere,
        with_an_attribute_twice,
        with_an_infinite_clip,
        with_statistics_of_its_batch,
        with_nothing_in_it,
    ],
)
def test_files_that_can_be_read_in_two_ways_are_refused(changed: Any) -> None:
    file = relu()
    assert reads_as_the_runtime(file)
    changed(file)
    assert not reads_as_the_runtime(file)
