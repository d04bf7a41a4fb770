from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from radii.datasets import from_arrays, load_spec
from radii.errors import DataError, NetworkError, SpecificationError
from radii.networks import Network, load_network
from radii.problem import Norm
from radii.runs import Settings, plan, select

SHARED = Path(__file__).parents[2] / ".." / "shared" / "data" / "jair"


def linear(
    weights: np.ndarray, shape: tuple[int, ...], domain: tuple[float, float] = (0.0, 1.0)
) -> Network:
    """The network x -> weights @ flatten(x), whose outputs a test can compute by itself."""
    dtype = TensorProto.DOUBLE if weights.dtype == np.float64 else TensorProto.FLOAT
    graph = helper.make_graph(
        [
            helper.make_node("Reshape", ["x", "flat"], ["f"]),
            helper.make_node("MatMul", ["f", "w"], ["y"]),
        ],
        "linear",
        [helper.make_tensor_value_info("x", dtype, [1, *shape])],
        [helper.make_tensor_value_info("y", dtype, [1, len(weights)])],
        [
            numpy_helper.from_array(np.ascontiguousarray(weights.T), "w"),
            numpy_helper.from_array(np.array([1, -1]), "flat"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    return Network.from_bytes(model.SerializeToString(), domain=domain, name="linear.onnx")


def weights(outputs: int, inputs: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((outputs, inputs)).astype(dtype)


def images(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).random(shape, dtype=np.float32)


class TestShapes:
    @pytest.mark.parametrize(
        "taken", [(1, 4, 4), (16,), (16, 1), (1, 16), (4, 4), (4, 4, 1), (1, 1, 16)]
    )
    @pytest.mark.parametrize("given", [(4, 4), (16,), (1, 4, 4), (4, 4, 1)])
    def test_one_channel_keeps_its_order(self, given: Any, taken: Any) -> None:
        pixels = images(3, *given)
        network = linear(weights(3, 16), taken)
        found = select(
            network, from_arrays(pixels, [0, 1, 2]), property="one-to-any", norm=Norm.LINF
        )
        for instance, image in zip(found, pixels, strict=True):
            assert instance.input.shape == taken
            assert np.array_equal(instance.input.ravel(), image.ravel())

    @pytest.mark.parametrize("given", [(3, 4, 5), (4, 5, 3)])
    @pytest.mark.parametrize("taken", [(3, 4, 5), (4, 5, 3), (1, 3, 4, 5)])
    def test_colours_stay_colours(self, given: Any, taken: Any) -> None:
        pixels = images(2, *given)
        network = linear(weights(3, 60), taken)
        found = select(network, from_arrays(pixels, [0, 1]), property="one-to-any", norm=Norm.L2)
        red = pixels[0, 0] if given[0] == 3 else pixels[0, :, :, 0]
        image = found[0].input
        assert np.array_equal(image[..., 0] if taken[-1] == 3 else image.reshape(3, 4, 5)[0], red)

    def test_colours_in_a_flat_input_need_a_layout(self) -> None:
        pixels = images(2, 3, 4, 5)
        network, data = linear(weights(3, 60), (60,)), from_arrays(pixels, [0, 1])
        with pytest.raises(DataError, match="input is 60 but dataset 'arrays' gives 3x4x5; say"):
            select(network, data, property="one-to-any", norm=Norm.LINF)
        for layout, flat in (("chw", pixels[1]), ("hwc", pixels[1].transpose(1, 2, 0))):
            found = select(network, data, property="one-to-any", norm=Norm.LINF, layout=layout)
            assert np.array_equal(found[1].input, flat.ravel())
        with pytest.raises(DataError, match="layout 'bgr' is not one of chw, hwc"):
            select(network, data, property="one-to-any", norm=Norm.LINF, layout="bgr")

    @pytest.mark.parametrize(
        ("given", "taken", "said"),
        [
            ((3, 32, 32), (1, 28, 28), "input is 1x28x28 but dataset 'cifar10' gives 3x32x32"),
            ((3, 4, 5), (3, 5, 4), "input is 3x5x4 but dataset 'cifar10' gives 3x4x5"),
            ((7,), (8,), "input is 8 but dataset 'cifar10' gives 7"),
        ],
    )
    def test_what_does_not_fit(self, given: Any, taken: Any, said: str) -> None:
        network = linear(weights(2, int(np.prod(taken))), taken)
        data = from_arrays(images(1, *given), [0], name="cifar10")
        with pytest.raises(DataError, match=f"^linear.onnx: {said}$"):
            select(network, data, property="one-to-any", norm=Norm.LINF)

    def test_a_layout_says_nothing_about_flat_rows(self) -> None:
        network, data = linear(weights(3, 60), (3, 4, 5)), from_arrays(images(2, 60), [0, 1])
        select(network, data, property="one-to-any", norm=Norm.LINF)
        with pytest.raises(DataError, match=r"layout 'hwc' .* rows of 60 values: reshape them"):
            select(network, data, property="one-to-any", norm=Norm.LINF, layout="hwc")

    def test_an_input_is_selected_once(self) -> None:
        network, data = linear(weights(3, 60), (60,)), from_arrays(images(2, 60), [0, 1])
        with pytest.raises(DataError, match="input 1 is selected twice"):
            plan([network], data.take([1, 0, 1]), Settings())

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_the_type_is_the_networks(self, dtype: Any) -> None:
        network = linear(weights(3, 4, dtype), (4,))
        found = select(
            network, from_arrays(images(1, 4), [0]), property="one-to-any", norm=Norm.LINF
        )
        assert found[0].input.dtype == dtype == found[0].outputs.dtype


class TestInstances:
    def test_outputs_labels_and_positions(self) -> None:
        pixels, matrix = images(6, 5), weights(4, 5)
        data = from_arrays(pixels, [0, 1, 2, 3, 0, 1]).take(slice(1, None, 2))
        found = select(linear(matrix, (5,)), data, property="one-to-any", norm=Norm.L1)
        assert [instance.index for instance in found] == [1, 3, 5]
        assert [instance.label for instance in found] == [1, 3, 1]
        for instance in found:
            expected = pixels[instance.index] @ matrix.T
            assert np.allclose(instance.outputs, expected, atol=1e-6)
            assert instance.predicted == int(np.argmax(expected))
            assert instance.norm is Norm.L1
            assert instance.property.spec == "one-to-any"

    def test_misclassified_images_are_kept(self) -> None:
        matrix = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
        data = from_arrays([[0.9, 0.1], [0.9, 0.1], [0.5, 0.5]], [0, 1, 0])
        found = select(linear(matrix, (2,)), data, property="one-to-any", norm=Norm.LINF)
        assert [instance.correct for instance in found] == [True, False, False]

    def test_one_to_one_asks_for_every_target(self) -> None:
        data = from_arrays(images(2, 5), [2, 0])
        network = linear(weights(3, 5), (5,))
        found = select(network, data, property="one-to-one", norm=Norm.LINF)
        assert [(i.index, i.property.target) for i in found] == [(0, 0), (0, 1), (1, 1), (1, 2)]
        found = select(network, data, property="one-to-one:2", norm=Norm.LINF)
        assert [(i.index, i.property.target) for i in found] == [(1, 2)]

    @pytest.mark.parametrize(
        ("asked", "error", "said"),
        [
            ("one-to-one:9", SpecificationError, "target 9"),
            ("one-to-nobody", SpecificationError, "one-to-nobody"),
            ("one-to-one:2", DataError, "asks nothing of the selected images"),
        ],
    )
    def test_properties_that_make_no_sense(self, asked: Any, error: Any, said: str) -> None:
        data = from_arrays(images(1, 5), [2])
        with pytest.raises(error, match=said):
            select(linear(weights(3, 5), (5,)), data, property=asked, norm=Norm.LINF)

    def test_keys_are_distinct_and_repeatable(self) -> None:
        network, data = linear(weights(3, 64), (1, 8, 8)), load_spec("digits[class 0,1,2][0:20]")
        keys = [
            [i.key for i in select(network, data, property="one-to-one", norm=Norm.LINF)]
            for _ in range(2)
        ]
        assert keys[0] == keys[1]
        assert len(set(keys[0])) == len(keys[0]) == 40


class TestChecks:
    def test_labels_beyond_the_outputs(self) -> None:
        data = from_arrays(images(3, 5), [0, 2, 3], name="mine")
        with pytest.raises(
            DataError, match=r"mine: label 3 of image 2 .* 3 outputs of linear.onnx"
        ):
            select(linear(weights(3, 5), (5,)), data, property="one-to-any", norm=Norm.LINF)

    @pytest.mark.parametrize(
        ("value", "said"),
        [
            (1.5, r"image 2 leaves the domain \[0, 1\] of linear.onnx by 0.5: it holds 1.5$"),
            (-0.25, r"image 2 leaves the domain \[0, 1\] of linear.onnx by 0.25: it holds -0.25$"),
            (200.0, "it holds 200; divide pixels by 255"),
        ],
    )
    def test_an_image_outside_the_domain_is_named(self, value: float, said: str) -> None:
        pixels = images(4, 5)
        pixels[2, 3] = value
        with pytest.raises(DataError, match=said):
            select(
                linear(weights(2, 5), (5,)),
                from_arrays(pixels, [0, 1, 0, 1]),
                property="one-to-any",
                norm=Norm.LINF,
            )

    @settings(max_examples=50, deadline=None)
    @given(st.floats(-3, 3), st.floats(0.01, 3))
    def test_data_scaled_to_the_domain_is_in_it(self, low: float, width: float) -> None:
        """Bounds have no exact float32, yet data rounded to them must be accepted and be inside."""
        domain = (low, low + width)
        pixels = np.array([[*domain]], np.float32)
        found = select(
            linear(np.eye(2, dtype=np.float32), (2,), domain),
            from_arrays(pixels, [0]),
            property="one-to-any",
            norm=Norm.LINF,
        )
        assert found[0].ball(0.0).contains(found[0].input)
        assert np.allclose(found[0].input, pixels[0], rtol=1e-6)

    def test_outputs_that_are_not_finite(self) -> None:
        matrix = np.full((2, 2), 3e38, np.float32)
        with pytest.raises(NetworkError, match="outputs that are not finite for image 0"):
            select(
                linear(matrix, (2,)),
                from_arrays([[1.0, 1.0]], [0]),
                property="one-to-any",
                norm=Norm.LINF,
            )


def test_published_networks_on_published_images() -> None:
    path = SHARED / "networks" / "mnist-net_256x2.onnx"
    if not path.exists():
        pytest.skip("../shared/data is not there")
    network = load_network(path, domain=(0, 1))
    data = load_spec(str(SHARED / "mnist_train_0_49.npz"))
    found = select(network, data, property="one-to-any", norm=Norm.LINF)
    assert len(found) == 50
    assert sum(instance.correct for instance in found) >= 45
