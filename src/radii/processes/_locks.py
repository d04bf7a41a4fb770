"""Locks on open files between processes, and whether this system has worker processes at all."""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType


def has_workers() -> bool:
    """Worker processes are started, watched and killed as groups, which Windows has not."""
    return hasattr(os, "killpg")


def take_lock(file: int, *, is_shared: bool = False) -> None:
    """Lock an open file until it is closed; a BlockingIOError if another process has it.

    Windows has no shared locks: there it is locked for one. A system that can lock nothing is taken
    at its word that nobody else is there.
    """
    if (posix := _optional("fcntl")) is not None:
        posix.flock(file, (posix.LOCK_SH if is_shared else posix.LOCK_EX) | posix.LOCK_NB)
    elif (windows := _optional("msvcrt")) is not None:
        try:
            windows.locking(file, windows.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(*error.args) from None


def _optional(name: str) -> ModuleType | None:
    """A module of the standard library that some systems lack."""
    try:
        return import_module(name)
    except ImportError:
        return None
