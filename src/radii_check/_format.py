"""The container, and the claim in it: what can be refused without the network."""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

MAGIC, VERSION, MOST_HEADER_BYTES, MOST_WIDENING = b"RADIICRT", 1, 16 << 20, 2.0**16
CLAIM = {"network", "norm", "eps", "requirement", "arithmetic"}
CLAIMED = {
    "one-to-any": {"label"},
    "one-to-one": {"label", "target"},
    "become": {"target"},
    "violations": {"rows"},
    "probabilities": {"bounds"},
}
"""What may be claimed, and what is stated with each."""
TWO_AXES = ["lower", "upper", "violation_matrix", "cell_low", "cell_high", "cell_slopes", "shares"]
TYPES = {
    "<f8": "low high input scale violation_matrix violation_offset eps gamma cut sign_beta "
    "cell_low cell_high cell_cut cell_slopes shares",
    "<f4": "lower upper bound",
    "<f2": "beta",
    "<i4": "parent split_unit spec node part round unit axis ground_part ground_unit sign_lemma "
    "sign_unit cell_parent cell_axis share_bound",
    "|i1": "split_sign side ground_side cell_side",
    "|u1": "slopes ground_slopes",
}


class CertificateError(ValueError):
    """Not a certificate, or not one of this network."""


class Unreadable(CertificateError):
    """This checker cannot tell whether the claim is shown: it does not know an operator, an opset
    or a version of the format, or it would need more memory than it may take."""


class Rejected(Exception):
    """The certificate does not prove its claim."""


def need(condition: Any, reason: str, error: type[Exception] = CertificateError) -> None:
    """What must hold of the input, all of it if it is an array."""
    if condition is not True and not np.all(condition):
        raise error(reason)


def readable(condition: Any, reason: str) -> None:
    """What must hold for this checker to go through a proof, whether or not that is valid."""
    need(condition, reason, Unreadable)


def hold(condition: Any, reason: str) -> None:
    """What must hold for the claim to be proven."""
    need(condition, reason, Rejected)


class Arrays(dict[str, Array]):
    """Arrays by name. Those of ground lemmas and of signs may be missing."""

    def __missing__(self, name: str) -> Array:
        need(name.startswith(("ground_", "sign_")), f"array '{name}' is missing")
        return np.zeros(0, int)


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """`claim` as the header has it, and the arrays; both are checked as far as they can be.
    `widening` is how many times larger than in IEEE 754 a rounding counts; 0 in real arithmetic."""

    claim: Mapping[str, Any]
    mode: str
    arrays: Arrays
    widening: float

    def bounds(self, outputs: int) -> list[tuple[int, float, bool]]:
        """Classes, levels of their probabilities, and whether these stay below them; else above."""
        stated = self.claim["requirement"]["bounds"]
        need(max(each["class"] for each in stated) < outputs > 1, "the network has other outputs")
        ways = [("below" if "below" in each else "above", each) for each in stated]
        return [(each["class"], each[way], way == "below") for way, each in ways]

    def violations(self, outputs: int) -> list[tuple[Array, Array]]:
        """Each as a matrix and an offset: { y : matrix y + offset <= 0 }."""
        stated, units = self.claim["requirement"], np.eye(outputs)
        need(stated["kind"] != "probabilities", "its claim is about probabilities")
        kind, own, target = (stated["kind"], stated.get("label", 0), stated.get("target", 0))
        need(max(own, target) < outputs, f"the network has only {outputs} outputs")
        if kind == "violations":
            matrix, offset = (self.arrays["violation_matrix"], self.arrays["violation_offset"])
            ends = np.cumsum(stated["rows"])
            fits = matrix.shape == (len(offset), outputs) and ends[-1] == len(offset)
            need(fits, "its violations do not fit the network's outputs")
            parts = np.split(matrix, ends[:-1]), np.split(offset, ends[:-1])
            return list(zip(*parts, strict=True))
        if kind == "become":
            rows = np.delete(units - units[target], target, axis=0)
            need(len(rows), "the network has one output only")
            return [(rows, np.zeros(len(rows)))]
        rivals = range(outputs) if kind == "one-to-any" else [target]
        return [(units[own][None] - units[r], np.zeros(1)) for r in rivals if r != own]


