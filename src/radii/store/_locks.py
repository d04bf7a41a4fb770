"""One run writes a store at a time: the lock in its directory."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from radii.errors import StoreError

LOCK_FILE = ".lock"
LOCK_PAUSES = (0.0, 0.02, 0.1)  # seconds before each attempt


def written_since(directory: Path) -> float | None:
    """When the run began that has this directory's store open, in seconds since 1970.

    None: no run has it open now.
    """
    try:
        with (directory / LOCK_FILE).open() as lock:
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


# How a run is asked to pause: by a file in its directory, which it looks for between questions.
#
# Whoever may write there can pause it, from a page, a script or a shell (`touch results/.pause`).


PAUSE_FILE = ".pause"
HELD_TEXT = "held\n"


class PauseFlag:
    """While the file is there, the run asks nothing new; once nothing is under way it writes so."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / PAUSE_FILE

    @property
    def is_raised(self) -> bool:
        """The run is asked to pause."""
        return self.path.exists()

    @property
    def is_held(self) -> bool:
        """The run has said that it waits."""
        with suppress(OSError, UnicodeDecodeError):
            return self.path.read_text("utf-8") == HELD_TEXT
        return False

    def raise_(self) -> None:
        """Ask the run to pause; what it has begun still ends."""
        with _explaining_errors(self.path), suppress(FileExistsError), self.path.open("x"):
            pass  # "x": a link that somebody put there leads nowhere

    def lower(self) -> None:
        """Let the run go on."""
        with _explaining_errors(self.path):
            self.path.unlink(missing_ok=True)

    def hold(self) -> None:
        """Said by the run. A flag that was lowered meanwhile stays so."""
        with suppress(OSError):
            file = os.open(self.path, os.O_WRONLY | os.O_NOFOLLOW)
            with os.fdopen(file, "w", encoding="utf-8") as stream:
                stream.write(HELD_TEXT)


@contextmanager
def _explaining_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path}: cannot be changed ({error.strerror})") from None
