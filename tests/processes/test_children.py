"""Children of our own: when their time begins, how they are cancelled, and that none is left."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest
from light_services import ENVIRONMENT, START, make_slowly, next_event, start

from radii.problem import Verdict
from radii.processes import (
    Allowance,
    Child,
    Ending,
    Message,
    MessageKind,
    Service,
    StoppedCall,
    descendant_pids,
    is_alive,
    run_program,
    spare_children,
    watch,
)
from radii.processes._child import Call
from radii.processes._usage import Usage, Watch


def test_every_ending_has_its_verdict_and_every_missing_verdict_an_ending() -> None:
    assert all(Verdict.of(ending).is_missing for ending in Ending)
    assert all(Verdict.of(verdict.ending) is verdict for verdict in Verdict if verdict.is_missing)


@pytest.mark.parametrize(
    ("printed", "ending"),
    [
        ("MemoryError", Ending.MEMORY_LIMIT),
        (
            "RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: you tried",
            Ending.MEMORY_LIMIT,
        ),
        ("torch.cuda.OutOfMemoryError: CUDA", Ending.MEMORY_LIMIT),
        ("  what():  std::bad_alloc", Ending.MEMORY_LIMIT),
        ("GurobiError: Out of memory", Ending.MEMORY_LIMIT),
        ("ValueError: no such layer", Ending.FAILED),
        ("", Ending.FAILED),
    ],
)
def test_a_program_that_dies_says_whether_it_was_of_memory(
    tmp_path: Path, printed: str, ending: Ending
) -> None:
    dying = [sys.executable, "-c", f"import sys; print({printed!r}); sys.exit(1)"]
    ended = run_program(dying, tmp_path, Allowance(60.0))
    assert (ended.missing, ended.ending) == (None, ending)


def test_the_name_of_the_directory_is_not_in_what_a_program_printed(tmp_path: Path) -> None:
    ended = run_program(["ls", str(tmp_path / "none.onnx")], tmp_path, Allowance(60.0))
    assert str(tmp_path) not in ended.last_line and "none.onnx" in ended.last_line


def test_the_time_of_a_request_begins_when_the_child_is_ready() -> None:
    child = start(1.5)
    try:
        child.ask(("3 + 4",), Allowance(1.0))
        assert next_event(child) == Message(MessageKind.VALUE, 7)
        assert not child.is_busy
    finally:
        child.kill()


def test_it_imports_from_where_this_process_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a module beside a script that is run from another folder."""
    (tmp_path / "beside_a_script.py").write_text("def double(x):\n    return 2 * x\n")
    monkeypatch.syspath_prepend(tmp_path)
    double = import_module("beside_a_script").double
    child = Child.start(Call(double, (21,)), START)
    try:
        assert next_event(child) == Message(MessageKind.VALUE, 42)
    finally:
        child.kill()


def test_a_module_that_starts_workers_on_import_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each worker would import it and start others; without a limit, until nothing else runs."""
    (tmp_path / "without_guard.py").write_text(
        "import sys\nfrom radii.processes import Allowance, ProcessPool, Request\n"
        "def answer(*_): return 42\n"
        "def make(): return answer\n"
        "if 'radii.processes._worker' in sys.argv[0].replace('/', '.'):\n"
        "    with ProcessPool(make, jobs=1) as pool:\n"
        "        list(pool.answers([Request(())]))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    child = Child.start(Call(import_module("without_guard").answer, ()), START)
    try:
        assert isinstance(next_event(child), StoppedCall)
        assert child.last_words.endswith("put that part of it under `if __name__ == '__main__':`")
    finally:
        child.kill()


def test_a_cancelled_request_ends_soon_and_the_next_one_is_not_cancelled() -> None:
    child = start()
    try:
        child.ask(("wait_for_cancel(line)",), Allowance(60.0))
        while not child.is_ready:
            assert not list(watch([child], 0.05))
        child.cancel(grace=30.0)
        child.cancel(grace=30.0)  # twice is as good as once
        assert next_event(child) == Message(MessageKind.VALUE, "stopped by itself")
        child.ask(("line.is_cancelled()",), Allowance(60.0))
        assert next_event(child) == Message(MessageKind.VALUE, False)
    finally:
        child.kill()


def test_a_request_that_has_not_begun_is_taken_back() -> None:
    child = start(0.5)
    try:
        child.ask(("1 // 0",), Allowance(60.0))
        child.cancel()
        assert child.is_cancelled and not child.is_busy
        child.ask(("5",), Allowance(60.0))
        assert next_event(child) == Message(MessageKind.VALUE, 5)
    finally:
        child.kill()


def test_what_a_child_reports_comes_before_its_end() -> None:
    child = start(is_counting=True)
    try:
        child.ask(("line.report('half') or time.sleep(60)",), Allowance(1.0))
        assert next_event(child) == Message(MessageKind.PARTIAL, "half")
        stopped = next_event(child)
        assert isinstance(stopped, StoppedCall)
        assert stopped.ending is Ending.TIME_LIMIT and not stopped.has_died
        assert stopped.seconds >= 1.0
        assert child.is_dead
    finally:
        child.kill()


def test_one_that_goes_on_after_it_was_cancelled_is_killed_with_what_it_started() -> None:
    child = start()
    try:
        child.ask(("os.system('setsid sleep 600') or os.system('sleep 600')",), Allowance(60.0))
        while len(family := descendant_pids(child.process.pid)) < 1:
            assert not list(watch([child], 0.05))
        child.cancel(grace=0.1)
        stopped = next_event(child)
        assert isinstance(stopped, StoppedCall)
        assert stopped.ending is Ending.CANCELLED
        end = time.monotonic() + 60
        while any(map(is_alive, family)) and time.monotonic() < end:
            time.sleep(0.01)
        assert not any(map(is_alive, family))
    finally:
        child.kill()


def test_events_that_the_caller_left_are_there_at_the_next_call() -> None:
    children = [start() for _ in range(2)]
    try:
        for place, child in enumerate(children):
            child.ask((f"{place}",), Allowance(60.0))
        values: set[int] = set()
        while len(values) < 2:
            busy = [child for child in children if child.is_busy]
            for _, event in watch(busy, 0.5):
                assert isinstance(event, Message)
                values.add(event.value)
                break
        assert values == {0, 1}
    finally:
        for child in children:
            child.kill()


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, None])
def test_children_die_with_their_parent(signal_number: int | None, tmp_path: Path) -> None:
    """Killed, or ended without a word to its children."""
    code = f"""
