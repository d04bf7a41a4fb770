"""Class names: which word stands for which output of a network, and labels that are words.

A network's outputs have no names of their own, so that words have to be numbered. Only a list in
the order of the outputs says how: of the words that happen to occur, one may be missing, and all
that follow it would be shifted.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.errors import DataError, did_you_mean

Int64 = npt.NDArray[np.int64]

MAX_LABEL = 1 << 31
"""More outputs than any classifier has; keeps the conversion of floats to integers exact."""

MOST_NAMED = 10
"""Class names in a message."""


@dataclass(frozen=True, slots=True, eq=False)
class NumberedLabels:
    """Labels as numbers, and the names of 0, 1, ...; None where they have none.

    `is_assumed`: the labels are words, and nothing but the alphabet says in which order the classes
    are.
    """

    labels: Int64
    classes: tuple[str, ...] | None = None
    is_assumed: bool = False


def class_names(given: str | Path | Sequence[str]) -> tuple[str, ...]:
    """The names in a file, in a text with commas between them, or in a list; each once."""
    if isinstance(given, Path) or (isinstance(given, str) and _is_file(given)):
        path = Path(given).expanduser()
        try:
            names = parsed_names(path.read_text("utf-8-sig"))
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not a text file"
            raise DataError(f"classes '{path}': cannot be read ({reason})") from None
    else:
        names = parsed_names(given) if isinstance(given, str) else tuple(map(str, given))
    names = tuple(name.strip() for name in names)
    if len(names) < 2:
        raise DataError(f"classes '{given}' are neither a file nor a list of at least two names")
    if not all(names):
        raise DataError(f"classes '{given}': name {names.index('')} is empty")
    if repeated := [name for name in names if names.count(name) > 1]:
        raise DataError(f"classes '{given}': '{repeated[0]}' is named twice")
    return names


def _is_file(text: str) -> bool:
    with suppress(OSError, RuntimeError, ValueError):  # a list may be too long for a name
        return Path(text).expanduser().is_file()
    return False


def parsed_names(text: str) -> tuple[str, ...]:
    """One name a line, names with commas between them, or a list or a mapping from numbers to names
    in JSON or Python; nothing where a mapping leaves out a number."""
    text = text.strip()
    if text[:1] in ("[", "{"):
        for read in (json.loads, ast.literal_eval):
            with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                return _listed_names(read(text))
        return ()
    return tuple(part.strip() for part in (text.splitlines() if "\n" in text else text.split(",")))


def _listed_names(value: Any) -> tuple[str, ...]:
    if isinstance(value, dict):
        named = {int(number): name for number, name in value.items()}
        value = [named[number] for number in range(len(named))] if _is_complete(named) else ()
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


def _is_complete(named: dict[int, Any]) -> bool:
    return named.keys() == set(range(len(named)))


def name_list(names: Sequence[str]) -> str:
    """As messages show them."""
    more = ", ..." if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def displaced(names: Sequence[str], others: Sequence[str]) -> str | None:
    """A name that stands at different places of two lists; None if there is none."""
    places = {name: place for place, name in enumerate(others)}
    return next((n for i, n in enumerate(names) if places.get(n, i) != i), None)


def are_numbers(names: Sequence[str]) -> bool:
    return all(name.isascii() and name.isdigit() for name in names)


def are_words(names: Sequence[str]) -> bool:
    """Not only the numbers that labels are anyway."""
    return any(name != str(number) for number, name in enumerate(names))


def numbered(
    labels: npt.ArrayLike, title: str, classes: Sequence[str] | None = None
) -> NumberedLabels:
    """One number for each label; a DataError if they are neither words nor whole numbers >= 0.

    `classes` are the names of 0, 1, ...: words become their places, and so do numbers where all
    names are numbers. Other numbers stay as they are. Words without a list are numbered in
    alphabetical order.
    """
    array = np.asarray(labels)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        advice = "; give labels.argmax(axis=1)" if _is_one_hot(array) else ""
        raise DataError(
            f"{title}: labels of shape {array.shape} are not one number for each image{advice}"
        )
    words = _words(array)
    names = None if classes is None else tuple(classes)
    if words is not None and not are_numbers(words):
        known = names or tuple(sorted(set(words)))
        return NumberedLabels(_places(words, known, title), known, is_assumed=names is None)
    whole = _whole(array if words is None else np.array(list(map(int, words))), title)
    if names is not None and are_numbers(names):
        values = {int(name): place for place, name in enumerate(names)}
        whole = _places(whole.tolist(), values, title)
    return NumberedLabels(whole, names)


def _words(array: npt.NDArray[Any]) -> list[str] | None:
    """The labels as text, where they are; None for numbers."""
    if array.dtype.kind == "U" or (
        array.dtype.kind == "O" and all(isinstance(label, str) for label in array.tolist())
    ):
        return [label.strip() for label in array.tolist()]
    return None


def _places(labels: Sequence[Any], known: Sequence[str] | dict[int, int], title: str) -> Int64:
    places = known if isinstance(known, dict) else {name: i for i, name in enumerate(known)}
    absent = next((i for i, label in enumerate(labels) if label not in places), None)
    if absent is not None:
        names, label = [str(name) for name in places], str(labels[absent])
        raise DataError(
            f"{title}: label '{label}' of input {absent} is not one of the classes "
            f"{name_list(names)}{did_you_mean(label, names)}"
        )
    return np.array([places[label] for label in labels], np.int64)


def _whole(array: npt.NDArray[Any], title: str) -> Int64:
    if array.dtype.kind not in "biuf":
        raise DataError(f"{title}: labels of type {array.dtype} are not integers")
    if array.dtype.kind == "f":
        whole = (array == np.floor(array)) & (array < MAX_LABEL)
        if not whole.all():
            where = int(np.flatnonzero(~whole)[0])
            raise DataError(
                f"{title}: label {array[where]} of image {where} is not an integer: labels are "
                "numbers of classes or words; networks that predict amounts (regression) are not "
                "supported yet"
            )
    if (array < 0).any():
        where = int(np.flatnonzero(array < 0)[0])
        raise DataError(f"{title}: label {array[where]} of image {where} is negative")
    return array.astype(np.int64)


def _is_one_hot(array: npt.NDArray[Any]) -> bool:
    is_table = array.ndim == 2 and array.dtype.kind in "biuf" and array.shape[1] > 1
    return is_table and bool(((array == 0) | (array == 1)).all() and (array.sum(axis=1) == 1).all())
