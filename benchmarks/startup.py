"""What `radii run` costs beside its work: one tiny instance, and two workers instead of one."""

from __future__ import annotations

import statistics
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.records import Options, Record
from benchmarks.sides import Side, sides_of
from benchmarks.tables import show
from benchmarks.watching import Watched, radii

REPEATS = 5
NETWORK, GRID = Path("src/radii/demo/mlp-standard.onnx"), "0.01:0.5:0.01"
MANY_NETWORK, MANY_INPUTS, MANY_SECONDS = Path("src/radii/demo/cnn-adversarial.onnx"), 300, 4.0
"""About a minute of work on one core: long beside the start."""


def main(options: Options) -> None:
    sides = sides_of(options.peers.before)
    tiny: dict[Side, list[Record]] = {side: [] for side in sides}
    for place in range(REPEATS):
        for side, records in tiny.items():
            records.append(_tiny(side, place, options))
    show(
        f"One digit on {NETWORK.name}, the command from its start to its end, {REPEATS} times",
        ("by", "median wall s", "least wall s", "median CPU s"),
        [
            (
                side.name,
                statistics.median(r.seconds for r in records),
                min(r.seconds for r in records),
                statistics.median(r.cpu_seconds for r in records),
            )
            for side, records in tiny.items()
        ],
    )
    rows = []
    for side in sides:
        one, two = (_many(side, jobs, options).seconds for jobs in (1, 2))
        apart = _apart(side, options)
        rows.append((side.name, one, two, one / two, apart, one / apart))
    show(
        f"{MANY_INPUTS} digits on {MANY_NETWORK.name}, {MANY_SECONDS:g} s each at most; beside it "
        "what the machine's two cores give: two commands at once, each half of the digits",
        ("by", "wall s, one worker", "two workers", "ratio", "two commands", "ratio"),
        rows,
    )


def _tiny(side: Side, place: int, options: Options) -> Record:
    return _timed(side, NETWORK, "0:1", 60.0, 1, f"start {place}", options)


def _many(side: Side, jobs: int, options: Options) -> Record:
    case = f"{jobs} workers"
    return _timed(side, MANY_NETWORK, f"0:{MANY_INPUTS}", MANY_SECONDS, jobs, case, options)


def _apart(side: Side, options: Options) -> float:
    """Seconds until the later of two commands ends, neither of which knows of the other."""
    half = MANY_INPUTS // 2

    def one(inputs: str) -> float:
        case = f"one of two commands: {inputs}"
        return _timed(side, MANY_NETWORK, inputs, MANY_SECONDS, 1, case, options).seconds

    with ThreadPoolExecutor(2) as pool:
        return max(pool.map(one, (f"0:{half}", f"{half}:{MANY_INPUTS}")))


def _timed(
    side: Side, network: Path, inputs: str, budget: float, jobs: int, case: str, options: Options
) -> Record:
    known = options.log.find(network.name, case, side.method, budget)
    if known is not None:
        return known
    with tempfile.TemporaryDirectory() as out:
        done: Watched = radii(
            *("run", "--network", side.checkout / network, "--data", f"digits:test[{inputs}]"),
            *("--domain", "0:1", "--grid", GRID, "--budget", f"{budget:g}"),
            *("--jobs", jobs, "--out", out, "--quiet"),
            checkout=side.checkout,
        )
    if done.exit_code != 0:
        raise RuntimeError(f"{side.checkout}: {done.errors.strip()}")
    return options.log.add(
        Record(
            network=network.name,
            case=case,
            method=side.method,
            budget=budget,
            seconds=done.seconds,
            cpu_seconds=done.cpu_seconds,
            peak_bytes=done.peak_bytes,
        )
    )
