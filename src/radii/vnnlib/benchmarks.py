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
    lines, written = [], set()
    try:
        if folder.exists() and any(folder.iterdir()):
            raise StoreError(f"{folder}: is not empty; name a new folder")
        for part in ("onnx", "vnnlib"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        for query in queries:
            fingerprint = query.instance.network
            onnx = f"onnx/{names[fingerprint]}.onnx"
            if fingerprint not in written:
                (folder / onnx).write_bytes(networks[fingerprint].onnx_bytes)
                written.add(fingerprint)
            vnnlib = f"vnnlib/{names[fingerprint]}_{_called(query)}.vnnlib"
            if vnnlib in written:
                raise SpecificationError(f"{folder / vnnlib}: two queries would have this name")
            (folder / vnnlib).write_text(query_text(query))
            written.add(vnnlib)
            lines.append(f"{onnx},{vnnlib},{timeout:g}\n")
        if not lines:
            raise SpecificationError(f"{folder}: there is no instance to write")
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
