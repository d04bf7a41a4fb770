"""Training learns, resumes to the same bits, and stops with a sentence when it cannot go on."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import radii.training._loop
from radii import datasets
from radii.datasets import Dataset
from radii.errors import DataError, InputError, TrainingError
from radii.training import Card, Epoch, Regime, Step, TrainedNetwork, architecture, train
from radii.training._checkpoints import claimed
from radii.training._optimizers import Adam, Sgd


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return datasets.load("digits", "train").first(300)


@pytest.fixture(scope="module")
def digits_test() -> Dataset:
    return datasets.load("digits", "test").first(200)


def weights(trained: TrainedNetwork) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in trained.module.state_dict().items()}


def same(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[n], right[n]) for n in left)


def test_learns_and_robustness_is_learnt_too() -> None:
    train_data, test = datasets.load("digits", "train"), datasets.load("digits", "test")
    plain = train("dense:30", train_data, test=test, epochs=15, rate=0.01)
    robust = train("dense:30", train_data, test=test, regime="pgd:eps=0.1", epochs=15, rate=0.01)
    assert plain.card.accuracy > 0.9
    assert robust.card.accuracy > 0.85
    assert robust.card.robust_accuracy > plain.card.robust_accuracy + 0.15
    assert plain.history[-1].loss < plain.history[0].loss / 3
    assert plain.history[-1].accuracy is not None


class Interrupt(Exception):
    """Stands for anything that ends a process between two steps."""


class Interrupting:
    def __init__(self, after: int) -> None:
        self.after = after

    def started(self, batches: int, done: int) -> None:
        self.after += done

    def advanced(self, done: int) -> None:
        if done >= self.after:
            raise Interrupt

    def finished_epoch(self, epoch: Epoch, done: int) -> None:
        pass


class WithNoise(nn.Sequential):
    """Dropout and running averages: state besides the weights, noise besides the regime's."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        super().__init__(
            nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Dropout(0.3),
            nn.Linear(108, 10),
        )  # fmt: skip


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_cut_off_anywhere_the_weights_are_the_same(
    optimizer: str, digits: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(radii.training._loop, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(radii.training._loop, "SHOW_SECONDS", 0.0)

    def run(out: Path | None, after: int) -> TrainedNetwork:
        return train(
            WithNoise(), digits, regime="fgsm", epochs=3, batch=64, optimizer=optimizer,
            rate=0.01, rate_step=1, rate_factor=0.5, out=out, observer=Interrupting(after),
        )  # fmt: skip

    whole = run(None, 10**6)
    cuts = 0
    while True:
        try:
            pieced = run(tmp_path, 4)
            break
        except Interrupt:
            cuts += 1
    assert cuts == 4
    assert same(weights(whole), weights(pieced))
    assert [e.loss for e in whole.history] == [e.loss for e in pieced.history]
    assert [e.robust_accuracy for e in whole.history] == [e.robust_accuracy for e in pieced.history]


SCRIPT = """
import sys, torch
torch.set_num_threads(1)
import radii.training._loop
radii.training._loop.SAVE_SECONDS = 0.0
from radii import datasets, training
data = datasets.load("digits", "train").first(300)
training.train("dense:20", data, regime="fgsm", epochs=20, batch=20, out=sys.argv[1])
"""


def test_killed_and_run_again_ends_with_the_same_weights(digits: Dataset, tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path)])
    checkpoint = tmp_path / "checkpoint.pt"
    limit = time.monotonic() + 120
    written: set[int] = set()  # the first state is written before any batch
    while len(written) < 4 and process.poll() is None and time.monotonic() < limit:
        if checkpoint.exists():
            written.add(checkpoint.stat().st_mtime_ns)
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    saved = torch.load(checkpoint, weights_only=True)["progress"]
    assert (0, 0) < (saved["epoch"], saved["batches"]) < (20, 0)
    torch.set_num_threads(1)
    try:
        options: dict[str, Any] = {"regime": "fgsm", "epochs": 20, "batch": 20}
        resumed = train("dense:20", digits, out=tmp_path, **options)
        whole = train("dense:20", digits, **options)
    finally:
        torch.set_num_threads(threads)
    assert same(weights(resumed), weights(whole))


def test_a_finished_run_is_not_trained_again(digits: Dataset, tmp_path: Path) -> None:
    first = train("dense:8", digits, epochs=2, out=tmp_path)
    written = (tmp_path / "checkpoint.pt").stat().st_mtime_ns
    again = train("dense:8", digits, epochs=2, out=tmp_path)
    assert (tmp_path / "checkpoint.pt").stat().st_mtime_ns == written
    assert same(weights(first), weights(again))
    assert again.card.seconds == first.card.seconds


