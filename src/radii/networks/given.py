"""Models as people have them in Python: networks, ONNX files, torch modules, foolbox models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from radii.balls import Domain
from radii.errors import NetworkError
from radii.networks.foolbox_models import from_foolbox, is_foolbox_model
from radii.networks.network import Network, load_network

if TYPE_CHECKING:
    from torch import nn

__all__ = ["as_network", "telling_names"]

Bounds = Domain | tuple[npt.ArrayLike, npt.ArrayLike]


def as_network(
    model: Network | str | Path | nn.Module | Any,
    *,
    input_shape: tuple[int, ...],
    domain: Bounds | None = None,
    mean: npt.ArrayLike | None = None,
    std: npt.ArrayLike | None = None,
    name: str | None = None,
) -> Network:
    """The network of a `Network`, an ONNX file, a torch module or a foolbox model.

    `input_shape` is that of one input of the data, for modules. `domain` is needed for files and
    modules, which do not say which inputs are valid; `mean` and `std` are theirs, too.
    """
    from torch import nn

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
    if not isinstance(model, str | Path | nn.Module):
        raise NetworkError(
            f"a model of type {type(model).__name__} is not a radii Network, the path of an ONNX "
            "file, a torch module or a foolbox model"
        )
    if domain is None:
        raise NetworkError(
            "say which inputs are valid: domain=(0, 1) for pixels between 0 and 1, "
            "or domain=(low, high) with one number for each channel"
        )
    if isinstance(model, nn.Module):
        from radii.networks.exporting import from_torch

        called = name or type(model).__name__
        return from_torch(
            model, input_shape=input_shape, domain=domain, mean=mean, std=std, name=called
        )
    return load_network(model, domain=domain, mean=mean, std=std, name=name)


def telling_names(files: Sequence[str | Path]) -> list[str | None]:
    """Names for files whose own would be the same: the ends of their paths. None: its own will do.

    Several networks of one name would be taken for one in every table.
    """
    paths = [Path(file).resolve() for file in files]
    own = Counter(path.name for path in paths)
    return [
        None if own[path.name] == 1 else "/".join(path.parts[-_parts_needed(path, paths) :])
        for path in paths
    ]


def _parts_needed(path: Path, paths: Sequence[Path]) -> int:
    """How much of its end tells a path from all the others."""
    others = [other.parts for other in paths if other != path]
    counts = range(1, len(path.parts) + 1)
    return next(n for n in counts if all(other[-n:] != path.parts[-n:] for other in others))
