"""The brackets of a VNN-LIB file: text to nested lists, without recursion and in one pass.

Large files are long runs of a few shapes, such as `(assert (<= X_0 0.5))` ten thousand times. A
regular expression finds such a run as a whole; it stays text, a `ItemRun`, which `comparisons` and
`declarations` read in columns. What they cannot read that way is taken apart here after all, so
that a run never changes what a file means or what is said about it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from radii.errors import SpecificationError

BLANK = r"\s*+(?:;[^\n]*+\s*+)*+"
"""White space and comments, or nothing."""

_WORD = r"""[^\s()\[\];"]++(?:[ \t]*+\[[^\]\n]*+\])?+"""
"""A name or a number. A name takes its tensor index along, as in `X [0, 3]`."""

AND = re.compile(r"\(\s*+and(?=[\s(])")
"""Where a conjunction begins, in text without comments."""

SCALAR = r"[XY]_(?:0|[1-9]\d*+)"
"""The name of an input or output in VNN-LIB 1.0."""

_COMPARISON = rf"\({BLANK}(?:<=|>=|<|>)(?=[\s;]){BLANK}{_WORD}{BLANK}{_WORD}{BLANK}\){BLANK}"
_ANY = rf"""[()]|;[^\n]*+|"[^"\n]*"|{_WORD}|["\[\]]"""  # the last one opens without closing
_LONGEST = 1 << 12
"""Items of a run: the words of more do not stay in a processor's cache."""

_SHOWN_CHARACTERS = 60
WORTH_CHARACTERS = 400
"""Shorter runs inside a form are quicker read one by one."""


class ItemShape(StrEnum):
    """What a run consists of."""

    ASSERTIONS = "assertions"
    """`(assert (<= X_0 0.5))`, each of one comparison of two words."""
    DECLARATIONS = "declarations"
    """`(declare-const X_0 Real)`"""
    CONJUNCTIONS = "conjunctions"
    """`(and (<= X_0 0.5) (>= Y_0 Y_1))`, each of comparisons of two words only."""
    COMPARISONS = "comparisons"
    """`(<= X_0 0.5)`"""


_ITEMS = {
    ItemShape.ASSERTIONS: rf"\({BLANK}assert{BLANK}{_COMPARISON}\){BLANK}",
    ItemShape.DECLARATIONS: rf"\({BLANK}declare-const(?=[\s;]){BLANK}{SCALAR}(?=[\s;]){BLANK}"
    rf"Real{BLANK}\){BLANK}",
    ItemShape.CONJUNCTIONS: rf"\({BLANK}and{BLANK}(?:{_COMPARISON})++\){BLANK}",
    ItemShape.COMPARISONS: _COMPARISON,
}


def _tokens(*shapes: ItemShape) -> re.Pattern[str]:
    runs = [f"(?P<{shape}>(?:{_ITEMS[shape]}){{1,{_LONGEST}}}+)" for shape in shapes]
    return re.compile("|".join([*runs, _ANY]))


_TOKENS = _tokens(*ItemShape)
_OUTER = frozenset({ItemShape.ASSERTIONS, ItemShape.DECLARATIONS})
# What the items of a run are made of, and so the runs to look for in one that is taken apart.
_TOKENS_WITHIN = {ItemShape.CONJUNCTIONS: _tokens(ItemShape.COMPARISONS)}
_PLAIN_TOKENS = _tokens()


@dataclass(frozen=True, slots=True)
class ItemRun:
    """Items of one shape in a row, as text. In a list it stands for as many elements."""

    line: int
    shape: ItemShape
    text: str

    @property
    def is_one_conjunction(self) -> bool:
        """Its only item is a conjunction; where that is not seen at a glance, False."""
        is_clear = self.shape is ItemShape.CONJUNCTIONS and ";" not in self.text
        return is_clear and AND.search(self.text, 1) is None

    def forms(self) -> Iterator[Form]:
        """The items one by one, with their lines; a long conjunction may hold a run itself."""
        tokens = _TOKENS_WITHIN.get(self.shape, _PLAIN_TOKENS)
        is_short = len(self.text) < WORTH_CHARACTERS
        for piece in _pieces(self.text, _PLAIN_TOKENS if is_short else tokens, self.line):
            assert isinstance(piece, Form)
            yield piece


@dataclass(frozen=True, slots=True)
class Form:
    """One top-level expression and the line it starts on."""

    line: int
    parts: list[Expression]


Expression: TypeAlias = str | ItemRun | list["Expression"]


def read_pieces(text: str) -> Iterator[Form | ItemRun]:
    """The top-level expressions of `text` in their order, comments left out and runs as runs.

    Inside a form, runs stand only where any number of conditions may, after `and` and `or`; and one
    that is a single conjunction also after `assert`.
    """
    return _pieces(text, _TOKENS, 1)


def read_forms(text: str) -> Iterator[Form]:
    """The top-level expressions of `text`, comments left out, in nested lists of words only."""
    for piece in _pieces(text, _PLAIN_TOKENS, 1):
        assert isinstance(piece, Form)
        yield piece


@dataclass(slots=True)
class _Lines:
    """The line of a position; asked for positions in their order."""

    text: str
    line: int
    counted: int = field(default=0, init=False)

    def at(self, position: int) -> int:
        self.line += self.text.count("\n", self.counted, position)
        self.counted = position
        return self.line


def _pieces(text: str, tokens: re.Pattern[str], line: int) -> Iterator[Form | ItemRun]:
    lines = _Lines(text, line)
    enclosing: list[list[Expression]] = []
    current: list[Expression] | None = None
    start = line
    for found in tokens.finditer(text):
        token = found[0]
        if token == "(":
            opened: list[Expression] = []
            if current is None:
                start = lines.at(found.start())
            else:
                current.append(opened)
                enclosing.append(current)
            current = opened
        elif token == ")":
            if current is None:
                raise SpecificationError(f"line {lines.at(found.start())}: ')' closes nothing")
            if enclosing:
                current = enclosing.pop()
            else:
                yield Form(start, current)
                current = None
        elif found.lastgroup is not None:
            run = ItemRun(lines.at(found.start()), ItemShape(found.lastgroup), token)
            if current is not None:
                current.extend(_inside(run, current))
            else:
                yield from [run] if run.shape in _OUTER else run.forms()
        elif token[0] != ";":
            if current is None or token in {'"', "[", "]"}:
                at = lines.at(found.start())
                raise SpecificationError(f"line {at}: '{token[:_SHOWN_CHARACTERS]}' stands alone")
            current.append(without_spaces(token) if "[" in token else token)
    if current is not None:
        raise SpecificationError(f"line {start}: '(' is never closed")


def _inside(run: ItemRun, parts: list[Expression]) -> list[Expression]:
    """The run as it goes into a list that begins with `parts`."""
    is_one = parts == ["assert"] and run.is_one_conjunction
    is_some = parts[:1] in (["and"], ["or"]) and run.shape not in _OUTER
    if (is_one or is_some) and len(run.text) >= WORTH_CHARACTERS:
        return [run]
    return [form.parts for form in run.forms()]


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
        elif isinstance(part, ItemRun):
            stack.extend(reversed([form.parts for form in part.forms()]))
        else:
            pieces.append("(")
            stack.append(")")
            stack.extend(reversed(part))
    text = " ".join(pieces).replace("( ", "(").replace(" )", ")")
    return text if not stack else text[:_SHOWN_CHARACTERS] + " ..."


def without_spaces(token: str) -> str:
    """`X [0, 3]` as `X[0,3]`; blanks alone also separate indices."""
    name, _, indices = token.partition("[")
    return f"{name.rstrip()}[{','.join(indices.rstrip(']').replace(',', ' ').split())}]"
