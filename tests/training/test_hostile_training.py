"""Training on bad terms: modules, files, disks and names that cannot work; each one sentence."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from radii import datasets
from radii.cli import main
from radii.datasets import Dataset
from radii.errors import InputError, NetworkError, TrainingError
from radii.training import TrainingSettings, train, tune
from radii.training._certified import ModuleBounds
from radii.training._checkpoints import claimed, replacing


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return datasets.load("digits", "train").first(60)


def small(*layers: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), *layers, nn.Linear(8, 10))


class Wrapped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = small(nn.ReLU())


class Pair(Wrapped):
    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        return self.inner(x), 1


class Detached(Wrapped):
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.inner(x).detach()
        return out


class Branching(Wrapped):
    """Its export follows the branch of one input."""

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.inner(x) if x.sum() > 0 else self.inner(x) + 1
        return out


@pytest.mark.parametrize(
    ("module", "options", "said"),
    [
        (small(nn.BatchNorm1d(8)), {"batch": 1}, "Sequential: cannot be trained .* batches of 1 "),
        (Detached(), {}, "Detached: cannot be trained"),
        (Pair(), {}, "Pair: gives a tuple"),
        (small().bfloat16(), {}, "weights of torch.bfloat16"),
        ("dense:4", {"epochs": 2.5}, "epochs 2.5 must be a whole number"),
        ("dense:4", {"rate": "fast"}, "rate 'fast' must be a number"),
        ("dense:4", {"seed": 2**40}, "seed 1099511627776 must be at most"),
    ],
)
def test_what_cannot_be_trained(
    module: nn.Module | str, options: dict[str, Any], said: str, digits: Dataset
) -> None:
    with pytest.raises(InputError, match=said):
        train(module, digits, **{"epochs": 1, **options})


def test_numbers_of_numpy_are_numbers(digits: Dataset) -> None:
    settings = TrainingSettings(regime="standard", epochs=np.int64(2), rate=np.float32(0.5))  # type: ignore[arg-type]
    assert type(settings.epochs) is int and type(settings.rate) is float


def test_what_cannot_be_exported_is_not_trained_first(digits: Dataset, tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="does not compute what the torch module does"):
        train(Branching(), digits, epochs=1, out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_labels_gone_wrong() -> None:
    data = datasets.from_arrays(np.zeros((3, 1, 4, 4), np.float32), [0, 1, 10**12])
    with pytest.raises(InputError, match="classes, not 1000000000001"):
        train("dense:4", data)


def test_another_module_with_weights_of_the_same_shapes(digits: Dataset, tmp_path: Path) -> None:
    train(small(nn.ReLU()), digits, epochs=1, out=tmp_path)
    with pytest.raises(TrainingError, match="belongs to another training"):
        train(small(nn.Tanh()), digits, epochs=1, out=tmp_path)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("generators", []),
        ("progress", {"epoch": 1, "batches": 0, "loss": 0.0, "seconds": 0.0, "history": []}),
        ("progress", {"epoch": 0, "batches": -3, "loss": 0.0, "seconds": 0.0, "history": []}),
        ("progress", []),
        ("optimizer", {}),
        ("module", {}),
    ],
)
def test_hostile_parts_of_a_checkpoint(
    part: str, value: object, digits: Dataset, tmp_path: Path
) -> None:
    train("dense:4", digits, epochs=1, out=tmp_path)
    path = tmp_path / "checkpoint.pt"
    torch.save({**torch.load(path, weights_only=True), part: value}, path)
    with pytest.raises(TrainingError, match="is not the checkpoint of this module"):
        train("dense:4", digits, epochs=1, out=tmp_path)


@pytest.mark.parametrize("failure", [OSError("no space"), KeyboardInterrupt()])
def test_half_a_file_is_removed(failure: BaseException, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises((TrainingError, KeyboardInterrupt)), replacing(path) as partial:
        partial.write_text("half")
        raise failure
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 64 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount a small file system here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=False)


class Counting:
    """Counts the batches that were done."""

    def __init__(self) -> None:
        self.epochs = 0

    def started(self, batches: int, done: int) -> None: ...

    def advanced(self, done: int) -> None: ...

    def finished_epoch(self, epoch: object, done: int) -> None:
        self.epochs += 1


def test_a_full_disk_is_found_before_the_first_epoch(digits: Dataset, disk: Path) -> None:
    seen = Counting()
    with pytest.raises(TrainingError, match=r"checkpoint\.pt: cannot be written"):
        train("dense:400", digits, epochs=3, out=disk / "run", observer=seen)
    assert seen.epochs == 0
    assert not list((disk / "run").iterdir())


def test_a_read_only_disk(digits: Dataset, disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    with pytest.raises(TrainingError, match="cannot be made"):
        train("dense:4", digits, epochs=1, out=disk / "run")
    with pytest.raises(TrainingError, match=r"checkpoint\.pt: cannot be written"):
        train("dense:4", digits, epochs=1, out=disk)


def test_names_that_are_not_text(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"n\xff.npz")
    images = np.random.default_rng(0).random((20, 4, 4), dtype=np.float32)
    with path.open("wb") as file:
        np.savez(file, images=images, labels=np.arange(20) % 3)
    out = tmp_path / "run"
    assert main(["train", "--data", str(path), "--arch", "dense:4", "--epochs", "1", "--json",
                 "--out", str(out)]) == 0  # fmt: skip
    assert json.loads((out / "card.json").read_text())["data"]["title"] == path.name
    assert "n\\udcff.npz" in (out / "card.md").read_text()


def test_a_search_is_of_these_images_and_of_one_process(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    first, second = (
        datasets.from_arrays(rng.random((20, 1, 4, 4), dtype=np.float32), np.arange(20) % 2)
        for _ in range(2)
    )
    with claimed(tmp_path), pytest.raises(TrainingError, match="another process"):
        tune("dense:2", first, out=tmp_path, trials=1, epochs=1)
    tune("dense:2", first, out=tmp_path, trials=1, epochs=1)
    with pytest.raises(TrainingError, match="holds another search"):
        tune("dense:2", second, out=tmp_path, trials=1, epochs=1)
    for damaged in ("nonsense\nmore\n", "[]\n", '{"purpose": [], "trials": []}\n'):
        (tmp_path / "tuning.json").write_text(damaged)
        with pytest.raises(TrainingError, match="cannot be read as a search"):
            tune("dense:2", first, out=tmp_path, trials=1, epochs=1)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--objective", "crown"], "--objective has no use without --tune"),
        (["--threads", "100000000000"], "--threads 100000000000 must be from 1 to"),
    ],
)
def test_flags_that_would_be_ignored(
    flags: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", "--data", "digits:train[0:50]", "--arch", "dense:4", "--epochs", "1"]
    assert main([*command, "--out", str(tmp_path / "run"), *flags]) == 2
    error = capsys.readouterr().err
    assert told in error and error.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_loss_that_does_not_keep_the_class_is_warned_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", "--data", "digits:train[0:50]", "--arch", "dense:4", "--epochs", "1"]
    regime = "scr:eta=0.4,steps=1"
    assert main([*command, "--out", str(tmp_path / "run"), "--regime", regime]) == 0
    assert "use eta > 0.5" in capsys.readouterr().err


def test_images_that_were_trained_on_are_not_held_out(digits: Dataset) -> None:
    tests = datasets.load("digits", "test").first(10)
    assert train("dense:4", digits, test=tests, epochs=1).card.held_out
    card = train("dense:4", digits, test=digits.first(10), epochs=1).card
    assert not card.held_out
    assert "some of which it was trained on" in card.markdown()


def test_a_convolution_whose_padding_is_named() -> None:
    module = nn.Sequential(nn.Conv2d(1, 2, 3, padding="valid"), nn.ReLU(), nn.Flatten())
    inputs = torch.rand(2, 1, 4, 4)
    found = ModuleBounds(module, (1, 4, 4)).enclosed(inputs, inputs - 0.1, inputs + 0.1)
    labels = torch.tensor([0, 1])
    outputs = module(inputs)
    margins = outputs.gather(1, labels[:, None]) - outputs
    assert bool((found.crown_margins(labels) <= margins + 1e-5).all())
