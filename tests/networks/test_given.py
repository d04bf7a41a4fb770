"""Models as people have them: networks, files, torch modules, foolbox models with preprocessing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import radii
from conftest import write_linear
from radii.errors import DataError, ExperimentError, NetworkError
from radii.networks import as_network, from_foolbox


def module() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(3, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 4 * 4, 4)
    ).eval()


def foolbox_model(preprocessing: dict[str, object] | None, bounds: tuple[float, float]) -> object:
    foolbox = pytest.importorskip("foolbox", reason="foolbox is not installed")
    return foolbox.PyTorchModel(module(), bounds=bounds, preprocessing=preprocessing, device="cpu")


PREPROCESSING = {"mean": [0.4, 0.5, 0.6], "std": [0.2, 0.25, 0.3], "axis": -3, "flip_axis": -3}


@pytest.mark.parametrize("preprocessing", [None, {"mean": 0.5}, PREPROCESSING])
@pytest.mark.parametrize("bounds", [(0, 1), (-1, 1)])
def test_a_foolbox_model_computes_the_same(
    preprocessing: dict[str, object] | None, bounds: tuple[float, float]
) -> None:
    if preprocessing is not None:
        preprocessing = {
            key: np.array(value, np.float32) if key in ("mean", "std") else value
            for key, value in preprocessing.items()
        }
    model = foolbox_model(preprocessing, bounds)
    network = from_foolbox(model, input_shape=(3, 6, 6), name="mine")
    assert network.name == "mine"
    assert (network.domain.low.min(), network.domain.high.max()) == bounds
    x = np.random.default_rng(5).uniform(*bounds, (7, 3, 6, 6)).astype(np.float32)
    expected = model(torch.from_numpy(x)).detach().numpy()  # type: ignore[operator]
    np.testing.assert_allclose(network.replay(x), expected, atol=1e-5)


@pytest.mark.parametrize("wrapper", [False, True])
def test_transformed_bounds_change_the_units(wrapper: bool) -> None:
    small = foolbox_model({"mean": np.float32(0.5), "std": np.float32(0.2)}, (0, 1))
    model = small.transform_bounds((0, 255), wrapper=wrapper)  # type: ignore[attr-defined]
    network = as_network(model, input_shape=(3, 6, 6))
    assert float(network.domain.high.max()) == 255
    x = np.random.default_rng(6).integers(0, 256, (5, 3, 6, 6)).astype(np.float32)
    expected = small(torch.from_numpy(x / 255)).detach().numpy()  # type: ignore[operator]
    np.testing.assert_allclose(network.replay(x), expected, atol=1e-4)


def test_radii_of_a_foolbox_model_are_in_its_units(linear_file: Path) -> None:
    """y0 - y1 = x0 - x1 over 255 makes the radius of (0.5, 0.3) 255 times as large."""
    foolbox = pytest.importorskip("foolbox", reason="foolbox is not installed")
    identity = nn.Linear(2, 2, bias=False).eval()
    with torch.no_grad():
        identity.weight.copy_(torch.eye(2))
    model = foolbox.PyTorchModel(identity, bounds=(0, 1), device="cpu").transform_bounds((0, 255))
    network = radii.from_foolbox(model, input_shape=(2,))
    data = radii.datasets.as_dataset((np.array([[0.5 * 255, 0.3 * 255]], np.float32), [0]))
    found = radii.robustness_distribution(network, data, grid="1:50:1", jobs=0)
    assert found.lower[0] == 25
    assert found.upper[0] == pytest.approx(25.5, rel=1e-3)


def test_a_model_of_another_framework_is_refused() -> None:
    foolbox = pytest.importorskip("foolbox", reason="foolbox is not installed")

    class Own(foolbox.models.Model):  # type: ignore[misc, name-defined]
        bounds = (0, 1)

        def __call__(self, inputs: object) -> object:
            return inputs

    with pytest.raises(NetworkError, match="holds no torch module"):
        from_foolbox(Own(), input_shape=(2,))


def test_a_file_a_module_and_a_network(linear_file: Path) -> None:
    network = as_network(linear_file, input_shape=(2,), domain=(0, 1))
    assert as_network(network, input_shape=(2,)) is network
    assert as_network(str(linear_file), input_shape=(2,), domain=(0, 1)).name == "linear.onnx"
    made = as_network(module(), input_shape=(3, 6, 6), domain=(0, 1))
    assert (made.name, made.output_size) == ("Sequential", 4)


def test_what_is_missing_or_too_much_is_said(linear_file: Path) -> None:
    with pytest.raises(NetworkError, match="say which inputs are valid"):
        as_network(linear_file, input_shape=(2,))
    network = as_network(linear_file, input_shape=(2,), domain=(0, 1))
    with pytest.raises(NetworkError, match="own domain"):
        as_network(network, input_shape=(2,), domain=(0, 2))
    with pytest.raises(NetworkError, match="own domain"):
        as_network(network, input_shape=(2,), mean=np.zeros(2), std=np.ones(2))
    with pytest.raises(NetworkError, match="type int is not a radii Network"):
        as_network(3, input_shape=(2,), domain=(0, 1))


def test_a_distribution_of_what_people_have(tmp_path: Path) -> None:
    points = (np.array([[0.5, 0.3], [0.25, 0.75]], np.float32), [0, 1])
    file = write_linear(tmp_path)
    chosen: dict[str, Any] = {"grid": "0.1:0.4:0.1", "domain": (0, 1), "jobs": 0}
    (found,) = radii.robustness_distribution(str(file), points, **chosen).by_network()
    assert found == "linear.onnx"
    linear = nn.Linear(2, 2)
    assert len(radii.robustness_distribution([file, linear], points, **chosen)) == 4
    with pytest.raises(ExperimentError, match="several networks are called 'Linear'"):
        radii.robustness_distribution([linear, nn.Linear(2, 2)], points, **chosen)
    with pytest.raises(NetworkError, match="say which inputs are valid"):
        radii.robustness_distribution(file, points)
    with pytest.raises(NetworkError, match="model of type int"):
        radii.robustness_distribution(3, points)
    with pytest.raises(DataError, match="data of type int"):
        radii.robustness_distribution(file, 3, domain=(0, 1))
    with pytest.raises(ExperimentError, match="at least one"):
        radii.robustness_distribution([], points)


def test_from_torch_takes_modules_only() -> None:
    with pytest.raises(NetworkError, match="a str is no torch module"):
        radii.from_torch("x", input_shape=(2,), domain=(0, 1))  # type: ignore[arg-type]
