"""What happens in a run, one JSON object a line: for clusters, where nobody sees a bar."""

from __future__ import annotations

import argparse
import datetime
import json
import math
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from radii.errors import ExperimentError, InputError
from radii.terminal import say

if TYPE_CHECKING:
    from radii.execution import Case
    from radii.search import Question
    from radii.verdicts import Result


LOG_FORMATS = ("bar", "json")


class TerminationSignal(KeyboardInterrupt):
    """SIGTERM, as from a cluster whose time is over: ended in order, like Ctrl-C."""


def add_logging_flags(parser: argparse.ArgumentParser) -> None:
    """How a run tells how it goes."""
    group = parser.add_argument_group("what to say")
    group.add_argument(
        "--quiet", action="store_true", help="no bar and no table: only what went wrong, and --json"
    )
    group.add_argument(
        "--log-format",
        metavar="NAME",
        default="bar",
        help="bar (default; on a terminal only), or json: a line an event on standard error",
    )
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
        self._stream = sys.stderr if path is None else self._opened(path)
        self._began = time.monotonic()
        self._reported: set[tuple[str, str]] = set()
        self._asked: set[str] = set()
        self._total = self._finished = self._failures = 0
        self.reason = "done"

    def _opened(self, path: Path) -> IO[str]:
        try:
            return self._files.enter_context(path.open("a", encoding="utf-8", buffering=1))
        except OSError as error:
            raise ExperimentError(
                f"--log-file {path}: cannot be written ({error.strerror})"
            ) from None

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
        from radii.verdicts import Verdict, weigh

        self._asked.add(case.instance.key)
        if result.verdict in (Verdict.ERROR, Verdict.MEMOUT):
            self._failures += 1
            asked = {"kind": question.kind.value, "eps": question.eps}
            said = {"verdict": result.verdict.value, "message": result.message}
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
