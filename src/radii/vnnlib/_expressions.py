"""The brackets of a VNN-LIB file: text to nested lists, without recursion and in one pass.

Large files are long runs of a few shapes, such as `(assert (<= X_0 0.5))` ten thousand times. A
regular expression finds such a run as a whole; it stays text, a `ItemRun`, which `comparisons` and
`declarations` read in columns. What they cannot read that way is split into its items after all, so
that a run never changes what a file means or what is said about it.

The variables that a file declares are X_i and Y_j in 1.0, one tensor each in 2.0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product
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
    for match in tokens.finditer(text):
        token = match[0]
        if token == "(":
            opened: list[Expression] = []
            if current is None:
                start = lines.at(match.start())
            else:
                current.append(opened)
                enclosing.append(current)
            current = opened
        elif token == ")":
            if current is None:
                raise SpecificationError(f"line {lines.at(match.start())}: ')' closes nothing")
            if enclosing:
                current = enclosing.pop()
            else:
                yield Form(start, current)
                current = None
        elif match.lastgroup is not None:
            run = ItemRun(lines.at(match.start()), ItemShape(match.lastgroup), token)
            if current is not None:
                current.extend(_inside(run, current))
            else:
                yield from [run] if run.shape in _OUTER else run.forms()
        elif token[0] != ";":
            if current is None or token in {'"', "[", "]"}:
                at = lines.at(match.start())
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


# --- declared variables


_SCALAR = re.compile(SCALAR)
# Comments are matched too, so that they declare nothing; the first group is empty there.
_DECLARED = re.compile(rf";[^\n]*|declare-const{BLANK}({SCALAR})")
_DIMENSION = re.compile(r"[1-9]\d*")
ELEMENT_TYPES = ("real", "float16", "float32", "float64")
MAX_ELEMENTS = 10_000_000


@dataclass(frozen=True, slots=True)
class Tensor:
    """The network's input or output as the file declares it.

    `shape` and `element_type` are None in VNN-LIB 1.0, which has neither; `real` leaves the type
    to the network.
    """

    names: tuple[str, ...]
    shape: tuple[int, ...] | None = None
    element_type: str | None = None

    @property
    def size(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True)
class Variables:
    """Inputs are numbered from 0 in row-major order, the outputs after them."""

    inputs: Tensor
    outputs: Tensor

    def numbers(self) -> dict[str, int]:
        """Each way to write a variable, and its number."""
        names = self.inputs.names + self.outputs.names
        numbers = {name: index for index, name in enumerate(names)}
        for tensor, start in ((self.inputs, 0), (self.outputs, self.inputs.size)):
            if tensor.shape == ():
                numbers.update({f"{tensor.names[0]}[]": start, f"{tensor.names[0]}[0]": start})
        return numbers


def declared_scalars(pieces: Sequence[Form | ItemRun]) -> Variables:
    """The variables of VNN-LIB 1.0: `(declare-const X_0 Real)`, or declare-fun of nothing."""
    declared: dict[str, set[int]] = {"X": set(), "Y": set()}
    for piece in pieces:
        if isinstance(piece, Form):
            _declare(piece, declared)
        elif not _declare_all(piece, declared):
            for form in piece.forms():
                _declare(form, declared)
    return Variables(_scalars("X", declared["X"]), _scalars("Y", declared["Y"]))


def _declare_all(run: ItemRun, declared: dict[str, set[int]]) -> bool:
    """Take in all declarations of a run, or none if one is there already."""
    names = [name for name in _DECLARED.findall(run.text) if name]
    new = {kind: [int(name[2:]) for name in names if name[0] == kind] for kind in declared}
    for kind, indices in new.items():
        if len(set(indices)) < len(indices) or not declared[kind].isdisjoint(indices):
            return False
    for kind, indices in new.items():
        declared[kind].update(indices)
    return True


def _declare(form: Form, declared: dict[str, set[int]]) -> None:
    match form.parts:
        case ["declare-const", str(name), "Real"] | ["declare-fun", str(name), [], "Real"]:
            pass
        case _:
            raise _error(form, f"'{show(form.parts)}' does not declare a Real constant")
    if _SCALAR.fullmatch(name) is None:
        raise _error(form, f"variable '{name}' is neither an input X_0, ... nor an output Y_0")
    kind, index = name[0], int(name[2:])
    if index in declared[kind]:
        raise _error(form, f"variable '{name}' is declared twice")
    declared[kind].add(index)


def _scalars(kind: str, indices: set[int]) -> Tensor:
    if not indices:
        raise SpecificationError(f"no variable {kind}_0 is declared")
    for index in range(len(indices)):
        if index not in indices:
            raise SpecificationError(
                f"{kind}_{max(indices)} is declared but {kind}_{index} is not: "
                "numbers must have no gaps"
            )
    return Tensor(tuple(f"{kind}_{index}" for index in range(len(indices))))


def declared_tensors(forms: Sequence[Form]) -> Variables:
    """The variables of VNN-LIB 2.0, from its `declare-network` forms."""
    if len(forms) > 1:
        raise _error(
            forms[1], f"{len(forms)} networks are declared, but radii decides one network at a time"
        )
    form = forms[0]
    tensors: dict[str, list[Tensor]] = {"declare-input": [], "declare-output": []}
    name, *declarations = form.parts[1:] or [""]
    if not isinstance(name, str) or not name:
        raise _error(form, "declare-network needs a name")
    for declaration in declarations:
        match declaration:
            case ["declare-input" | "declare-output" as kind, str(tensor), str(type_and_shape), *_]:
                tensors[kind].append(_tensor(form, tensor, type_and_shape))
            case [("declare-hidden" | "equal-to" | "isomorphic-to") as other, *_]:
                raise _error(form, f"'{other}' in network '{name}' is not supported")
            case _:
                raise _error(form, f"'{show(declaration)}' does not declare an input or output")
    for what, declared in tensors.items():
        if len(declared) != 1:
            raise _error(form, f"network '{name}' has {len(declared)} {what}s, but radii needs one")
    inputs, outputs = tensors["declare-input"][0], tensors["declare-output"][0]
    if set(inputs.names) & set(outputs.names):
        raise _error(form, f"network '{name}' calls its input and its output the same")
    return Variables(inputs, outputs)


def _tensor(form: Form, name: str, type_and_shape: str) -> Tensor:
    element_type, bracket, inside = type_and_shape.partition("[")
    dimensions = [text for text in inside.rstrip("]").split(",") if text]
    if not bracket or not all(_DIMENSION.fullmatch(text) for text in dimensions):
        raise _error(form, f"'{name} {type_and_shape}' needs a type and a shape such as [1,10]")
    if element_type.lower() not in ELEMENT_TYPES:
        known = ", ".join(ELEMENT_TYPES)
        raise _error(form, f"element type '{element_type}' of {name} is not one of {known}")
    shape = tuple(int(text) for text in dimensions)
    if math.prod(shape) > MAX_ELEMENTS:
        raise _error(form, f"{name} has {math.prod(shape)} elements, over {MAX_ELEMENTS}")
    indices = product(*(range(dimension) for dimension in shape))
    names = tuple(f"{name}[{','.join(map(str, index))}]" for index in indices)
    return Tensor(names if shape else (name,), shape, element_type.lower())


def _error(form: Form, message: str) -> SpecificationError:
    return SpecificationError(f"line {form.line}: {message}")
