"""What the page is told about every experiment, read anew when it asks: nothing runs by itself."""

from __future__ import annotations

import math
import threading
import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from radii.brackets import Measurement
from radii.errors import InputError, StoreError
from radii.pausing import PauseFlag
from radii.report import Followed, Source
from radii.store import FILE_NAME, Answer, written_since
from radii.web.finding import Found, find_experiments
from radii.web.progress import Progress

__all__ = ["Seen", "Watch"]

Seen = Mapping[str, tuple[str, int]]
"""By experiment, the generation and the number of the last answer that a page has."""

READ_AGAIN = 0.5
"""Seconds within which several pages that ask are told the same."""

LOOK_AGAIN = 3.0
"""Seconds between two walks through the directories; slow ones are walked less often."""

ASIDE = 0.3
"""Seconds a request may spend on experiments that nobody looks at."""

TOLD = 12
"""How many of the latest answers are told."""

ADVICE = {
    "paused": "Nothing is asked until it is resumed.",
    "stopped": "Nothing runs here now. What was found is kept: run it again to continue.",
    "empty": "No experiment has begun here.",
}


class Watched:
    """One experiment. What nobody looks at is read once, and then only its sums are kept."""

    def __init__(self, found: Found) -> None:
        self.found = found
        self.problem = ""
        self._log: list[tuple[int, int]] = []  # number of each answer, and its row
        self._followed: Followed | None = None
        self._progress: Progress | None = None
        self._sums: dict[str, Any] = {"total": 0, "done": 0, "queries": 0, "failure_count": 0}
        self._read_at = -math.inf
        self._read_state: object = None

    # --- reading

    def refresh(self) -> None:
        """Read what is new, unless that was done just now."""
        if time.monotonic() - self._read_at < READ_AGAIN:
            return
        self._read_state = self._file_state()
        try:
            self._follow(self._followed or Followed(self.found.place))
            self.problem = ""
        except InputError as error:
            self.problem = str(error)
        self._read_at = time.monotonic()

    def _follow(self, followed: Followed) -> None:
        before = (followed.generation, len(followed.subjects))
        new = followed.refresh()
        if self._progress is None or before != (followed.generation, len(followed.subjects)):
            self._progress = Progress(followed)
            self._log = []
        self._followed = followed
        self._progress.take_in(new)
        self._log += [(answer.number, followed.row_of(answer)) for answer in new]
        self._sums = {
            "total": len(followed.subjects),
            "done": self._progress.done,
            "queries": self._progress.queries,
            "failure_count": self._progress.failure_count,
        }

    def glance(self) -> None:
        """Know the sums; once a run writes no more, nothing else is kept."""
        if self._read_state != self._file_state():
            self.refresh()
        else:
            self._followed = self._progress = None
            self._log = []

    def _file_state(self) -> object:
        """Changes whenever a run writes."""
        return tuple(_size_and_time(self.found.place / f"{FILE_NAME}{end}") for end in ("", "-wal"))

    @property
    def changed_at(self) -> float:
        """When its run wrote last, in seconds since 1970."""
        ends = (_size_and_time(self.found.place / f"{FILE_NAME}{end}") for end in ("", "-wal"))
        return max(moment for _, moment in ends)

    # --- telling

    @property
    def revision(self) -> str:
        """Changes with every answer; empty while there is nothing to show."""
        followed = self._followed
        if followed is None or not followed.subjects:
            return ""
        return f"{self.found.id}:{followed.generation}:{followed.last_number}"

    def source(self) -> Source:
        """What a report needs; only of an experiment with a revision."""
        if self._followed is None:
            raise StoreError(f"{self.found.name}: is not read")
        return self._followed.source()

    def told(self, *, is_shown: bool) -> dict[str, Any]:
        """What the list says of every experiment."""
        since = written_since(self.found.place)
        state = self._state(is_running=since is not None)
        progress = self._progress
        left = None
        if progress is not None and since is not None and state == "running":
            left = progress.seconds_left(since=since, now=time.time())
        return {
            "id": self.found.id,
            "name": self.found.name,
            "state": state,
            "advice": self.problem or ADVICE.get(state, ""),
            "is_shown": is_shown,
            "seconds_left": left,
            **self._sums,
        }

    def details(self, generation: str, number: int) -> dict[str, Any]:
        """What is told only of experiments that are shown, after the answer of that number."""
        followed, progress = self._followed, self._progress
        if followed is None or progress is None:
            return {"answers": [], "failures": [], "disagreements": []}
        return {
            "answers": [self._answer(followed, a) for a in list(progress.latest)[-TOLD:]][::-1],
            "failures": [self._answer(followed, answer) for answer in progress.failures][::-1],
            "disagreements": [
                {**_subject(followed.measurements[row]), "number": f"{row}-{place}", "text": str(d)}
                for row, told in enumerate(followed.disagreements)
                for place, d in enumerate(told)
            ][:TOLD],
            "brackets": self._brackets(followed, generation, number),
        }

    def _state(self, *, is_running: bool) -> str:
        flag = PauseFlag(self.found.place)
        total, done = self._sums["total"], self._sums["done"]
        if self.problem:
            return "unreadable"
        if self._read_at == -math.inf:
            return "reading"
        if not total:
            return "starting" if is_running else "empty"
        if is_running and flag.is_raised:
            return "paused" if flag.is_held else "pausing"
        if is_running:
            return "running"
        return "finished" if done == total else "stopped"

    def _brackets(self, followed: Followed, generation: str, number: int) -> dict[str, Any]:
        """All of them, or those that changed after what the page has."""
        now = {"generation": followed.generation, "number": followed.last_number}
        if generation != followed.generation or number > followed.last_number:
            ends = [m.bracket for m in followed.measurements]
            lower, upper = [b.lower for b in ends], [_finite(b.upper) for b in ends]
            return {**now, "lower": lower, "upper": upper}
        after = bisect_right(self._log, (number, math.inf))
        changed = sorted({row for _, row in self._log[after:]})
        brackets = [(row, followed.measurements[row].bracket) for row in changed]
        return {**now, "rows": [[row, b.lower, _finite(b.upper)] for row, b in brackets]}

    def _answer(self, followed: Followed, answer: Answer) -> dict[str, Any]:
        subject = _subject(followed.measurements[followed.row_of(answer)])
        result, question = answer.result, answer.question
        parts = [result.verdict.value.lower().replace("_", " ")]
        if result.proof is not None:
            parts = [f"proven up to {result.proof.eps:.4g}"]
        if result.witness is not None:
            parts.append(f"counterexample at {result.witness.distance:.4g}")
        if result.verdict.is_missing:
            parts.append(f"{question.kind.value} at {question.eps:.4g}")
        if result.message:
            parts.append(result.message)
        by = f"{result.verifier}, {result.seconds:.3g} s"
        text = f"{subject['network']}, input {subject['input']}: {'; '.join(parts)} ({by})"
        return {**subject, "number": answer.number, "text": text}


