"""Where radii stands beside alpha-beta-CROWN on one core, and beside another checkout of itself.

Each instance is measured by the command `radii run --search native`, in a process of its own, so
that any checkout can be asked in the same way. Seconds are those of the attack and the proofs;
starting and loading are not counted, on neither side. Budgets are wall seconds; times are compared
in CPU seconds, which on an idle core are the same, and on a busy one are not the neighbours' doing.
`--cpu` counts budgets in CPU seconds, too; one process then measures all images of a network.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from benchmarks import published
from benchmarks.cpu_sides import CpuProcesses
from benchmarks.measuring import is_closed, mean, progress
from benchmarks.peer_instances import ALPHA_BETA_CROWN, DEMANDED_SECONDS, SETS, Peer, Subject
from benchmarks.peer_tool import TOOL_NAME, asked_tool
from benchmarks.records import Options, Record
from benchmarks.sides import Side, sides_of
from benchmarks.tables import show
from benchmarks.watching import radii
from radii.problem import Grid

BUDGET = 60.0
SAME = 1e-9
"""Grid values that differ by less are the same one."""
SAME_TIME = 0.1
"""Times that differ by less than this share of the longer one are equal."""
MISCLASSIFIED = "misclassified"
CPU = ", CPU budgets"

Ask = Callable[[Side, Subject, float], Record]
"""The bracket of one instance by one side within a budget."""


def main(options: Options) -> None:
    if not published.is_here():
        return
    sides = sides_of(options.peers.before)
    print_figures = print_set if options.peers.images else print_table
    if not options.peers.cpu:
        print_figures(sides, options, _by_command)
        return
    with CpuProcesses() as processes:
        print_figures(sides, options, lambda *asked: _by_cpu(processes, *asked))


def measured(side: Side, subject: Subject, options: Options, ask: Ask) -> Record:
    """One instance's bracket; what the log holds is not measured again."""
    method = side.method + (CPU if options.peers.cpu else "")
    budget = options.budget or BUDGET
    known = options.log.find(subject.network, subject.image, method, budget)
    if known is not None:
        return known
    record = replace(ask(side, subject, budget), method=method)
    progress(record)
    return options.log.add(record)


def _by_command(side: Side, subject: Subject, budget: float) -> Record:
    with tempfile.TemporaryDirectory() as out:
        done = radii(
            *("run", *subject.flags, "--search", "native", "--verifier", "native"),
            *("--budget", f"{budget:g}", "--jobs", 1, "--out", out, "--json", "--quiet"),
            checkout=side.checkout,
        )
    if done.exit_code != 0:
        raise RuntimeError(f"{subject.name} by {side.checkout}: {done.errors.strip()}")
    (shown,) = json.loads(done.output)["networks"][0]["instances"]
    return _record(subject, budget, {**shown, "peak_bytes": done.peak_bytes})


def _by_cpu(processes: CpuProcesses, side: Side, subject: Subject, budget: float) -> Record:
    return _record(subject, budget, processes.ask(side, subject, budget))


def _record(subject: Subject, budget: float, shown: dict[str, Any]) -> Record:
    return Record(
        network=subject.network,
        case=str(subject.image),
        method="",
        budget=budget,
        seconds=shown["seconds"],
        cpu_seconds=shown.get("cpu_seconds") or 0.0,
        lower=shown["lower"],
        upper=shown["upper"],
        peak_bytes=shown["peak_bytes"],
        answer="" if shown["correct"] else MISCLASSIFIED,
    )


def standing(ours: Record, grid: Grid, peer: Peer | None) -> str:
    """Ahead, equal or behind: closed beats open; of two that closed the faster one, of two that
    did not the larger lower side."""
    if peer is None:
        return "-"
    closes = is_closed(ours, grid)
    if closes != (peer.seconds is not None):
        return "ahead" if closes else "behind"
    if peer.seconds is not None:
        gain = peer.seconds - _time(ours)
        tolerance = SAME_TIME * max(peer.seconds, _time(ours))
    elif peer.lower is not None:
        gain, tolerance = ours.lower - peer.lower, SAME
    else:
        return "both open"
    return "equal" if abs(gain) <= tolerance else "ahead" if gain > 0 else "behind"


