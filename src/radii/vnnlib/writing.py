"""Writing VNN-LIB 1.0: what a counterexample to a specification is, for tools that read it.

Numbers are written so that reading them back gives the same float64.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from radii.balls import Ball, Norm
from radii.errors import SpecificationError
from radii.properties import Halfspaces
from radii.queries import Query, Specification

__all__ = ["query_text", "specification_text"]

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
        lines += [f"(assert {row})" for row in _rows(specification.inputs, "X")]
    lines += _violated(violations)
    return "\n".join(lines) + "\n"


def _violated(polyhedra: tuple[Halfspaces, ...]) -> list[str]:
    if len(polyhedra) == 1:
        return [f"(assert {row})" for row in _rows(polyhedra[0], "Y")]
    disjuncts = [f"  (and {' '.join(_rows(polyhedron, 'Y'))})" for polyhedron in polyhedra]
    return ["(assert (or", *disjuncts, "))"]


def _rows(polyhedron: Halfspaces, letter: str) -> list[str]:
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