def read_certificate(content: bytes, memory_bytes: int = 2 << 30) -> Certificate:
    """The certificate in these bytes; a CertificateError says in one sentence why there is none."""
    need(content[:8] == MAGIC and len(content) >= 16, "it does not begin as a certificate does")
    version, length = struct.unpack_from("<II", content, 8)
    need(version > 0, "it has no version")
    readable(version == VERSION, f"it has version {version}, this checker reads version {VERSION}")
    is_whole = length <= MOST_HEADER_BYTES and 16 + length <= len(content)
    need(is_whole, "its header is too long, or it is truncated")
    readable(length <= memory_bytes // 64, f"its header of {length} bytes takes too much memory")
    try:
        header = json.loads(content[16 : 16 + length].decode(), parse_constant=_count)
        arrays = _arrays(header["arrays"], content[16 + length :], memory_bytes)
        mode, claim = header["proof"]["mode"], header["claim"]
        need(mode in ("units", "boxes"), "its proof is of an unknown mode")
        _check_claim(claim, arrays)
        return Certificate(claim, mode, arrays, _widening(claim["arithmetic"]))
    except CertificateError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        raise CertificateError("its header does not follow the format") from None


def _widening(arithmetic: str) -> float:
    name, colon, factor = arithmetic.partition(":")
    widening = 0.0 if arithmetic == "real" else float(factor if colon else 1)
    is_float = name == "float" and 1 <= widening <= MOST_WIDENING
    need(is_float or arithmetic == "real", "its arithmetic is none that is known")
    return widening


def _check_claim(claim: dict[str, Any], arrays: Arrays) -> None:
    """What is wrong with a claim, whatever the network. What is not checked may not stand in it."""
    need(claim.keys() <= CLAIM, "its claim says more than this checker knows")
    need(type(claim["network"]) is str, "it names no network")
    shape, norm, eps = arrays["low"].shape, claim["norm"], claim.get("eps", 0.0)
    given = [arrays[name] for name in ("low", "high", "input", "scale") if name in arrays]
    need([g.shape == shape and g.ndim == 1 for g in given], "its inputs differ in size")
    need(norm in ("linf", "l1", "l2", "box"), "its norm is none of linf, l1, l2 and box")
    has_ball = ["input" in arrays, "eps" in claim]
    need(norm == "box" or has_ball, "it has no input or no eps")
    need(norm != "box" or np.logical_not(has_ball), "its claim says more than this checker knows")
    need(type(eps) in (int, float) and 0 <= eps == float(eps) < 1e300, "its eps is no number")
    scale = arrays.get("scale", np.zeros(0))
    need((scale >= 0) & (norm == "linf" or not len(scale)), "its scale is negative, or not linf")
    stated = claim["requirement"]
    need(stated["kind"] in CLAIMED, "it claims nothing")
    own = CLAIMED[stated["kind"]]
    need(stated.keys() <= {"kind", *own}, "its claim says more than this checker knows")
    classes = [_count(stated[name]) for name in ("label", "target") if name in stated]
    is_whole = len(set(classes)) == len(classes) == len(own & {"label", "target"})
    need(is_whole, "its label or target is missing, or both are one")
    if stated["kind"] == "violations":
        counts = [_count(rows) for rows in stated["rows"]]
        need(min(counts, default=0) > 0, "it has no violations, or one without rows")
    if stated["kind"] == "probabilities":
        need(len(stated["bounds"]), "it has no bounds")
        for each in stated["bounds"]:
            _count(each["class"])
            (level,) = (each[way] for way in each if way != "class")
            is_bound = each.keys() in ({"class", "above"}, {"class", "below"})
            need(is_bound and type(level) is float and 0 < level < 1, "a level is none")


def _arrays(listed: list[Any], packed: bytes, memory_bytes: int) -> Arrays:
    """What is stored, decompressed only once it is known to be small enough."""
    specs = [(str(a["name"]), str(a["dtype"]), [_count(n) for n in a["shape"]]) for a in listed]
    is_known = [name in TYPES[dtype].split() for name, dtype, _ in specs]
    need(is_known, "one of its arrays is unknown, or of another type")
    is_flat = [len(shape) == 1 + (name in TWO_AXES) for name, _, shape in specs]
    need(is_flat, "an array has other axes")
    need(len({name for name, _, _ in specs}) == len(specs), "two of its arrays have one name")
    sizes = [math.prod(shape) * np.dtype(dtype).itemsize for _, dtype, shape in specs]
    is_small = sum(sizes) <= memory_bytes // 4
    readable(is_small, f"its arrays take {sum(sizes)} bytes: too much memory")
    unpacking, arrays, end = zlib.decompressobj(), Arrays(), 0
    try:
        data = unpacking.decompress(packed, sum(sizes) + 1)
    except zlib.error:
        raise CertificateError("its arrays cannot be decompressed") from None
    is_whole = len(data) == sum(sizes) and unpacking.eof and not unpacking.unused_data
    need(is_whole, "its arrays are shorter or longer than its header says")
    for (name, dtype, shape), size in zip(specs, sizes, strict=True):
        arrays[name] = held = np.frombuffer(data[end : end + size], dtype).reshape(shape)
        is_fine = ~np.isnan(held) if name in ("lower", "upper") else np.isfinite(held)
        need(is_fine, f"array '{name}' holds NaN or infinite numbers")
        end += size
    return arrays


def _count(x: Any) -> int:
    if type(x) is not int or not 0 <= x < 2**40:
        raise ValueError
    return x
