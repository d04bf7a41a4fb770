"""What training works on: data as tensors, checked against the module and the domain."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from radii.datasets import Dataset, extent
from radii.errors import DataError, NetworkError, SpecificationError, TrainingError, first_line
from radii.networks import per_channel
from radii.problem import Domain
from radii.training._card import DataSummary
from radii.training._loop import Holdout
from radii.training._regime import evaluating

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


def training_data(
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
        raise NetworkError(
            f"{name}: cannot take images of {extent(data.shape)} ({first_line(error)})"
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
