"""Comparisons of two words in columns: what large VNN-LIB files mostly consist of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, repeat

import numpy as np
import numpy.typing as npt

from radii.vnnlib._expressions import AND, ItemRun, ItemShape, without_spaces
from radii.vnnlib._terms import numbers

_COMMENT = re.compile(r";[^\n]*")
_COMMENT_OR_INDEX = re.compile(r";[^\n]*|[ \t]*\[[^\]\n]*\]")
_ODD_INDEX = re.compile(r"\[(?![\d,]*+\][\s()])")
_BRACKETS_TO_BLANKS = str.maketrans("()", "  ")
_IS_GREATER, _IS_STRICT = 1, 2
_RELATIONS = {"<=": 0, ">=": _IS_GREATER, "<": _IS_STRICT, ">": _IS_GREATER | _IS_STRICT}


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """All of `low <= high` hold, or `low < high` where `strict`; a row for each.

    A side is a variable's number; where it is -1, the side is the row's `constant`. One side at
    least is a variable, and both are inputs or both outputs.
    """

    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]
    constant: npt.NDArray[np.float64]
    strict: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.low)

    def where(self, rows: slice | npt.NDArray[np.bool_]) -> Comparisons:
        """Some of the rows."""
        return Comparisons(self.low[rows], self.high[rows], self.constant[rows], self.strict[rows])

    def rows(self) -> Iterator[tuple[int, int, float, bool]]:
        """low, high, constant and strict."""
        columns = (self.low, self.high, self.constant, self.strict)
        return zip(*(column.tolist() for column in columns), strict=True)

    def hold(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Whether each row is true at these values of all variables. Nothing is rounded."""
        low = np.where(self.low < 0, self.constant, values[self.low])
        high = np.where(self.high < 0, self.constant, values[self.high])
        return np.where(self.strict, low < high, low <= high)


@dataclass(frozen=True, slots=True, eq=False)
class Alternatives:
    """One of several conjunctions of comparisons holds; each begins at one of the rows `starts`."""

    rows: Comparisons
    starts: npt.NDArray[np.int64]

    def __iter__(self) -> Iterator[Comparisons]:
        starts = self.starts.tolist()
        for start, stop in zip(starts, [*starts[1:], len(self.rows)], strict=True):
            yield self.rows.where(slice(start, stop))

    def hold(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Whether each alternative is true at these values of all variables."""
        return np.logical_and.reduceat(self.rows.hold(values), self.starts)


def read_comparisons(
    run: ItemRun, variables: Mapping[str, int], inputs: int
) -> Alternatives | None:
    """The items of a run. Variables below `inputs` are inputs, the rest outputs.

    None if a row is not as `Comparisons` has them: whoever takes the run apart finds out why.
    """
    text = _plain(run.text)
    if text is None:
        return None
    sizes = None
    if run.shape is ItemShape.CONJUNCTIONS:
        conjunctions = AND.split(text)[1:]
        sizes = np.array([each.count("(") for each in conjunctions])
        text = "".join(conjunctions)
    words = text.translate(_BRACKETS_TO_BLANKS).split()
    first, step = (1, 4) if run.shape is ItemShape.ASSERTIONS else (0, 3)
    relations, lefts, rights = (words[column::step] for column in range(first, step))
    rows = _comparison_rows(relations, lefts, rights, variables, inputs)
    if rows is None:
        return None
    starts = np.arange(len(rows)) if sizes is None else np.cumsum(sizes) - sizes
    return Alternatives(rows, starts)


def _plain(text: str) -> str | None:
    """Without comments, and with each index as `X[0,3]`; None if an index is no index."""
    if "[" not in text:
        return _COMMENT.sub("", text) if ";" in text else text
    if not any(mark in text for mark in (";", " [", "\t[")) and not _ODD_INDEX.search(text):
        return text
    text = _COMMENT_OR_INDEX.sub(_without_comment_or_spaces, text)
    return None if _ODD_INDEX.search(text) else text


def _without_comment_or_spaces(found: re.Match[str]) -> str:
    return "" if found[0][0] == ";" else f"{without_spaces(found[0])} "


def _comparison_rows(
    relations: Sequence[str],
    lefts: Sequence[str],
    rights: Sequence[str],
    variables: Mapping[str, int],
    inputs: int,
) -> Comparisons | None:
    left, right = _numbered(lefts, variables), _numbered(rights, variables)
    both = (left >= 0) & (right >= 0)
    if np.any((left < 0) & (right < 0)) or np.any(both & (left == right)):
        return None
    if np.any(both & ((left < inputs) != (right < inputs))):
        return None
    decimals = [*compress(lefts, left < 0), *compress(rights, right < 0)]
    found = numbers(decimals)
    if found is None:
        return None
    constant = np.zeros(len(left))
    on_the_left = int(np.count_nonzero(left < 0))
    constant[left < 0], constant[right < 0] = found[:on_the_left], found[on_the_left:]
    relation = np.fromiter(map(_RELATIONS.__getitem__, relations), np.int8, len(relations))
    is_greater = (relation & _IS_GREATER) > 0
    low, high = np.where(is_greater, right, left), np.where(is_greater, left, right)
    return Comparisons(low, high, constant, (relation & _IS_STRICT) > 0)


def _numbered(words: Sequence[str], variables: Mapping[str, int]) -> npt.NDArray[np.int64]:
    """The variables' numbers; -1 for what is none."""
    return np.fromiter(map(variables.get, words, repeat(-1)), np.int64, len(words))
