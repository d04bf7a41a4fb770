"""Processor time and the tree of processes, as seen from outside."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from radii.problem import Verdict
from radii.processes import cpu_seconds, descendant_pids
from radii.verifiers import Limits

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="other processes: Linux only")


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_working_counts_and_sleeping_does_not() -> None:
    before = cpu_seconds()
    assert before is not None
    time.sleep(0.3)
    burn(0.1)
    used = (cpu_seconds() or 0.0) - before
    assert 0.09 <= used < 0.3


def test_a_child_that_has_ended_counts() -> None:
    code = "import time\nwhile time.process_time() < 0.3: pass"
    before = cpu_seconds() or 0.0
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (cpu_seconds() or 0.0) - before >= 0.28


@needs_proc
def test_another_process_and_its_children_are_seen() -> None:
    inner = "import time\nwhile True: time.process_time()"
    outer = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {inner!r}])"
    process = subprocess.Popen([sys.executable, "-c", outer])
    try:
        end = time.monotonic() + 20
        while not (found := descendant_pids(process.pid)) and time.monotonic() < end:
            time.sleep(0.02)
        (child,) = found
        first = cpu_seconds(child)
        while cpu_seconds(child) == first and time.monotonic() < end:
            time.sleep(0.02)
        assert first is not None
        assert (cpu_seconds(child) or 0.0) > first
    finally:
        for pid in (*found, process.pid):
            subprocess.run(["kill", "-9", str(pid)], check=True)
        process.wait()
    assert cpu_seconds(child) is None or descendant_pids(process.pid) == []


def test_nobody_has_no_time() -> None:
    assert cpu_seconds(2**22 + 1) is None
    assert descendant_pids(2**22 + 1) == []


def test_a_cpu_limit_is_reached_by_working_only() -> None:
    limits = Limits(seconds=60.0, cpu_seconds=0.2)
    time.sleep(0.3)
    assert limits.expired is None
    assert 0.1 < limits.remaining <= 0.2
    burn(0.25)
    assert limits.expired is Verdict.TIMEOUT
    assert limits.within(10.0).expired is Verdict.TIMEOUT