import sys, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
from light_services import Allowance, start, watch
child = start()
child.ask(("time.sleep(600)",), Allowance(600.0))
while not child.is_ready:
    list(watch([child], 0.05))
print(child.process.pid, flush=True)
{"time.sleep(600)" if signal_number else ""}
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    if signal_number:
        parent.send_signal(signal_number)
    parent.wait(60)
    parent.stdout.close()
    end = time.monotonic() + 60
    while is_alive(pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert not is_alive(pid)


def test_importing_registers_nothing() -> None:
    code = (
        "import atexit, multiprocessing.connection; before = atexit._ncallbacks()\n"
        "import radii.processes._child, radii.processes._pool, radii.processes._programs, sys\n"
        "assert 'psutil' not in sys.modules and 'numpy' not in sys.modules\n"
        "print(atexit._ncallbacks() - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == 0


@pytest.mark.parametrize(
    ("allowance", "usage", "ending"),
    [
        (Allowance(memory_bytes=10), Usage(11, 0.0), Ending.MEMORY_LIMIT),
        (Allowance(memory_bytes=10), Usage(10, 0.0), None),
        (Allowance(cpu_seconds=1.0), Usage(0, 6.1), Ending.CPU_LIMIT),
        (Allowance(cpu_seconds=1.0), Usage(0, 5.9), None),
        (Allowance(0.0), Usage(99, 99.0), Ending.TIME_LIMIT),
        (Allowance(), Usage(99, 99.0), None),
    ],
)
def test_a_watch_counts_from_its_beginning(
    allowance: Allowance, usage: Usage, ending: Ending | None
) -> None:
    measured = iter([Usage(0, 5.0), usage])
    watching = Watch(allowance, lambda: next(measured))
    overrun = watching.overrun()
    assert (None if overrun is None else overrun[0]) is ending


def test_a_watch_that_has_nothing_to_measure_waits_for_its_end() -> None:
    def never() -> Usage:
        raise AssertionError("nobody asked for it")

    assert Watch(Allowance(), never).pause == math.inf
    assert 50 < Watch(Allowance(60.0), never).pause <= 60


def test_a_program_at_its_cpu_limit(tmp_path: Path) -> None:
    burning = [sys.executable, "-c", "while True: pass"]
    ended = run_program(burning, tmp_path, Allowance(60.0, cpu_seconds=0.5))
    assert ended.missing is Ending.CPU_LIMIT
    assert ended.peculiarity == "it overran its CPU limit"


class TestSpareChildren:
    """Processes that are started ahead of their jobs."""

    def test_a_child_with_the_same_environment_is_one_of_them(self) -> None:
        before = set(descendant_pids(os.getpid()))
        with spare_children(1, ["colorsys", "no_such_module"], ENVIRONMENT):
            (spare,) = set(descendant_pids(os.getpid())) - before
            child = start()
            other = Child.start(Service(make_slowly, (0.0,), has_line=True), START, {})
            try:
                assert child.process.pid == spare != other.process.pid
                child.ask(("'colorsys' in __import__('sys').modules",), Allowance(60.0))
                assert next_event(child) == Message(MessageKind.VALUE, True)
            finally:
                child.kill()
                other.kill()
        assert not is_alive(spare)

    def test_one_that_nobody_took_is_ended(self) -> None:
        before = set(descendant_pids(os.getpid()))
        with pytest.raises(KeyError), spare_children(2, (), ENVIRONMENT):
            spares = set(descendant_pids(os.getpid())) - before
            assert len(spares) == 2
            raise KeyError
        assert not any(map(is_alive, spares))

    def test_one_that_was_killed_is_not_taken(self) -> None:
        before = set(descendant_pids(os.getpid()))
        with spare_children(1, (), ENVIRONMENT):
            (spare,) = set(descendant_pids(os.getpid())) - before
            os.kill(spare, signal.SIGKILL)
            while is_alive(spare):
                time.sleep(0.01)
            child = start()
            try:
                child.ask(("3 + 4",), Allowance(60.0))
                assert next_event(child) == Message(MessageKind.VALUE, 7)
            finally:
                child.kill()

    def test_they_die_with_who_started_them(self) -> None:
        program = (
            "import os, signal\n"
            "from radii.processes import descendant_pids, spare_children\n"
            "with spare_children(2, ['json'], {}):\n"
            "    print(*descendant_pids(os.getpid()), flush=True)\n"
            "    os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        spares = [int(pid) for pid in ended.stdout.split()]
        assert ended.returncode == -signal.SIGKILL
        assert len(spares) == 2
        end = time.monotonic() + 60.0
        while any(map(is_alive, spares)) and time.monotonic() < end:
            time.sleep(0.02)
        assert not any(map(is_alive, spares))
