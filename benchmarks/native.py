"""mnist-net_256x2: the native radius search against binary search and the published brackets."""

from __future__ import annotations

from benchmarks import published
from benchmarks.measuring import BINARY, GRID, NATIVE, is_closed, mean, measured
from benchmarks.records import Options, Record
from benchmarks.tables import show

NETWORK, IMAGES, BUDGET = "mnist-net_256x2", 50, 60.0
SAME = 1e-9
"""Grid values that differ by less are the same one."""


def main(options: Options) -> None:
    if not published.is_here():
        return
    images, budget = options.images or IMAGES, options.budget or BUDGET
    native = measured(NATIVE, NETWORK, images, budget, options)
    binary = measured(BINARY, NETWORK, images, budget, options)
    show(
        f"{NETWORK}, images 0-{images - 1}, {budget:g} s an instance on one core",
        ("search", "instances", "closed", "mean lower", "mean seconds", "slowest"),
        [
            (
                name,
                len(records),
                sum(map(is_closed, records)),
                mean([r.lower for r in records]),
                mean([r.seconds for r in records]),
                max((r.seconds for r in records), default=None),
            )
            for name, records in (("native", native), ("binary", binary))
        ],
    )
    one_step, equal = compared(native)
    fast, slow = (mean([r.seconds for r in records]) for records in (native, binary))
    print(f"  {equal} of the {one_step} published brackets that are one step wide are the same")
    print(f"  binary search with the same verifier takes {slow / fast:.1f} times as long")


def compared(records: list[Record]) -> tuple[int, int]:
    """Published brackets one grid step wide, and how many of them were found exactly."""
    claimed = published.brackets(NETWORK)
    one_step = equal = 0
    for record in records:
        lower, upper = claimed.get(int(record.case), (0.0, float("inf")))
        if GRID.count_below(upper - SAME) - GRID.count_below(lower - SAME) != 1:
            continue
        one_step += 1
        is_below = record.upper is not None and record.upper <= upper + SAME
        equal += abs(record.lower - lower) < SAME and is_below
    return one_step, equal
