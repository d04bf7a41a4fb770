"""`radii run`: compute a distribution; run again to continue.

Also what `--estimate` prints (how long all would take, and how tight it would be), and the events
of a run, one JSON object per line, for clusters where nobody sees a bar.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from radii import views
from radii.cli._options import (
    OUT,
    add_experiment_flags,
    add_json_flag,
    check_files,
    cluster_from,
    experiment_flags,
    experiment_from,
    one_of,
    spare_workers,
    take_run_budget,
)
from radii.cli._output import print_json, print_parts, writing
from radii.errors import ExperimentError, InputError
from radii.runs import Option, values_of_file
from radii.terminal import note, say

if TYPE_CHECKING:
    from radii.problem import Result
    from radii.runs import Observer, Plan
    from radii.store import Store
    from radii.strategy import Agenda, Case, Question


def print_estimate(plan: Plan, store: Store, *, jobs: int, as_json: bool) -> None:
    """From the instances that are finished, whoever finished them."""
    from radii.strategy import estimate

    names = {network.fingerprint: network.name for network in plan.networks}
    budget = plan.settings.budget
    limit = budget if budget < math.inf else plan.settings.proof_seconds()
    found = estimate(plan.cases(store), names, jobs=jobs, limit=limit, budget=budget)
    if as_json:
        print_json(found)
    else:
        print_parts(views.estimate_parts(found))


LOG_FORMAT = Option(
    name="log_format",
    form=one_of("bar", "json"),
    help="bar (default; on a terminal only), or json: one line per event on standard error",
)
RETRY = Option(
    name="retry",
    form=one_of("timeouts", "memouts", "missing"),
    metavar="WHAT",
    help="ask these again, however much time they had: timeouts, memouts, or missing (every proof "
    "without an answer); without --retry, only what had less time than now",
)
"""The values of `radii.runs.Retry`."""


class TerminationSignal(KeyboardInterrupt):
    """SIGTERM, as from a cluster whose time is over: ended in order, like Ctrl-C."""


def add_logging_flags(parser: argparse.ArgumentParser) -> None:
    """How a run tells how it goes."""
    group = parser.add_argument_group("what to say")
    group.add_argument(
        "--quiet",
        action="store_true",
        help="no progress bar and no table: only what went wrong, and --json",
    )
    LOG_FORMAT.add_to(group, default="bar")
    group.add_argument(
        "--log-file", type=Path, metavar="FILE", help="append events as JSON lines here"
    )


class EventLog:
    """An observer of a run that writes an event as it happens. Use as a context manager.

    `context` goes into the first event; `names` are those of networks by fingerprint.
    """

    def __init__(
        self, path: Path | None, names: Mapping[str, str], context: Mapping[str, Any]
    ) -> None:
        self._names = names
        self._context = context
        self._files = ExitStack()
        self._stream: IO[str] = sys.stderr
        if path is not None:
            with writing(path):
                self._stream = self._files.enter_context(path.open("a", -1, "utf-8"))
        self._began = time.monotonic()
        self._reported: set[tuple[str, str]] = set()
        self._asked: set[str] = set()
        self._total = self._finished = self._failures = 0
        self.reason = "done"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, _: object) -> None:
        reason, code = self.reason, 0
        if kind is not None and issubclass(kind, TerminationSignal):
            reason, code = "terminated", 143
        elif kind is not None and issubclass(kind, KeyboardInterrupt):
            reason, code = "interrupted", 130
        elif kind is not None:
            reason, code = "error", 2 if issubclass(kind, InputError) else 3
        self.write(
            "end",
            reason=reason,
            exit_code=code,
            **({"message": " ".join(str(error).split())} if reason == "error" else {}),
            seconds=round(time.monotonic() - self._began, 3),
            instances=self._total,
            finished=self._finished,
            failures=self._failures,
            disagreements=len(self._reported),
        )
        self._files.close()

    def write(self, event: str, **fields: object) -> None:
        """One line; it is in the file when this returns."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        say(json.dumps({"event": event, "time": now, **fields}), file=self._stream, flush=True)

    def started(self, total: int) -> None:
        self._total = total
        self.write("start", instances=total, **self._context)

    def answered(self, case: Case, question: Question, result: Result, /) -> None:
        from radii.problem import Verdict, weigh

        self._asked.add(case.instance.key)
        if result.verdict is Verdict.ERROR or result.ran_out_of_memory:
            self._failures += 1
            asked = {"kind": question.kind.value, "eps": question.eps}
            said = {"verdict": result.verdict.value, "ending": result.ending.value}
            said["message"] = result.message
            self.write("failure", **self._subject(case), **asked, **said)
        for disagreement in weigh([*case.search.results, result]).disagreements:
            found = (case.instance.key, str(disagreement))
            if found not in self._reported:
                self._reported.add(found)
                self.write("disagreement", **self._subject(case), message=found[1])

    def finished(self, case: Case, /) -> None:
        self._finished += 1
        bracket, (first, last) = case.search.bracket, case.search.open_range()
        self.write(
            "instance",
            **self._subject(case),
            lower=bracket.lower,
            upper=None if math.isinf(bracket.upper) else bracket.upper,
            closed=first >= last,
            seconds=round(case.spent, 6),
            stored=case.instance.key not in self._asked,
        )

    def held(self, is_held: bool, /) -> None:
        self.write("paused" if is_held else "resumed")

    def _subject(self, case: Case) -> dict[str, object]:
        instance = case.instance
        return {
            "network": self._names[instance.network],
            "input": instance.index,
            "label": instance.label,
            "target": instance.property.target,
        }


