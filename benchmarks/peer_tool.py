"""alpha-beta-CROWN on an instance, from a folder outside the project, by its command line.

It is asked at the largest grid value below radii's witness, without its own attack. Times are from
the moment at which it has read its files, in CPU seconds of its one thread. What it leaves open is
asked again one grid value above what radii proved, at what radii proved, and at half of that: so
that it shows who proved more, and not how far it could be tuned.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peer_instances import Peer, Subject
from benchmarks.records import Options, Record
from radii.networks import Network
from radii.problem import Instance, Query
from radii.processes import cpu_seconds
from radii.runs import Experiment, prepare
from radii.vnnlib import query_text

TOOL_NAME = "alpha-beta-CROWN"
DENSE_BATCH, CONVOLUTION_BATCH = 1024, 256
"""Nodes that it bounds together: what did best on one core."""
LOADED, DONE = "Finished vnnlib processing", "Result:"
"""Lines that it prints when its files are read, and at its end."""
SLACK_SECONDS = 300.0
"""After its own limit: for importing, loading, and stopping."""


def asked_tool(
    folder: Path, subject: Subject, ours: Record, budget: float, options: Options
) -> Peer:
    """What the tool makes of an instance whose bracket radii has measured."""
    grid = subject.grid
    below = len(grid) if ours.upper is None else grid.count_below(ours.upper)
    if below == 0:
        return Peer()
    proven = grid.count_below(ours.lower) if ours.lower > 0 else -1
    goal = _asked(folder, subject, grid[below - 1], budget, options)
    if goal.answer == "unsat":
        return Peer(goal.cpu_seconds)
    if proven >= below - 1:
        return Peer()
    for index in sorted({min(proven + 1, below - 2), proven, proven // 2}, reverse=True):
        if index >= 0:
            later = _asked(folder, subject, grid[index], budget, options)
            if later.answer == "unsat":
                return Peer(lower=grid[index])
    return Peer(lower=0.0)


def _asked(folder: Path, subject: Subject, eps: float, budget: float, options: Options) -> Record:
    case = f"{subject.image} at {eps:g}"
    known = options.log.find(subject.network, case, TOOL_NAME, budget)
    if known is not None:
        return known
    network, instance = _loaded(subject)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "network.onnx").write_bytes(network.onnx_bytes)
        (place / "property.vnnlib").write_text(query_text(Query(instance, eps)))
        (place / "config.yaml").write_text(_config(place, subject, budget))
        ended = _run(folder.resolve(), place, budget + SLACK_SECONDS)
    print(
        f"  {subject.network} {case}, {TOOL_NAME}: {ended.answer} in {ended.cpu_seconds:.1f} CPU s",
        file=sys.stderr,
        flush=True,
    )
    return options.log.add(
        Record(
            network=subject.network,
            case=case,
            method=TOOL_NAME,
            budget=budget,
            seconds=ended.seconds,
            cpu_seconds=ended.cpu_seconds,
            answer=ended.answer,
        )
    )


def _loaded(subject: Subject) -> tuple[Network, Instance]:
    source = subject.source
    plan = prepare(
        Experiment.from_options(
            {
                "networks": (str(subject.file),),
                "data": f"{source.data}[{subject.image}:{subject.image + 1}]",
                "domain": "0:1",
                "mean": source.mean or None,
                "std": source.std or None,
            }
        )
    )
    return plan.networks[0], plan.instances[0]


def _config(place: Path, subject: Subject, budget: float) -> str:
    is_dense = subject.network.startswith("mnist")
    return f"""general:
  device: cpu
  results_file: {place / "result.txt"}
model:
  onnx_path: {place / "network.onnx"}
specification:
  vnnlib_path: {place / "property.vnnlib"}
solver:
  batch_size: {DENSE_BATCH if is_dense else CONVOLUTION_BATCH}
attack:
  pgd_order: skip
bab:
  timeout: {budget:g}
"""


@dataclass(frozen=True, slots=True)
class _Ended:
    answer: str
    seconds: float
    cpu_seconds: float


def _run(folder: Path, place: Path, limit: float) -> _Ended:
    """The tool's answer, and what it used between the lines that say when it began and ended."""
    verifier = folder / "complete_verifier"
    process = subprocess.Popen(
        [_python(folder), "abcrown.py", "--config", str(place / "config.yaml")],
        cwd=verifier,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "PYTHONPATH": ""},
    )
    timer = threading.Timer(limit, process.kill)
    timer.start()
    began = ended = (time.monotonic(), 0.0)
    last = ""
    assert process.stdout is not None
    try:
        for line in process.stdout:
            now = (time.monotonic(), cpu_seconds(process.pid) or 0.0)
            if line.startswith(LOADED):
                began = now
            if line.startswith(DONE):
                ended = now
            last = line.strip() or last
    finally:
        timer.cancel()
        process.kill()
        process.wait()
        process.stdout.close()
    result = place / "result.txt"
    answer = result.read_text().split("\n", 1)[0].strip() if result.exists() else ""
    if not answer:
        raise RuntimeError(f"{TOOL_NAME} gave no result: {last}")
    return _Ended(answer, ended[0] - began[0], ended[1] - began[1])


def _python(folder: Path) -> str:
    """An interpreter of its own in or beside the folder, or else this one."""
    own = (place / "venv" / "bin" / "python" for place in (folder, folder.parent))
    return str(next((path for path in own if path.exists()), sys.executable))
