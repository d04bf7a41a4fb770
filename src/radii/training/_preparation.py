"""What a training run was and what came of it, for machines (JSON) and readers (Markdown)."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from radii.datasets import Dataset, extent
from radii.errors import DataError, NetworkError, SpecificationError, TrainingError
from radii.networks import per_channel
from radii.problem import Domain
from radii.training._checkpoints import Epoch, replacing
from radii.training._loop import Holdout
from radii.training._regime import evaluating
from radii.training._settings import TrainingSettings

CARD_JSON_FILE = "card.json"
CARD_MARKDOWN_FILE = "card.md"


@dataclass(frozen=True, slots=True)
class DataSummary:
    """Which images; `fingerprint` is the sha256 of their values and labels."""

    title: str
    images: int
    shape: tuple[int, ...]
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Accuracies are shares of the images of `tested`, none of which was trained on if `held_out`.

    `robust_accuracy` is the share of the first `attacked` of them that PGD of `attack_steps` steps
    did not break: an upper bound, no proof. `seconds` are wall time without tests.
    `largest_difference` is that between the outputs of the module and of the exported file on real
    images.
    """

    architecture: str
    parameters: int
    settings: TrainingSettings
    data: DataSummary
    tested: DataSummary
    held_out: bool
    accuracy: float
    robust_accuracy: float
    attacked: int
    attack_steps: int
    seconds: float
    history: tuple[Epoch, ...]
    network: str
    network_fingerprint: str
    largest_difference: float
    versions: dict[str, str]

    @property
    def overlap(self) -> str:
        """What to say of tested images that were trained on; empty if there are none."""
        if self.held_out:
            return ""
        some = "" if self.tested == self.data else "some of "
        return f"{some}which it was trained on"

    def as_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"

    def markdown(self) -> str:
        """A page for people."""
        settings, tested = self.settings, self.tested
        steps = f", times {settings.rate_factor:g} every {settings.rate_step} epochs"
        rows = {
            "architecture": f"{self.architecture}, {self.parameters:,} parameters",
            "data": _data_text(self.data),
            "regime": settings.regime,
            "epochs": f"{settings.epochs} of batches of {settings.batch}",
            "optimizer": f"{settings.optimizer}, rate {settings.rate:g}"
            + (steps if settings.rate_step else "")
            + (f", weight decay {settings.weight_decay:g}" if settings.weight_decay else ""),
            **({"class weights": settings.class_weights} if settings.class_weights else {}),
            "seed": str(settings.seed),
            "time": f"{self.seconds:.1f} s",
            "tested on": _data_text(tested) + (f", **{self.overlap}**" if self.overlap else ""),
            "accuracy": f"{self.accuracy:.4f}",
            f"accuracy under PGD, eps {settings.eps:g}": f"{self.robust_accuracy:.4f} of the first "
            f"{self.attacked} images, {self.attack_steps} steps; an upper bound of the robust "
            "accuracy",
            "network": f"{self.network}, fingerprint {self.network_fingerprint[:12]}; outputs on "
            f"ONNX Runtime differ from torch by at most {self.largest_difference:.2g}",
            "versions": ", ".join(f"{name} {version}" for name, version in self.versions.items()),
        }
        table = [f"| {name} | {value} |" for name, value in rows.items()]
        return (
            "\n".join([f"# {self.architecture}, {settings.regime}", "", "| | |", "|---|---|"])
            + "\n"
            + "\n".join([*table, "", *_history(self.history)])
            + "\n"
        )

    def write(self, directory: Path) -> None:
        """`card.json` and `card.md`."""
        for name, text in ((CARD_JSON_FILE, self.as_json()), (CARD_MARKDOWN_FILE, self.markdown())):
            with replacing(directory / name) as path:
                path.write_text(text, "utf-8", errors="backslashreplace")  # names of files

    @classmethod
    def read(cls, directory: Path) -> Card:
        """From `card.json` in a directory of `radii train`."""
        path = directory / CARD_JSON_FILE
        try:
            fields = json.loads(path.read_text("utf-8"))
            for name in ("data", "tested"):
                fields[name]["shape"] = tuple(fields[name]["shape"])
                fields[name] = DataSummary(**fields[name])
            fields["settings"] = TrainingSettings(**fields["settings"])
            fields["history"] = tuple(Epoch(**epoch) for epoch in fields["history"])
            return cls(**fields)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise TrainingError(f"{path}: cannot be read as a training card ({error})") from None