def test_augmentation_made_once_goes_on_with_the_same_points(
    digits: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(radii.training._loop, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(radii.training._loop, "SHOW_SECONDS", 0.0)
    before = torch.get_rng_state()

    def run(out: Path | None, after: int) -> TrainedNetwork:
        regime = "augmentation-fgsm:made=once"
        told = Interrupting(after)
        return train("dense:8", digits, regime=regime, epochs=1, out=out, observer=told)

    whole = run(None, 10**6)
    with pytest.raises(Interrupt):
        run(tmp_path, 4)
    assert same(weights(run(tmp_path, 10**6)), weights(whole))
    assert whole.card.data.images == len(digits)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_seed_decides(digits: Dataset) -> None:
    before = torch.get_rng_state()
    one, two, other = (weights(train("dense:8", digits, epochs=1, seed=s)) for s in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert same(one, two)
    assert not same(one, other)


def test_directory_of_another_training(digits: Dataset, tmp_path: Path) -> None:
    train("dense:8", digits, epochs=1, out=tmp_path)
    with pytest.raises(TrainingError, match=r"belongs to another training \(rate 0.001, not 0.1\)"):
        train("dense:8", digits, epochs=1, rate=0.1, out=tmp_path)
    with pytest.raises(TrainingError, match="architecture dense:8, not dense:9"):
        train("dense:9", digits, epochs=1, out=tmp_path)
    with pytest.raises(TrainingError, match=r"data digits:train \(\w+\), not digits:train"):
        train("dense:8", digits.first(100), epochs=1, out=tmp_path)
    with pytest.raises(TrainingError, match=r"normalisation None, not 0\.5 None"):
        train("dense:8", digits, epochs=1, mean=0.5, out=tmp_path)


class Hostile:
    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (Path("pwned"),)


@pytest.mark.parametrize("content", ["hostile", "noise", "list", "cut"])
def test_files_that_are_no_checkpoint(
    content: str, digits: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "run" / "checkpoint.pt"
    train("dense:8", digits, epochs=1, out=path.parent)
    match content:
        case "hostile":
            path.write_bytes(pickle.dumps(Hostile()))
        case "noise":
            path.write_bytes(b"\x00" * 100)
        case "list":
            torch.save([1, 2], path)
        case "cut":
            path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(TrainingError, match=r"checkpoint\.pt: (cannot be read|is not)"):
        train("dense:8", digits, epochs=1, out=path.parent)
    assert not (tmp_path / "pwned").exists()


@dataclass(frozen=True, slots=True)
class Diverging(Regime):
    """Fine for an epoch, then not a number."""

    name: ClassVar[str] = "diverging"

    def loss(self, step: Step) -> Tensor:
        value: Tensor = step.module(step.images).square().mean()
        return value if step.progress < 0.5 else value * float("nan")


def test_divergence_keeps_the_last_good_state(digits: Dataset, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"batch 1 of epoch 2 is nan.*keeps the last good"):
        train("dense:8", digits, regime=Diverging(), epochs=2, out=tmp_path)
    saved = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert saved["progress"]["epoch"] == 1
    assert all(bool(t.isfinite().all()) for t in saved["module"].values())


def test_a_huge_learning_rate_diverges_with_a_sentence(digits: Dataset) -> None:
    with pytest.raises(TrainingError, match="training diverged"):
        train("dense:8-8", digits, epochs=50, rate=1e30, optimizer="sgd")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"epochs": 0}, "epochs 0 must be at least 1"),
        ({"batch": 0}, "batch 0"),
        ({"rate": -1.0}, "rate -1 must be above 0"),
        ({"rate": float("nan")}, "rate nan"),
        ({"momentum": 1.0}, "momentum 1"),
        ({"weight_decay": -0.1}, "weight_decay"),
        ({"seed": -1}, "seed -1"),
        ({"eps": 0.0}, "eps 0"),
        ({"optimizer": "lion"}, "optimizer 'lion' is not one of adam, sgd"),
        ({"learning_rate": 1.0}, "learning_rate"),
        ({"domain": (0, 0.5)}, "outside the domain 0:0.5"),
        ({"mean": 0.5, "module": nn.Linear(64, 10)}, "radii.training.Normalize"),
        ({"masks": {"9.weight": torch.ones(2)}}, "no parameter '9.weight'"),
        ({"module": nn.Flatten()}, "has no parameters"),
        ({"module": nn.Linear(5, 10)}, "cannot take images of 1x8x8"),
        ({"module": nn.Conv2d(1, 1, 1)}, "not one row of scores"),
        ({"module": nn.Sequential(nn.Flatten(), nn.Linear(64, 9))}, "has label 9 but"),
    ],
)
def test_bad_input(change: dict[str, Any], said: str, digits: Dataset) -> None:
    options = {"module": "dense:4", "epochs": 1, **change}
    with pytest.raises(InputError, match=said):
        train(options.pop("module"), digits, **options)


