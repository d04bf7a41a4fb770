"""Models of foolbox as networks: with their bounds as the domain, and their preprocessing."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from radii.errors import NetworkError
from radii.networks.network import Network

__all__ = ["from_foolbox", "is_foolbox_model"]

SAMPLES = 4


def is_foolbox_model(model: Any) -> bool:
    """Told by its class, so that foolbox need not be there."""
    return any(kind.__module__.startswith("foolbox.models") for kind in type(model).__mro__)


def from_foolbox(model: Any, *, input_shape: tuple[int, ...], name: str = "foolbox") -> Network:
    """The network of a foolbox PyTorchModel that takes batches (B, *input_shape).

    Its bounds are the domain, and its preprocessing (a flipped axis, mean, standard deviation) is
    part of the network, so that eps is in the units of the bounds, as in foolbox.
    """
    from radii.networks.exporting import from_torch
    from radii.networks.loading import REPLAY_TOLERANCE

    module = _Preprocessed(model, name)
    bounds = (float(model.bounds.lower), float(model.bounds.upper))
    network = from_torch(module, input_shape=input_shape, domain=bounds, name=name)
    points = np.random.default_rng(1).uniform(*bounds, (SAMPLES, *input_shape))
    inputs = points.astype(network.input_dtype)
    with torch.no_grad():
        told = model(torch.from_numpy(inputs).to(module.device)).reshape(SAMPLES, -1).cpu().numpy()
    limit = REPLAY_TOLERANCE * max(1.0, float(np.abs(told).max()))
    if not np.abs(network.replay(inputs) - told).max() <= limit:
        raise NetworkError(f"{name}: does not compute what the foolbox model does")
    return network


class _Preprocessed(nn.Module):
    """The torch module within a foolbox model, behind what foolbox does to inputs before it."""

    mean: Tensor | None
    std: Tensor | None

    def __init__(self, model: Any, name: str) -> None:
        super().__init__()
        inner, scale, shift = model, 1.0, 0.0
        while type(inner).__name__ == "TransformBoundsWrapper":
            (low, high), (least, most) = inner.bounds, inner._model.bounds
            factor = (most - least) / (high - low)
            scale, shift = scale * factor, shift * factor + least - low * factor
            inner = inner._model
        module = _module_of(inner)
        if module is None:
            raise NetworkError(
                f"{name}: a {type(model).__name__} of foolbox holds no torch module; "
                "export the model to ONNX and load the file"
            )
        self.module = module
        self.scale, self.shift = scale, shift
        mean, std, self.flip_axis = inner._preprocess_args
        self.register_buffer("mean", None if mean is None else mean.raw)
        self.register_buffer("std", None if std is None else std.raw)
        self.device = inner.device

    def forward(self, x: Tensor) -> Tensor:
        if (self.scale, self.shift) != (1.0, 0.0):
            x = x * self.scale + self.shift
        if self.flip_axis is not None:
            x = x.flip(self.flip_axis)
        if self.mean is not None:
            x = x - self.mean
        if self.std is not None:
            x = x / self.std
        outputs: Tensor = self.module(x)
        return outputs


def _module_of(model: Any) -> nn.Module | None:
    """foolbox keeps the module in a function that calls it."""
    if type(model).__name__ != "PyTorchModel":
        return None
    held = inspect.getclosurevars(model._model).nonlocals.values()
    return next((each for each in held if isinstance(each, nn.Module)), None)