def _time(record: Record) -> float:
    """CPU seconds; an older checkout may not tell them."""
    return record.cpu_seconds or record.seconds


def print_table(sides: Sequence[Side], options: Options, ask: Ask) -> None:
    budget = options.budget or BUDGET
    subjects = [s for s in ALPHA_BETA_CROWN if options.peers.instances in s.name]
    heads = ["instance", *(f"{side.name}: bracket, s" for side in sides), "CPU s", "published"]
    tool = options.peers.tool
    heads += [TOOL_NAME] if tool is not None else []
    heads += ["radii is", "demanded"]
    rows, standings = [], []
    for subject in subjects:
        records = [measured(side, subject, options, ask) for side in sides]
        ours, peer = records[-1], ALPHA_BETA_CROWN[subject]
        row: list[object] = [subject.name, *(_shown(r, subject.grid) for r in records)]
        row += [ours.cpu_seconds, "not run" if peer is None else str(peer)]
        if tool is not None:
            try:
                peer = asked_tool(tool, subject, ours, budget, options)
                row.append(str(peer))
            except RuntimeError as error:  # it is then judged by what was published
                row.append(str(error))
        standings.append(standing(ours, subject.grid, peer))
        row += [standings[-1], _demand(subject, ours)]
        rows.append(row)
    unit = "CPU s" if options.peers.cpu else "s"
    show(f"One core, {budget:g} {unit} an instance; beside alpha-beta-CROWN", heads, rows)
    counts = {word: standings.count(word) for word in ("ahead", "equal", "behind", "both open")}
    print(f"  radii is {', '.join(f'{word} on {count}' for word, count in counts.items())}")


def _shown(record: Record, grid: Grid) -> str:
    if record.answer == MISCLASSIFIED:
        return MISCLASSIFIED
    upper = "-" if record.upper is None else f"{record.upper:.5f}"
    word = "closed" if is_closed(record, grid) else "open"
    return f"{record.lower:.4g} to {upper}, {word}, {record.seconds:.2f}"


def _demand(subject: Subject, ours: Record) -> str:
    seconds = DEMANDED_SECONDS.get(subject)
    if seconds is None:
        return ""
    is_met = is_closed(ours, subject.grid) and _time(ours) <= seconds
    return f"closed in {seconds:g} s: {'met' if is_met else 'not met'}"


def print_set(sides: Sequence[Side], options: Options, ask: Ask) -> None:
    """Closed share and mean lower side of each network, over its correctly classified images."""
    rows: list[list[object]] = []
    every: dict[Side, list[tuple[Subject, Record]]] = {side: [] for side in sides}
    for name, subjects in SETS[options.peers.images].items():
        found: dict[Side, list[tuple[Subject, Record]]] = {side: [] for side in sides}
        for subject in subjects[: options.images]:
            for side in sides if options.peers.instances in subject.name else ():
                record = measured(side, subject, options, ask)
                if record.answer != MISCLASSIFIED:
                    found[side].append((subject, record))
        for side, pairs in found.items():
            every[side] += pairs
            rows += [[name, side.name, *_summary(pairs)]] if pairs else []
    rows += [["all", side.name, *_summary(pairs)] for side, pairs in every.items() if pairs]
    show(
        f"Images '{options.peers.images}', {options.budget or BUDGET:g}"
        f"{' CPU' if options.peers.cpu else ''} s an instance on one core",
        (
            *("network", "by", "inputs", "closed", "lower 0", "mean lower", "mean upper"),
            *("mean s", "mean CPU s", "slowest, CPU s"),
        ),
        rows,
    )


def _summary(pairs: Sequence[tuple[Subject, Record]]) -> list[object]:
    records = [record for _, record in pairs]
    return [
        len(records),
        f"{mean([float(is_closed(record, subject.grid)) for subject, record in pairs]):.0%}",
        sum(not r.lower > 0 for r in records),
        mean([r.lower for r in records]),
        mean([r.upper for r in records if r.upper is not None]),
        mean([r.seconds for r in records]),
        mean([r.cpu_seconds for r in records]),
        max(r.cpu_seconds for r in records),
    ]
