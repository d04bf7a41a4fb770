"""What finding brackets cost: queries, time and missing answers, as the paper's tables count them.

The robustness distributions paper compares values of k by the queries, time-outs and seconds an
instance (its Table 1), and by all queries, time-outs, memory-outs and cancelled ones (Table 4).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from radii.problem import Measurement


@dataclass(frozen=True, slots=True)
class Effort:
    """Totals over instances that were searched, and per instance the fewest and most queries.

    `missing` are answers that never came, cancelled queries aside: time-outs, memory-outs, errors
    and unknowns. `cpu_seconds` is None where it was not measured for all.
    """

    instances: int
    queries: int
    fewest: int
    most: int
    cancelled: int
    missing: int
    timeouts: int
    memouts: int
    wall_seconds: float
    cpu_seconds: float | None

    def mean(self, amount: float | None) -> float | None:
        """An amount an instance; None if it is not known or there is no instance."""
        return None if amount is None or not self.instances else amount / self.instances


def effort_of(measurements: Iterable[Measurement]) -> Effort:
    """The effort for all instances that were searched: misclassified inputs need no query."""
    searched = [m for m in measurements if m.queries]
    cpu = [m.cpu_seconds for m in searched]
    return Effort(
        instances=len(searched),
        queries=sum(m.queries for m in searched),
        fewest=min((m.queries for m in searched), default=0),
        most=max((m.queries for m in searched), default=0),
        cancelled=sum(m.cancelled for m in searched),
        missing=sum(m.missing for m in searched),
        timeouts=sum(m.timeouts for m in searched),
        memouts=sum(m.memouts for m in searched),
        wall_seconds=sum(m.seconds for m in searched),
        cpu_seconds=None if None in cpu else sum(seconds or 0.0 for seconds in cpu),
    )


def theoretical_maximum(values: int, k: int) -> int | None:
    """The most queries that a best choice of k at once needs, answered in any order.

    With t queries as many values can be told apart as with t - k/2 and t - k/2 - 1 together, for
    even k, or twice as many as with t - (k + 1)/2, for odd k; with t <= k it is t + 1 of them. This
    gives the 8, 11 and 17 of the paper for 200 values and k = 1, 2, 4 (after Cicalese et al. 2004).
    None for the even k above 4, for which no theory is known.
    """
    if k % 2 == 0 and k > 4:
        return None
    counts, half = list(range(1, k + 2)), k // 2
    while counts[-1] < values:
        more = len(counts)
        counts.append(
            2 * counts[more - half - 1] if k % 2 else counts[more - half] + counts[more - half - 1]
        )
    return next(queries for queries, count in enumerate(counts) if count >= values)