class Watch:
    """All experiments below the served directories. Safe to ask from several threads."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = tuple(roots)
        self.lock = threading.RLock()
        self._watched: dict[str, Watched] = {}
        self._look_at = -math.inf

    def state(self, wanted: Sequence[str], seen: Seen) -> dict[str, Any]:
        """How all experiments are, and what is new in those that are wanted; [] is a choice."""
        with self.lock:
            self._look()
            shown = self.chosen(wanted)
            for one in shown:
                one.refresh()
            self._glance_at_others(shown)
            told = []
            for one in self._watched.values():
                entry = one.told(is_shown=one in shown)
                if one in shown:
                    entry |= one.details(*seen.get(one.found.id, ("none", 0)))
                told.append(entry)
            return {
                "experiments": told,
                "revision": ";".join(filter(None, (one.revision for one in shown))),
                "places": [str(root) for root in self.roots],
            }

    def chosen(self, wanted: Sequence[str]) -> list[Watched]:
        """The experiments of these ids, in this order; without any, a choice of our own.

        That is the directories which were named, where they are experiments, else the newest.
        """
        if wanted:
            return [self._watched[id_] for id_ in dict.fromkeys(wanted) if id_ in self._watched]
        named = [one for one in self._watched.values() if one.found.place in self.roots]
        newest = sorted(self._watched.values(), key=lambda one: one.changed_at)[-1:]
        return named or newest

    def set_paused(self, id_: str, is_paused: bool) -> None:
        """Ask a run to pause, or let it go on."""
        with self.lock:
            self._look()
            if id_ not in self._watched:
                raise StoreError("there is no such experiment here")
            flag = PauseFlag(self._watched[id_].found.place)
        if is_paused:
            flag.raise_()
        else:
            flag.lower()

    def _look(self) -> None:
        began = time.monotonic()
        if began < self._look_at:
            return
        found = {one.id: one for one in find_experiments(self.roots)}
        self._watched = {id_: self._watched.get(id_) or Watched(one) for id_, one in found.items()}
        ended = time.monotonic()
        self._look_at = ended + max(LOOK_AGAIN, 20 * (ended - began))

    def _glance_at_others(self, shown: Sequence[Watched]) -> None:
        began = time.monotonic()
        for one in self._watched.values():
            if one not in shown:
                one.glance()
            if time.monotonic() - began > ASIDE:
                return


def _subject(measurement: Measurement) -> dict[str, Any]:
    return {"network": measurement.network, "input": measurement.input}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _size_and_time(path: Path) -> tuple[int, float]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0.0
    return found.st_size, found.st_mtime
