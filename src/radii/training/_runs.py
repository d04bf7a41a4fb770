"""`train`: a module and data in; a trained module, an ONNX file and a card out."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from radii import __version__
from radii.datasets import Dataset, are_words
from radii.errors import NetworkError, TrainingError
from radii.networks import Network, from_torch
from radii.problem import Domain
from radii.training._architectures import architecture
from radii.training._card import Card
from radii.training._checkpoints import Checkpoint, Epoch, TrainingState, claimed, replacing
from radii.training._loop import Loop, TrainingObserver
from radii.training._preparation import TrainingData, digest, fitting_masks, training_data
from radii.training._regime import Regime, Step, parse_regime
from radii.training._settings import TrainingSettings
from radii.verifiers import check_device

NETWORK_FILE = "network.onnx"

FINAL_ATTACKED_IMAGES = 1000
FINAL_STEPS = 40
"""Of the last test: images attacked, steps of the attack."""

EXPORT_CHECK_IMAGES = 64
"""Real images on which the exported file must give what the module gives."""

LARGEST_DIFFERENCE = 1e-4
"""Between the two, relative to the largest output: rounding, and nothing else."""

GREY_EPS, COLOUR_EPS = 0.1, 8 / 255
"""Where robust accuracy is measured if nobody says: the radii of the literature."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainedNetwork:
    """A module in evaluation mode, the same as a network, and how it came about."""

    module: nn.Module
    network: Network
    card: Card

    @property
    def history(self) -> tuple[Epoch, ...]:
        return self.card.history

    def write(self, directory: Path) -> None:
        """`network.onnx`, `card.json` and `card.md`."""
        with replacing(directory / NETWORK_FILE) as path:
            path.write_bytes(self.network.onnx_bytes)
        self.card.write(directory)


def train(
    module: nn.Module | str,
    data: Dataset,
    *,
    regime: Regime | str = "standard",
    test: Dataset | None = None,
    out: Path | str | None = None,
    domain: Domain | tuple[npt.ArrayLike, npt.ArrayLike] = (0.0, 1.0),
    mean: npt.ArrayLike | None = None,
    std: npt.ArrayLike | None = None,
    eps: float | None = None,
    masks: Mapping[str, Tensor] | None = None,
    start: Mapping[str, Tensor] | None = None,
    name: str | None = None,
    observer: TrainingObserver | None = None,
    device: str | None = None,
    **settings: Any,
) -> TrainedNetwork:
    """Train a module, or the architecture of that name, in place; `settings`: `TrainingSettings`'.

    With `out` the run is kept in that directory: doing it again continues where it was cut off, to
    the same weights. `test` is measured and never trained on. `eps` is the radius of the measured
    robust accuracy (the regime's, or else 0.1 for grey and 8/255 for coloured images). `mean` and
    `std` normalise inside a named architecture. `start` are weights to begin with, as of
    `saved_weights` or a module's `state_dict`. `device` is where the module is moved to and
    trained (where it is); a run may be continued on another.
    """
    chosen = parse_regime(regime) if isinstance(regime, str) else regime
    colours = len(data.shape) == 3 and data.shape[0] > 1
    radius = eps if eps is not None else chosen.radius or (COLOUR_EPS if colours else GREY_EPS)
    how = _training_settings(chosen, radius, settings)
    if how.class_weights and not chosen.weighs_classes:
        raise TrainingError(f"training regime '{chosen.name}' does not weigh classes")
    built, title = _module(module, data, test, how, mean, std)
    if device is not None:
        check_device(device)
        built.to(device)
    if start is not None:
        _load(built, start, title)
    on = training_data(built, title, data, test, domain)
    chosen.check(built, on.images[:1])
    label = name or f"{title}-{chosen.name}"
    if isinstance(module, nn.Module):  # nobody trains for hours what cannot be exported then
        from_torch(module, input_shape=data.shape, domain=domain, name=label)
    kept = fitting_masks(built, masks or {})
    purpose = _purpose(title, on, kept, start or {})
    if isinstance(module, nn.Module):
        purpose["module"] = hashlib.sha256(repr(module).encode()).hexdigest()[:12]
    if mean is not None or std is not None:
        purpose["normalisation"] = f"{np.asarray(mean).tolist()} {np.asarray(std).tolist()}"
    images, labels = _training_set(chosen, built, on, how.seed)
    if len(images) > len(on.images):
        purpose["added"] = digest(images[len(on.images) :].cpu().numpy())[:12]
    directory = None if out is None else Path(out)
    with nullcontext() if directory is None else claimed(directory):
        progress = Loop(
            built,
            images,
            labels,
            regime=chosen,
            settings=how,
            holdout=on.holdout,
            checkpoint=Checkpoint(directory, how, purpose),
            masks=kept,
            observer=observer,
        ).run()
        network = from_torch(built, input_shape=data.shape, domain=domain, name=label)
        if data.classes is not None and are_words(data.classes):
            network = network.with_class_names(data.classes)
        trained = TrainedNetwork(built, network, _card(built, title, how, on, progress, network))
        if directory is not None:
            trained.write(directory)
    return trained


