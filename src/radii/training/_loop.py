"""The training loop, and the accuracy that it reports, on clean images and under attack.

All data are in one tensor, batches are made by index, and nothing happens between two steps that a
loop written by hand would not do.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from radii.errors import TrainingError, first_line
from radii.networks import Memo
from radii.training._checkpoints import Checkpoint, Epoch, TrainingState
from radii.training._class_weights import ClassWeights
from radii.training._optimizers import OPTIMIZERS, Optimizer
from radii.training._regime import Regime, Step, ascend, evaluating, uniform
from radii.training._settings import TrainingSettings

EVALUATION_BATCH = 1000
"""Images that pass through the module together."""


class Holdout:
    """Images that a module is tested on, the first of which are attacked."""

    def __init__(self, images: Tensor, labels: Tensor, low: Tensor, high: Tensor) -> None:
        self.images, self.labels = images, labels
        self.low, self.high = low, high

    def __len__(self) -> int:
        return len(self.labels)

    def accuracy(self, module: nn.Module, count: int) -> float:
        """The share of the first `count` images whose label has the largest output."""
        return self._share(module, self.images[:count])

    def robust_accuracy(
        self, module: nn.Module, *, eps: float, count: int, steps: int, seed: int
    ) -> float:
        """The share of the first `count` images that PGD does not break in `steps` steps.

        An upper bound of the robust accuracy: what PGD misses, a better attack may find. torch's
        generator is left as it was.
        """
        broken = self.broken(module, eps=eps, count=count, steps=steps, seed=seed)
        return 1.0 - float(broken.double().mean())

    def broken(self, module: nn.Module, *, eps: float, count: int, steps: int, seed: int) -> Tensor:
        """Which of the first `count` images are wrong as they stand, or PGD breaks."""
        broken = torch.zeros(min(count, len(self)), dtype=torch.bool, device=self.images.device)
        on_cuda = self.images.device.type == "cuda"
        with torch.random.fork_rng(devices=[self.images.device] if on_cuda else []):
            torch.manual_seed(seed)
            for start in range(0, len(broken), EVALUATION_BATCH):
                rows = slice(start, min(start + EVALUATION_BATCH, len(broken)))
                step = Step(module, self.images[rows], self.labels[rows], self.low, self.high, 1.0)
                broken[rows] = _broken(step, eps, steps)
        return broken

    def _share(self, module: nn.Module, images: Tensor) -> float:
        right = 0
        with torch.no_grad(), evaluating(module):
            for start in range(0, len(images), EVALUATION_BATCH):
                rows = slice(start, start + EVALUATION_BATCH)
                predicted = module(images[rows]).argmax(dim=1)
                right += int((predicted == self.labels[: len(images)][rows]).sum())
        return right / len(images)


def _broken(step: Step, eps: float, steps: int) -> Tensor:
    """Where the image itself or the end of an ascent from a random start is misclassified."""
    low, high = step.box(eps)
    ends = ascend(
        step.module,
        uniform(low, high),
        low,
        high,
        lambda outputs, _: cross_entropy(outputs, step.labels, reduction="sum"),
        steps=steps,
        size=2.5 * eps / steps,
    )
    with torch.no_grad(), evaluating(step.module):
        first, last = (step.module(points).argmax(dim=1) for points in (step.images, ends))
    wrong: Tensor = (first != step.labels) | (last != step.labels)
    return wrong


# --- the loop


SAVE_SECONDS = 30.0
"""Seconds of work that a kill may lose."""

SHOW_SECONDS = 0.2
"""Seconds between two calls of an observer's `advanced`."""

TESTED_IMAGES = 1000
ATTACKED_IMAGES = 200
ATTACK_STEPS = 7
"""Of the tests during training: images tested, images attacked, steps of the attack."""

BALANCING_IMAGES = 2000
"""Training images that are attacked after an epoch, to see which classes are to count more."""

MOST_EPOCHS = 1_000_003
"""A run of this many has the order of another seed's first epoch as its next."""

TEST_SHARE = 0.05
"""Of the training's own passes over images, what its tests may cost."""


