"""The files of a store's directory: connections to SQLite, the writer's lock, the pause flag."""

from __future__ import annotations

import os
import sqlite3
import textwrap
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from radii.errors import InputError, StoreError
from radii.processes import take_lock

LOCK_FILE = ".lock"
PAUSE_FILE = ".pause"
HELD_TEXT = "held\n"
LOCK_PAUSES = (0.0, 0.02, 0.1)  # seconds before each attempt
MOST_WORDS = 200
"""Characters of what is damaged, in a message of one sentence."""


# --- connections


def read_only_address(path: Path) -> str:
    """The address under which SQLite opens a file without ever changing it."""
    return f"{path.resolve().as_uri()}?mode=ro"


def copy_in_memory(database: sqlite3.Connection) -> sqlite3.Connection:
    """A copy of a file that must stay as it is, to be migrated. The file is closed."""
    copy = sqlite3.connect(":memory:")
    copy.row_factory = database.row_factory
    database.backup(copy)
    database.close()
    return copy


def insert(
    database: sqlite3.Connection,
    table: str,
    columns: Mapping[str, object],
    verb: str = "INSERT",
) -> int:
    """Write a row, by the names of its columns; its number."""
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    statement = f"{verb} INTO {table} ({names}) VALUES ({marks})"
    return database.execute(statement, tuple(columns.values())).lastrowid or 0


@contextmanager
def explaining_errors(place: object) -> Iterator[None]:
    """Turn SQLite's errors (full disk, read-only, not a database) into one sentence."""
    try:
        yield
    except sqlite3.Error as error:
        reason = str(error)
        with suppress(AttributeError):
            if error.sqlite_errorname == "SQLITE_NOTADB":
                raise StoreError(f"{place}: cannot be read: it is not a radii store") from None
            if error.sqlite_errorname == "SQLITE_BUSY":
                reason = "a run is writing there now"
        raise StoreError(f"{place}: the store cannot be used ({reason})") from None


@contextmanager
def explaining_damage(place: object) -> Iterator[None]:
    """Turn what damaged contents lead to, of whatever kind, into one sentence."""
    try:
        with explaining_errors(place):
            yield
    except StoreError:
        raise
    except (ValueError, TypeError, LookupError, ArithmeticError, InputError) as error:
        reason = textwrap.shorten(str(error), MOST_WORDS) or type(error).__name__
        raise StoreError(
            f"{place}: the store is damaged ({reason}); use a copy of it, or another directory"
        ) from None


# --- one run writes a store at a time


def written_since(directory: Path) -> float | None:
    """When the run began that has this directory's store open, in seconds since 1970.

    None: no run has it open now.
    """
    try:
        with (directory / LOCK_FILE).open() as lock:
            began = os.fstat(lock.fileno()).st_mtime
            try:
                take_lock(lock.fileno(), is_shared=True)
            except BlockingIOError:
                return began
    except OSError:  # there is no lock, or it may not be read
        return None
    return None


def is_taken(lock: IO[str]) -> bool:
    """Take the lock, unless another run has it or has just removed its file.

    A process that only tests the lock has it for an instant, so it is tried more than once.
    """
    for pause in LOCK_PAUSES:
        time.sleep(pause)
        try:
            take_lock(lock.fileno())
            return os.path.samestat(os.fstat(lock.fileno()), Path(lock.name).stat())
        except OSError:
            continue
    return False


class PauseFlag:
    """A file in its directory by which a run is asked to pause; it looks for it between questions.

    While the file is there, the run asks nothing new; once nothing is under way it writes so.
    Whoever may write there can pause it, from a page, a script or a shell (`touch results/.pause`).
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / PAUSE_FILE

    @property
    def is_raised(self) -> bool:
        """The run is asked to pause."""
        return self.path.exists()

    @property
    def is_held(self) -> bool:
        """The run waits, and has written so."""
        with suppress(OSError, UnicodeDecodeError):
            return self.path.read_text("utf-8") == HELD_TEXT
        return False

    def raise_(self) -> None:
        """Ask the run to pause; what it has begun still ends."""
        with _explaining_refusal(self.path), suppress(FileExistsError), self.path.open("x"):
            pass  # "x": a link that somebody put there leads nowhere

    def lower(self) -> None:
        """Let the run go on."""
        with _explaining_refusal(self.path):
            self.path.unlink(missing_ok=True)

    def hold(self) -> None:
        """Called by the run when it waits. A flag that was lowered meanwhile stays so."""
        with suppress(OSError):
            file = os.open(self.path, os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0))
            with os.fdopen(file, "w", encoding="utf-8") as stream:
                stream.write(HELD_TEXT)


@contextmanager
def _explaining_refusal(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path}: cannot be changed ({error.strerror})") from None
