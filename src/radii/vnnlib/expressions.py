"""The brackets of a VNN-LIB file: text to nested lists, without recursion and in one pass."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from radii.errors import SpecificationError

__all__ = ["Expression", "Form", "read_forms", "show"]

Expression: TypeAlias = "str | list[Expression]"

# A name takes its tensor index along, as in `X [0, 3]`. Line ends are tokens so that lines can be
# counted; the last alternative catches what opens without closing.
_TOKEN = re.compile(
    r"""[()\n]|;[^\n]*|"[^"\n]*"|[^\s()\[\];"]+(?:[ \t]*\[[^\]\n]*\])?|["\[\]]""",
)
_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Form:
    """One top-level expression and the line it starts on."""

    line: int
    parts: list[Expression]


def read_forms(text: str) -> Iterator[Form]:
    """The top-level expressions of `text`, comments left out."""
    enclosing: list[list[Expression]] = []
    current: list[Expression] | None = None
    line = start = 1
    for token in _TOKEN.findall(text):
        if token == "(":
            opened: list[Expression] = []
            if current is None:
                start = line
            else:
                current.append(opened)
                enclosing.append(current)
            current = opened
        elif token == ")":
            if current is None:
                raise SpecificationError(f"line {line}: ')' closes nothing")
            if enclosing:
                current = enclosing.pop()
            else:
                yield Form(start, current)
                current = None
        elif token == "\n":
            line += 1
        elif token[0] != ";":
            if current is None or token in {'"', "[", "]"}:
                raise SpecificationError(f"line {line}: '{token[:_SHOWN_CHARACTERS]}' stands alone")
            current.append(_without_spaces(token) if "[" in token else token)
    if current is not None:
        raise SpecificationError(f"line {start}: '(' is never closed")


def show(expression: Expression) -> str:
    """The expression as text, cut to a length that fits an error message."""
    pieces: list[str] = []
    length = 0
    stack: list[Expression] = [expression]
    while stack and length <= _SHOWN_CHARACTERS:
        part = stack.pop()
        if isinstance(part, str):
            pieces.append(part)
            length += len(part) + 1
        else:
            pieces.append("(")
            stack.append(")")
            stack.extend(reversed(part))
    text = " ".join(pieces).replace("( ", "(").replace(" )", ")")
    return text if not stack else text[:_SHOWN_CHARACTERS] + " ..."


def _without_spaces(token: str) -> str:
    """`X [0, 3]` as `X[0,3]`; blanks alone also separate indices."""
    name, _, indices = token.partition("[")
    return f"{name.rstrip()}[{','.join(indices.rstrip(']').replace(',', ' ').split())}]"
