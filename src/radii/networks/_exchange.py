"""Models as people have them in Python: networks, ONNX files, torch modules, foolbox models.

torch modules enter by export to ONNX, and must then give what the module gave.
"""

from __future__ import annotations

import copy
import inspect
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from radii.errors import NetworkError
from radii.networks._network import DomainLike, Network, load_network

EXPORT_CHECK_INPUTS = 4
"""On how many random inputs an export is compared with the module."""


def from_torch(
    module: nn.Module,
    *,
    input_shape: tuple[int, ...],
    domain: DomainLike,
    mean: npt.ArrayLike | None = None,
    std: npt.ArrayLike | None = None,
    name: str = "torch",
    opaque: bool = False,
) -> Network:
    """The network of a torch module that maps batches (B, *input_shape), in evaluation mode.

    The module itself is left as it was. `domain`, `mean`, `std` and `opaque` are those of
    `load_network`; a module that is opaque still gives its gradients to attacks.
    """
    from radii.networks._loading import REPLAY_TOLERANCE, Normalization, compare_with_replay

    if not isinstance(module, nn.Module):
        raise NetworkError(
            f"a {type(module).__name__} is no torch module: from_torch takes a torch.nn.Module, "
            "load_network the path of an ONNX file"
        )
    parameter = next((p for p in module.parameters() if p.is_floating_point()), torch.zeros(()))
    sample = torch.zeros((1, *input_shape), dtype=parameter.dtype, device=parameter.device)
    with _evaluating(module), torch.no_grad():
        content = _exported(module, sample, name)
        network = Network.from_bytes(
            content,
            domain=domain,
            name=name,
            mean=mean,
            std=std,
            opaque=opaque,
            module=copy.deepcopy(module) if opaque else None,
        )
        compare_with_replay(network)
        low, high = network.domain.box(input_shape)
        points = np.random.default_rng(0).uniform(low, high, (EXPORT_CHECK_INPUTS, *input_shape))
        inputs = points.astype(network.input_dtype)
        normalize = Normalization(mean, std, input_shape=input_shape, network=name)
        fed = torch.from_numpy(normalize(inputs)).to(parameter.device)
        expected = module(fed).reshape(EXPORT_CHECK_INPUTS, -1).cpu().numpy()
    actual = network.replay(inputs)
    limit = REPLAY_TOLERANCE * max(1.0, float(np.abs(expected).max()))
    if actual.shape != expected.shape or not np.abs(actual - expected).max() <= limit:
        raise NetworkError(
            f"{name}: the exported network does not compute what the torch module does; "
            "export it to ONNX by hand and load the file"
        )
    return network


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode for the module and all its parts, each put back as it was."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def _exported(module: nn.Module, sample: Tensor, name: str) -> bytes:
    """With the exporter that needs no further package; it says a lot, which is not shown."""
    silence = StringIO()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.onnx"
        try:
            with (
                warnings.catch_warnings(),
                redirect_stdout(silence),
                redirect_stderr(silence),
                _quiet_descriptors(),
                _without_fast_path(),
            ):
                warnings.simplefilter("ignore")
                torch.onnx.export(
                    module,
                    (sample,),
                    path,
                    dynamo=False,
                    input_names=["input"],
                    output_names=["output"],
                )
        except Exception as error:
            first = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise NetworkError(
                f"{name}: torch cannot export the module for inputs of shape "
                f"{tuple(sample.shape[1:])} to ONNX: {first.partition('. ')[0]}"
            ) from error
        return path.read_bytes()


@contextmanager
def _without_fast_path() -> Iterator[None]:
    """Attention in the fused form that torch takes in evaluation mode cannot be exported."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


@contextmanager
def _quiet_descriptors() -> Iterator[None]:
    """The exporter's C++ prints the whole graph of a module that it cannot export."""
    kept = [os.dup(number) for number in (1, 2)]
    try:
        with Path(os.devnull).open("wb") as nowhere:
            for number in (1, 2):
                os.dup2(nowhere.fileno(), number)
            yield
    finally:
        for number, copy_of in zip((1, 2), kept, strict=True):
            os.dup2(copy_of, number)
            os.close(copy_of)


