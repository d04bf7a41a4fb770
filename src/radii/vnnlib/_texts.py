"""Writing VNN-LIB 1.0: the text of one query, and whole benchmarks in the layout of VNN-COMP.

A text says what a counterexample to the specification is. Numbers are written so that reading them
back gives the same float64.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.errors import SpecificationError, StoreError, writing
from radii.problem import Ball, Halfspaces, Norm, Query, Specification

if TYPE_CHECKING:
    from radii.networks import Network


Float64 = npt.NDArray[np.float64]


def query_text(query: Query) -> str:
    """The query as VNN-LIB 1.0: sat if the instance is not robust at that eps."""
    instance = query.instance
    comments = (
        f"network {instance.network}, input {instance.index}, label {instance.label}",
        f"{instance.property.spec} within {query.eps!r} in {instance.norm.value}",
    )
    return specification_text(query.specification, outputs=instance.outputs.size, comments=comments)


def specification_text(
    specification: Specification, *, outputs: int, comments: Iterable[str] = ()
) -> str:
    """The specification as VNN-LIB 1.0: sat if some input of the region breaks the requirement.

    A ball in linf is written as the box around it, which a foreign tool's proof has to cover.
    """
    region = specification.region
    if isinstance(region, Ball) and region.norm is not Norm.LINF:
        raise SpecificationError(
            f"VNN-LIB is linear and cannot state a ball in {region.norm.value}; use linf"
        )
    violations = specification.requirement.violations
    if violations is None:
        raise SpecificationError("VNN-LIB is linear and cannot state this property")
    low, high = (np.ravel(side) for side in region.box())
    lines = [f"; {comment}" for comment in comments]
    lines += [f"(declare-const X_{i} Real)" for i in range(low.size)]
    lines += [f"(declare-const Y_{j} Real)" for j in range(outputs)]
    for i, (least, most) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        lines += [f"(assert (>= X_{i} {least!r}))", f"(assert (<= X_{i} {most!r}))"]
    if specification.inputs is not None:
        lines += [f"(assert {row})" for row in _polyhedron_lines(specification.inputs, "X")]
    lines += _violated(violations)
    return "\n".join(lines) + "\n"


def _violated(polyhedra: tuple[Halfspaces, ...]) -> list[str]:
    if len(polyhedra) == 1:
        return [f"(assert {row})" for row in _polyhedron_lines(polyhedra[0], "Y")]
    disjuncts = [
        f"  (and {' '.join(_polyhedron_lines(polyhedron, 'Y'))})" for polyhedron in polyhedra
    ]
    return ["(assert (or", *disjuncts, "))"]


def _polyhedron_lines(polyhedron: Halfspaces, letter: str) -> list[str]:
    return [
        _row(row, float(offset), letter)
        for row, offset in zip(polyhedron.matrix, polyhedron.offset, strict=True)
    ]


def _row(coefficients: Float64, offset: float, letter: str) -> str:
    """row @ y + offset <= 0, in the shortest form that simple parsers know."""
    used = [(f"{letter}_{i}", float(coefficients[i])) for i in np.flatnonzero(coefficients)]
    match used:
        case [(name, 1.0)]:
            return f"(<= {name} {-offset!r})"
        case [(name, -1.0)]:
            return f"(>= {name} {offset!r})"
        case [(lesser, 1.0), (greater, -1.0)] | [(greater, -1.0), (lesser, 1.0)] if offset == 0:
            return f"(<= {lesser} {greater})"
    terms = [name if value == 1.0 else f"(* {value!r} {name})" for name, value in used]
    left = f"(+ {' '.join(terms)})" if len(terms) > 1 else (terms or ["0.0"])[0]
    return f"(<= {left} {-offset!r})"


# --- benchmarks: networks, properties and the list of instances


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
        vnnlib = f"vnnlib/{name}_{_query_name(query)}.vnnlib"
        if vnnlib in texts:
            raise SpecificationError(f"{folder / vnnlib}: two queries would have this name")
        texts[vnnlib] = query_text(query)
        lines.append(f"onnx/{name}.onnx,{vnnlib},{timeout:g}\n")
    if not lines:
        raise SpecificationError(f"{folder}: there are no instances to write")
    used = {line.split(",")[0] for line in lines}
    with writing(folder):
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
    return len(lines)


def _query_name(query: Query) -> str:
    kind = _safe(query.instance.property.spec)
    which = "" if kind == "one-to-any" else f"_{kind}"
    return f"input_{query.instance.index}{which}_eps_{query.eps:.6g}"


def _names(networks: Mapping[str, Network]) -> dict[str, str]:
    """File names without commas and the like; the fingerprint is added where names collide."""
    plain = {key: _safe(network.name.removesuffix(".onnx")) for key, network in networks.items()}
    values = list(plain.values())
    return {
        key: name if values.count(name) == 1 else f"{name}_{key[:8]}" for key, name in plain.items()
    }


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "_", text).strip("._") or "network"
