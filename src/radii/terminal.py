"""What radii says on a terminal.

Names of networks and files and messages of tools come from others, and a terminal obeys what it is
sent: an escape sequence can move the cursor, a newline can pretend to be a line of radii's own, a
bidirectional override can turn a sentence around. So every line is made plain here, and nothing in
radii calls `print` by itself.
"""

from __future__ import annotations

import sys
from typing import IO


def plain(text: str) -> str:
    """One line that does nothing to a terminal: what is not printable is written as an escape.

    That is, as in Python: `\\n`, `\\x1b`, `\\u202e`. Other text stays as it is.
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def say(*lines: object, file: IO[str] | None = None, flush: bool = False) -> None:
    """Print lines, each made plain. Text of several lines is given as several lines."""
    for line in lines:
        print(plain(str(line)), file=sys.stdout if file is None else file, flush=flush)


def note(sentence: object) -> None:
    """One line on standard error, beside what a command prints."""
    say(f"radii: {sentence}", file=sys.stderr)