FIRST = "networks data domain mean std eps grid norm timeout budget jobs out estimate json"

DESCRIPTION = "Find each input's bracket: proven below, witnessed above."

EPILOG = """examples:
  radii run --network net.onnx --data digits:test[0:20] --domain 0:1 --out results
  radii run experiment.toml --out results --jobs 2
  radii run experiment.toml --out results          again: goes on where it stopped
  radii run results                                the same, from the directory
  radii run experiment.toml --out results --estimate    how long would it take?
  radii run experiment.toml --out results --budget 20s  where it narrows most
  radii run experiment.toml --out results --eps 0.05    accuracy at one eps
  radii run results --network c.onnx                    one more network
  radii run results --timeout 300 --retry timeouts      more time for time-outs

experiment.toml:
  networks = ["net.onnx"]
  data = "digits:test[0:20]"
  domain = "0:1"
  grid = "0.01:0.5:0.01"

--shard 3/20 measures a part, --ray auto uses a Ray cluster: docs/cluster.md.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_flags(
        parser, described="an experiment file; or a directory of results, to continue or grow it"
    )
    OUT.add_to(parser)
    RETRY.add_to(parser)
    parser.add_argument(
        "--replace",
        action="store_true",
        help="measure inputs anew whose label or values have changed in the data, and drop what is "
        "stored about them; without --replace such a run is refused",
    )
    parser.add_argument(
        "--estimate",
        action="store_true",
        help="measure a few inputs and say how long all would take",
    )
    add_json_flag(parser)
    add_logging_flags(parser)


def run(args: argparse.Namespace) -> int:
    if args.experiment is not None and not _is_study(args.experiment):
        values_of_file(args.experiment)  # reports a directory or a network in its place
    elif args.experiment is not None:
        if args.out is not None and args.out.resolve() != args.experiment.resolve():
            raise ExperimentError(
                f"{args.experiment} holds results, which grow where they are: leave out --out"
            )
        args.out = args.experiment
    if args.out is None:
        raise ExperimentError("--out is missing: name the directory for the results")
    return execute(args, args.out, is_estimate=args.estimate)


def _is_study(place: Path) -> bool:
    """The directory of a run, which goes on from what it holds."""
    from radii.store import STORE_FILE

    return (place / STORE_FILE).is_file()


def execute(
    args: argparse.Namespace, out: Path | None, *, is_estimate: bool = False, **fixed: Any
) -> int:
    """Run what the arguments describe, then print it; without `out`, nothing is kept."""
    check_files(args)
    with nullcontext() if args.ray is not None else spare_workers(args.jobs):
        return _execute(args, out, is_estimate=is_estimate, **fixed)


def _execute(args: argparse.Namespace, out: Path | None, *, is_estimate: bool, **fixed: Any) -> int:
    budget = take_run_budget(args)
    if is_estimate and budget is not None:
        raise ExperimentError("--estimate measures a few inputs and stops: it takes no --budget")

    from radii.runs import Retry
    from radii.store import Store

    asked = getattr(args, "retry", None)
    cluster, retry = cluster_from(args), None if asked is None else Retry(asked)
    plan = _plan(args, out, **fixed)
    jobs = args.jobs or (0 if cluster else plan.default_jobs())
    for sentence in _warnings(args, plan):
        note(sentence)
    agenda = _agenda(args, plan, budget, is_estimate=is_estimate)
    with Store.in_memory() if out is None else Store.create_or_open(out) as store:
        try:
            with _sigterm_as_interrupt(), _observer(args, plan, jobs, budget) as observer:
                is_asked = _is_given(args, "arithmetic")
                replaces = getattr(args, "replace", False)
                summary = plan.growth(
                    store, retry, asks_arithmetic=is_asked, replace_changed=replaces
                )
                if summary and not args.quiet:
                    note(f"{out} grows: {summary}")
                plan.run(
                    store,
                    jobs=jobs,
                    cluster=cluster,
                    observer=observer,
                    agenda=agenda,
                    grows=True,
                    retry=retry,
                    replace_changed=replaces,
                )
                if isinstance(observer, EventLog) and agenda.is_over(time.monotonic()):
                    observer.reason = "budget"
        except KeyboardInterrupt as stop:
            kept = "" if out is None else f"; what was found is in {out}, run again to continue"
            is_terminated = isinstance(stop, TerminationSignal)
            note(f"{'terminated' if is_terminated else 'interrupted'}{kept}")
            return 143 if is_terminated else 130
        if is_estimate:
            print_estimate(plan, store, jobs=jobs or 1, as_json=args.json)
            return 0
        _print_results(store, args)
        if budget is not None and not args.quiet:
            from radii.strategy import is_closed

            cases = plan.cases(store)
            closed = sum(is_closed(case.search) for case in cases)
            rest = "run again for more" if closed < len(cases) else "nothing is left to do"
            note(f"{closed} of {len(cases)} brackets are closed; {rest}")
    return 0


def _plan(args: argparse.Namespace, out: Path | None, **fixed: Any) -> Plan:
    """What the flags and the file describe, or what a directory holds with the flags' changes."""
    if args.experiment is None or not _is_study(args.experiment):
        experiment = experiment_from(args, **fixed)  # reports what is missing before torch loads
        from radii.runs import prepare

        return prepare(experiment, out)
    from radii.runs import continued

    return continued(args.experiment, {**experiment_flags(args), **fixed})


