"""Making networks. Whatever goes wrong with a file leaves here as a NetworkError of one sentence."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy.typing as npt
import onnx
import torch

from radii.balls import Domain
from radii.errors import InputError, NetworkError
from radii.networks.building import build_graph
from radii.networks.fingerprint import fingerprint
from radii.networks.models import parse_model, read_model, signature
from radii.networks.network import Network
from radii.networks.normalization import normalized

__all__ = ["network_from_bytes", "network_from_file"]

Bounds = Domain | tuple[npt.ArrayLike, npt.ArrayLike]


def network_from_file(
    path: Path,
    *,
    domain: Bounds,
    mean: npt.ArrayLike | None,
    std: npt.ArrayLike | None,
    name: str | None,
) -> Network:
    """See `radii.networks.load_network`."""
    with _one_sentence(path.name):
        model = read_model(path)
        return _network(model, domain=domain, mean=mean, std=std, name=name or path.stem)


def network_from_bytes(
    content: bytes,
    *,
    domain: Bounds,
    mean: npt.ArrayLike | None,
    std: npt.ArrayLike | None,
    name: str,
) -> Network:
    """See `radii.networks.Network.from_bytes`."""
    with _one_sentence(name):
        return _network(parse_model(content, name), domain=domain, mean=mean, std=std, name=name)


def _network(
    model: onnx.ModelProto,
    *,
    domain: Bounds,
    mean: npt.ArrayLike | None,
    std: npt.ArrayLike | None,
    name: str,
) -> Network:
    given = signature(model, name)
    model = normalized(model, given, mean, std, name)
    graph = build_graph(model, given, name)
    dtype = torch.float64 if given.dtype == "float64" else torch.float32
    return Network(
        name=name,
        domain=domain if isinstance(domain, Domain) else Domain(*domain),  # type: ignore[arg-type]
        graph=graph.in_dtype(dtype),
        fingerprint=fingerprint(model, given, name),
        input_shape=given.input_shape,
        input_dtype=given.dtype,
        onnx_bytes=model.SerializeToString(deterministic=True),
    )


@contextmanager
def _one_sentence(name: str) -> Iterator[None]:
    """Turn what the libraries below say of a broken model into one sentence that names it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except InputError:
        raise
    except Exception as error:
        first = str(error).strip().split("\n")[0] or type(error).__name__
        raise NetworkError(f"{name}: cannot be loaded as a network: {first}") from error
