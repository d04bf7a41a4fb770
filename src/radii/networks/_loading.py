"""Making networks. Whatever is wrong with a file leaves here as a NetworkError of one sentence."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import torch

from radii.balls import Domain
from radii.errors import InputError, NetworkError, SpecificationError
from radii.networks._building import build_graph
from radii.networks._fingerprint import fingerprint
from radii.networks._models import parse_model, read_model, signature
from radii.networks._network import Network
from radii.networks._normalization import Normalization, per_channel

DomainLike = Domain | tuple[npt.ArrayLike, npt.ArrayLike]

REPLAY_TOLERANCE = 1e-3
"""Relative to the largest output: far above rounding, far below what a wrong operator causes."""


def network_from_file(
    path: Path,
    *,
    domain: DomainLike,
    mean: npt.ArrayLike | None,
    std: npt.ArrayLike | None,
    name: str | None,
) -> Network:
    """See `radii.networks.load_network`."""
    with _one_sentence(path.name):
        model = read_model(path)
        network = _network(model, domain=domain, mean=mean, std=std, name=name or path.name)
        compare_with_replay(network)
    return network


def network_from_bytes(
    content: bytes,
    *,
    domain: DomainLike,
    mean: npt.ArrayLike | None,
    std: npt.ArrayLike | None,
    name: str,
) -> Network:
    """See `radii.networks.Network.from_bytes`."""
    with _one_sentence(name):
        return _network(parse_model(content, name), domain=domain, mean=mean, std=std, name=name)


def without_last(network: Network, *operators: str) -> Network | None:
    """The network up to what its last node reads; None if that node is not one of these."""
    model = onnx.load_model_from_string(network.onnx_bytes)
    output = model.graph.output[0]
    last = next((node for node in model.graph.node if output.name in node.output), None)
    if last is None or last.op_type not in operators:
        return None
    kind = output.type.tensor_type.elem_type
    del model.graph.output[:]
    model.graph.output.append(onnx.helper.make_tensor_value_info(last.input[0], kind, None))
    content = model.SerializeToString(deterministic=True)
    return Network.from_bytes(content, domain=network.domain, name=network.name)


def compare_with_replay(network: Network, count: int = 2) -> None:
    """Refuse a network whose graph does not give what ONNX Runtime gives, on random inputs.

    Proofs speak about the graph and witnesses about the replay: they must be one function.
    """
    low, high = (
        np.nan_to_num(side, posinf=1.0, neginf=-1.0)
        for side in network.domain.box(network.input_shape)
    )
    places = np.random.default_rng(0).uniform(size=(count, *network.input_shape))
    inputs = (low * (1 - places) + high * places).astype(network.input_dtype)
    replayed = network.replay(inputs)
    if not np.isfinite(replayed).all():
        raise NetworkError(f"{network.name}: gives NaN or infinite outputs inside its domain")
    with torch.no_grad():
        outputs = network(torch.from_numpy(inputs)).numpy()
    if outputs.shape != replayed.shape:
        raise NetworkError(
            f"{network.name}: gives {outputs.shape[1]} outputs, but {replayed.shape[1]} on "
            f"{network.replayed_on}; please report this network"
        )
    error = float(np.abs(outputs - replayed).max())
    if not error <= REPLAY_TOLERANCE * max(1.0, float(np.abs(replayed).max())):
        raise NetworkError(
            f"{network.name}: gives outputs that differ by {error:.2g} from those on "
            f"{network.replayed_on}; please report this network"
        )


def _network(
    model: onnx.ModelProto,
    *,
    domain: DomainLike,
    mean: npt.ArrayLike | None,
    std: npt.ArrayLike | None,
    name: str,
) -> Network:
    given = signature(model, name)
    shape = given.input_shape
    normalization = Normalization(mean, std, input_shape=shape, network=name)
    model = normalization.ahead_of(model, given)
    graph = build_graph(model, given, name)
    return Network(
        name=name,
        domain=_domain(domain, shape, name),
        graph=graph.in_dtype(torch.float64 if given.dtype == np.float64 else torch.float32),
        fingerprint=fingerprint(model, given, name),
        input_shape=shape,
        input_dtype=given.dtype,
        onnx_bytes=model.SerializeToString(deterministic=True),
    )


def _domain(bounds: DomainLike, shape: tuple[int, ...], network: str) -> Domain:
    low, high = (bounds.low, bounds.high) if isinstance(bounds, Domain) else bounds
    try:
        return Domain(per_channel(low, shape), per_channel(high, shape))
    except (TypeError, ValueError):
        spelled = f"{np.asarray(low).tolist()}:{np.asarray(high).tolist()}"
        raise SpecificationError(
            f"{network}: domain {spelled} does not fit inputs of shape {shape}; "
            "give one number a side, or one for each channel"
        ) from None


@contextmanager
def _one_sentence(name: str) -> Iterator[None]:
    """Turn what the libraries below say of a broken model into one sentence that names it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except InputError as error:
        error.args = (_printable(str(error)),)  # names in the file may hold anything
        raise
    except Exception as error:
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        reason = _printable(first)
        raise NetworkError(f"{name}: cannot be loaded as a network: {reason}") from error


def _printable(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
