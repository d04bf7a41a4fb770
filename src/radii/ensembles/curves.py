"""Brackets of the value over increasing eps: in which order to measure, and what neighbours say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from radii.ensembles.measuring import Measurement

__all__ = ["coarse_to_fine", "last_that_holds", "monotone"]


def coarse_to_fine(count: int) -> Iterator[int]:
    """Both ends, then the middle of every gap: so that facts reach far."""
    waiting = [(0, count - 1)]
    yield from dict.fromkeys((count - 1, 0))
    while waiting:
        first, last = waiting.pop(0)
        if last - first > 1:
            middle = (first + last) // 2
            yield middle
            waiting += [(first, middle), (middle, last)]


def monotone(found: Sequence[Measurement]) -> list[Measurement]:
    """Brackets that also use their neighbours': what is attained at an eps is attained beyond."""
    result = list(found)
    for index in range(1, len(result)):
        if result[index].lower < result[index - 1].lower:
            result[index] = replace(result[index], attained=result[index - 1].attained)
    for index in range(len(result) - 2, -1, -1):
        if result[index].upper > result[index + 1].upper:
            result[index] = replace(result[index], limit=result[index + 1].limit)
    return result


def last_that_holds(count: int, holds: Callable[[int], bool]) -> int:
    """The last index at which a condition holds that, once false, stays false; -1 if nowhere."""
    low, high = -1, count
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low
