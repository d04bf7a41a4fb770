"""How a run is asked to pause: by a file in its directory, which it looks for between questions.

Whoever may write there can pause it, from a page, a script or a shell (`touch results/.pause`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from radii.errors import StoreError

__all__ = ["PauseFlag"]

FILE_NAME = ".pause"
HELD = "held\n"


class PauseFlag:
    """While the file is there, the run asks nothing new; once nothing is under way it writes so."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / FILE_NAME

    @property
    def is_raised(self) -> bool:
        """The run is asked to pause."""
        return self.path.exists()

    @property
    def is_held(self) -> bool:
        """The run has said that it waits."""
        with suppress(OSError, UnicodeDecodeError):
            return self.path.read_text("utf-8") == HELD
        return False

    def raise_(self) -> None:
        """Ask the run to pause; what it has begun still ends."""
        with _explained(self.path), suppress(FileExistsError), self.path.open("x"):
            pass  # "x": a link that somebody put there leads nowhere

    def lower(self) -> None:
        """Let the run go on."""
        with _explained(self.path):
            self.path.unlink(missing_ok=True)

    def hold(self) -> None:
        """Said by the run. A flag that was lowered meanwhile stays so."""
        with suppress(OSError):
            file = os.open(self.path, os.O_WRONLY | os.O_NOFOLLOW)
            with os.fdopen(file, "w", encoding="utf-8") as stream:
                stream.write(HELD)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path}: cannot be changed ({error.strerror})") from None
