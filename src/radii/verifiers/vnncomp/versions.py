"""Which version of a foreign tool answers: asked from it where it can be."""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from radii.verifiers._base import Limits
from radii.verifiers.programs import run_program
from radii.verifiers.vnncomp.tools import Tool, is_interpreter

__all__ = ["version_of"]

ASK_SECONDS = 10.0
"""How long a tool may take to say its version."""

VERSION = re.compile(r"[\w .,:+()/-]{0,60}\d[\w .,:+()/-]{0,60}")
"""A line that can be a version: short, with a digit in it."""


@lru_cache(maxsize=16)
def version_of(tool: Tool) -> str:
    """The tool's name with its commit, what it says itself, or what its file's content is."""
    commit = None if tool.own is None else _commit(tool.own)
    said = None if commit else _said(tool)
    if said is not None and said.startswith(tool.name):
        return said
    return f"{tool.name} {commit or said or _digest(tool.own) or 'of unknown version'}"


def _commit(own: Path) -> str | None:
    """The commit of the checkout that holds the tool; `+` if it was changed since.

    A file that merely lies in somebody's checkout is not of its commit.
    """
    folder = own if own.is_dir() else own.parent
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty=+", "--tags"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=ASK_SECONDS)
        tracked = subprocess.run(
            ["git", "-C", str(folder), "ls-files", "--error-unmatch", str(own)],
            capture_output=True,
            timeout=ASK_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return told.stdout.strip() if told.returncode == 0 == tracked.returncode else None


def _said(tool: Tool) -> str | None:
    """The first line of `PROGRAM --version`, if it can be one."""
    if is_interpreter(Path(tool.words[0]).name):
        return None
    with tempfile.TemporaryDirectory(prefix="radii-", ignore_cleanup_errors=True) as place:
        ended = run_program([tool.words[0], "--version"], Path(place), Limits(ASK_SECONDS))
    lines = ended.output.strip().splitlines()
    is_told = ended.missing is None and ended.code == 0 and lines
    return lines[0] if is_told and VERSION.fullmatch(lines[0]) else None


def _digest(own: Path | None) -> str | None:
    if own is None or not own.is_file():
        return None
    return f"sha256:{hashlib.sha256(own.read_bytes()).hexdigest()[:12]}"
