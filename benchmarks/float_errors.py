"""Errors of floating point: how much smaller than allowed are those that executions show.

Networks of every kind run on ONNX Runtime in three ways and in five orders of summation, over boxes
of several sizes. What each nonlinear node reads and gives is compared with real arithmetic, entry
by entry (`benchmarks.soundness.observed_errors`): more than is allowed must never be seen. Slack
is what is allowed, divided by what was seen where that is not 0. More networks: `--seed 0:1000`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.records import Options
from benchmarks.soundness.observed_errors import (
    ObservedError,
    ObservedKind,
    ObservedRegion,
    every_execution,
    sampled_box,
    sampled_points,
)
from benchmarks.soundness.operator_models import OPERATOR_MODELS, operator_models
from benchmarks.soundness.rounding_networks import ROUNDING_NETWORKS
from benchmarks.tables import show
from radii.errors import UnsupportedQuery
from radii.networks import Network

Float64 = npt.NDArray[np.float64]

SEEDS = range(16)
BOXES, POINTS = 3, 3
"""Boxes of a network, and inputs of a box."""


@dataclass(slots=True)
class Tally:
    """What was seen of one kind of networks: counts of entries, and slacks of arguments' errors."""

    entries: int = 0
    exceeded: int = 0
    outside: int = 0
    unclaimed: int = 0
    slacks: list[Float64] = field(default_factory=list)

    def add(self, compared: ObservedError) -> None:
        self.entries += compared.seen.size
        self.exceeded += compared.exceeded
        self.outside += compared.outside
        self.unclaimed += int(np.sum(compared.allowed == np.inf))
        if compared.kind is not ObservedKind.RANGE:
            shows = (compared.seen > 0) & (compared.allowed < np.inf)
            self.slacks.append(compared.allowed[shows] / compared.seen[shows])

    def row(self) -> tuple[int | float | None, ...]:
        slacks = np.concatenate([np.empty(0), *self.slacks])
        figures: list[float | None] = [None, None, None]
        if len(slacks):
            figures = [float(np.quantile(slacks, share)) for share in (0.5, 0.05, 0.0)]
        return (self.entries, self.unclaimed, self.exceeded, self.outside, *figures)


def main(options: Options) -> None:
    seeds = options.seeds or SEEDS
    started = time.perf_counter()
    tallies = {name: of_networks(make, seeds) for name, make in ROUNDING_NETWORKS.items()}
    for name in sorted(OPERATOR_MODELS):
        tallies[f"operator {name}"] = of_operator(name, len(seeds))
    total = Tally()
    for name, tally in tallies.items():
        for count in ("entries", "exceeded", "outside", "unclaimed"):
            setattr(total, count, getattr(total, count) + getattr(tally, count))
        total.slacks += tally.slacks
        if tally.exceeded or tally.outside:
            print(f"  EXCEEDED: {name}", file=sys.stderr)
    show(
        f"errors of floating point, seeds {seeds.start} to {seeds.stop - 1}, "
        f"{time.perf_counter() - started:.0f} s",
        (
            "networks",
            "entries",
            "may overflow",
            "exceeded",
            "outside",
            "median slack",
            "5 % slack",
            "least slack",
        ),
        [(name, *tally.row()) for name, tally in (*tallies.items(), ("all", total))],
    )


def of_networks(make: Callable[[int], Network], seeds: Iterable[int]) -> Tally:
    tally = Tally()
    for seed in seeds:
        for compared in comparisons(make(seed), seed):
            tally.add(compared)
    return tally


def of_operator(name: str, count: int) -> Tally:
    """The same for models of one operator; those that are not decided have no errors."""
    tally = Tally()

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(model=operator_models(name), seed=st.integers(0, 1000))
    def examine(model: object, seed: int) -> None:
        content = model.SerializeToString()  # type: ignore[attr-defined]
        network = Network.from_bytes(content, domain=(-2, 2), name=name)
        try:
            for compared in comparisons(network, seed):
                tally.add(compared)
        except UnsupportedQuery:
            return

    examine()
    return tally


def comparisons(network: Network, seed: int) -> Iterator[ObservedError]:
    """Every execution at inputs of some boxes of a network."""
    rng = np.random.default_rng([seed, 5])
    executions = [values for _, values in every_execution(network)]
    for _ in range(BOXES):
        low, high = sampled_box(network, rng)
        region = ObservedRegion(network, low, high)
        for x in sampled_points(low, high, POINTS, rng):
            for values in executions:
                yield from region.compared(values(x))
