"""What a search cost, counted as the paper counts it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from radii.problem import Bracket, Measurement
from radii.statistics import effort_of, theoretical_maximum

SEARCHED = Measurement(
    network="net",
    fingerprint="f",
    input=0,
    label=1,
    predicted=1,
    correct=True,
    property="one-to-any",
    target=None,
    bracket=Bracket(0.1, 0.2),
    witness_class=2,
    seconds=4.0,
    queries=8,
    missing=3,
    cancelled=2,
    timeouts=1,
    memouts=1,
    cpu_seconds=6.0,
)
OTHER = replace(SEARCHED, input=1, queries=4, cancelled=0, seconds=2.0, cpu_seconds=2.0)
MISCLASSIFIED = replace(
    SEARCHED,
    input=2,
    queries=0,
    missing=0,
    cancelled=0,
    timeouts=0,
    memouts=0,
    seconds=0.0,
    cpu_seconds=0.0,
)


def test_totals_and_means_are_of_the_instances_that_were_searched() -> None:
    effort = effort_of([SEARCHED, OTHER, MISCLASSIFIED])
    assert (effort.instances, effort.queries, effort.fewest, effort.most) == (2, 12, 4, 8)
    assert (effort.cancelled, effort.missing, effort.timeouts, effort.memouts) == (2, 6, 2, 2)
    assert (effort.wall_seconds, effort.cpu_seconds) == (6.0, 8.0)
    assert effort.mean(effort.queries) == 6.0


def test_cpu_time_that_was_not_measured_is_not_known() -> None:
    effort = effort_of([SEARCHED, replace(OTHER, cpu_seconds=None)])
    assert effort.cpu_seconds is None
    assert effort.mean(effort.cpu_seconds) is None


def test_nothing_searched() -> None:
    effort = effort_of([MISCLASSIFIED])
    assert (effort.instances, effort.queries, effort.mean(effort.queries)) == (0, 0, None)


@pytest.mark.parametrize(("k", "queries"), [(1, 8), (2, 11), (3, 15), (4, 17), (8, None)])
def test_the_theory(k: int, queries: int | None) -> None:
    """k = 1, 2, 4 and 8 are in the paper's Table 1."""
    assert theoretical_maximum(200, k) == queries
    assert theoretical_maximum(1, k) in (0, None)
