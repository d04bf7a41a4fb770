"""`train`: a module and data in; a trained module, an ONNX file and a card out."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from radii import __version__
from radii.balls import Domain
from radii.datasets import Dataset
from radii.datasets.images import extent
from radii.errors import DataError, NetworkError, SpecificationError, TrainingError
from radii.networks import Network, from_torch
from radii.networks.normalization import per_channel
from radii.training.architectures import architecture
from radii.training.cards import Card, DataSummary
from radii.training.checkpoints import Checkpoint, Epoch, Progress, replacing
from radii.training.evaluation import Holdout
from radii.training.loop import Loop, Observer
from radii.training.perturbation import evaluating
from radii.training.regime import Regime, parse_regime
from radii.training.settings import Settings

__all__ = ["Trained", "train"]

NETWORK_NAME = "network.onnx"

FINAL_ATTACKED = 1000
FINAL_STEPS = 40
"""Of the last test: images attacked, steps of the attack."""

COMPARED = 64
"""Real images on which the exported file must give what the module gives."""

LARGEST_DIFFERENCE = 1e-4
"""Between the two, relative to the largest output: rounding, and nothing else."""

GREY_EPS, COLOUR_EPS = 0.1, 8 / 255
"""Where robust accuracy is measured if nobody says: the radii of the literature."""


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """A module in evaluation mode, the same as a network, and how it came about."""

    module: nn.Module
    network: Network
    card: Card

    @property
    def history(self) -> tuple[Epoch, ...]:
        return self.card.history


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
    observer: Observer | None = None,
    **settings: Any,
) -> Trained:
    """Train a module, or the architecture of that name, in place; `settings` are `Settings`'.

    With `out` the run is kept in that directory: doing it again continues where it was cut off, to
    the same weights. `test` is measured and never trained on. `eps` is the radius of the measured
    robust accuracy (the regime's, or else 0.1 for grey and 8/255 for coloured images). `mean` and
    `std` normalise inside a named architecture. `start` are weights to begin with, as of
    `saved_weights` or a module's `state_dict`.
    """
    chosen = parse_regime(regime) if isinstance(regime, str) else regime
    colours = len(data.shape) == 3 and data.shape[0] > 1
    radius = eps if eps is not None else chosen.radius or (COLOUR_EPS if colours else GREY_EPS)
    how = _settings(chosen, radius, settings)
    built, title = _module(module, data, test, how, mean, std)
    if start is not None:
        _load(built, start, title)
    _check(built, data, test, title)
    directory = None if out is None else Path(out)
    like = next(built.parameters())
    images, labels = _tensors(data, like)
    low, high = _domain_box(domain, data, like)
    for part in filter(None, (data, test)):
        _check_inside(part, low, high)
    holdout = Holdout(*_tensors(test or data, like), low, high)
    chosen.check(built, images[:1])
    summary = _summary(data)
    checked_masks = _masks(built, masks or {}, like)
    purpose = {
        "architecture": title,
        "data": f"{summary.title} ({summary.fingerprint[:12]})",
        "domain": f"{low.min().item():g}:{high.max().item():g}",
        "masks": _digest(*(m.cpu().numpy() for m in checked_masks.values()))[:12],
        "start": _digest(*(t.cpu().numpy() for t in (start or {}).values()))[:12],
    }
    loop = Loop(
        built,
        images,
        labels,
        regime=chosen,
        settings=how,
        holdout=holdout,
        checkpoint=Checkpoint(directory, how, purpose),
        masks=checked_masks,
        observer=observer,
    )
    progress = loop.run()
    network = from_torch(
        built, input_shape=data.shape, domain=domain, name=name or f"{title}-{chosen.name}"
    )
    difference = _compared(built, network, holdout.images[:COMPARED])
    card = _card(built, title, how, summary, test, holdout, progress, network, difference)
    if directory is not None:
        with replacing(directory / NETWORK_NAME) as path:
            path.write_bytes(network.onnx_bytes)
        card.write(directory)
    return Trained(built, network, card)


def _settings(regime: Regime, eps: float, given: dict[str, Any]) -> Settings:
    try:
        return Settings(regime=regime.spec, eps=eps, **given)
    except TypeError as error:
        raise TrainingError(f"training takes no such setting ({error})") from None


def _module(
    module: nn.Module | str,
    data: Dataset,
    test: Dataset | None,
    settings: Settings,
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


def _load(module: nn.Module, start: Mapping[str, Tensor], name: str) -> None:
    try:
        module.load_state_dict(dict(start))
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise TrainingError(f"{name}: cannot start from these weights ({reason})") from None


def _check(module: nn.Module, data: Dataset, test: Dataset | None, name: str) -> None:
    """The module takes these images and has an output for each label."""
    if not any(p.requires_grad for p in module.parameters()):
        raise NetworkError(f"{name}: has no parameters to train")
    if test is not None and test.shape != data.shape:
        raise DataError(
            f"'{test.title}' has images of {extent(test.shape)} but '{data.title}' of "
            f"{extent(data.shape)}"
        )
    parameter = next(module.parameters())
    image = torch.from_numpy(data.first(1).images).to(parameter)
    try:
        with torch.no_grad(), evaluating(module):
            outputs = module(image)
    except (RuntimeError, ValueError, TypeError) as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise NetworkError(
            f"{name}: cannot take images of {extent(data.shape)} ({first})"
        ) from None
    if outputs.dim() != 2 or len(outputs) != 1:
        raise NetworkError(
            f"{name}: gives an output of shape {tuple(outputs.shape)} for one image, not one row "
            "of scores"
        )
    for part in (data, test):
        if part is not None and int(part.labels.max()) >= outputs.shape[1]:
            raise DataError(
                f"'{part.title}' has label {int(part.labels.max())} but {name} has "
                f"{outputs.shape[1]} outputs"
            )


def _tensors(data: Dataset, like: Tensor) -> tuple[Tensor, Tensor]:
    """Images in the type of the weights `like` and labels, both where these are."""
    labels = torch.from_numpy(data.labels).to(like.device)
    return torch.from_numpy(data.images).to(like), labels


def _domain_box(
    domain: Domain | tuple[npt.ArrayLike, npt.ArrayLike], data: Dataset, like: Tensor
) -> tuple[Tensor, Tensor]:
    low, high = (domain.low, domain.high) if isinstance(domain, Domain) else domain
    try:
        box = Domain(per_channel(low, data.shape), per_channel(high, data.shape)).box(data.shape)
    except (TypeError, ValueError):
        raise SpecificationError(
            f"domain {np.asarray(low).tolist()}:{np.asarray(high).tolist()} does not fit images of "
            f"{extent(data.shape)}; give one number a side, or one for each channel"
        ) from None
    first, second = (torch.from_numpy(np.array(side, np.float32)).to(like) for side in box)
    return first, second


def _check_inside(data: Dataset, low: Tensor, high: Tensor) -> None:
    images = data.images
    outside = (images < low.cpu().numpy()).any() or (images > high.cpu().numpy()).any()
    if outside:
        raise DataError(
            f"'{data.title}' has values from {images.min():g} to {images.max():g}, outside the "
            f"domain {low.min().item():g}:{high.max().item():g}; give the domain they are from"
        )


def _masks(module: nn.Module, masks: Mapping[str, Tensor], like: Tensor) -> dict[str, Tensor]:
    shapes = {name: p.shape for name, p in module.named_parameters()}
    for name, mask in masks.items():
        if shapes.get(name) != mask.shape:
            raise TrainingError(f"there is no parameter '{name}' of shape {tuple(mask.shape)}")
    return {name: mask.to(like) for name, mask in sorted(masks.items())}


def _compared(module: nn.Module, network: Network, images: Tensor) -> float:
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
    settings: Settings,
    data: DataSummary,
    test: Dataset | None,
    holdout: Holdout,
    progress: Progress,
    network: Network,
    difference: float,
) -> Card:
    attacked = min(FINAL_ATTACKED, len(holdout))
    return Card(
        architecture=title,
        parameters=sum(p.numel() for p in module.parameters()),
        settings=settings,
        data=data,
        tested=data if test is None else _summary(test),
        held_out=test is not None,
        accuracy=holdout.accuracy(module, len(holdout)),
        robust_accuracy=holdout.robust_accuracy(
            module, eps=settings.eps, count=attacked, steps=FINAL_STEPS, seed=settings.seed
        ),
        attacked=attacked,
        attack_steps=FINAL_STEPS,
        seconds=progress.seconds,
        history=tuple(progress.history),
        network=NETWORK_NAME,
        network_fingerprint=network.fingerprint,
        largest_difference=difference,
        versions={
            "radii": __version__,
            "torch": str(torch.__version__),
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    )


def _summary(data: Dataset) -> DataSummary:
    return DataSummary(data.title, len(data), data.shape, _digest(data.images, data.labels))


def _digest(*arrays: npt.NDArray[Any]) -> str:
    """The sha256 of the arrays' shapes and values."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data.cast("B"))
    return digest.hexdigest()
