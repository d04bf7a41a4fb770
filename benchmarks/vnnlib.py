"""`radii verify` on VNN-LIB files of image and control networks with known answers."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks import published
from benchmarks.problems import Problem, control_problems, image_problems
from benchmarks.records import Options, Record
from benchmarks.tables import show
from benchmarks.watching import radii

IMAGES, BUDGET = 3, 300.0
METHOD = "radii verify"


def main(options: Options) -> None:
    if not published.is_here():
        return
    images, budget = options.images or IMAGES, options.budget or BUDGET
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        problems = [*image_problems(directory, images), *control_problems(directory, images)]
        records = [decided(problem, budget, options) for problem in problems]
    show(
        f"radii verify, {budget:g} s a file on one core",
        ("file", "expected", "answer", "seconds", ""),
        [(r.case, r.expected, r.answer, r.seconds, _remark(r)) for r in records],
    )
    right = sum(r.answer == r.expected for r in records)
    wrong = sum(_remark(r) == "WRONG" for r in records)
    print(f"  {right} of {len(records)} decided rightly, {wrong} wrongly")


def decided(problem: Problem, budget: float, options: Options) -> Record:
    known = options.log.find(problem.network.stem, problem.name, METHOD, budget)
    if known is not None:
        return known
    done = radii(
        *("verify", problem.network, problem.file),
        *("--verifier", "native", "--timeout", budget),
    )
    answer = done.output.split("\n", 1)[0] or f"exit code {done.exit_code}: {done.errors.strip()}"
    record = Record(
        network=problem.network.stem,
        case=problem.name,
        method=METHOD,
        budget=budget,
        seconds=done.seconds,
        answer=answer,
        expected=problem.expected,
        peak_bytes=done.peak_bytes,
    )
    print(f"  {record.case}: {answer} in {record.seconds:.1f} s", file=sys.stderr, flush=True)
    return options.log.add(record)


def _remark(record: Record) -> str:
    if record.answer == record.expected:
        return ""
    return "WRONG" if record.answer in ("sat", "unsat") else "open"