def _data_text(data: DataSummary) -> str:
    shape = "x".join(map(str, data.shape))
    return f"{data.title}, {data.images:,} images of {shape} (sha256 {data.fingerprint[:12]})"


def _history(history: tuple[Epoch, ...]) -> list[str]:
    lines = ["| epoch | loss | accuracy | under PGD | rate |", "|---:|---:|---:|---:|---:|"]
    for epoch in history:
        if epoch.accuracy is not None and epoch.robust_accuracy is not None:
            lines.append(
                f"| {epoch.number} | {epoch.loss:.4f} | {epoch.accuracy:.3f} | "
                f"{epoch.robust_accuracy:.3f} | {epoch.rate:.3g} |"
            )
    return lines


# What training works on: data as tensors, checked against the module and the domain.


DomainLike = Domain | tuple[npt.ArrayLike, npt.ArrayLike]


@dataclass(frozen=True, slots=True, eq=False)
class TrainingData:
    """Images and labels to train on, and those to test on: all others if it `is_held_out`."""

    images: Tensor
    labels: Tensor
    holdout: Holdout
    data: DataSummary
    tested: DataSummary
    is_held_out: bool


def material(
    module: nn.Module, name: str, data: Dataset, test: Dataset | None, domain: DomainLike
) -> TrainingData:
    """All images in the module's type and place; an InputError if they do not fit together."""
    _check_fits(module, data, test, name)
    like = next(module.parameters())
    low, high = _domain_box(domain, data, like)
    for part in filter(None, (data, test)):
        _check_inside(part, low, high)
    images, labels = _tensors(data, like)
    summary = _summary(data)
    if test is None:
        holdout = Holdout(images, labels, low, high)
        return TrainingData(images, labels, holdout, summary, summary, False)
    holdout = Holdout(*_tensors(test, like), low, high)
    return TrainingData(images, labels, holdout, summary, _summary(test), _is_apart(test, data))


def _is_apart(test: Dataset, data: Dataset) -> bool:
    """No image of one is an image of the other. Splits of one data set are known to be."""
    if test.name == data.name and {test.split, data.split} == {"train", "test"}:
        return True
    known = {hash(image.tobytes()) for image in test.images}
    return not any(hash(image.tobytes()) in known for image in data.images)


def fitting_masks(module: nn.Module, masks: Mapping[str, Tensor]) -> dict[str, Tensor]:
    shapes = {name: p.shape for name, p in module.named_parameters()}
    for name, mask in masks.items():
        if shapes.get(name) != mask.shape:
            raise TrainingError(f"there is no parameter '{name}' of shape {tuple(mask.shape)}")
    like = next(module.parameters())
    return {name: mask.to(like) for name, mask in sorted(masks.items())}


def _check_fits(module: nn.Module, data: Dataset, test: Dataset | None, name: str) -> None:
    """The module takes these images and has an output for each label."""
    if not any(p.requires_grad for p in module.parameters()):
        raise NetworkError(f"{name}: has no parameters to train")
    if test is not None and test.shape != data.shape:
        raise DataError(
            f"'{test.title}' has images of {extent(test.shape)} but '{data.title}' of "
            f"{extent(data.shape)}"
        )
    parameter = next(module.parameters())
    if parameter.dtype not in (torch.float32, torch.float64):
        raise NetworkError(
            f"{name}: has weights of {parameter.dtype}; train it in torch.float32 or torch.float64"
        )
    image = torch.from_numpy(data.first(1).images).to(parameter)
    try:
        with torch.no_grad(), evaluating(module):
            outputs = module(image)
    except (RuntimeError, ValueError, TypeError) as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise NetworkError(
            f"{name}: cannot take images of {extent(data.shape)} ({first})"
        ) from None
    if not isinstance(outputs, Tensor):
        raise NetworkError(f"{name}: gives a {type(outputs).__name__}, not one row of scores")
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


def _domain_box(domain: DomainLike, data: Dataset, like: Tensor) -> tuple[Tensor, Tensor]:
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


def _summary(data: Dataset) -> DataSummary:
    return DataSummary(data.title, len(data), data.shape, digest(data.images, data.labels))


def digest(*arrays: npt.NDArray[Any]) -> str:
    """The sha256 of the arrays' shapes and values."""
    hashed = hashlib.sha256()
    for array in arrays:
        hashed.update(f"{array.dtype.str}{array.shape}".encode())
        hashed.update(np.ascontiguousarray(array).data.cast("B"))
    return hashed.hexdigest()
