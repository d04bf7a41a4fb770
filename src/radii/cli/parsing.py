"""How arguments are read: flags in full, numbers as people write them."""

from __future__ import annotations

import argparse
import re
from contextlib import suppress
from fractions import Fraction
from typing import Any, NoReturn

from radii.errors import DataError, ExperimentError
from radii.terminal import plain

NEGATIVE = re.compile(r"-\.?\d")


class Parser(argparse.ArgumentParser):
    """Parses the command line; those of its commands are of this class, too.

    Flags are never shortened: `--network` must not mean `--networks` where that is the flag. What
    begins as a negative number is a value and no flag, as in `--domain -1:1` or `--mean -0.5,-1`.
    Epilogs are shown as they are written.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        formatter = argparse.RawDescriptionHelpFormatter
        super().__init__(*args, **{"allow_abbrev": False, "formatter_class": formatter, **options})
        self._negative_number_matcher = NEGATIVE

    def error(self, message: str) -> NoReturn:
        """Arguments may be names of files, which a shell put there."""
        super().error(plain(message))


def number(text: str) -> float:
    """For flags such as --eps: a number or a fraction, 0.02 or 8/255. Commands check its size."""
    with suppress(ValueError):
        return float(text)
    with suppress(ValueError, ZeroDivisionError):
        return float(Fraction(text.replace(" ", "")))
    raise argparse.ArgumentTypeError(f"{text.strip()} is not a number, such as 0.02 or 8/255")


def seconds(text: str) -> float:
    """For flags such as --timeout: 90, 90s or 1m30s. Commands check its size."""
    with suppress(ValueError):
        return float(text)
    from radii.experiments import parse_duration

    try:
        return parse_duration(text)
    except ExperimentError:
        raise argparse.ArgumentTypeError(
            f"'{text}' is neither a number of seconds nor a length of time such as 30s, 10m or 2h"
        ) from None


def eps_values(text: str | None) -> tuple[float, ...]:
    """Radii from a flag such as 0.01,0.02 or 8/255."""
    values = []
    for part in (text or "").split(","):
        if not part.strip():
            continue
        try:
            value = number(part)
        except argparse.ArgumentTypeError as error:
            raise DataError(f"--eps {error}") from None
        if not 0 <= value < float("inf"):
            raise DataError(f"--eps {part.strip()} must be a finite number >= 0")
        values.append(value)
    return tuple(values)


def confidence_level(level: float) -> float:
    """A level from a flag, checked."""
    if not 0.5 <= level < 1:
        raise DataError(f"--level {level:g} is a confidence of at least 0.5 and below 1")
    return level
