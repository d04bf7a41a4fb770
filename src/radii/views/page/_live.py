"""Experiments below the directories that are served, and nothing outside of them."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import os
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.errors import InputError, StoreError
from radii.statistics import FollowedStore, Run
from radii.store import (
    ENSEMBLE_FILE,
    STORE_FILE,
    PauseFlag,
    Record,
    StoredResult,
    StoredSettings,
    written_since,
)
from radii.views._json import finite_or_none
from radii.views.page._progress import RunProgress

if TYPE_CHECKING:
    from radii.ensembles import EnsembleResults

SEARCH_DEPTH = 6
"""How far below a served directory experiments are looked for."""


@dataclass(frozen=True, slots=True)
class ExperimentFolder:
    """An experiment's directory. A request names it by its `id`; no path is ever part of one."""

    id: str
    name: str
    place: Path


def check_places(places: Sequence[Path]) -> list[Path]:
    """The directories as they are on disk; each must exist, experiments may come later."""
    for place in places:
        if not place.is_dir():
            raise StoreError(f"{place}: is not a directory; name one for experiments")
    return list(dict.fromkeys(place.resolve() for place in places))


def find_experiments(roots: Sequence[Path], store_file: str = STORE_FILE) -> list[ExperimentFolder]:
    """In the order of the directories, then by name. Ensembles have a store of another name."""
    found: dict[Path, ExperimentFolder] = {}
    for root in roots:
        for path in files_below(root, SEARCH_DEPTH):
            place = path.parent
            if path.name != store_file or place in found or path.is_symlink():
                continue
            below = place.relative_to(root)
            shown = root.name / below if len(roots) > 1 or not below.parts else below
            name = os.fsencode(shown).decode("utf-8", "replace")
            found[place] = ExperimentFolder(id_of(place), name, place)
    return list(found.values())


def files_below(root: Path, most_depth: int) -> Iterator[Path]:
    """Files in order of their names; links to folders are not followed, nor hidden ones entered."""
    for folder, folders, files in os.walk(root):
        place = Path(folder)
        is_deepest = len(place.relative_to(root).parts) >= most_depth
        folders[:] = [] if is_deepest else sorted(f for f in folders if not f.startswith("."))
        yield from (place / name for name in sorted(files))


def id_of(place: Path) -> str:
    """By which a request names a folder or file, instead of by its path."""
    return hashlib.sha256(os.fsencode(place)).hexdigest()[:16]


# What the page shows of every experiment, read anew when it asks: nothing runs by itself.


SeenAnswers = Mapping[str, tuple[str, int]]
"""By experiment, the generation and the number of the last answer that a page has."""

READ_SECONDS = 0.5
"""Seconds within which several pages that ask get the same answer."""

WALK_SECONDS = 3.0
"""Seconds between two walks through the directories; slow ones are walked less often."""

WALK_REST_FACTOR = 20.0
"""A walk that took t seconds is not repeated for this many times t: at most 5 % of the time."""

UNWATCHED_SECONDS = 0.3
"""Seconds a request may spend on experiments that nobody looks at."""

LATEST_ANSWERS = 12
"""How many of the latest answers are shown."""

LATEST_SITTINGS = 20
"""How many of the latest sittings of an experiment are shown."""

ASKED_SETTINGS = ("source", "norm", "property", "grid", "search", "verifier", "timeout", "budget")

ADVICE = {
    "paused": "Nothing is asked until it is resumed.",
    "stopped": "Nothing runs here now. What was found is kept: run it again to continue.",
    "empty": "No experiment has begun here.",
}


