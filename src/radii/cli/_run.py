"""`radii run`: compute a distribution; run again to continue."""

from __future__ import annotations

import argparse
import math
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.cli._events import LOG_FORMATS, EventLog, TerminationSignal, add_logging_flags
from radii.cli._options import (
    OUT,
    add_experiment_flags,
    add_json_flag,
    cluster_from,
    experiment_from,
    take_run_budget,
)
from radii.errors import ExperimentError
from radii.experiments import values_of_file
from radii.terminal import say

if TYPE_CHECKING:
    from radii.execution import Agenda
    from radii.experiments import Observer, Plan
    from radii.store import Store


DESCRIPTION = "Find each input's bracket: proven below, witnessed above."

EPILOG = """examples:
  radii run --network net.onnx --data digits:test[0:20] --domain 0:1 --out results
  radii run experiment.toml --out results --jobs 2
  radii run experiment.toml --out results          run again: continues where it stopped
  radii run experiment.toml --out results --estimate        a few inputs: how long would all take?
  radii run experiment.toml --out results --budget 20s      spent where it narrows most; again: more
  radii run experiment.toml --out ideal --arithmetic real   of the network without its rounding

experiment.toml:
  networks = ["net.onnx"]
  data = "digits:test[0:20]"
  domain = "0:1"
  grid = "0.01:0.5:0.01"

--ray auto computes on the Ray cluster of this machine; see docs/cluster.md.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_flags(parser)
    OUT.add_to(parser)
    parser.add_argument(
        "--estimate",
        action="store_true",
        help="measure a few inputs, say how long all would take and how tight, and stop",
    )
    add_json_flag(parser)
    add_logging_flags(parser)


def run(args: argparse.Namespace) -> int:
    if args.experiment is not None:  # a directory or a network in its place is told first
        values_of_file(args.experiment)
    if args.out is None:
        raise ExperimentError("--out is missing: name the directory for the results")
    return execute(args, args.out, is_estimate=args.estimate)


def execute(
    args: argparse.Namespace, out: Path | None, *, is_estimate: bool = False, **fixed: Any
) -> int:
    """Run what the arguments describe, then print it; without `out`, nothing is kept."""
    began = time.monotonic()
    if args.log_format not in LOG_FORMATS:
        raise ExperimentError(
            f"--log-format '{args.log_format}' is not one of {', '.join(LOG_FORMATS)}"
        )
    budget = take_run_budget(args)
    if is_estimate and budget is not None:
        raise ExperimentError("--estimate measures a few inputs and stops: it takes no --budget")

    from radii.experiments import prepare
    from radii.store import Store

    cluster = cluster_from(args)
    plan = prepare(experiment_from(args, **fixed))
    jobs = args.jobs or (0 if cluster else plan.default_jobs())
    if (warning := plan.instances[0].property.warning) is not None:
        say(f"radii: {warning}", file=sys.stderr)
    if args.budget is not None and not args.quiet:
        text = f"{args.budget:g}"
        say(
            f"radii: --budget {text} is of each input; {text}s would be of the whole run",
            file=sys.stderr,
        )
    agenda = _agenda(args, plan, budget, began, is_estimate=is_estimate)
    with Store.in_memory() if out is None else Store.create_or_open(out) as store:
        try:
            with _sigterm_as_interrupt(), _observer(args, plan, jobs, budget) as observer:
                plan.run(store, jobs=jobs, cluster=cluster, observer=observer, agenda=agenda)
                if budget is not None and isinstance(observer, EventLog) and agenda.is_over():
                    observer.reason = "budget"
        except KeyboardInterrupt as stop:
            kept = "" if out is None else f"; what was found is in {out}, run again to continue"
            is_terminated = isinstance(stop, TerminationSignal)
            say(f"radii: {'terminated' if is_terminated else 'interrupted'}{kept}", file=sys.stderr)
            return 143 if is_terminated else 130
        if is_estimate:
            from radii.cli._estimating import print_estimate

            print_estimate(plan, store, jobs=jobs or 1, as_json=args.json)
            return 0
        _print_results(store, args)
        if budget is not None and not args.quiet:
            _note_progress(plan, store)
    return 0


def _agenda(
    args: argparse.Namespace, plan: Plan, budget: float | None, began: float, *, is_estimate: bool
) -> Agenda:
    """In which order, and how far. A budget counts from when the command began."""
    from radii.execution import Agenda
    from radii.experiments import BudgetAgenda, SamplingAgenda

    if is_estimate:
        return SamplingAgenda(seed=plan.settings.seed)
    if budget is None:
        return Agenda()
    limit = plan.settings.proof_seconds()
    is_given = getattr(args, "timeout", None) is not None or (
        args.experiment is not None and "timeout" in values_of_file(args.experiment)
    )
    left = budget - (time.monotonic() - began)
    return BudgetAgenda(left, timeout=limit, longest=limit if is_given else math.inf)


def _observer(
    args: argparse.Namespace, plan: Plan, jobs: int, budget: float | None
) -> AbstractContextManager[Observer | None]:
    """Who is told how it goes."""
    from radii.cli._progress import ProgressBar

    if args.log_file is None and args.log_format != "json":
        return nullcontext(None) if args.quiet else ProgressBar()
    names = {network.fingerprint: network.name for network in plan.networks}
    context = {
        "networks": list(names.values()),
        "jobs": jobs or None,
        "budget": budget,
        "settings": plan.settings.to_json(),
    }
    return EventLog(args.log_file, names, context)


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """SIGTERM ends a run as Ctrl-C does, where this is the main thread and nobody else cares."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise TerminationSignal

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _print_results(store: Store, args: argparse.Namespace) -> None:
    """The table or JSON. Who reads only standard error should see disagreements too."""
    from radii.cli._show import print_store

    if args.json or not args.quiet:
        print_store(store, as_json=args.json)
    if args.json or args.quiet:
        for network, index, disagreement in store.disagreements():
            say(f"DISAGREEMENT {network} input {index}: {disagreement}", file=sys.stderr)


def _note_progress(plan: Plan, store: Store) -> None:
    """What is left when a budget is over, and that the same command goes on."""
    from radii.experiments import is_closed

    cases = plan.cases(store)
    closed = sum(is_closed(case.search) for case in cases)
    rest = "run again for more" if closed < len(cases) else "nothing is left to do"
    say(f"radii: {closed} of {len(cases)} brackets are closed; {rest}", file=sys.stderr)
