"""The file itself: a magic word, a header in JSON, and arrays in one compressed stream."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from radii import __version__

Array = npt.NDArray[Any]

MAGIC, VERSION = b"RADIICRT", 1

COMPRESSION = 6
"""zlib's: higher levels take four times as long for 3 %."""


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """A claim, how it is shown (`units` or `boxes`), and the arrays of both."""

    claim: Mapping[str, Any]
    mode: str
    arrays: Mapping[str, Array]

    def to_bytes(self) -> bytes:
        stored = {name: _little_endian(array) for name, array in self.arrays.items()}
        header = {
            "claim": dict(self.claim),
            "proof": {"mode": self.mode},
            "arrays": [
                {"name": name, "dtype": array.dtype.str, "shape": list(array.shape)}
                for name, array in stored.items()
            ],
            "made_by": f"radii {__version__}",
        }
        text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
        compressor = zlib.compressobj(COMPRESSION)
        parts = [compressor.compress(array.tobytes()) for array in stored.values()]
        start = MAGIC + struct.pack("<II", VERSION, len(text)) + text
        return b"".join([start, *parts, compressor.flush()])


def certificate_hash(content: bytes) -> str:
    """The name under which a certificate is kept: 64 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def _little_endian(array: Array) -> Array:
    return np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
