"""Broken and hostile models: one sentence that names the file, and nothing on the screen."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from radii.errors import InputError, NetworkError, UnsupportedOperator
from radii.networks import Network, load_network
from radii.testing import Sketch


def sound_model(opset: int = 17) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    sketch = Sketch(["batch", 1, 4, 4], opset=opset)
    value = sketch.apply("Conv", "x", sketch.constant(rng.normal(size=(2, 1, 3, 3))))
    value = sketch.apply("Relu", value)
    sizes = sketch.apply("Shape", value)
    first = sketch.apply("Gather", sizes, sketch.constant(np.array([0])), axis=0)
    wanted = sketch.apply("Concat", first, sketch.constant(np.array([-1])), axis=0)
    flat = sketch.apply("Reshape", value, wanted)
    weight = sketch.constant(rng.normal(size=(8, 3)))
    return sketch.model(sketch.apply("Gemm", flat, weight, sketch.constant(np.zeros(3))))


def refusal(path: Path, error: type[InputError] = NetworkError) -> str:
    """The one sentence with which a file is refused."""
    with pytest.raises(error) as caught:
        load_network(path, domain=(0, 1))
    message = str(caught.value)
    assert message
    assert message.isprintable()
    return message


def refusal_of(model: onnx.ModelProto, tmp_path: Path) -> str:
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    message = refusal(path)
    assert message.startswith("net")
    return message


def test_files_that_are_no_models(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    assert "No such file" in refusal(path)
    assert "Is a directory" in refusal(tmp_path)
    path.write_bytes(b"")
    assert refusal(path) == "net.onnx: is empty, not an ONNX model"
    for content in (b"hello\n" * 50, b"\x08\x07", b"\x00" * 100, b"\x89PNG\r\n\x1a\n"):
        path.write_bytes(content)
        assert "is not an ONNX model" in refusal(path)


def test_truncated_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    content = sound_model().SerializeToString()
    for length in range(1, len(content), 7):
        path.write_bytes(content[:length])
        refusal(path)


def test_flipped_bytes_never_escape(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.onnx"
    content = sound_model().SerializeToString()
    generator = random.Random(0)
    for _ in range(300):
        damaged = bytearray(content)
        for _ in range(generator.choice((1, 1, 2, 4))):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        path.write_bytes(damaged)
        try:
            load_network(path, domain=(0, 1))
        except InputError as error:
            assert str(error).isprintable()
    assert capfd.readouterr() == ("", "")


def test_unsupported_operator_is_named_with_its_node(tmp_path: Path) -> None:
    sketch = Sketch([1, 3])
    weight = sketch.constant(np.ones((3, 3)))
    fused = sketch.apply("FusedMatMul", "x", weight, domain="com.microsoft")
    model = sketch.model(sketch.apply("Relu", fused))
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    message = refusal(path, UnsupportedOperator)
    assert "operator 'com.microsoft.FusedMatMul' (node 'FusedMatMul_0')" in message


@pytest.mark.parametrize(
    ("build", "operator"),
    [
        (lambda s: s.apply("Cast", "x", to=TensorProto.INT8), "Cast to int8"),
        (lambda s: s.apply("Cast", "x", to=TensorProto.FLOAT16), "Cast to float16"),
        (lambda s: s.apply("Det", s.apply("Relu", "x")), "Det"),
        (lambda s: s.apply("Add", "x", s.apply("RandomNormal", shape=[3])), "RandomNormal"),
        (lambda s: s.apply("Gather", s.constant(np.ones(3)), "x"), "Gather"),
        (lambda s: s.apply("Clip", "x", s.apply("ReduceMean", "x")), "Clip"),
        (lambda s: s.apply("FusedGemm", "x", domain="com.microsoft"), "com.microsoft.FusedGemm"),
        (lambda s: s.apply_many("Dropout", 2, "x")[1], "Dropout with its output 1"),
        (
            lambda s: s.apply_many(
                "BatchNormalization", 5, "x", *(s.constant(np.ones(3)) for _ in range(4))
            )[0],
            "BatchNormalization in training mode",
        ),
    ],
)
def test_unsupported_uses_of_operators(
    build: Callable[[Sketch], str], operator: str, tmp_path: Path
) -> None:
    sketch = Sketch([1, 3])
    path = tmp_path / "net.onnx"
    path.write_bytes(sketch.model(sketch.apply("Identity", build(sketch))).SerializeToString())
    assert f"operator '{operator}" in refusal(path, UnsupportedOperator)


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
def test_windows_of_nothing_but_padding(operator: str, tmp_path: Path) -> None:
    sketch = Sketch([1, 7, 2], opset=19)
    value = sketch.apply(operator, "x", kernel_shape=[2], dilations=[3], pads=[1, 1])
    path = tmp_path / "net.onnx"
    path.write_bytes(sketch.model(value).SerializeToString())
    assert "with a window that holds padding only" in refusal(path, UnsupportedOperator)


def test_dilated_windows_with_automatic_padding(tmp_path: Path) -> None:
    """ONNX Runtime pads them as if they were not dilated; others do not."""
    sketch = Sketch([1, 2, 7])
    value = sketch.apply("MaxPool", "x", kernel_shape=[2], dilations=[2], auto_pad="SAME_UPPER")
    path = tmp_path / "net.onnx"
    path.write_bytes(sketch.model(value).SerializeToString())
    assert "with auto_pad SAME and dilations" in refusal(path, UnsupportedOperator)


def test_two_opsets(tmp_path: Path) -> None:
    model = sound_model()
    model.opset_import.append(helper.make_opsetid("ai.onnx", 11))
    assert "names the default opset more than once: [17, 11]" in refusal_of(model, tmp_path)


def test_old_and_future_opsets(tmp_path: Path) -> None:
    for opset in (7, 99):
        assert f"uses opset {opset}; opsets 8 to" in refusal_of(sound_model(opset), tmp_path)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("index", [0, 3])
def test_weights_that_are_not_finite(value: float, index: int, tmp_path: Path) -> None:
    model = sound_model()
    tensor = model.graph.initializer[index]
    weights = numpy_helper.to_array(tensor).copy()
    weights.flat[1] = value
    tensor.CopyFrom(numpy_helper.from_array(weights, tensor.name))
    assert f"'{tensor.name}'" in refusal_of(model, tmp_path)
    assert "holds NaN or infinite values" in refusal_of(model, tmp_path)


def test_outputs_that_are_not_finite(tmp_path: Path) -> None:
    sketch = Sketch([1, 3])
    huge = sketch.constant(3e38)
    value = sketch.apply("Mul", sketch.apply("Add", "x", huge), huge)
    assert "gives NaN or infinite outputs" in refusal_of(sketch.model(value), tmp_path)


def test_graph_in_a_circle(tmp_path: Path) -> None:
    sketch = Sketch([1, 3])
    model = sketch.model(sketch.apply("Add", "x", sketch.apply("Relu", "x")))
    model.graph.node[0].input[0] = model.graph.node[1].output[0]
    assert "runs in a circle" in refusal_of(model, tmp_path)


def test_missing_weights(tmp_path: Path) -> None:
    model = sound_model()
    name = model.graph.initializer[0].name
    del model.graph.initializer[0]
    assert f"reads '{name}', which nothing defines" in refusal_of(model, tmp_path)


def test_two_nodes_with_one_output(tmp_path: Path) -> None:
    model = sound_model()
    model.graph.node.append(model.graph.node[0])
    assert "is the output of two nodes" in refusal_of(model, tmp_path)


def test_output_that_nothing_computes_or_that_is_constant(tmp_path: Path) -> None:
    model = sound_model()
    model.graph.output[0].name = "elsewhere"
    assert "no node computes output 'elsewhere'" in refusal_of(model, tmp_path)
    sketch = Sketch([1, 3])
    sketch.apply("Relu", "x")
    constant = sketch.apply("Relu", sketch.constant(np.ones(3)))
    assert "does not depend on the input" in refusal_of(sketch.model(constant), tmp_path)


def test_several_inputs_or_outputs(tmp_path: Path) -> None:
    model = sound_model()
    model.graph.input.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [1]))
    assert "'x', 'z' as inputs" in refusal_of(model, tmp_path)
    model = sound_model()
    model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [1]))
    assert "'z' as outputs" in refusal_of(model, tmp_path)
    model = sound_model()
    del model.graph.input[0]
    assert "nothing as inputs" in refusal_of(model, tmp_path)


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (["batch", "channels", 4, 4], "batchxchannelsx4x4"),
        (["n"], "shape n;"),
        ([], "no shape"),
        (None, "no shape"),
        ([1, 10**12], "too large"),
        ([1, 2**30], "too large"),
    ],
)
def test_input_shapes(shape: list[int | str] | None, said: str, tmp_path: Path) -> None:
    model = sound_model()
    del model.graph.input[0]
    model.graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, shape))
    assert said in refusal_of(model, tmp_path)


def test_input_type(tmp_path: Path) -> None:
    model = sound_model()
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT16
    assert "is of type float16; float and double are supported" in refusal_of(model, tmp_path)


def test_a_fixed_batch_of_many(tmp_path: Path) -> None:
    model = sound_model()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 64
    model.graph.output[0].CopyFrom(
        helper.make_tensor_value_info(model.graph.output[0].name, TensorProto.FLOAT, [64, 3])
    )
    assert "works on batches of exactly 64" in refusal_of(model, tmp_path)


def test_shapes_that_do_not_fit(tmp_path: Path) -> None:
    sketch = Sketch([1, 3])
    model = sketch.model(sketch.apply("MatMul", "x", sketch.constant(np.ones((4, 2)))))
    assert "node 'MatMul_0' does not fit its inputs" in refusal_of(model, tmp_path)
    sketch = Sketch([1, 3])
    model = sketch.model(sketch.apply("Reshape", "x", sketch.constant(np.array([2, -1]))))
    assert "another number of entries" in refusal_of(model, tmp_path)
    sketch = Sketch([1, 3])
    model = sketch.model(sketch.apply("ReduceSum", "x", sketch.constant(np.array([5]))))
    assert "names axis 5 of a value with 2 axes" in refusal_of(model, tmp_path)


@pytest.mark.parametrize("operator", ["ConstantOfShape", "Expand", "Tile", "Range", "Pad"])
def test_claims_of_huge_values(operator: str, tmp_path: Path) -> None:
    sketch = Sketch([1, 3])
    many = np.array([10**9, 10**9])
    match operator:
        case "ConstantOfShape":
            value = sketch.apply(operator, sketch.constant(many))
        case "Range":
            limits = [sketch.constant(np.array(v)) for v in (0.0, 1e12, 1.0)]
            value = sketch.apply(operator, *limits)
        case "Pad":
            value = sketch.apply(operator, "x", sketch.constant(np.array([0, 0, 0, 10**12])))
        case _:
            value = sketch.apply(operator, sketch.constant(np.ones((1, 1))), sketch.constant(many))
    refusal_of(sketch.model(sketch.apply("Add", "x", value)), tmp_path)


def test_stored_weights_that_do_not_fill_their_shape(tmp_path: Path) -> None:
    for dims in ([10**6, 10**6], [-1, 3], [8, 3, 1, 2]):
        model = sound_model()
        del model.graph.initializer[3].dims[:]
        model.graph.initializer[3].dims.extend(dims)
        assert "are damaged" in refusal_of(model, tmp_path)


def with_external_weights(tmp_path: Path, location: str) -> onnx.ModelProto:
    """The sound model, its last weights in a file; `location` is what the model says of it."""
    model = sound_model()
    tensor = model.graph.initializer[3]
    (tmp_path / "weights.bin").write_bytes(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", location
    return model


def test_external_weights_beside_the_model(tmp_path: Path) -> None:
    plain = Network.from_bytes(sound_model().SerializeToString(), domain=(0, 1), name="n")
    path = tmp_path / "net.onnx"
    (tmp_path / "sub").mkdir()
    model = with_external_weights(tmp_path, "weights.bin")
    path.write_bytes(model.SerializeToString())
    network = load_network(path, domain=(0, 1))
    assert network.fingerprint == plain.fingerprint
    assert b"weights.bin" not in network.onnx_bytes
    (tmp_path / "weights.bin").rename(tmp_path / "sub" / "weights.bin")
    assert "No such file" in refusal(path)
    model.graph.initializer[3].external_data[0].value = "sub/weights.bin"
    path.write_bytes(model.SerializeToString())
    assert load_network(path, domain=(0, 1)).fingerprint == plain.fingerprint


def test_external_weights_elsewhere_are_never_read(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "link.bin").symlink_to(tmp_path / "weights.bin")
    (home / "out").symlink_to(tmp_path)
    places = ["../weights.bin", str(tmp_path / "weights.bin"), "link.bin", "out/weights.bin", ""]
    for place in places:
        model = with_external_weights(tmp_path, place)
        (home / "net.onnx").write_bytes(model.SerializeToString())
        assert "outside the model's directory" in refusal(home / "net.onnx")


def test_external_weights_that_are_too_short_or_unreadable(tmp_path: Path) -> None:
    model = with_external_weights(tmp_path, "weights.bin")
    (tmp_path / "weights.bin").write_bytes(b"1234")
    assert "is too short" in refusal_of(model, tmp_path)
    entry = model.graph.initializer[3].external_data.add()
    entry.key, entry.value = "offset", "minus one"
    assert "its reference is damaged" in refusal_of(model, tmp_path)
    entry.value = "-4"
    assert "is too short" in refusal_of(model, tmp_path)
    model.graph.initializer[3].external_data[0].value = "."
    assert "weights file '.'" in refusal_of(model, tmp_path)
    with pytest.raises(NetworkError, match="a model given as bytes cannot refer to"):
        Network.from_bytes(model.SerializeToString(), domain=(0, 1), name="n")
