"""What certificates cost: time to keep them, their size, and the time to check them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import torch

from benchmarks import published
from benchmarks.measuring import GRID, mean
from benchmarks.records import Log, Options, Record
from benchmarks.tables import show
from radii import demo
from radii.attacks import MinimumNorm
from radii.datasets import load
from radii.errors import DataError
from radii.networks import Network
from radii.problem import Grid, Instance, Norm, OneToAny, Query
from radii.verifiers import BranchAndBound, Limits
from radii_check import check

BUDGET = 60.0
EXACT_IMAGES = 1
"""Of each network: exact arithmetic takes minutes."""
EXACT_BYTES = 60_000
"""Larger certificates are not checked exactly here."""

METHOD, EXACT = "certificate", "certificate exactly"
MOST_TRIED = 16
"""Images among which those are that a residual network classifies correctly."""


@dataclass(frozen=True, slots=True)
class Part:
    """A network and how many images of it; of a data set by name, or MNIST."""

    network: str
    images: int
    grid: Grid = GRID
    data: str = ""


PARTS = (
    Part("mnist-net_256x2", 50),
    Part("mnist_nn", 20),
    Part("mnist_relu_3_50", 10),
    Part("mnist-net_256x4", 5),
    Part("convSmallRELU__Point", 10),
    Part("resnet_4b_pgd", 2, Grid.parse("0.0005:0.05:0.0005"), "cifar10"),
    *(Part(name, 10, Grid.parse("0.005:0.4:0.005"), "digits") for name in demo.NETWORKS),
)


@dataclass(slots=True)
class Cost:
    """Of one instance: CPU seconds without and with a certificate, to check it, and exactly."""

    plain: float
    kept: float
    size: int = 0
    checked: float = 0.0
    exact: float | None = None
    problem: str = ""
    lower: float = 0.0


def main(options: Options) -> None:
    if not published.is_here():
        return
    torch.set_num_threads(1)
    budget = options.budget or BUDGET
    rows = []
    for part in PARTS:
        is_demo = part.network in demo.NETWORKS
        net = demo.load_network(part.network) if is_demo else published.network(part.network)
        asked = _instances(net, part)[: options.images or part.images]
        costs = []
        for place, instance in enumerate(asked):
            cost = _remembered(part, instance, options.log, budget)
            if cost is None:
                cost = _cost(net, instance, part.grid, budget, place)
                _tell(part, instance, cost, options, budget)
            costs.append(cost)
        rows.append((part.network, *_summary(costs)))
    show(
        f"Certificates, {budget:g} s an instance on one core; CPU seconds",
        (
            *("network", "proofs", "accepted", "s without", "s with", "more"),
            *("median kB", "largest kB", "s to check", "of proving", "s exact (one)"),
        ),
        rows,
    )


def _instances(net: Network, part: Part) -> list[Instance]:
    if not part.data:
        return published.instances(net, 0, part.images)
    try:
        images = load(part.data, "test")
    except DataError as error:
        print(f"  {part.network} is left out: {error}")
        return []
    inputs = images.images[:MOST_TRIED].reshape(-1, *net.input_shape)
    made = [
        Instance(
            *(net.fingerprint, place, inputs[place], int(images.labels[place])),
            *(net.replay(inputs[place : place + 1])[0], OneToAny(), Norm.LINF, net.domain),
        )
        for place in range(MOST_TRIED)
    ]
    return [instance for instance in made if instance.holds][: part.images]


def _cost(net: Network, instance: Instance, grid: Grid, budget: float, place: int) -> Cost:
    (attacked,) = MinimumNorm().attack(net, [Query(instance, grid[len(grid) - 1])])
    upper = float("inf") if attacked.witness is None else attacked.witness.distance
    values = grid.values[: grid.count_below(upper)]
    if not values:
        return Cost(0.0, 0.0)
    seconds = {}
    for certificates in (True, False) if place % 2 else (False, True):
        verifier = BranchAndBound(certificates=certificates)
        started = time.process_time()
        found = verifier.certify(net, instance, values, Limits(seconds=budget))
        seconds[certificates] = time.process_time() - started
        if certificates:
            proof = found.proof
    cost = Cost(seconds[False], seconds[True])
    if proof is None:
        return cost
    cost.lower = proof.eps
    if proof.certificate is None:
        cost.problem = "no certificate"
        return cost
    return _checked(net, proof.certificate, cost, exact=place < EXACT_IMAGES)


def _checked(net: Network, certificate: bytes, cost: Cost, *, exact: bool) -> Cost:
    cost.size = len(certificate)
    started = time.process_time()
    report = check(certificate, net.onnx_bytes)
    cost.checked = time.process_time() - started
    cost.problem = "" if report.accepted else report.reason
    if exact and cost.size <= EXACT_BYTES:
        started = time.process_time()
        report = check(certificate, net.onnx_bytes, exact=True)
        cost.exact = time.process_time() - started
        cost.problem = cost.problem or ("" if report.accepted else f"exactly: {report.reason}")
    return cost


def _remembered(part: Part, instance: Instance, log: Log, budget: float) -> Cost | None:
    """What a run that was cut off has measured already."""
    known = log.find(part.network, instance.index, METHOD, budget)
    if known is None:
        return None
    exact = log.find(part.network, instance.index, EXACT, budget)
    return Cost(
        known.cpu_seconds,
        known.seconds,
        known.peak_bytes,
        known.late,
        None if exact is None else exact.cpu_seconds,
        known.answer,
        known.lower,
    )


def _tell(part: Part, instance: Instance, cost: Cost, options: Options, budget: float) -> None:
    print(
        f"  {part.network} {instance.index}: lower {cost.lower:g}, {cost.plain:.2f} s, with a "
        f"certificate {cost.kept:.2f} s, {cost.size / 1000:.1f} kB, checked in {cost.checked:.2f} "
        f"s{', ' + cost.problem if cost.problem else ''}",
        flush=True,
    )
    name, case = part.network, str(instance.index)
    if cost.exact is not None:
        spent = cost.exact
        exactly = Record(network=name, case=case, method=EXACT, budget=budget, cpu_seconds=spent)
        options.log.add(exactly)
    options.log.add(
        Record(
            network=name,
            case=case,
            method=METHOD,
            budget=budget,
            seconds=cost.kept,
            lower=cost.lower,
            answer=cost.problem,
            peak_bytes=cost.size,
            late=cost.checked,
            cpu_seconds=cost.plain,
        )
    )


def _summary(costs: Sequence[Cost]) -> tuple[object, ...]:
    proven = [cost for cost in costs if cost.lower > 0]
    stated = [cost for cost in proven if cost.size]
    if not stated:
        return (len(proven), 0, *(None,) * 8)
    plain, kept = mean([c.plain for c in proven]), mean([c.kept for c in proven])
    checked = mean([c.checked for c in stated])
    exact = [c.exact for c in stated if c.exact is not None]
    return (
        len(proven),
        sum(not c.problem for c in stated),
        plain,
        kept,
        f"{kept / plain - 1:+.1%}",
        median([c.size / 1000 for c in stated]),
        max(c.size / 1000 for c in stated),
        checked,
        f"{checked / plain:.0%}",
        mean(exact) if exact else None,
    )
