"""Networks that were trained on differently fed values are recognised, and the evidence is true."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import onnx
import pytest

from conftest import dense_model
from radii import datasets, demo
from radii.errors import DataError, ExperimentError
from radii.networks import load_network
from radii.runs import (
    Experiment,
    Preprocessing,
    candidates,
    experiment_text,
    inspect,
    prepare,
    values_of_file,
)

DATA = "digits:test"
FED = {
    "as they are": (0.0, 1.0),
    "from 0 to 255": (0.0, 1 / 255),
    "from -1 to 1": (0.5, 0.5),
    "MNIST's mean and deviation": (0.1307, 0.3081),
}


def retrained(folder: Path, mean: float, std: float, name: str = "net.onnx") -> Path:
    """A demo network that wants to be fed (x - mean) / std: it takes that back first."""
    source = demo.network_path("mlp-standard")
    undone = load_network(source, domain=(-1e4, 1e4), mean=-mean / std, std=1 / std)
    path = folder / name
    path.write_bytes(undone.onnx_bytes)
    return path


@pytest.mark.parametrize("name", FED)
def test_how_a_network_is_fed_is_found(name: str, tmp_path: Path) -> None:
    path = retrained(tmp_path, *FED[name])
    domain, (found,) = inspect([str(path)], DATA)
    assert str(domain) == "0:1"
    assert found.best.preprocessing.name == name
    plain = demo.load_network("mlp-standard")
    images = found.data.images.reshape(-1, *plain.input_shape)
    truth = (plain.replay(images).argmax(axis=1) == found.data.labels).mean()
    assert found.best.accuracy == pytest.approx(truth)
    assert not found.is_doubtful
    assert all(other.accuracy <= found.best.accuracy for other in found.findings)


def test_the_file_is_what_was_found(tmp_path: Path) -> None:
    path = retrained(tmp_path, 0.1307, 0.3081)
    file = tmp_path / "deep" / "experiment.toml"
    file.parent.mkdir()
    domain, found = inspect([str(path)], DATA)
    data = f"{DATA}[random 40 seed 0]"
    file.write_text(experiment_text(found, [str(path)], data, domain, file=file))
    told = tomllib.loads(file.read_text())
    assert told["networks"] == ["../net.onnx"]
    assert (told["mean"], told["std"]) == ([0.1307], [0.3081])
    plan = prepare(Experiment.from_options(values_of_file(file)))
    right = np.mean([instance.correct for instance in plan.instances])
    assert len(plan.instances) == 40
    assert right > 0.8


def flat_colours(folder: Path, order: str) -> tuple[Path, Path]:
    """The class is the colour of the brightest picture; the network lists pixels in an order."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 60)
    images = rng.uniform(0, 0.6, (60, 3, 4, 4)).astype(np.float32)
    images[np.arange(60), labels] += 0.3
    places = np.arange(48).reshape(3, 4, 4)
    listed = places if order == "chw" else np.moveaxis(places, 0, -1)
    weights = np.zeros((3, 48))
    for position, value in enumerate(listed.ravel()):
        weights[value // 16, position] = 1
    onnx.save(dense_model((weights, np.zeros(3))), folder / "colours.onnx")
    np.savez(folder / "colours.npz", images=images, labels=labels)
    return folder / "colours.onnx", folder / "colours.npz"


@pytest.mark.parametrize("order", ["chw", "hwc"])
def test_the_order_of_flat_colours_is_found(order: str, tmp_path: Path) -> None:
    network, data = flat_colours(tmp_path, order)
    domain, (found,) = inspect([str(network)], str(data))
    assert found.best.preprocessing == Preprocessing("as they are", layout=order)
    assert found.best.accuracy == 1
    file = tmp_path / "e.toml"
    file.write_text(experiment_text([found], [str(network)], str(data), domain, file=file))
    assert all(i.correct for i in prepare(Experiment.from_options(values_of_file(file))).instances)


def test_what_cannot_be_told_is_said(tmp_path: Path) -> None:
    """Without biases, scaling changes no class."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(3, 6))
    onnx.save(dense_model((weights, np.zeros(3))), tmp_path / "scaled.onnx")
    images = rng.uniform(0, 1, (80, 6)).astype(np.float32)
    np.savez(tmp_path / "d.npz", images=images, labels=(images @ weights.T).argmax(axis=1))
    domain, (found,) = inspect([str(tmp_path / "scaled.onnx")], str(tmp_path / "d.npz"))
    assert found.best.preprocessing.name == "as they are"
    assert "from 0 to 255" in [other.preprocessing.name for other in found.alternatives]
    text = experiment_text([found], ["x.onnx"], DATA, domain, file=tmp_path / "e.toml")
    assert "These inputs do not tell it from: from 0 to 255" in text


def test_guessing_is_called_so(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    onnx.save(dense_model((rng.normal(size=(4, 6)), np.zeros(4))), tmp_path / "net.onnx")
    images = rng.normal(0, 30, (200, 6)).astype(np.float32)
    np.savez(tmp_path / "d.npz", images=images, labels=rng.integers(0, 4, 200))
    domain, (found,) = inspect([str(tmp_path / "net.onnx")], str(tmp_path / "d.npz"))
    low, high = map(int, str(domain).split(":"))
    assert low <= images.min() < low + 1
    assert high - 1 < images.max() <= high
    assert found.is_doubtful
    text = experiment_text([found], ["x.onnx"], DATA, domain, file=tmp_path / "e.toml")
    assert "CHECK THIS" in text
    step = float(tomllib.loads(text)["grid"].split(":")[2])
    assert step == pytest.approx(0.002 * (high - low), rel=1e-3)


def test_networks_that_want_different_things(tmp_path: Path) -> None:
    plain = retrained(tmp_path, 0.0, 1.0, "plain.onnx")
    normal = retrained(tmp_path, 0.5, 0.5, "normal.onnx")
    with pytest.raises(ExperimentError, match=r"plain\.onnx and normal\.onnx want to be fed diff"):
        inspect([str(plain), str(normal)], DATA)


def test_labels_beyond_the_outputs(tmp_path: Path) -> None:
    onnx.save(dense_model((np.ones((2, 64)), np.zeros(2))), tmp_path / "two.onnx")
    with pytest.raises(DataError, match="is not one of the 2 outputs"):
        inspect([str(tmp_path / "two.onnx")], DATA)


def test_names_that_could_break_the_file(tmp_path: Path) -> None:
    name = 'a"b\\c\n]\x7f\U0001f600 .onnx'
    path = retrained(tmp_path, 0.0, 1.0, name)
    file = tmp_path / "e.toml"
    domain, found = inspect([str(path)], DATA)
    text = experiment_text(found, [str(path)], DATA, domain, file=file)
    assert tomllib.loads(text)["networks"] == [name]


def test_colours_and_bytes_have_guesses_of_their_own() -> None:
    images = np.random.default_rng(0).uniform(0, 1, (5, 3, 4, 4)).astype(np.float32)
    names = [one.name for one in candidates(images)]
    assert "ImageNet's means and deviations" in names
    assert not any("MNIST" in name for name in names)
    assert [one.name for one in candidates(200 * images)][1] == "from 0 to 1"
    fed = Preprocessing("x", (0.1, 0.2, 0.3), (1.0, 2.0, 4.0)).apply(images)
    assert np.allclose(fed[:, 2], (images[:, 2] - 0.3) / 4)
    assert datasets.load_spec("digits:test").images.max() <= 1