def test_test_images_of_another_shape(digits: Dataset) -> None:
    other = datasets.from_arrays(np.zeros((3, 1, 9, 9), np.float32), [0, 1, 2])
    with pytest.raises(DataError, match="images of 1x9x9 but 'digits:train' of 1x8x8"):
        train("dense:4", digits, test=other)


def test_masked_weights_stay_zero(digits: Dataset) -> None:
    module = architecture("dense:8", (1, 8, 8), 10)
    mask = (torch.arange(8 * 64).reshape(8, 64) % 3 == 0).float()
    trained = train(module, digits, epochs=2, masks={"1.weight": mask})
    weight = trained.module.get_parameter("1.weight")
    assert bool((weight[mask == 0] == 0).all())
    assert bool((weight[mask == 1] != 0).any())


def test_what_a_run_leaves(digits: Dataset, digits_test: Dataset, tmp_path: Path) -> None:
    trained = train("dense:8-clamp", digits, test=digits_test, epochs=2, out=tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"checkpoint.pt", "network.onnx", "card.json", "card.md"}
    card = Card.read(tmp_path)
    assert card == trained.card
    assert card.held_out
    assert card.data.images == 300
    text = (tmp_path / "card.md").read_text()
    assert f"| accuracy | {card.accuracy:.4f} |" in text
    network = radii.load_network(tmp_path / "network.onnx", domain=(0, 1))
    predicted = network.replay(digits_test.images).argmax(axis=1)
    assert float((predicted == digits_test.labels).mean()) == pytest.approx(card.accuracy)


def test_without_test_images_the_card_says_so(digits: Dataset) -> None:
    card = train("dense:8", digits, epochs=1).card
    assert not card.held_out
    assert "**which it was trained on**" in card.markdown()


def test_a_directory_that_cannot_be_written(digits: Dataset, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainingError, match="cannot be made"):
        train("dense:8", digits, epochs=1, out=tmp_path / "file" / "run")


def test_one_training_in_a_directory_at_a_time(digits: Dataset, tmp_path: Path) -> None:
    with claimed(tmp_path), pytest.raises(TrainingError, match="another process is training"):
        train("dense:8", digits, epochs=1, out=tmp_path)
    train("dense:8", digits, epochs=1, out=tmp_path)


def test_a_last_batch_of_one_image_is_left_out(digits: Dataset) -> None:
    """Batch normalisation could not take it."""
    layers = (nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm1d(8), nn.Linear(8, 10))
    trained = train(nn.Sequential(*layers), digits.first(33), epochs=1, batch=16)
    assert int(trained.module.get_buffer("2.num_batches_tracked")) == 2


class Unusual(nn.Module):
    """Double precision, a parameter that no output depends on, and one that is frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.used = nn.Linear(64, 10)
        self.unused = nn.Linear(3, 3)
        self.frozen = nn.Parameter(torch.ones(10), requires_grad=False)
        self.double()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.used(x.flatten(1)) * self.frozen
        return out


def test_unusual_modules(digits: Dataset) -> None:
    module = Unusual()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    trained = train(module, digits, epochs=1, masks={"frozen": torch.ones(10)})
    after = weights(trained)
    assert {name for name in after if not torch.equal(after[name], before[name])} == {
        "used.weight",
        "used.bias",
    }
    assert trained.network.input_dtype == np.float64


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_optimizers_are_those_of_torch(decay: float) -> None:
    for ours, theirs in (
        (Adam, lambda ps: torch.optim.Adam(ps, lr=0.01, weight_decay=decay)),
        (Sgd, lambda ps: torch.optim.SGD(ps, lr=0.01, momentum=0.9, weight_decay=decay)),
    ):
        torch.manual_seed(0)
        left = [torch.randn(3, 4, requires_grad=True), torch.randn(5, requires_grad=True)]
        right = [p.detach().clone().requires_grad_() for p in left]
        mine, reference = ours(left, rate=0.01, weight_decay=decay, momentum=0.9), theirs(right)
        for _ in range(5):
            gradients = [torch.randn_like(p) for p in left]
            mine.step(gradients)
            for parameter, gradient in zip(right, gradients, strict=True):
                parameter.grad = gradient.clone()
            reference.step()
        for a, b in zip(left, right, strict=True):
            torch.testing.assert_close(a, b)
