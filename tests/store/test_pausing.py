"""A run that is asked to pause waits between questions, says so, and goes on."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from radii.errors import StoreError
from radii.problem import Result
from radii.runs import Experiment, Plan, prepare
from radii.store import PauseFlag, Store, written_since
from radii.strategy import Case, Question


@pytest.fixture
def plan(linear_file: Path, points_file: Path) -> Plan:
    """With an attack that has no quick form: a probe would answer everything at once."""
    options = {"networks": [str(linear_file)], "data": str(points_file), "domain": "0:1"}
    grid = {"grid": "0.01:0.5:0.02", "attack": "apgd"}
    return prepare(Experiment.from_options({**options, **grid}))


class Pausing:
    """Raises the flag at the first answer, and lowers it once the run says that it waits."""

    def __init__(self, flag: PauseFlag) -> None:
        self.flag = flag
        self.said: list[object] = []

    def started(self, total: int) -> None: ...

    def answered(self, case: Case, question: Question, result: Result, /) -> None:
        if not self.said:
            self.flag.raise_()
        self.said.append("answer")

    def finished(self, case: Case, /) -> None: ...

    def held(self, is_held: bool, /) -> None:
        self.said.append(is_held)
        if is_held:
            assert self.flag.is_held
            threading.Timer(0.3, self.flag.lower).start()


def test_a_paused_run_waits_and_goes_on(plan: Plan, tmp_path: Path) -> None:
    out = tmp_path / "out"
    observer = Pausing(PauseFlag(out))
    with Store.create_or_open(out) as store:
        plan.run(store, observer=observer)
        paused = store.measurements()
    assert observer.said.count(True) == observer.said.count(False) == 1
    at = observer.said.index(True)
    assert observer.said[at + 1] is False, "nothing was asked meanwhile"
    assert "answer" in observer.said[at:], "and then it went on"
    with Store.in_memory() as store:
        plan.run(store)
        assert [m.bracket for m in store.measurements()] == [m.bracket for m in paused]


def test_starting_a_run_resumes_it(plan: Plan, tmp_path: Path) -> None:
    flag = PauseFlag(tmp_path)
    flag.raise_()
    with Store.create_or_open(tmp_path) as store:
        plan.run(store)
    assert not flag.is_raised


def test_a_run_that_is_complete_does_not_wait(plan: Plan, tmp_path: Path) -> None:
    class AtTheEnd(Pausing):
        def finished(self, case: Case, /) -> None:
            self.left = getattr(self, "left", len(plan.instances)) - 1
            if self.left == 0:
                self.flag.raise_()

        def answered(self, case: Case, question: Question, result: Result, /) -> None: ...

    observer = AtTheEnd(PauseFlag(tmp_path))
    with Store.create_or_open(tmp_path) as store:
        plan.run(store, observer=observer)
    assert observer.said == []


@pytest.mark.slow
def test_the_run_says_that_it_is_paused(
    linear_file: Path, points_file: Path, tmp_path: Path
) -> None:
    """As a user sees it who looks at the log of a job: raised from outside, while it runs."""
    out, log = tmp_path / "out", tmp_path / "log"
    code = "import sys; from radii.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [
        *(sys.executable, "-c", code, "run", "--network", str(linear_file)),
        *("--data", str(points_file), "--domain", "0:1", "--jobs", "1", "--out", str(out)),
    ]
    flag = PauseFlag(out)
    with log.open("w") as stream:
        process = subprocess.Popen(command, stderr=stream, stdout=subprocess.DEVNULL)
        try:
            while not (out / "radii.sqlite").exists():
                assert process.poll() is None
            # The run lowers the flag when it starts, so keep raising it until it says so.
            while not flag.is_held:
                flag.raise_()
                assert process.poll() is None, log.read_text()
            assert abs(time.time() - (written_since(out) or 0)) < 100
            flag.lower()
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()
    assert log.read_text().splitlines() == [
        "radii: paused: nothing is asked until it is resumed",
        "radii: resumed",
    ]
    assert written_since(out) is None


def test_a_flag_that_cannot_be_raised(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"\.pause: cannot be changed"):
        PauseFlag(tmp_path / "nowhere").raise_()
    PauseFlag(tmp_path).lower()


def test_looking_whether_a_run_writes_does_not_stop_one(tmp_path: Path) -> None:
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            written_since(tmp_path)

    (tmp_path / ".lock").touch()
    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for _ in range(50):
            with Store.create_or_open(tmp_path):
                assert written_since(tmp_path)
            (tmp_path / ".lock").touch()
    finally:
        stop.set()
        watcher.join()