class WatchedExperiment:
    """One experiment. What nobody looks at is read once, and then only its sums are kept."""

    def __init__(self, found: ExperimentFolder) -> None:
        self.found = found
        self.problem = ""
        self._log: list[tuple[int, int]] = []  # number of each answer, and its row
        self._followed: FollowedStore | None = None
        self._progress: RunProgress | None = None
        self._sums: dict[str, Any] = {
            **dict.fromkeys(("total", "done", "queries", "failure_count"), 0),
            "sittings": [],
            "asked": "",
        }
        self._read_at = -math.inf
        self._read_state: object = None

    # --- reading

    def refresh(self) -> None:
        """Read what is new, unless that was done just now."""
        if time.monotonic() - self._read_at < READ_SECONDS:
            return
        self._read_state = self._file_state()
        try:
            self._follow(self._followed or FollowedStore(self.found.place))
            self.problem = ""
        except InputError as error:
            self.problem = str(error)
        self._read_at = time.monotonic()

    def _follow(self, followed: FollowedStore) -> None:
        before = (followed.generation, len(followed.records))
        new = followed.refresh()
        if self._progress is None or before != (followed.generation, len(followed.records)):
            self._progress = RunProgress(followed)
            self._log = []
        self._followed = followed
        self._progress.take_in(new)
        self._log += [(answer.number, followed.row_of(answer)) for answer in new]
        self._sums = {
            "total": len(followed.records),
            "done": self._progress.done,
            "queries": self._progress.queries,
            "failure_count": self._progress.failure_count,
            "sittings": [one.facts() for one in self._progress.sittings[-LATEST_SITTINGS:]],
            "asked": asked_text(followed.settings),
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
        return tuple(
            _size_and_time(self.found.place / f"{STORE_FILE}{end}") for end in ("", "-wal")
        )

    @property
    def changed_at(self) -> float:
        """When its run wrote last, in seconds since 1970."""
        ends = (_size_and_time(self.found.place / f"{STORE_FILE}{end}") for end in ("", "-wal"))
        return max(moment for _, moment in ends)

    # --- what the page shows

    @property
    def revision(self) -> str:
        """Changes with every answer; empty while there is nothing to show."""
        followed = self._followed
        if followed is None or not followed.records:
            return ""
        return f"{self.found.id}:{followed.generation}:{followed.last_number}"

    def run(self) -> Run:
        """What a report needs; only of an experiment with a revision."""
        if self._followed is None:
            raise StoreError(f"{self.found.name}: is not read")
        return self._followed.run()

    def facts(self, *, is_shown: bool) -> dict[str, Any]:
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
        """What is given only of experiments that are shown, after the answer of that number."""
        followed, progress = self._followed, self._progress
        if followed is None or progress is None:
            return {"answers": [], "failures": [], "disagreements": []}
        return {
            "answers": [self._answer(followed, a) for a in list(progress.latest)[-LATEST_ANSWERS:]][
                ::-1
            ],
            "failures": [self._answer(followed, answer) for answer in progress.failures][::-1],
            "disagreements": [
                {
                    **_instance_object(record),
                    "number": f"{row}-{place}",
                    "text": str(disagreement),
                }
                for row, record in enumerate(followed.records)
                for place, disagreement in enumerate(record.disagreements)
            ][:LATEST_ANSWERS],
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

    def _brackets(self, followed: FollowedStore, generation: str, number: int) -> dict[str, Any]:
        """All of them, or those that changed after what the page has."""
        now = {"generation": followed.generation, "number": followed.last_number}
        if generation != followed.generation or number > followed.last_number:
            sides = [record.bracket for record in followed.records]
            lower, upper = [b.lower for b in sides], [finite_or_none(b.upper) for b in sides]
            return {**now, "lower": lower, "upper": upper}
        after = bisect_right(self._log, (number, math.inf))
        changed = sorted({row for _, row in self._log[after:]})
        brackets = [(row, followed.records[row].bracket) for row in changed]
        return {**now, "rows": [[row, b.lower, finite_or_none(b.upper)] for row, b in brackets]}

    def _answer(self, followed: FollowedStore, answer: StoredResult) -> dict[str, Any]:
        subject = _instance_object(followed.records[followed.row_of(answer)])
        result, question = answer.result, answer.question
        parts = [result.verdict.value.lower().replace("_", " ")]
        if result.proof is not None:
            parts = [f"proven up to {result.proof.eps:.4g}"]
        if result.witness is not None:
            parts.append(f"counterexample at {result.witness.distance:.4g}")
        if result.verdict.is_missing:
            parts.append(f"{question.kind.value} at {question.eps:.4g}")
        if result.remark:
            parts.append(result.remark)
        by = f"{result.verifier}, {result.seconds:.3g} s"
        text = f"{subject['network']}, input {subject['input']}: {'; '.join(parts)} ({by})"
        return {**subject, "number": answer.number, "text": text}


def asked_text(settings: StoredSettings) -> str:
    """What an experiment asked, in a line."""
    named = ((name, settings.text_of(name)) for name in ASKED_SETTINGS)
    return ", ".join(
        f"{name} {value:g} s" if name in ("timeout", "budget") else str(value)
        for name, value in named
        if value is not None
    )


class WatchedEnsemble:
    """The directory of an ensemble; read when it is shown."""

    def __init__(self, found: ExperimentFolder) -> None:
        self.found = found
        self.problem = ""
        self._read: tuple[str, EnsembleResults] | None = None

    @property
    def revision(self) -> str:
        """Changes whenever a run writes."""
        size, moment = _size_and_time(self.found.place / ENSEMBLE_FILE)
        return f"{self.found.id}:{size}:{moment:.6f}"

    def results(self) -> EnsembleResults | None:
        """What it keeps, read anew only after a change; while a run writes, what was read last."""
        from radii.ensembles import read_ensemble_results  # which brings PyTorch

        revision = self.revision
        if self._read is None or self._read[0] != revision:
            try:
                self._read = revision, read_ensemble_results(self.found.place)
                self.problem = ""
            except InputError as error:
                self.problem = str(error)
        return None if self._read is None else self._read[1]

    def facts(self, *, is_shown: bool) -> dict[str, Any]:
        named = {"id": self.found.id, "name": self.found.name}
        return {**named, "advice": self.problem, "is_shown": is_shown}


class ExperimentWatcher:
    """All experiments below the served directories. Safe to ask from several threads."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = tuple(roots)
        self.lock = threading.RLock()
        self._watched: dict[str, WatchedExperiment] = {}
        self._ensembles: dict[str, WatchedEnsemble] = {}
        self._look_at = -math.inf

    def state(self, wanted: Sequence[str], seen: SeenAnswers) -> dict[str, Any]:
        """How all experiments are, and what is new in those that are wanted; [] is a choice."""
        with self.lock:
            self._look()
            shown = self.chosen(wanted)
            for one in shown:
                one.refresh()
            self._glance_at_others(shown)
            experiments = []
            for one in self._watched.values():
                entry = one.facts(is_shown=one in shown)
                if one in shown:
                    entry |= one.details(*seen.get(one.found.id, ("none", 0)))
                experiments.append(entry)
            ensembles = self.chosen_ensembles(wanted)
            revisions = [one.revision for one in shown] + [one.revision for one in ensembles]
            return {
                "experiments": experiments,
                "ensembles": [
                    one.facts(is_shown=one in ensembles) for one in self._ensembles.values()
                ],
                "revision": ";".join(filter(None, revisions)),
                "places": [str(root) for root in self.roots],
            }

    def chosen(self, wanted: Sequence[str]) -> list[WatchedExperiment]:
        """The experiments of these ids, in this order; without any, a choice of our own.

        That is the directories which were named, where they are experiments, else the newest.
        """
        if wanted:
            return [self._watched[id_] for id_ in dict.fromkeys(wanted) if id_ in self._watched]
        named = [one for one in self._watched.values() if one.found.place in self.roots]
        if self.chosen_ensembles(()) and not named:
            return []
        newest = sorted(self._watched.values(), key=lambda one: one.changed_at)[-1:]
        return named or newest

    def chosen_ensembles(self, wanted: Sequence[str]) -> list[WatchedEnsemble]:
        """The ensembles of these ids; without any, those whose directories were named."""
        known = self._ensembles.values()
        if wanted:
            return [one for one in known if one.found.id in wanted]
        return [one for one in known if one.found.place in self.roots]

    def pause(self, id_: str) -> None:
        """Ask the run of that experiment to pause."""
        self._pause_flag(id_).raise_()

    def resume(self, id_: str) -> None:
        """Let it go on."""
        self._pause_flag(id_).lower()

    def _pause_flag(self, id_: str) -> PauseFlag:
        with self.lock:
            self._look()
            if id_ not in self._watched:
                raise StoreError("there is no such experiment here")
            return PauseFlag(self._watched[id_].found.place)

    def _look(self) -> None:
        began = time.monotonic()
        if began < self._look_at:
            return
        found = {one.id: one for one in find_experiments(self.roots)}
        self._watched = {
            id_: self._watched.get(id_) or WatchedExperiment(one) for id_, one in found.items()
        }
        games = {f"e{one.id}": one for one in find_experiments(self.roots, ENSEMBLE_FILE)}
        self._ensembles = {
            id_: self._ensembles.get(id_) or WatchedEnsemble(dataclasses.replace(one, id=id_))
            for id_, one in games.items()
        }
        ended = time.monotonic()
        self._look_at = ended + max(WALK_SECONDS, WALK_REST_FACTOR * (ended - began))

    def _glance_at_others(self, shown: Sequence[WatchedExperiment]) -> None:
        began = time.monotonic()
        for one in self._watched.values():
            if one not in shown:
                one.glance()
            if time.monotonic() - began > UNWATCHED_SECONDS:
                return


def _instance_object(record: Record) -> dict[str, Any]:
    return {"network": record.facts.network, "input": record.facts.input}


def _size_and_time(path: Path) -> tuple[int, float]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0.0
    return found.st_size, found.st_mtime
