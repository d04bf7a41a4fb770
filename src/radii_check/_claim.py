"""The claim: "for no input of the region do the outputs lie in any violation".

What is not checked may not stand in a claim: a field that this module does not know is an error. A
violation is a polyhedron { y : M y + o <= 0 } of outputs. With the unit vectors e_i its rows are

    one-to-any l       one violation (e_l - e_r) y <= 0 for each class r other than l
    one-to-one l, t    (e_l - e_t) y <= 0
    become t           one violation with all rows (e_j - e_t) y <= 0, j other than t
    violations         M and o as they are stated
    probabilities      see _probabilities.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from radii_check._errors import require_format

Array = npt.NDArray[Any]

CLAIM_FIELDS = {"network", "norm", "eps", "requirement", "arithmetic"}
REQUIREMENT_FIELDS = {
    "one-to-any": {"label"},
    "one-to-one": {"label", "target"},
    "become": {"target"},
    "violations": {"rows"},
    "probabilities": {"bounds"},
}
"""The kinds of requirements, and what is stated with each."""
NORMS = ("linf", "l1", "l2", "box")
MAX_WIDENING = 2.0**16
MAX_EPS = 1e300
MAX_COUNT = 2**40
SAYS_MORE = "its claim says more than this checker knows"


class ProbabilityBound(NamedTuple):
    """The softmax at a class is at most `level` if `is_ceiling`, else at least `level`."""

    class_index: int
    level: float
    is_ceiling: bool


def check_claim(claim: dict[str, Any], arrays: Mapping[str, Array]) -> None:
    """Raise a CertificateError where a claim is not one, whatever the network."""
    require_format(claim.keys() <= CLAIM_FIELDS, SAYS_MORE)
    require_format(type(claim["network"]) is str, "it names no network")
    _check_region(claim, arrays)
    requirement = claim["requirement"]
    kind = requirement["kind"]
    require_format(kind in REQUIREMENT_FIELDS, "its requirement is of an unknown kind")
    fields = REQUIREMENT_FIELDS[kind]
    require_format(requirement.keys() <= {"kind", *fields}, SAYS_MORE)
    classes = [count_of(requirement[name]) for name in ("label", "target") if name in requirement]
    is_complete = len(set(classes)) == len(classes) == len(fields & {"label", "target"})
    require_format(is_complete, "its label or target is missing, or both are the same class")
    if kind == "violations":
        row_counts = [count_of(rows) for rows in requirement["rows"]]
        has_rows = min(row_counts, default=0) > 0
        require_format(has_rows, "it has no violations, or one without rows")
    if kind == "probabilities":
        require_format(len(requirement["bounds"]), "it has no bounds on probabilities")
        for bound in requirement["bounds"]:
            _check_probability_bound(bound)


def _check_region(claim: dict[str, Any], arrays: Mapping[str, Array]) -> None:
    """{ x : |x - input| <= eps in the norm, low <= x <= high }; a box has neither input nor eps."""
    shape, norm, eps = arrays["low"].shape, claim["norm"], claim.get("eps", 0.0)
    inputs = [arrays[name] for name in ("low", "high", "input", "scale") if name in arrays]
    require_format([a.shape == shape and a.ndim == 1 for a in inputs], "its inputs differ in size")
    require_format(norm in NORMS, "its norm is not one of linf, l1, l2 and box")
    has_ball = ["input" in arrays, "eps" in claim]
    require_format(norm == "box" or has_ball, "it has no input or no eps")
    require_format(norm != "box" or np.logical_not(has_ball), SAYS_MORE)
    is_number = type(eps) in (int, float) and 0 <= eps == float(eps) < MAX_EPS
    require_format(is_number, "its eps is not a number from 0 to 1e300")
    scale = arrays.get("scale", np.zeros(0))
    is_scale = (scale >= 0) & (norm == "linf" or not len(scale))
    require_format(is_scale, "its scale is negative, or its norm is not linf")


def _check_probability_bound(bound: dict[str, Any]) -> None:
    count_of(bound["class"])
    (level,) = (bound[name] for name in bound if name != "class")
    has_fields = bound.keys() in ({"class", "above"}, {"class", "below"})
    is_level = has_fields and type(level) is float and 0 < level < 1
    require_format(is_level, "a bound on a probability is not between 0 and 1")


def widening_of(arithmetic: str) -> float:
    """How often a rounding of IEEE 754 counts: `float` 1, `float:N` N, `real` 0."""
    name, colon, factor = arithmetic.partition(":")
    widening = 0.0 if arithmetic == "real" else float(factor if colon else 1)
    is_float = name == "float" and 1 <= widening <= MAX_WIDENING
    is_known = is_float or arithmetic == "real"
    require_format(is_known, "its arithmetic is not one of float, float:N and real")
    return widening


def violations_of(
    requirement: Mapping[str, Any], arrays: Mapping[str, Array], outputs: int
) -> list[tuple[Array, Array]]:
    """Each violation as a matrix and an offset: { y : matrix y + offset <= 0 }."""
    kind = requirement["kind"]
    require_format(kind != "probabilities", "its claim is about probabilities")
    label, target = requirement.get("label", 0), requirement.get("target", 0)
    has_classes = max(label, target) < outputs
    require_format(has_classes, f"the network has only {outputs} outputs")
    unit_vectors = np.eye(outputs)
    if kind == "violations":
        return _stated_violations(requirement["rows"], arrays, outputs)
    if kind == "become":
        rows = np.delete(unit_vectors - unit_vectors[target], target, axis=0)
        require_format(len(rows), "the network has one output only")
        return [(rows, np.zeros(len(rows)))]
    rivals = range(outputs) if kind == "one-to-any" else [target]
    return [
        (unit_vectors[label][None] - unit_vectors[rival], np.zeros(1))
        for rival in rivals
        if rival != label
    ]


def _stated_violations(
    row_counts: list[int], arrays: Mapping[str, Array], outputs: int
) -> list[tuple[Array, Array]]:
    matrix, offset = arrays["violation_matrix"], arrays["violation_offset"]
    ends = np.cumsum(row_counts)
    fits = matrix.shape == (len(offset), outputs) and ends[-1] == len(offset)
    require_format(fits, "its violations do not fit the network's outputs")
    matrices, offsets = np.split(matrix, ends[:-1]), np.split(offset, ends[:-1])
    return list(zip(matrices, offsets, strict=True))


def probability_bounds_of(requirement: Mapping[str, Any], outputs: int) -> list[ProbabilityBound]:
    stated = requirement["bounds"]
    fits = max(bound["class"] for bound in stated) < outputs > 1
    require_format(fits, "the network has other outputs")
    ways = ["below" if "below" in bound else "above" for bound in stated]
    return [
        ProbabilityBound(bound["class"], bound[way], way == "below")
        for bound, way in zip(stated, ways, strict=True)
    ]


def count_of(number: Any) -> int:
    """A whole number from 0 up to `MAX_COUNT`; a ValueError for anything else in JSON."""
    if type(number) is not int or not 0 <= number < MAX_COUNT:
        raise ValueError
    return number
