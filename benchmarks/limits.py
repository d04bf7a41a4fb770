"""convSmallRELU__Point at a hard eps: peak memory under --memory, and seconds after the limit."""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks import published
from benchmarks.measuring import GRID
from benchmarks.records import Options, Record
from benchmarks.tables import show
from benchmarks.watching import Watched, radii
from radii.attacks import MinimumNorm
from radii.problem import Instance, Query
from radii.processes import parse_size, show_size
from radii.runs import LocalWorkers, Toolbox
from radii.strategy import QuestionKind, Task
from radii.verifiers import BranchAndBound
from radii.vnnlib import query_text

NETWORK, BUDGET, MEMORIES = "convSmallRELU__Point", 30.0, ("700M", "1G", "2G")
IMAGE = 1
"""A bracket that a minute does not close."""
HARD = 0.98
"""Of the distance of the closest witness that is known: too close for a proof in the budget."""


def main(options: Options) -> None:
    if not published.is_here():
        return
    budget = options.budget or BUDGET
    net = published.network(NETWORK)
    instance = published.instances(net, 0, 5)[IMAGE]
    (attacked,) = MinimumNorm().attack(net, [Query(instance, GRID[len(GRID) - 1])])
    if attacked.witness is None:
        print(f"skipped: no witness for image {instance.index} of {NETWORK} is known")
        return
    query = Query(instance, HARD * attacked.witness.distance)
    records = []
    with tempfile.TemporaryDirectory() as name:
        for memory in MEMORIES[: options.images]:
            records.append(verified(query, memory, budget, Path(name), options))
            records.append(measured(instance, memory, budget, Path(name), options))
    records.append(cancelled(query, budget, options))
    show(
        f"{NETWORK}, image {instance.index}, eps {query.eps:.5f}, {budget:g} s",
        ("command", "memory", "peak of a process", "seconds after the limit", "answer"),
        [
            (r.method, r.case, show_size(r.peak_bytes) if r.peak_bytes else "-", r.late, r.answer)
            for r in records
        ],
    )
    print("  seconds of radii verify count from the command's start; those of run are its queries'")


def verified(query: Query, memory: str, budget: float, directory: Path, options: Options) -> Record:
    file = directory / "hard.vnnlib"
    file.write_text(query_text(query))
    network = published.DATA / "networks" / f"{NETWORK}.onnx"
    limits = ("--timeout", budget, "--memory", memory)
    return _watched("radii verify", memory, budget, options, "verify", network, file, *limits)


def measured(
    instance: Instance, memory: str, budget: float, directory: Path, options: Options
) -> Record:
    """One image's whole bracket, of which the attack is a part."""
    network = published.DATA / "networks" / f"{NETWORK}.onnx"
    images = published.DATA / "mnist_train_0_49.npz"
    return _watched(
        *("radii run", memory, budget, options),
        *(
            "run",
            "--network",
            network,
            "--data",
            f"{images}[{instance.index}:{instance.index + 1}]",
        ),
        *("--domain", "0:1", "--search", "native", "--budget", budget, "--memory", memory),
        *("--jobs", 1, "--out", directory / f"run_{memory}", "--grid", str(GRID), "--json"),
    )


def _watched(
    method: str, memory: str, budget: float, options: Options, *arguments: object
) -> Record:
    known = options.log.find(NETWORK, memory, method, budget)
    if known is not None:
        return known
    done = radii(*arguments, "--verifier", "native")
    seconds, answer = _answer(done)
    is_over = done.peak_bytes >= parse_size(memory)
    record = Record(
        network=NETWORK,
        case=memory,
        method=method,
        budget=budget,
        seconds=seconds,
        late=max(0.0, seconds - budget),
        peak_bytes=done.peak_bytes,
        answer=f"TOO MUCH MEMORY: {answer}" if is_over else answer,
    )
    print(f"  {method} --memory {memory}: {record.answer}", file=sys.stderr, flush=True)
    return options.log.add(record)


def _answer(done: Watched) -> tuple[float, str]:
    """The seconds that count and what was said: by `run`, of its only instance."""
    errors = [line for line in done.errors.splitlines() if line.startswith("radii:")]
    if done.exit_code != 0 or not done.output.startswith("{"):
        return done.seconds, " ".join([done.output.split("\n", 1)[0], *errors[-1:]]).strip()
    (shown,) = json.loads(done.output)["networks"][0]["instances"]
    upper = "-" if shown["upper"] is None else f"{shown['upper']:.5f}"
    return shown["seconds"], f"{shown['lower']:g} to {upper}, {shown['missing']} missing"


def cancelled(query: Query, budget: float, options: Options) -> Record:
    """A query that runs in a worker and is cancelled half way."""
    method = "cancelled query"
    known = options.log.find(NETWORK, "-", method, budget)
    if known is not None:
        return known
    net = published.network(NETWORK)
    tools = Toolbox({net.fingerprint: net}, None, BranchAndBound(), grid=GRID)
    task = Task(0, net.fingerprint, QuestionKind.PROVE, (query,), seconds=budget)
    with LocalWorkers(tools, 1) as workers:
        workers.submit(task)
        at = time.monotonic() + budget / 2
        timer = threading.Timer(budget / 2, workers.cancel, [task])
        timer.start()
        _, (result,) = workers.wait()
        late = max(0.0, time.monotonic() - at)
        timer.cancel()
    return options.log.add(
        Record(
            network=NETWORK,
            case="-",
            method=method,
            budget=budget,
            seconds=result.seconds,
            late=late,
            answer=f"{result.verdict} {result.message}".strip(),
        )
    )
