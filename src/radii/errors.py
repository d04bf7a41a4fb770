"""Every exception radii raises on purpose.

    RadiiError
    ├── InputError              the user can fix it; the command line prints it and exits with 2
    │   ├── NetworkError        a file that is not a usable network
    │   │   └── UnsupportedOperator
    │   ├── DataError           a data set, selection or array that cannot be used
    │   ├── SpecificationError  a grid, norm, property, VNN-LIB file or domain that makes no sense
    │   ├── ExperimentError     an experiment that contradicts itself or its directory
    │   ├── TrainingError       a training that diverges, or contradicts its directory
    │   ├── StoreError          a store that cannot be read, written or understood
    │   ├── UnsupportedQuery    a verifier or attack that cannot decide what it is asked
    │   ├── BrokenTool          a verifier or attack that fails whatever it is asked
    │   └── MissingExtra        an optional package is needed; names the extra that installs it
    └── SoundnessError          two proven facts contradict each other: a bug, never ignored

A message names the thing, the value and what to do, in one sentence.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class RadiiError(Exception):
    """Base of all exceptions raised on purpose."""


class InputError(RadiiError):
    """Something the user gave cannot be used."""


class NetworkError(InputError):
    """A file or module that is not a usable network."""


class UnsupportedOperator(NetworkError):
    """The network uses an operator that radii does not know."""

    def __init__(self, operator: str, node: str, network: str) -> None:
        super().__init__(
            f"{network}: operator '{operator}' (node '{node}') is not supported; "
            "docs/networks.md lists the supported ones, and radii attack takes any"
        )
        self.operator = operator
        self.node = node


class DataError(InputError):
    """A data set, selection or array that cannot be used."""


class SpecificationError(InputError):
    """A grid, norm, property, VNN-LIB file or domain that makes no sense."""


class ExperimentError(InputError):
    """An experiment that contradicts itself or the directory it runs in."""


class TrainingError(InputError):
    """A training that cannot go on, or contradicts the directory it runs in."""


class StoreError(InputError):
    """A store that cannot be read, written or understood."""


class UnsupportedQuery(InputError):
    """A verifier or attack was asked something it cannot decide."""


class BrokenTool(InputError):
    """A verifier or an attack that failed on all that a run asked it first."""


class MissingExtra(InputError):
    """An optional package is needed."""

    def __init__(self, package: str, extra: str, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs the package '{package}': pip install 'radii[{extra}]'"
        )


class SoundnessError(RadiiError):
    """Two facts that radii itself calls proven contradict each other."""


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """The end of a sentence about a name that is none: the known one that is nearest, if any is."""
    near = difflib.get_close_matches(given, list(known), n=1)
    return f"; did you mean '{near[0]}'?" if near else ""


def with_suggestion(sentence: str) -> str:
    """A sentence such as `search 'binry' is not one of binary, linear` with what was meant."""
    match = re.search(r"'([^']+)' is not one of ([^;]+)$", sentence)
    return sentence if match is None else sentence + did_you_mean(match[1], match[2].split(", "))


def first_line(error: BaseException) -> str:
    """What another library says, without what it adds in further lines."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


@contextmanager
def writing(place: object, kind: type[InputError] = StoreError) -> Iterator[None]:
    """Around what writes files: a full or read-only disk becomes a sentence about the place."""
    try:
        yield
    except OSError as error:
        raise kind(f"{place}: cannot be written ({error.strerror or error})") from None
