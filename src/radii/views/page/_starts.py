"""Runs that the live page starts: experiment files below one folder, results below another.

A request names a file by its number, never by a path, and can say nothing about how it is run. One
run at a time; it ends with the server, and what it found is kept.
"""

from __future__ import annotations

import datetime
import math
import os
import sys
import threading
import time
import tomllib
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from radii.errors import StoreError
from radii.processes import Allowance, ProgramEnd, run_program
from radii.store import written_since
from radii.views.page._live import files_below, id_of

FOLDER_DEPTH = 4
"""How far below the folder experiment files are looked for."""

MOST_FILES = 200
LARGEST_FILE = 1 << 20
"""Bytes: what is larger describes no experiment."""

LOOK_SECONDS = 3.0
"""Seconds between two looks into the folder."""

END_SECONDS = 10.0
"""How long a run may take to end when the server does."""


@dataclass(frozen=True, slots=True)
class ExperimentFile:
    """A description in TOML, and where its results go."""

    id: str
    name: str
    path: Path
    place: Path


@dataclass(slots=True, eq=False)
class StartedRun:
    """A run that this server started, and how it ended: None while it goes on."""

    file: ExperimentFile
    began_at: str
    stopped: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None
    end: ProgramEnd | None = None

    @property
    def state(self) -> str:
        if self.end is None:
            return "stopping" if self.stopped.is_set() else "running"
        if self.stopped.is_set():
            return "stopped"
        return "finished" if self.end.missing is None and self.end.code == 0 else "failed"

    @property
    def message(self) -> str:
        """What a run that failed said last."""
        end = self.end
        return "" if end is None or self.state != "failed" else end.last_line or end.peculiarity


class ExperimentStarter:
    """Starts experiment files below `folder`; results go below `out`. Safe in several threads."""

    def __init__(self, folder: Path, out: Path) -> None:
        if not folder.is_dir():
            raise StoreError(
                f"--experiments {folder} is not a directory; name one with .toml files"
            )
        self._folder, self._out = folder.resolve(), out.resolve()
        self._lock = threading.Lock()
        self._runs: dict[str, StartedRun] = {}
        self._known: list[ExperimentFile] = []
        self._look_at = -math.inf

    def listed(self) -> list[dict[str, Any]]:
        """What the page shows of each file, in order of their names."""
        with self._lock:
            self._look()
            return [self._facts_of(one) for one in self._known]

    def _facts_of(self, file: ExperimentFile) -> dict[str, Any]:
        run = self._runs.get(file.id)
        return {
            "id": file.id,
            "name": file.name,
            "out": os.fsencode(file.place).decode("utf-8", "replace"),
            "state": "" if run is None else run.state,
            "message": "" if run is None else run.message,
            "began_at": "" if run is None else run.began_at,
        }

    def start(self, id_: str) -> None:
        """Start the file of that id; a StoreError if there is none, or another run goes on."""
        with self._lock:
            self._look_at = -math.inf  # as the folder is now, not as it was
            self._look()
            file = next((one for one in self._known if one.id == id_), None)
            if file is None:
                raise StoreError("there is no such experiment file here")
            busy = [run.file.name for run in self._runs.values() if run.end is None]
            if busy:
                raise StoreError(f"{busy[0]} runs: one at a time, stop it or wait")
            if not file.place.resolve().is_relative_to(self._out):
                raise StoreError(f"{file.place}: leads out of the directory that is served")
            if written_since(file.place) is not None:
                raise StoreError(f"{file.place}: another run is writing here; wait or stop it")
            now = datetime.datetime.now(datetime.UTC)
            run = StartedRun(file, now.isoformat(timespec="seconds"))
            run.thread = threading.Thread(target=_follow, args=(run,), daemon=True)
            self._runs[file.id] = run
            run.thread.start()

    def stop(self, id_: str) -> None:
        """End the run of that file; what it found is kept."""
        with self._lock:
            run = self._runs.get(id_)
            if run is None or run.end is not None:
                raise StoreError("that experiment was not started here, or has ended")
            run.stopped.set()

    def close(self) -> None:
        """End what goes on."""
        with self._lock:
            going = [run for run in self._runs.values() if run.end is None]
        for run in going:
            run.stopped.set()
        for run in going:
            if run.thread is not None:
                run.thread.join(END_SECONDS)

    def _look(self) -> None:
        if time.monotonic() < self._look_at:
            return
        files = filter(_is_experiment, files_below(self._folder, FOLDER_DEPTH))
        self._known = [
            ExperimentFile(id_of(path), str(below), path, self._out / below.with_suffix(""))
            for path in islice(files, MOST_FILES)
            for below in [path.relative_to(self._folder)]
        ]
        self._look_at = time.monotonic() + LOOK_SECONDS


def _follow(run: StartedRun) -> None:
    """The same command as a person would give, with nothing in it from a request."""
    file = run.file
    command = [sys.executable, "-m", "radii", "run", str(file.path), "--out", str(file.place)]
    try:
        run.end = run_program(command, file.path.parent, Allowance(), run.stopped.is_set)
    except OSError as error:
        run.end = ProgramEnd(None, 1, str(error), "")


def _is_experiment(path: Path) -> bool:
    """Whether a file describes networks and data; links and hidden files are not looked at."""
    if path.suffix != ".toml" or path.name.startswith("."):
        return False
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST_FILE:
            return False
        values = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError):  # not to be read, or neither text nor TOML
        return False
    return "networks" in values and "data" in values
