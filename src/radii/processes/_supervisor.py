"""Runs one command, and outlives nothing: `python -I -S supervisor.py`, started by `running.py`.

The first line on standard input is the job, as JSON. The end of standard input, which comes when
the process that asked dies of anything, means stop. On Linux all descendants of the command stay
descendants of this process, whatever sessions they open; at the end all of them are killed.
The last line on standard output is the report, as JSON. Imports nothing but the standard library:
it starts in a few hundredths of a second.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

ProgramJob = dict[str, Any]

PR_SET_CHILD_SUBREAPER = 36
"""prctl's option: orphans among the descendants become children of this process."""

POLL_SECONDS = 0.05
"""Between two looks at what the processes hold."""

WATCH_SHARE = 20
"""Looking takes at most one part in so many of the time, on machines with many processes."""

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
    if report["ended"] == "cancelled" and job["scratch"]:
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
        return {"ended": "unstarted", "code": 0, "output": str(error.strerror or error)}
    output = OutputTail(job["kept_bytes"])
    try:
        ended = watch(process, output, woken, job)
    finally:
        kill_descendants(process)
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    while output.read(process.stdout.fileno()):
        pass
    return {"ended": ended, "code": process.returncode, "output": output.text}


def watch(process: subprocess.Popen[bytes], output: OutputTail, woken: int, job: ProgramJob) -> str:
    """How the command ended, or why it must end now."""
    assert process.stdout is not None
    end = float("inf") if job["seconds"] is None else time.monotonic() + job["seconds"]
    is_watched = job["memory_bytes"] is not None or job["cpu_seconds"] is not None
    sources, look_at = [0, woken, process.stdout.fileno()], 0.0
    while True:
        if process.poll() is not None:
            return "exited"
        now = time.monotonic()
        if now >= end:
            return "timeout"
        if is_watched and now >= look_at:
            if overrun := _exceeded_limit(job):
                return overrun
            look_at = now + max(POLL_SECONDS, WATCH_SHARE * (time.monotonic() - now))
        next_look = min(end, look_at) if is_watched else end
        pause = max(0.0, min(next_look - time.monotonic(), 3600.0))
        ready, _, _ = select.select(sources, [], [], pause)
        if 0 in ready and not os.read(0, 4096):
            return "cancelled"
        if woken in ready:
            os.read(woken, 4096)
        if process.stdout.fileno() in ready and not output.read(process.stdout.fileno()):
            sources.remove(process.stdout.fileno())


def _exceeded_limit(job: ProgramJob) -> str | None:
    """Which limit the command's processes have passed, all together."""
    living = own_descendants()
    if job["memory_bytes"] is not None and sum(p.held for p in living) > job["memory_bytes"]:
        return "memout"
    ended = os.times()
    used = sum(p.used for p in living) + ended.children_user + ended.children_system
    is_over = job["cpu_seconds"] is not None and used > job["cpu_seconds"]
    return "timeout" if is_over else None


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
        left = [each.pid for each in own_descendants()]
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


class Process(NamedTuple):
    """A living process: the bytes it holds, and CPU seconds of its own and its ended children."""

    pid: int
    parent: int
    held: int
    used: float


def own_descendants() -> list[Process]:
    """All living processes below this one."""
    children: dict[int, list[Process]] = {}
    for process in _processes():
        children.setdefault(process.parent, []).append(process)
    found, waiting = [], [os.getpid()]
    while waiting:
        for process in children.pop(waiting.pop(), ()):
            found.append(process)
            waiting.append(process.pid)
    return found


def _processes() -> Iterator[Process]:
    """All that live; elsewhere than on Linux without their times."""
    if sys.platform != "linux":
        listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,rss="], capture_output=True)
        for row in listed.stdout.splitlines():
            pid, parent, kilobytes = map(int, row.split())
            yield Process(pid, parent, 1024 * kilobytes, 0.0)
        return
    page, ticks = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
    for name in os.listdir("/proc"):  # noqa: PTH208 (pathlib is slow to import and to list)
        if not name.isdecimal():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                columns = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if columns[0] not in b"ZX":
            used = sum(map(int, columns[11:15])) / ticks
            yield Process(int(name), int(columns[1]), page * int(columns[21]), used)


def _default_signals() -> None:
    """What this process ignores, the command must not."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


if __name__ == "__main__":
    main()
