"""Runs one command, and leaves nothing of it: `python -m radii.processes._supervisor`.

Started by `run_program`. The first line on standard input is the job, as JSON. The end of standard
input, which comes when the process that asked dies of anything, means stop: so this process does
not die with its parent, but ends the command first. On Linux all descendants of the command stay
descendants of this process, whatever sessions they open; at the end all of them are killed. The
last line on standard output is the report, as JSON. What it imports is little, and psutil is loaded
while the command runs: it starts in a few hundredths of a second.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from radii.processes._usage import Allowance, Ending, Usage, Watch, descendant_pids

ProgramJob = dict[str, Any]

PR_SET_CHILD_SUBREAPER = 36
"""prctl's option: orphans among the descendants become children of this process."""

KILL_SECONDS = 2.0
"""How long to go on killing what keeps starting processes."""


def main() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):  # who asked has died
        return
    job = json.loads(line)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    report = supervise(job)
    if report["ending"] == Ending.CANCELLED and job["scratch"]:
        shutil.rmtree(job["scratch"], ignore_errors=True)
    print(json.dumps(report), flush=True)


def supervise(job: ProgramJob) -> dict[str, Any]:
    """Start the command and watch it until it ends or has to."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        process = subprocess.Popen(
            job["command"],
            cwd=job["directory"],
            env={**os.environ, **job["environment"]},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            restore_signals=True,
            preexec_fn=_default_signals,
        )
    except OSError as error:
        reason = str(error.strerror or error)
        if isinstance(error, FileNotFoundError) and os.path.isfile(job["command"][0]):  # noqa: PTH113
            reason = "the interpreter that its first line names does not exist"
        return {"is_started": False, "ending": None, "code": 0, "output": reason}
    output = OutputTail(job["kept_bytes"])
    seconds, cpu = (
        math.inf if job[name] is None else job[name] for name in ("seconds", "cpu_seconds")
    )
    allowance = Allowance(seconds, cpu, job["memory_bytes"])
    try:
        ending, message = watch_program(process, output, woken, allowance)
    finally:
        kill_descendants(process)
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    while output.read(process.stdout.fileno()):
        pass
    report = {"is_started": True, "ending": ending, "message": message}
    return {**report, "code": process.returncode, "output": output.text}


def watch_program(
    process: subprocess.Popen[bytes], output: OutputTail, woken: int, allowance: Allowance
) -> tuple[Ending | None, str]:
    """Wait until the command ends, or say why it must end now."""
    assert process.stdout is not None
    watch = Watch(allowance, _descendants_usage, is_new=True)
    sources = [0, woken, process.stdout.fileno()]
    while process.poll() is None:
        overrun = watch.overrun()
        if overrun is not None:
            return overrun
        ready, _, _ = select.select(sources, [], [], min(watch.pause, 3600.0))
        if 0 in ready and not os.read(0, 4096):
            return Ending.CANCELLED, "it was cancelled"
        if woken in ready:
            os.read(woken, 4096)
        if process.stdout.fileno() in ready and not output.read(process.stdout.fileno()):
            sources.remove(process.stdout.fileno())
    return None, ""


def _descendants_usage() -> Usage:
    """What the command's processes hold and have used, those that have ended included."""
    living, ended = Usage.of(descendant_pids(os.getpid())), os.times()
    cpu_seconds = living.cpu_seconds + ended.children_user + ended.children_system
    return Usage(living.memory_bytes, cpu_seconds)


class OutputTail:
    """The end of what a command prints; the rest is read and forgotten."""

    def __init__(self, kept_bytes: int) -> None:
        self.kept_bytes = kept_bytes
        self.content = b""

    def read(self, source: int) -> bool:
        """Take what is there; False if there is nothing, nor will be."""
        try:
            new = os.read(source, 1 << 16)
        except BlockingIOError:
            return False
        self.content = (self.content + new)[-self.kept_bytes :]
        return bool(new)

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")


def kill_descendants(process: subprocess.Popen[bytes]) -> None:
    """Kill everything that the command started, and reap it."""
    end = time.monotonic() + KILL_SECONDS
    while time.monotonic() < end:
        process.poll()
        left = descendant_pids(os.getpid())
        if not left and process.returncode is not None:
            return
        for pid in left:
            _kill(os.kill, pid)
        if process.returncode is None:  # its group has its number as long as it is not reaped
            _kill(os.killpg, process.pid)
        time.sleep(0.005)
        _reap_orphans(process)


def _kill(how: Callable[[int, int], None], pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        how(pid, signal.SIGKILL)


def _reap_orphans(process: subprocess.Popen[bytes]) -> None:
    """Wait for processes that have become ours; the command itself is left to `poll`."""
    process.poll()
    while process.returncode is not None:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                return
        except ChildProcessError:
            return


def _default_signals() -> None:
    """What this process ignores, the command must not."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


if __name__ == "__main__":
    main()
