"""The `radii` command as its users call it, timed and weighed from outside."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from radii.processes import resident_bytes

LOOK_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Watched:
    """What a command printed, its wall seconds, the CPU seconds of all its processes, and the most
    that one of them held."""

    output: str
    errors: str
    exit_code: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int


def radii(*arguments: object, checkout: Path | None = None) -> Watched:
    """`radii ARGUMENTS` on one thread; by the code of another checkout, if one is given."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if checkout is not None:
        environment["PYTHONPATH"] = str(checkout / "src")
    command = [sys.executable, "-c", "from radii.cli import main; raise SystemExit(main())"]
    started, peak = time.monotonic(), 0
    before = _ended_seconds()
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [*command, *map(str, arguments)],
            stdout=output,
            stderr=errors,
            env=environment,
        )
        try:
            while process.poll() is None:
                held = (resident_bytes(pid) or 0 for pid in _family(process.pid))
                peak = max(peak, *held)
                time.sleep(LOOK_SECONDS)
        finally:
            process.kill()
            process.wait()
        seconds = time.monotonic() - started
        for file in (output, errors):
            file.seek(0)
        spent = _ended_seconds() - before
        return Watched(output.read(), errors.read(), process.returncode, seconds, spent, peak)


def _ended_seconds() -> float:
    """CPU seconds of the processes below this one that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def _family(pid: int) -> Iterator[int]:
    """The process and all below it, as far as the system tells (Linux)."""
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in children:
        yield from _family(int(child))
