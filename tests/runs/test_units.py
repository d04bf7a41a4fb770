"""Data in other units than the domain, and networks that guess, are told before any work."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, TensorDataset

import radii
from conftest import dense_model, work_in_this_process
from radii import datasets, demo
from radii.cli import main
from radii.errors import DataError
from radii.networks import Network
from radii.problem import Norm
from radii.runs import Settings, plan, select

DIGITS = datasets.load("digits").first(30)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    work_in_this_process(monkeypatch)
    shutil.copy(demo.network_path("mlp-standard"), "net.onnx")
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], data: str, domain: str = "0:1") -> str:
    words = ["run", "--network", "net.onnx", "--data", data, "--domain", domain, "--out", "r"]
    code = main([*words, "--grid", "0.1:0.2:0.1", "--search", "attack-only", "--attack", "fgsm"])
    err = capsys.readouterr().err
    assert code == 0, err
    return err


@pytest.mark.usefixtures("here")
def test_bytes_are_divided_and_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    pixels = np.rint(255 * DIGITS.images).astype(np.uint8)
    np.savez("bytes.npz", images=pixels, labels=DIGITS.labels)
    np.savez("floats.npz", images=DIGITS.images, labels=DIGITS.labels.astype(np.uint8))
    err = told(capsys, "bytes.npz[0:20]")
    assert "bytes.npz[0:20]: pixels are bytes and were divided by 255" in err
    assert "warning" not in err
    shutil.rmtree("r")
    assert told(capsys, "floats.npz") == ""


@pytest.mark.usefixtures("here")
def test_data_that_fill_little_of_the_domain(capsys: pytest.CaptureFixture[str]) -> None:
    """Divided by 255 twice: values up to 0.0039, 0.39 % of 0:1; and the network only guesses."""
    np.savez("twice.npz", images=DIGITS.images / 255, labels=DIGITS.labels)
    err = told(capsys, "twice.npz")
    assert "warning: twice.npz: values from 0 to 0.00392 fill 0.39 % of the domain 0:1" in err
    assert "by chance among 10 classes" in err


@pytest.mark.usefixtures("here")
def test_an_accuracy_near_that_of_chance(capsys: pytest.CaptureFixture[str]) -> None:
    np.savez("negative.npz", images=1 - DIGITS.images, labels=DIGITS.labels)
    err = told(capsys, "negative.npz")
    assert "inputs are classified correctly, about as many as by chance among 10 classes" in err
    assert "fill" not in err


@pytest.mark.usefixtures("here")
def test_a_few_inputs_that_are_all_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    np.savez("labels.npz", images=DIGITS.images[:4], labels=(DIGITS.labels[:4] + 1) % 10)
    assert "none of 4 inputs is classified correctly; are labels, scale" in told(
        capsys, "labels.npz"
    )


@pytest.mark.usefixtures("here")
def test_data_that_leave_the_domain_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    np.savez("pixels.npz", images=255 * DIGITS.images, labels=DIGITS.labels)
    flags = "--network net.onnx --data pixels.npz --domain 0:1 --out r"
    assert main(["run", *flags.split()]) == 2
    assert "domain" in capsys.readouterr().err


@pytest.mark.usefixtures("here")
def test_what_is_known_is_not_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "digits:test[0:20]") == ""


def linear(weights: np.ndarray, domain: tuple[float, float]) -> Network:
    model = dense_model((weights, np.zeros(len(weights))))
    return Network.from_bytes(model.SerializeToString(), domain=domain, name="linear.onnx")


KINDS = (
    np.uint8,
    np.int8,
    np.int16,
    np.uint16,
    np.int32,
    np.int64,
    np.float16,
    np.float32,
    np.float64,
)
DOMAINS = ((0, 1), (0.0, 0.9), (0, 255), (-1, 1), (-300, 300), (0, 120), (-0.5, 3))


@pytest.mark.sampled(60)
@pytest.mark.parametrize("domain", DOMAINS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["arrays", "tensors", "torch data set", "loader", "npz", "folder"])
def test_pixels_reach_the_network_as_they_stand_or_between_0_and_1(
    kind: Any, domain: tuple[float, float], form: str, tmp_path: Path
) -> None:
    """Only bytes are ever divided, and only for a domain within 0 to 1; what then leaves the domain
    is refused. Nothing else is done to any number."""
    if form == "folder" and kind is not np.uint8:
        return
    if form not in ("arrays", "npz", "folder") and kind is np.uint16:
        return  # torch knows little of it
    values = np.array([[0, 3, 100, 7], [2, 1, 0, 110]], kind)
    labels, pair = [0, 1], (values, [0, 1])
    given: Any = pair
    if "npz" in form:
        given = tmp_path / "a.npz"
        np.savez(given, images=values, labels=labels)
    elif form == "folder":
        given = tmp_path / "pictures"
        for label, row in enumerate(values):
            (given / str(label)).mkdir(parents=True)
            Image.fromarray(row[None]).save(given / str(label) / "a.png")
    elif form != "arrays":
        tensors = (torch.tensor(values), torch.tensor(labels))
        given = tensors if form == "tensors" else TensorDataset(*tensors)
        given = DataLoader(given, batch_size=1) if form == "loader" else given
    data = datasets.as_dataset(given)
    network = linear(np.eye(2, 4), domain)
    low, high = domain
    is_divided = kind is np.uint8 and low >= 0 and high <= 1
    expected = values.astype(np.float32) / np.float32(255 if is_divided else 1)
    if expected.min() < low or expected.max() > high:
        with pytest.raises(DataError, match="leaves the domain"):
            select(network, data, property="one-to-any", norm=Norm.LINF)
        return
    found = select(network, data, property="one-to-any", norm=Norm.LINF)
    assert [instance.input.ravel().tolist() for instance in found] == expected.tolist()


def test_bytes_in_python_are_in_the_units_of_the_domain() -> None:
    """Accuracy 0.2 in place of 0.9, once: a network for 0 to 255 that got 0 to 1."""
    rng = np.random.default_rng(5)
    network = linear(rng.normal(size=(10, 64)), (0, 255))
    images = rng.integers(0, 256, (10, 8, 8), np.uint8)
    labels = network.replay(images.reshape(10, 64).astype(np.float32)).argmax(axis=1)
    for given in (images, torch.tensor(images), images.astype(np.float32)):
        found = radii.robustness_distribution(
            network, (given, labels), search="attack-only", attack="fgsm", jobs=0, eps=0.1
        )
        assert found.column("correct").all()


def test_bits_are_no_bytes() -> None:
    """Zeros and ones that are stored as bytes: divided, they would all be black."""
    bits = np.array([[0, 1], [1, 0]], np.uint8)
    assert datasets.from_arrays(bits, [0, 1]).images.tolist() == bits.tolist()


def test_scales_of_features_are_in_the_units_of_the_domain() -> None:
    ages = np.array([[20, 30], [40, 110]], np.uint8)
    network = linear(np.eye(2), (0, 120))
    made = plan([network], datasets.from_arrays(ages, [1, 1]), Settings(scale="std"))
    assert made.settings.features is not None
    assert made.settings.features.scale.tolist() == [10, 40]


@pytest.mark.usefixtures("here")
def test_bytes_that_are_not_divided_are_mentioned(capsys: pytest.CaptureFixture[str]) -> None:
    pixels = np.rint(255 * DIGITS.images).astype(np.uint8)
    np.savez("bytes.npz", images=pixels, labels=DIGITS.labels)
    err = told(capsys, "bytes.npz[0:20]", "0:255")
    assert "pixels are bytes and are taken as they stand, from 0 to 255" in err
    flags = "--network net.onnx --data bytes.npz --domain=-1:1 --out r2"
    assert main(["run", *flags.split()]) == 2
    said = "; bytes are divided by 255 where the domain lies within 0:1, and else stay"
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("here")
def test_copies_among_the_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    images, labels = DIGITS.images[[0, 1, 2, 0, 1]], DIGITS.labels[[0, 1, 2, 0, 1]]
    np.savez("copies.npz", images=images, labels=labels)
    err = told(capsys, "copies.npz")
    assert "warning: copies.npz: 2 of 5 inputs are copies of others (input 3 of input 0)" in err
    shutil.rmtree("r")
    labels[3] = 9 - labels[3]
    np.savez("copies.npz", images=images, labels=labels)
    err = told(capsys, "copies.npz")
    assert f"input 3 is the same as input 0, but their labels are {labels[3]} and" in err
