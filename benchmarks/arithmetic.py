"""What it costs that proofs hold for floating point, beside proofs in real arithmetic."""

from __future__ import annotations

from benchmarks import published
from benchmarks.measuring import Method, is_closed, mean, measured
from benchmarks.records import Options, Record
from benchmarks.tables import show
from radii.attacks import MinimumNorm
from radii.problem import FLOAT, REAL
from radii.strategy import Native
from radii.verifiers import BranchAndBound

NETWORKS = ("mnist-net_256x2", "mnist_nn", "mnist_relu_3_50", "convSmallRELU__Point")
IMAGES, BUDGET = 20, 60.0
METHODS = [
    Method(str(arithmetic), Native, BranchAndBound(arithmetic=arithmetic), MinimumNorm())
    for arithmetic in (FLOAT, REAL)
]
SAME = 1e-9
"""Grid values that differ by less are the same one."""


def main(options: Options) -> None:
    if not published.is_here():
        return
    images, budget = options.images or IMAGES, options.budget or BUDGET
    rows: list[tuple[object, ...]] = []
    every: tuple[list[Record], list[Record]] = ([], [])
    for network in NETWORKS:
        both = [measured(method, network, images, budget, options) for method in METHODS]
        rows.append((network, *_compared(*both)))
        for kept, found in zip(every, both, strict=True):
            kept.extend(found)
    show(
        f"Proofs for floats and in real arithmetic, images 0-{images - 1}, {budget:g} s each",
        (
            *("network", "instances", "closed (real)", "of these equal", "loss of lower"),
            *("seconds (float)", "seconds (real)", "more time"),
        ),
        [*rows, ("all", *_compared(*every))],
    )


def _compared(floats: list[Record], reals: list[Record]) -> tuple[object, ...]:
    pairs = list(zip(floats, reals, strict=True))
    closed = [(one, other) for one, other in pairs if is_closed(other)]
    equal = sum(abs(one.lower - other.lower) < SAME for one, other in closed)
    lower = [mean([record.lower for record in records]) for records in (floats, reals)]
    seconds = [mean([record.seconds for record in records]) for records in (floats, reals)]
    return (
        len(pairs),
        len(closed),
        f"{equal / len(closed):.1%}" if closed else "-",
        f"{1 - lower[0] / lower[1]:.2%}",
        *seconds,
        f"{seconds[0] / seconds[1] - 1:+.1%}",
    )
