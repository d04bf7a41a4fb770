"""How much memory a process holds, and sizes as people write them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from radii.errors import InputError

OUT_OF_MEMORY = ("can't allocate memory", "out of memory", "std::bad_alloc")
"""Parts of the messages of torch and of C++ libraries."""

_BYTES_OF_UNIT = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def resident_bytes(pid: int | None = None) -> int | None:
    """What the process holds in memory now; None if there is no such process or no way to know.

    Cheap on Linux: one small read. Elsewhere this process is charged with its peak, and another
    one is looked up with `ps`.
    """
    if sys.platform == "linux":
        try:
            pages = Path(f"/proc/{pid or 'self'}/statm").read_bytes().split()[1]
        except (OSError, IndexError):
            return None
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    return _peak_bytes() if pid is None else _listed_bytes(pid)


def is_out_of_memory(error: Exception) -> bool:
    """Whether that is what it means; torch says so in words, with a RuntimeError."""
    words = f"{type(error).__name__}: {error}"
    return isinstance(error, MemoryError) or any(part in words for part in OUT_OF_MEMORY)


def _peak_bytes() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _listed_bytes(pid: int) -> int | None:
    command = ["ps", "-o", "rss=", "-p", str(pid)]
    try:
        listed = subprocess.run(command, capture_output=True, check=False).stdout.strip()
    except OSError:
        return None
    return int(listed) * 1024 if listed.isdigit() else None


def parse_size(value: object) -> int:
    """Bytes, from 500M, 2G, 1.5GiB or a whole number of bytes; K, M, G, T are powers of 1024."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:I?B)?", str(value).strip().upper())
    size = (
        int(float(found[1]) * _BYTES_OF_UNIT[found[2]])
        if found and not isinstance(value, bool)
        else 0
    )
    if size <= 0:
        raise InputError(f"memory {value!r} must be a size above 0, such as 500M or 2G")
    return size


def show_size(size: int) -> str:
    """Bytes as people read them: 2G, 1.5G, 500M."""
    for unit in ("T", "G", "M", "K"):
        if size >= _BYTES_OF_UNIT[unit]:
            return f"{size / _BYTES_OF_UNIT[unit]:.4g}{unit}"
    return str(size)


def check_room(limit: int | None) -> None:
    """An InputError if this process, with all it needs loaded, is beyond the limit already."""
    held = resident_bytes()
    if limit is not None and held is not None and held >= limit:
        raise InputError(
            f"memory {show_size(limit)} is less than the {show_size(held)} that a process holds "
            "with libraries and networks loaded; allow more"
        )
