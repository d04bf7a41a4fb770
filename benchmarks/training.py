"""What `radii.training` costs beside a loop written by hand in plain PyTorch, on one thread."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.records import Options
from benchmarks.tables import show
from radii import datasets
from radii.datasets import Dataset
from radii.errors import DataError
from radii.training import Epoch, architecture, train

BATCH, RATE, EPS, STEPS = 128, 1e-3, 0.1, 7
EPOCHS = 3
ROUNDS = 2
"""The two loops take turns, and the faster turn of each counts."""

CASES = (
    ("dense:30-clamp", "standard"),
    ("dense:100-clamp", "standard"),
    ("mnist_nn", "standard"),
    ("convSmall", "standard"),
    ("dense:30-clamp", "pgd"),
    ("mnist_nn", "pgd"),
)

Loss = Callable[[nn.Module, Tensor, Tensor], Tensor]


def main(options: Options) -> None:
    try:
        data, test = (datasets.load("mnist", split) for split in ("train", "test"))
    except DataError as error:
        print(f"training: left out ({error})")
        return
    data = data.first(options.images or 20_000)
    torch.set_num_threads(1)
    rows: list[tuple[object, ...]] = []
    for name, regime in CASES:
        plain, ours = _turns(name, regime, data, test)
        rows.append((name, regime, plain, ours, 60 / ours, f"{100 * (ours / plain - 1):+.0f} %"))
    show(
        f"MNIST, {len(data)} images, batches of {BATCH}, one thread: CPU seconds an epoch",
        ("architecture", "regime", "plain PyTorch", "radii", "radii: epochs a minute", "overhead"),
        rows,
    )
    print(
        "  radii's epochs include their tests (accuracy, PGD) and the first checkpoint; plain ones "
        "do not"
    )


def _turns(name: str, regime: str, data: Dataset, test: Dataset) -> tuple[float, float]:
    plain, ours = [], []
    for _ in range(ROUNDS):
        plain.append(_plain(name, regime, data))
        ours.append(_ours(name, regime, data, test))
    return min(plain), min(ours)


def _plain(name: str, regime: str, data: Dataset) -> float:
    """The loop that a careful engineer writes: all data in memory, batches by index, no loader."""
    module = architecture(name, data.shape, 10).train()
    images, labels = torch.from_numpy(data.images), torch.from_numpy(data.labels)
    optimizer = torch.optim.Adam(module.parameters(), lr=RATE)
    loss_of: Loss = _standard if regime == "standard" else _pgd
    _plain_epoch(module, images[: 10 * BATCH], labels, optimizer, loss_of)
    began = time.process_time()
    for _ in range(EPOCHS):
        _plain_epoch(module, images, labels, optimizer, loss_of)
    return (time.process_time() - began) / EPOCHS


def _plain_epoch(
    module: nn.Module,
    images: Tensor,
    labels: Tensor,
    optimizer: torch.optim.Optimizer,
    loss_of: Loss,
) -> None:
    order = torch.randperm(len(images))
    for start in range(0, len(images), BATCH):
        chosen = order[start : start + BATCH]
        loss = loss_of(module, images[chosen], labels[chosen])
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()


def _standard(module: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return cross_entropy(module(images), labels)


def _pgd(module: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    low, high = (images - EPS).clamp(min=0), (images + EPS).clamp(max=1)
    points = low + (high - low) * torch.rand_like(images)
    for _ in range(STEPS):
        points.requires_grad_()
        loss = cross_entropy(module(points), labels, reduction="sum")
        (gradient,) = torch.autograd.grad(loss, points)
        points = (points.detach() + 2.5 * EPS / STEPS * gradient.sign()).clamp(low, high)
    return cross_entropy(module(points), labels)


@dataclass(slots=True)
class _Stopwatch:
    """CPU time from the first batch to the end of the last epoch's test."""

    began: float = 0.0
    ended: float = 0.0

    def started(self, batches: int, done: int) -> None:
        self.began = time.process_time()

    def advanced(self, done: int) -> None:
        pass

    def finished_epoch(self, epoch: Epoch, done: int) -> None:
        self.ended = time.process_time()


def _ours(name: str, regime: str, data: Dataset, test: Dataset) -> float:
    watch = _Stopwatch()
    spec = f"pgd:eps={EPS},steps={STEPS}" if regime == "pgd" else regime
    with tempfile.TemporaryDirectory() as out:
        train(
            name,
            data,
            test=test,
            regime=spec,
            epochs=EPOCHS,
            batch=BATCH,
            rate=RATE,
            out=out,
            observer=watch,
        )
    return (watch.ended - watch.began) / EPOCHS