def _warnings(args: argparse.Namespace, plan: Plan) -> Iterator[str]:
    """What is to know before the work: what cannot be proven, what was done to the data's units,
    and what about them or the flags looks wrong."""
    from radii.runs import unit_warnings

    if (warning := plan.instances[0].property.warning) is not None:
        yield warning
    for network in plan.networks:
        if (opaque := network.graph.opaque) is not None:
            yield f"{network.name}: {opaque.reason}: it is only attacked, nothing can be proven"
    if not args.quiet:
        yield from plan.notes
    for sentence in unit_warnings(plan):
        yield f"warning: {sentence}"
    if args.budget is not None and not args.quiet:
        text = f"{args.budget:g}"
        yield (
            f"--budget {text} without a unit still means {text} s for each input: "
            f"write --budget-per-input {text}, or --budget {text}s for the whole run"
        )


def _agenda(
    args: argparse.Namespace, plan: Plan, budget: float | None, *, is_estimate: bool
) -> Agenda:
    """In which order, and how far."""
    from radii.strategy import Agenda, BudgetAgenda, SamplingAgenda

    if is_estimate:
        return SamplingAgenda(seed=plan.settings.seed)
    if budget is None:
        return Agenda()
    limit = plan.settings.proof_seconds()
    longest = limit if _is_given(args, "timeout") else math.inf
    return BudgetAgenda(budget, timeout=limit, longest=longest)


def _is_given(args: argparse.Namespace, name: str) -> bool:
    """An option was chosen, by its flag or in the file."""
    if getattr(args, name, None) is not None:
        return True
    has_file = args.experiment is not None and not _is_study(args.experiment)
    return has_file and name in values_of_file(args.experiment)


def _observer(
    args: argparse.Namespace, plan: Plan, jobs: int, budget: float | None
) -> AbstractContextManager[Observer | None]:
    """The observer of the run: a bar, a log, or none."""
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
