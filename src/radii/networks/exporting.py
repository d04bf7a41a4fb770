"""torch modules enter by export to ONNX, and must then give what the module gave."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from radii.balls import Domain
from radii.errors import NetworkError
from radii.networks.network import Network

__all__ = ["from_torch"]

SAMPLES = 4


def from_torch(
    module: nn.Module,
    *,
    input_shape: tuple[int, ...],
    domain: Domain | tuple[npt.ArrayLike, npt.ArrayLike],
    mean: npt.ArrayLike | None = None,
    std: npt.ArrayLike | None = None,
    name: str = "torch",
) -> Network:
    """The network of a torch module that maps batches (B, *input_shape), in evaluation mode.

    The module itself is left as it was. `domain`, `mean` and `std` are those of `load_network`.
    """
    from radii.networks.loading import REPLAY_TOLERANCE, compare_with_replay
    from radii.networks.normalization import Normalization

    if not isinstance(module, nn.Module):
        raise NetworkError(
            f"a {type(module).__name__} is no torch module: from_torch takes a torch.nn.Module, "
            "load_network the path of an ONNX file"
        )
    parameter = next((p for p in module.parameters() if p.is_floating_point()), torch.zeros(()))
    sample = torch.zeros((1, *input_shape), dtype=parameter.dtype, device=parameter.device)
    with _evaluating(module), torch.no_grad():
        content = _exported(module, sample, name)
        network = Network.from_bytes(content, domain=domain, name=name, mean=mean, std=std)
        compare_with_replay(network)
        low, high = network.domain.box(input_shape)
        points = np.random.default_rng(0).uniform(low, high, (SAMPLES, *input_shape))
        inputs = points.astype(network.input_dtype)
        normalize = Normalization(mean, std, input_shape=input_shape, network=name)
        fed = torch.from_numpy(normalize(inputs)).to(parameter.device)
        expected = module(fed).reshape(SAMPLES, -1).cpu().numpy()
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
                f"{tuple(sample.shape[1:])} to ONNX: {first}"
            ) from error
        return path.read_bytes()