# Models of foolbox as networks: with their bounds as the domain, and their preprocessing.


def is_foolbox_model(model: Any) -> bool:
    """Told by its class, so that foolbox need not be there."""
    return any(kind.__module__.startswith("foolbox.models") for kind in type(model).__mro__)


def from_foolbox(model: Any, *, input_shape: tuple[int, ...], name: str = "foolbox") -> Network:
    """The network of a foolbox PyTorchModel that takes batches (B, *input_shape).

    Its bounds are the domain, and its preprocessing (a flipped axis, mean, standard deviation) is
    part of the network, so that eps is in the units of the bounds, as in foolbox.
    """
    from radii.networks._loading import REPLAY_TOLERANCE

    module = _Preprocessed(model, name)
    bounds = (float(model.bounds.lower), float(model.bounds.upper))
    network = from_torch(module, input_shape=input_shape, domain=bounds, name=name)
    points = np.random.default_rng(1).uniform(*bounds, (EXPORT_CHECK_INPUTS, *input_shape))
    inputs = points.astype(network.input_dtype)
    with torch.no_grad():
        outputs = model(torch.from_numpy(inputs).to(module.device))
    expected = outputs.reshape(EXPORT_CHECK_INPUTS, -1).cpu().numpy()
    limit = REPLAY_TOLERANCE * max(1.0, float(np.abs(expected).max()))
    if not np.abs(network.replay(inputs) - expected).max() <= limit:
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


# Whatever a caller has.


def as_network(
    model: Network | str | Path | nn.Module | Any,
    *,
    input_shape: tuple[int, ...],
    domain: DomainLike | None = None,
    mean: npt.ArrayLike | None = None,
    std: npt.ArrayLike | None = None,
    name: str | None = None,
    opaque: bool = False,
) -> Network:
    """The network of a `Network`, an ONNX file, a module of torch, an estimator or foolbox model.

    `input_shape` is that of one input of the data, for modules. `domain` is needed for files,
    modules and classifiers of scikit-learn, which do not say which inputs are valid; `mean` and
    `std` are for files and modules.
    """
    from radii.networks._estimators import from_sklearn, is_estimator

    is_complete = isinstance(model, Network) or is_foolbox_model(model)
    if is_complete and any(each is not None for each in (domain, mean, std)):
        raise NetworkError(
            f"a {type(model).__name__} has its own domain and normalisation: leave out domain, "
            "mean and std"
        )
    if isinstance(model, Network):
        return model
    if is_foolbox_model(model):
        return from_foolbox(model, input_shape=input_shape, name=name or "foolbox")
    if not isinstance(model, str | Path | nn.Module) and not is_estimator(model):
        raise NetworkError(
            f"a model of type {type(model).__name__} is not a radii Network, the path of an ONNX "
            "file, a torch module, a classifier of scikit-learn or a foolbox model"
        )
    if domain is None:
        raise NetworkError(
            "say which inputs are valid: domain=(0, 1) for pixels between 0 and 1, "
            "or domain=(low, high) with one number for each channel"
        )
    if is_estimator(model):
        if mean is not None or std is not None:
            raise NetworkError(
                "mean and std are not for classifiers of scikit-learn: put a StandardScaler "
                "before it, in a pipeline"
            )
        return from_sklearn(model, domain=domain, name=name or "", opaque=opaque)
    if isinstance(model, nn.Module):
        called = name or type(model).__name__
        return from_torch(
            model,
            input_shape=input_shape,
            domain=domain,
            mean=mean,
            std=std,
            name=called,
            opaque=opaque,
        )
    return load_network(model, domain=domain, mean=mean, std=std, name=name, opaque=opaque)
