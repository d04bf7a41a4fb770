"""One run writes a store at a time: the lock in its directory."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import IO

__all__ = ["LOCK_NAME", "is_taken", "written_since"]

LOCK_NAME = ".lock"
LOCK_PAUSES = (0.0, 0.02, 0.1)  # seconds before each attempt


def written_since(directory: Path) -> float | None:
    """When the run began that has this directory's store open, in seconds since 1970.

    None: no run has it open now.
    """
    try:
        with (directory / LOCK_NAME).open() as lock:
            began = os.fstat(lock.fileno()).st_mtime
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return began
    except OSError:  # there is no lock, or it may not be read
        return None
    return None


def is_taken(lock: IO[str]) -> bool:
    """Take the lock, unless another run has it or has just removed its file.

    Who only looks whether it is taken has it for an instant, so it is tried more than once.
    """
    for pause in LOCK_PAUSES:
        time.sleep(pause)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return os.path.samestat(os.fstat(lock.fileno()), Path(lock.name).stat())
        except OSError:
            continue
    return False
