"""Brackets with budgets in CPU seconds: on a busy machine the neighbours do not shorten them.

A program, run by the code of any checkout: it reads instances as JSON lines and answers each with
one. Its process asks the clock of its own CPU time for every limit, so it measures in this process,
without workers; what another process had cut off a worker would not be here.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

WALL_CLOCK = time.perf_counter
CLOCKS = ("monotonic", "perf_counter")
"""Of limits, and of what is told of the time that was spent."""


def measured(asked: dict[str, Any]) -> dict[str, Any]:
    """The bracket of the one instance that is asked for; imports come after the clock is set."""
    from radii.problem import Domain, Grid
    from radii.runs import Experiment, prepare
    from radii.store import Store

    experiment = Experiment(
        networks=(asked["network"],),
        data=asked["data"],
        domain=Domain.parse("0:1"),
        grid=Grid.parse(asked["grid"]),
        mean=_numbers(asked["mean"]),
        std=_numbers(asked["std"]),
        search="native",
        verifier="native",
        budget=asked["budget"],
    )
    plan = prepare(experiment)
    started, began = time.process_time(), WALL_CLOCK()
    with Store.in_memory() as store:
        plan.run(store, jobs=0)
        (found,) = store.measurements()
    return {
        "lower": found.bracket.lower,
        "upper": found.bracket.upper if found.bracket.upper < float("inf") else None,
        "correct": found.correct,
        "cpu_seconds": time.process_time() - started,
        "seconds": WALL_CLOCK() - began,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
    }


def _numbers(text: str) -> tuple[float, ...] | None:
    return tuple(map(float, text.split(","))) if text else None


def main() -> None:
    for clock in CLOCKS:
        setattr(time, clock, time.process_time)
    import torch

    torch.set_num_threads(1)
    for line in sys.stdin:
        try:
            answer = measured(json.loads(line))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
