"""Instances on their way to a bracket, and who of them goes first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from radii.queries import Instance
from radii.search import Kind, Search
from radii.verdicts import Result

__all__ = ["Agenda", "Case"]


@dataclass(slots=True, eq=False)
class Case:
    """One instance on its way to a bracket. `spent` counts the wall seconds in which at least one
    of its queries ran, except those that are asked once more because nobody answered.

    Cases of one network with the same `batch` are attacked together.
    """

    instance: Instance
    search: Search
    batch: int
    spent: float = 0.0
    _busy: list[tuple[float, float]] = field(default_factory=list)

    def spend(self, result: Result, now: float, *, is_lost: bool = False) -> Result:
        """Count the time of a result that ends now, once where queries ran side by side.

        What `is_lost` is no part of `spent`: the second try may take as long as the first.
        """
        begin, end, added = now - result.seconds, now, result.seconds
        apart = []
        for start, stop in self._busy:
            if stop < begin or start > end:
                apart.append((start, stop))
            else:
                added -= min(stop, now) - max(start, now - result.seconds)
                begin, end = min(begin, start), max(end, stop)
        self._busy = [*apart, (begin, end)]
        added = max(0.0, added)
        self.spent += 0.0 if is_lost else added
        return replace(result, added_seconds=added)


class Agenda:
    """Which case asks next, what its questions may take, and when it is enough.

    This one is that of a plain run: earlier cases first, each to its end. The driver calls `begin`
    once; `is_over` and `admits` before each question, `rank` when a case may ask again, `seconds`
    when it does, and `renews` when it has no question left.
    """

    def begin(self, cases: Sequence[Case]) -> None:
        """These are all cases, in the order of the selection; they may be changed."""

    def is_over(self) -> bool:
        """Nothing more is asked."""
        return False

    def admits(self, case: Case) -> bool:
        """The case may ask now; if not, it never will."""
        return True

    def rank(self, case: Case) -> float:
        """Smaller ones ask first; of equal ones, the earlier case."""
        return 0.0

    def seconds(self, case: Case, kind: Kind) -> float | None:
        """Wall seconds for a question of this kind in place of the run's own limit; None: that."""
        return None

    def held(self, is_held: bool) -> None:
        """The run is paused, or goes on."""

    def renews(self, case: Case) -> bool:
        """The case got something new to ask; if not, it is finished."""
        return False
