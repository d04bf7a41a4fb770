"""Gzipped files, unpacked in memory and within a limit."""

from __future__ import annotations

import gzip
import io
import zlib

from radii.errors import InputError

__all__ = ["gunzip"]

MAX_BYTES = 1 << 30
"""The most that a file may unpack to; what is larger is for its owner to unpack."""


def gunzip(data: bytes, name: str, error: type[InputError]) -> bytes:
    """Unpacked data; the error if they are damaged or unpack to more than the limit."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            unpacked = stream.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        raise error(f"{name} is a damaged gzip file; fetch it again") from None
    if len(unpacked) > MAX_BYTES:
        raise error(f"{name} unpacks to more than {MAX_BYTES >> 20} MiB; unpack it yourself first")
    return unpacked
