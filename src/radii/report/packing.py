"""Arrays as one compressed block of bytes, with a table of contents that JavaScript can read."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Block"]

TYPES = {"f8": "Float64Array", "f4": "Float32Array", "i4": "Int32Array", "u4": "Uint32Array"}
TYPES |= {"u2": "Uint16Array", "u1": "Uint8Array", "i1": "Int8Array"}

ALIGNMENT = 8
"""A typed array must begin at a multiple of the size of its items."""


class Block:
    """Named arrays, one after the other, little-endian."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self.contents: dict[str, dict[str, Any]] = {}

    @property
    def size(self) -> int:
        """Bytes, before they are compressed."""
        return self._size

    def add(self, name: str, values: npt.ArrayLike, kind: str) -> None:
        """`kind` is one of `TYPES`; values must fit into it."""
        array = np.asarray(values)
        if kind[0] in "iu" and array.size:
            bounds = np.iinfo(kind)
            if array.min() < bounds.min or array.max() > bounds.max:
                raise OverflowError(f"array '{name}' does not fit into {TYPES[kind]}")
        data = np.ascontiguousarray(array, np.dtype(f"<{kind}")).tobytes()
        self.contents[name] = {"type": TYPES[kind], "at": self._size, "length": array.size}
        padded = data + bytes(-len(data) % ALIGNMENT)
        self._parts.append(padded)
        self._size += len(padded)

    def compressed(self) -> bytes:
        """What the browser's DecompressionStream('deflate') takes apart."""
        return zlib.compress(b"".join(self._parts), level=6)
