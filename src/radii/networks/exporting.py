"""torch modules enter by export to ONNX, and must then give what the module gave."""

from __future__ import annotations

import io
import warnings

import numpy.typing as npt
import torch
from torch import Tensor, nn

from radii.balls import Domain
from radii.errors import NetworkError
from radii.networks.network import Network

__all__ = ["from_torch"]

SAMPLES = 4
TOLERANCE = 1e-3
"""Relative to the largest output: far above rounding, far below what a wrong operator causes."""


def from_torch(
    module: nn.Module,
    *,
    input_shape: tuple[int, ...],
    domain: Domain | tuple[npt.ArrayLike, npt.ArrayLike],
    mean: npt.ArrayLike | None = None,
    std: npt.ArrayLike | None = None,
    name: str = "torch",
) -> Network:
    """The network of a torch module that maps batches (B, *input_shape), in evaluation mode."""
    parameter = next(module.parameters(), torch.zeros(()))
    generator = torch.Generator().manual_seed(0)
    samples = torch.rand((SAMPLES, *input_shape), generator=generator, dtype=torch.float64)
    samples = samples.to(parameter.device, parameter.dtype)
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad():
            expected = module(samples).reshape(SAMPLES, -1)
            content = _exported(module, samples[:1], name)
    finally:
        module.train(was_training)
    _compare(Network.from_bytes(content, domain=domain, name=name), samples, expected)
    return Network.from_bytes(content, domain=domain, name=name, mean=mean, std=std)


def _exported(module: nn.Module, sample: Tensor, name: str) -> bytes:
    """The exporter that needs no further package is used; it is old but complete for networks."""
    buffer = io.BytesIO()
    batch = {0: "batch"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                module,
                (sample,),
                buffer,
                dynamo=False,
                input_names=["input"],
                output_names=["output"],
                dynamic_axes={"input": batch, "output": batch},
            )
    except Exception as error:
        first = str(error).strip().split("\n")[0]
        raise NetworkError(f"{name}: torch cannot export the module to ONNX: {first}") from error
    return buffer.getvalue()


def _compare(network: Network, samples: Tensor, expected: Tensor) -> None:
    actual = torch.from_numpy(network.replay(samples.cpu().numpy()))
    size = expected.abs().max().clamp(min=1.0).cpu()
    if actual.shape != expected.shape or (actual - expected.cpu()).abs().max() > TOLERANCE * size:
        raise NetworkError(
            f"{network.name}: the exported network does not compute what the torch module does; "
            "export it to ONNX by hand and load the file"
        )
