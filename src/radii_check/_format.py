"""The container: from bytes to a header and arrays, within a limit of memory.

    "RADIICRT" | version (uint32) | H (uint32) | header (H bytes of JSON) | arrays (one zlib stream)

Nothing is decompressed before its size is known to be small enough, and nothing is unpickled.
"""

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

from radii_check._claim import (
    ProbabilityBound,
    check_claim,
    count_of,
    probability_bounds_of,
    violations_of,
    widening_of,
)
from radii_check._errors import CertificateError, require_format, require_readable

Array = npt.NDArray[Any]

MAGIC = b"RADIICRT"
VERSION = 1
PREAMBLE_BYTES = 16
"""The magic bytes, the version, and the length of the header."""
MAX_HEADER_BYTES = 16 << 20

DTYPES = {
    "<f8": "low high input scale violation_matrix violation_offset eps gamma cut sign_beta "
    "cell_low cell_high cell_cut cell_slopes shares",
    "<f4": "lower upper bound",
    "<f2": "beta",
    "<i4": "parent split_unit spec node part round unit axis ground_part ground_unit sign_lemma "
    "sign_unit cell_parent cell_axis share_bound",
    "|i1": "split_sign side ground_side cell_side",
    "|u1": "slopes ground_slopes",
}
"""The names of all arrays by their type, as docs/certificates.md lists them."""
MATRICES = ("lower", "upper", "violation_matrix", "cell_low", "cell_high", "cell_slopes", "shares")
"""Arrays with two axes; all others have one."""
MAY_BE_INFINITE = ("lower", "upper")
"""An infinite bound of a unit states nothing."""
OPTIONAL_PREFIXES = ("ground_", "sign_")
"""Slopes of single ground bounds, and multipliers of units whose sign is known."""

# Shares of the memory that a check may take: the header becomes Python objects, arrays are copied.
HEADER_SHARE = 64
ARRAY_SHARE = 4


class Arrays(dict[str, Array]):
    """Arrays by name; an optional one that is missing is empty."""

    def __missing__(self, name: str) -> Array:
        require_format(name.startswith(OPTIONAL_PREFIXES), f"array '{name}' is missing")
        return np.zeros(0, int)


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """What a file states, checked as far as that is possible without the network.

    `mode` is "units" (splits of units) or "boxes" (splits of inputs). `widening` is how many times
    larger than in IEEE 754 a rounding counts: 1 for `float`, N for `float:N`, 0 for `real`.
    """

    claim: Mapping[str, Any]
    mode: str
    arrays: Arrays
    widening: float

    def violations(self, outputs: int) -> list[tuple[Array, Array]]:
        """The polyhedra { y : matrix y + offset <= 0 } that no output may lie in."""
        return violations_of(self.claim["requirement"], self.arrays, outputs)

    def bounds(self, outputs: int) -> list[ProbabilityBound]:
        """The bounds on probabilities, for a requirement of that kind."""
        return probability_bounds_of(self.claim["requirement"], outputs)


def read_certificate(content: bytes, memory_bytes: int = 2 << 30) -> Certificate:
    """The certificate in these bytes; a CertificateError says in one sentence why there is none."""
    text, compressed = _split_container(content, memory_bytes)
    try:
        header = json.loads(text.decode(), parse_constant=count_of)
        arrays = _read_arrays(header["arrays"], compressed, memory_bytes)
        mode, claim = header["proof"]["mode"], header["claim"]
        require_format(mode in ("units", "boxes"), "its proof is of an unknown mode")
        check_claim(claim, arrays)
        return Certificate(claim, mode, arrays, widening_of(claim["arithmetic"]))
    except CertificateError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        raise CertificateError("its header does not follow the format") from None


def _split_container(content: bytes, memory_bytes: int) -> tuple[bytes, bytes]:
    """The header's text, and the compressed arrays behind it."""
    is_certificate = content[:8] == MAGIC and len(content) >= PREAMBLE_BYTES
    require_format(is_certificate, "it does not begin as a certificate does")
    version, length = struct.unpack_from("<II", content, 8)
    require_format(version > 0, "it has no version")
    known = f"it has version {version}, this checker reads version {VERSION}"
    require_readable(version == VERSION, known)
    end = PREAMBLE_BYTES + length
    is_whole = length <= MAX_HEADER_BYTES and end <= len(content)
    require_format(is_whole, "its header is too long, or it is truncated")
    is_small = length <= memory_bytes // HEADER_SHARE
    require_readable(is_small, f"its header of {length} bytes takes too much memory")
    return content[PREAMBLE_BYTES:end], content[end:]


def _read_arrays(listed: list[Any], compressed: bytes, memory_bytes: int) -> Arrays:
    """The arrays that the header lists, decompressed once they are known to be small enough."""
    entries = [
        (str(entry["name"]), str(entry["dtype"]), [count_of(n) for n in entry["shape"]])
        for entry in listed
    ]
    is_known = [name in DTYPES[dtype].split() for name, dtype, _ in entries]
    require_format(is_known, "one of its arrays is unknown, or of another type")
    has_axes = [len(shape) == (2 if name in MATRICES else 1) for name, _, shape in entries]
    require_format(has_axes, "an array has a wrong number of axes")
    names = {name for name, _, _ in entries}
    require_format(len(names) == len(entries), "two of its arrays have one name")

    sizes = [math.prod(shape) * np.dtype(dtype).itemsize for _, dtype, shape in entries]
    is_small = sum(sizes) <= memory_bytes // ARRAY_SHARE
    require_readable(is_small, f"its arrays take {sum(sizes)} bytes: too much memory")
    content = _decompress(compressed, sum(sizes))

    arrays, start = Arrays(), 0
    for (name, dtype, shape), size in zip(entries, sizes, strict=True):
        array = np.frombuffer(content[start : start + size], dtype).reshape(shape)
        is_fine = ~np.isnan(array) if name in MAY_BE_INFINITE else np.isfinite(array)
        require_format(is_fine, f"array '{name}' holds NaN or infinite numbers")
        arrays[name] = array
        start += size
    return arrays


def _decompress(compressed: bytes, size: int) -> bytes:
    """The one zlib stream, which must hold exactly `size` bytes and end with the file."""
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(compressed, size + 1)
    except zlib.error:
        raise CertificateError("its arrays cannot be decompressed") from None
    is_whole = len(content) == size and stream.eof and not stream.unused_data
    require_format(is_whole, "its arrays are shorter or longer than its header says")
    return content