def _training_set(
    regime: Regime, module: nn.Module, on: TrainingData, seed: int
) -> tuple[Tensor, Tensor]:
    """What the regime draws batches from; torch's generators are left as they were."""
    devices = [on.images.device] if on.images.device.type == "cuda" else []
    step = Step(module, on.images, on.labels, on.holdout.low, on.holdout.high, 0.0)
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        return regime.training_set(step)


def _training_settings(regime: Regime, eps: float, given: dict[str, Any]) -> TrainingSettings:
    try:
        return TrainingSettings(regime=regime.spec, eps=eps, **given)
    except TypeError as error:
        raise TrainingError(f"training takes no such setting ({error})") from None


def _module(
    module: nn.Module | str,
    data: Dataset,
    test: Dataset | None,
    settings: TrainingSettings,
    mean: npt.ArrayLike | None,
    std: npt.ArrayLike | None,
) -> tuple[nn.Module, str]:
    if isinstance(module, str):
        largest = max(int(part.labels.max()) for part in (data, test) if part is not None)
        classes = max(len(data.classes or ()), largest + 1)
        built = architecture(module, data.shape, classes, mean=mean, std=std, seed=settings.seed)
        return built, module
    if mean is not None or std is not None:
        raise TrainingError(
            "mean and std belong into the module itself, as radii.training.Normalize"
        )
    return module, type(module).__name__


def _purpose(
    title: str, on: TrainingData, masks: Mapping[str, Tensor], start: Mapping[str, Tensor]
) -> dict[str, str]:
    """What must agree, beside the settings, for a run to be continued."""
    return {
        "architecture": title,
        "data": f"{on.data.title} ({on.data.fingerprint[:12]})",
        "domain": f"{on.holdout.low.min().item():g}:{on.holdout.high.max().item():g}",
        "masks": digest(*(mask.cpu().numpy() for mask in masks.values()))[:12],
        "start": digest(*(weight.cpu().numpy() for weight in start.values()))[:12],
    }


def _load(module: nn.Module, start: Mapping[str, Tensor], name: str) -> None:
    try:
        module.load_state_dict(dict(start))
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise TrainingError(f"{name}: cannot start from these weights ({reason})") from None


def _export_difference(module: nn.Module, network: Network, images: Tensor) -> float:
    """The largest difference between the module and its export, on real images."""
    with torch.no_grad():
        expected = module(images).cpu().numpy()
    actual = network.replay(images.cpu().numpy())
    difference = float(np.abs(actual - expected).max())
    if not difference <= LARGEST_DIFFERENCE * max(1.0, float(np.abs(expected).max())):
        raise NetworkError(
            f"{network.name}: the exported network differs from the module by {difference:.2g} on "
            "real images"
        )
    return difference


def _card(
    module: nn.Module,
    title: str,
    settings: TrainingSettings,
    on: TrainingData,
    progress: TrainingState,
    network: Network,
) -> Card:
    holdout = on.holdout
    attacked = min(FINAL_ATTACKED_IMAGES, len(holdout))
    return Card(
        architecture=title,
        parameters=sum(p.numel() for p in module.parameters()),
        settings=settings,
        data=on.data,
        tested=on.tested,
        held_out=on.is_held_out,
        accuracy=holdout.accuracy(module, len(holdout)),
        robust_accuracy=holdout.robust_accuracy(
            module, eps=settings.eps, count=attacked, steps=FINAL_STEPS, seed=settings.seed
        ),
        attacked=attacked,
        attack_steps=FINAL_STEPS,
        seconds=progress.seconds,
        history=tuple(progress.history),
        network=NETWORK_FILE,
        network_fingerprint=network.fingerprint,
        largest_difference=_export_difference(
            module, network, holdout.images[:EXPORT_CHECK_IMAGES]
        ),
        versions={
            "radii": __version__,
            "torch": str(torch.__version__),
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    )
