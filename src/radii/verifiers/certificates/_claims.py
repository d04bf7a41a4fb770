"""What a certificate claims: of which network, region and requirement, in which arithmetic."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.networks import Network
from radii.problem import Arithmetic, Ball, Box, Halfspaces, Specification
from radii.verifiers.certificates._covers import CoveredRequirement

Array = npt.NDArray[Any]


def claim_of(
    network: Network, specification: Specification, arithmetic: Arithmetic
) -> tuple[dict[str, Any], dict[str, Array]] | None:
    """The claim and the arrays that belong to it; None where the format has no words for it."""
    region, violations = specification.region, specification.requirement.violations
    if not violations or specification.inputs is not None or network.operators:
        return None
    described = _region(region)
    if described is None:
        return None
    words, arrays = described
    asked = specification.requirement
    if isinstance(asked, CoveredRequirement):
        requirement, more = asked.described()
    else:
        requirement, more = _requirement(violations)
    claim = {
        "network": hashlib.sha256(network.onnx_bytes).hexdigest(),
        **words,
        "requirement": requirement,
        "arithmetic": str(arithmetic),
    }
    return claim, arrays | more


def _region(region: Ball | Box) -> tuple[dict[str, Any], dict[str, Array]] | None:
    if isinstance(region, Box):
        low, high = region.box()
        return {"norm": "box"}, {"low": low.ravel(), "high": high.ravel()}
    low, high = (np.ravel(side) for side in region.domain.box(region.center.shape))
    arrays = {"input": np.ravel(region.center).astype(np.float64), "low": low, "high": high}
    features = region.features
    if features is not None:
        if features.groups or bool(features.is_whole.any()):
            return None
        arrays["scale"] = np.ravel(features.scale).astype(np.float64)
    return {"norm": region.norm.value, "eps": float(region.eps)}, arrays


def _requirement(violations: Sequence[Halfspaces]) -> tuple[dict[str, Any], dict[str, Array]]:
    """By its name where it has one, so that a reader sees what is claimed; else row by row."""
    pairs = [_comparisons(held) for held in violations]
    outputs = violations[0].matrix.shape[1] if violations else 0
    firsts = {pair[0] for rows in pairs if rows is not None for pair in rows}
    if all(rows is not None and len(rows) == 1 for rows in pairs) and len(firsts) == 1:
        (label,) = firsts
        rivals = [rows[0][1] for rows in pairs if rows is not None]
        if rivals == [rival for rival in range(outputs) if rival != label]:
            return {"kind": "one-to-any", "label": label}, {}
        if len(rivals) == 1:
            return {"kind": "one-to-one", "label": label, "target": rivals[0]}, {}
    if len(pairs) == 1 and pairs[0] is not None:
        target = pairs[0][0][1]
        others = [other for other in range(outputs) if other != target]
        if pairs[0] == [(other, target) for other in others]:
            return {"kind": "become", "target": target}, {}
    return {"kind": "violations", "rows": [len(held.offset) for held in violations]}, {
        "violation_matrix": np.vstack([held.matrix for held in violations]),
        "violation_offset": np.concatenate([held.offset for held in violations]),
    }


def _comparisons(polyhedron: Halfspaces) -> list[tuple[int, int]] | None:
    """The pairs (a, b) of a polyhedron of rows y_a - y_b <= 0; None if it is another."""
    if np.any(polyhedron.offset):
        return None
    found = []
    for row in polyhedron.matrix:
        places = np.flatnonzero(row)
        if len(places) != 2 or sorted(row[places].tolist()) != [-1.0, 1.0]:
            return None
        found.append((int(row.argmax()), int(row.argmin())))
    return found
