"""Writing queries as a benchmark of VNN-COMP: networks, properties and the list of instances."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from radii.errors import SpecificationError, StoreError
from radii.queries import Query
from radii.vnnlib.writing import query_text

if TYPE_CHECKING:
    from radii.networks import Network

__all__ = ["write_benchmark"]


def write_benchmark(
    folder: Path, networks: Mapping[str, Network], queries: Iterable[Query], *, timeout: float
) -> int:
    """`onnx/`, `vnnlib/` and `instances.csv` below `folder`, which must be new; how many instances.

    `networks` are by fingerprint. Their files are self-contained and include the normalisation, so
    that eps is in the data's units for every tool. sat means: not robust at that eps.
    """
    names = _names(networks)
    lines, texts = [], {}
    for query in queries:  # all of them, before the first file: one may be impossible to state
        name = names[query.instance.network]
        vnnlib = f"vnnlib/{name}_{_called(query)}.vnnlib"
        if vnnlib in texts:
            raise SpecificationError(f"{folder / vnnlib}: two queries would have this name")
        texts[vnnlib] = query_text(query)
        lines.append(f"onnx/{name}.onnx,{vnnlib},{timeout:g}\n")
    if not lines:
        raise SpecificationError(f"{folder}: there is no instance to write")
    used = {line.split(",")[0] for line in lines}
    try:
        if folder.exists() and any(folder.iterdir()):
            raise StoreError(f"{folder}: is not empty; name a new folder")
        for part in ("onnx", "vnnlib"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        for fingerprint, network in networks.items():
            if (onnx := f"onnx/{names[fingerprint]}.onnx") in used:
                (folder / onnx).write_bytes(network.onnx_bytes)
        for vnnlib, text in texts.items():
            (folder / vnnlib).write_text(text)
        (folder / "instances.csv").write_text("".join(lines))
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written ({error.strerror or error})") from None
    return len(lines)


def _called(query: Query) -> str:
    kind = _safe(query.instance.property.spec)
    which = "" if kind == "one-to-any" else f"_{kind}"
    return f"input_{query.instance.index}{which}_eps_{query.eps:.6g}"


def _names(networks: Mapping[str, Network]) -> dict[str, str]:
    """File names without commas and the like, told apart by the fingerprint if need be."""
    plain = {key: _safe(network.name.removesuffix(".onnx")) for key, network in networks.items()}
    values = list(plain.values())
    return {
        key: name if values.count(name) == 1 else f"{name}_{key[:8]}" for key, name in plain.items()
    }


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "_", text).strip("._") or "network"