class TrainingObserver(Protocol):
    """Receives the progress of training; `batches` and `done` count those of the whole run."""

    def started(self, batches: int, done: int) -> None: ...

    def advanced(self, done: int) -> None: ...

    def finished_epoch(self, epoch: Epoch, done: int) -> None: ...


class Loop:
    """One run, from wherever its checkpoint stands to its last epoch.

    `masks` hold 0 where the parameter of that name is kept at 0, and 1 elsewhere.
    """

    def __init__(
        self,
        module: nn.Module,
        images: Tensor,
        labels: Tensor,
        *,
        regime: Regime,
        settings: TrainingSettings,
        holdout: Holdout,
        checkpoint: Checkpoint,
        masks: Mapping[str, Tensor],
        observer: TrainingObserver | None,
    ) -> None:
        self.module, self.images, self.labels = module, images, labels
        self.regime, self.settings, self.holdout = regime, settings, holdout
        self.checkpoint, self.observer = checkpoint, observer
        self._memo = Memo()
        named = dict(module.named_parameters())
        self._parameters = [p for p in named.values() if p.requires_grad]
        self._saved = 0.0
        self._masked = [(named[name], mask) for name, mask in masks.items()]
        text = settings.class_weights
        self._class_weights = ClassWeights.parse(text) if text else None
        whole, rest = divmod(len(images), settings.batch)
        self._batches = whole + (rest > (1 if whole else 0))  # one image alone has no variance

    def run(self) -> TrainingState:
        """Torch's generators are left as they were, and the module in evaluation mode."""
        settings = self.settings
        devices = [self.images.device] if self.images.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(settings.seed)
            optimizer = OPTIMIZERS[settings.optimizer](
                self._parameters,
                rate=settings.rate,
                weight_decay=settings.weight_decay,
                momentum=settings.momentum,
            )
            progress = self.checkpoint.restore(self.module, optimizer)
            self._mask()
            if self._class_weights is not None and not progress.weights:
                progress.weights = self._class_weights.first(self._classes)
            if self.observer is not None:
                done = progress.epoch * self._batches + progress.batches
                self.observer.started(settings.epochs * self._batches, done)
            self._saved = time.perf_counter()
            self.module.train()
            try:
                if progress.epoch == progress.batches == 0:
                    self.checkpoint.take(self.module, optimizer, progress)
                    self.checkpoint.write()  # an unwritable directory is reported now
                while progress.epoch < settings.epochs:
                    self._epoch(optimizer, progress)
            finally:
                self.checkpoint.write()
                self.module.eval()
        return progress

    def _epoch(self, optimizer: Optimizer, progress: TrainingState) -> None:
        """The batches that are left of an epoch, then its test."""
        settings, module, regime = self.settings, self.module, self.regime
        order = self._order(progress.epoch)
        optimizer.rate = settings.rate_at(progress.epoch)
        before = progress.epoch * self._batches
        total = settings.epochs * self._batches
        low, high = self.holdout.low, self.holdout.high
        weights = self.images.new_tensor(progress.weights) if progress.weights else None
        began = shown = time.perf_counter()
        spent = progress.seconds
        for number in range(progress.batches, self._batches):
            chosen = order[number * settings.batch : (number + 1) * settings.batch]
            step = Step(
                module,
                self.images.index_select(0, chosen),
                self.labels.index_select(0, chosen),
                low,
                high,
                (before + number) / total,
                weights,
                self._memo,
            )
            try:
                loss = regime.loss(step)
                value = loss.item()
                if not math.isfinite(value):
                    raise TrainingError(self._diverged(value, progress.epoch, number))
                gradients = torch.autograd.grad(loss, self._parameters, materialize_grads=True)
            except (RuntimeError, ValueError) as error:
                raise TrainingError(self._failed(error)) from error
            optimizer.step(gradients)
            self._mask()
            progress.loss += value
            progress.batches = number + 1
            now = time.perf_counter()
            if self.observer is not None and now - shown > SHOW_SECONDS:
                shown = now
                self.observer.advanced(before + progress.batches)
            if now - self._saved > SAVE_SECONDS:
                progress.seconds = spent + now - began
                self._save(optimizer, progress)
        self._weigh_classes(progress)
        progress.seconds = spent + time.perf_counter() - began
        self._finish(progress)
        self.checkpoint.take(module, optimizer, progress)
        if time.perf_counter() - self._saved > SAVE_SECONDS:
            self._save(optimizer, progress)

    def _finish(self, progress: TrainingState) -> None:
        """Enter the epoch in the history, with what a test now says."""
        settings, number = self.settings, progress.epoch + 1
        accuracy = robust = None
        if number % self._test_every == 0 or number == settings.epochs:
            accuracy = self.holdout.accuracy(self.module, TESTED_IMAGES)
            robust = self.holdout.robust_accuracy(
                self.module,
                eps=settings.eps,
                count=ATTACKED_IMAGES,
                steps=ATTACK_STEPS,
                seed=settings.seed,
            )
        epoch = Epoch(
            number=number,
            loss=progress.loss / self._batches,
            rate=settings.rate_at(progress.epoch),
            seconds=progress.seconds,
            accuracy=accuracy,
            robust_accuracy=robust,
        )
        progress.history.append(epoch)
        progress.epoch, progress.batches, progress.loss = number, 0, 0.0
        if self.observer is not None:
            self.observer.finished_epoch(epoch, number * self._batches)

    def _weigh_classes(self, progress: TrainingState) -> None:
        """The classes' weights of the next epoch, from what PGD breaks of some training images."""
        if self._class_weights is None or not self._class_weights.is_balancing:
            return
        drawn = self._order(progress.epoch)[:BALANCING_IMAGES]
        low, high = self.holdout.low, self.holdout.high
        seen = Holdout(self.images[drawn], self.labels[drawn], low, high)
        settings = self.settings
        broken = seen.broken(
            self.module,
            eps=settings.eps,
            count=len(seen),
            steps=ATTACK_STEPS,
            seed=settings.seed + progress.epoch,
        )
        errors = [
            float(broken[seen.labels == label].double().mean()) for label in range(self._classes)
        ]
        progress.weights = self._class_weights.after(progress.weights, errors)

    @property
    def _classes(self) -> int:
        with torch.no_grad(), evaluating(self.module):
            return int(self.module(self.images[:1]).shape[1])

    def _save(self, optimizer: Optimizer, progress: TrainingState) -> None:
        self.checkpoint.take(self.module, optimizer, progress)
        self.checkpoint.write()
        self._saved = time.perf_counter()

    @property
    def _test_every(self) -> int:
        """Epochs between tests: enough that tests are cheap, but at least five tests in a run."""
        tested, attacked = (
            min(count, len(self.holdout)) for count in (TESTED_IMAGES, ATTACKED_IMAGES)
        )
        passes = tested / 3 + attacked * (ATTACK_STEPS + 1)  # a test only runs forward
        cheap = math.ceil(passes / (TEST_SHARE * len(self.images)))
        return max(1, min(cheap, self.settings.epochs // 5))

    def _order(self, epoch: int) -> Tensor:
        """The images of an epoch in random order; a function of the seed and the epoch alone."""
        generator = torch.Generator().manual_seed(self.settings.seed * MOST_EPOCHS + epoch)
        return torch.randperm(len(self.images), generator=generator).to(self.images.device)

    @torch.no_grad()
    def _mask(self) -> None:
        for parameter, mask in self._masked:
            parameter.mul_(mask)

    def _failed(self, error: Exception) -> str:
        return (
            f"{type(self.module).__name__}: cannot be trained by '{self.regime.name}' in batches "
            f"of {self.settings.batch} ({first_line(error)})"
        )

    def _diverged(self, value: float, epoch: int, batch: int) -> str:
        kept = self.checkpoint.path
        where = "" if kept is None else f"; {kept} keeps the last good state"
        return (
            f"training diverged: the loss of batch {batch + 1} of epoch {epoch + 1} is {value}; "
            f"lower the learning rate or the regime's weights{where}"
        )
