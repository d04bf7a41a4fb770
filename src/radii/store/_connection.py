"""Connections to SQLite files, and what goes wrong with them in one sentence."""

from __future__ import annotations

import sqlite3
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from radii.errors import InputError, StoreError

MOST_WORDS = 200
"""Characters of what is damaged, in a message of one sentence."""


def read_only_address(path: Path) -> str:
    """The address under which SQLite opens a file without ever changing it."""
    return f"{path.resolve().as_uri()}?mode=ro"


def copy_in_memory(database: sqlite3.Connection) -> sqlite3.Connection:
    """A copy of a file that must stay as it is, to be migrated. The file is closed."""
    copy = sqlite3.connect(":memory:")
    database.backup(copy)
    database.close()
    return copy


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
