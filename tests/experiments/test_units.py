"""Data in other units than the domain, and networks that guess, are told before any work."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from conftest import work_in_this_process
from radii import datasets, demo
from radii.cli import main

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
