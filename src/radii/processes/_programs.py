"""Running a foreign program: limits hold for its whole tree of processes, its output is bounded.

The program runs under `radii.processes._supervisor`, which ends it with everything it started when
a limit is reached, when it is cancelled, and when this process dies.
"""

from __future__ import annotations

import json
import math
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from radii.processes._usage import (
    POLL_SECONDS,
    QUOTED_CHARACTERS,
    Allowance,
    Ending,
    speaks_of_memory,
)

OUTPUT_TAIL_BYTES = 1 << 16
"""The end of a program's output that is kept: enough for a traceback."""

END_SECONDS = 3.0
"""How long the supervisor may take to end the program, on request or at a limit."""


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """How a program ended: `missing` is None if by itself, with exit code `code`.

    `output` is the end of what it printed, without the name of the directory where it ran;
    `peculiarity` says in words what was not as it should.
    """

    missing: Ending | None
    code: int
    output: str
    peculiarity: str

    @property
    def ending(self) -> Ending:
        """Why it gives no answer; ANSWERED if it ended as it should."""
        if self.missing is None and self.code:
            return Ending.MEMORY_LIMIT if speaks_of_memory(self.last_line) else Ending.FAILED
        return self.missing or Ending.ANSWERED

    @property
    def last_line(self) -> str:
        lines = self.output.strip().splitlines()
        return lines[-1].strip()[:QUOTED_CHARACTERS] if lines else ""


def run_program(
    command: Sequence[str],
    directory: Path,
    allowance: Allowance,
    cancelled: Callable[[], bool] = lambda: False,
    *,
    environment: Mapping[str, str] | None = None,
    scratch: Path | None = None,
) -> ProgramEnd:
    """Run a command in a directory until it ends, or has to.

    The allowance is for all of its processes together. `cancelled` is asked often: does nobody wait
    for the answer any more? `scratch` is removed even if this process dies meanwhile.
    """
    job = {
        "command": list(command),
        "directory": str(directory),
        "environment": dict(environment or {}),
        "seconds": _finite(allowance.seconds),
        "cpu_seconds": _finite(allowance.cpu_seconds),
        "memory_bytes": allowance.memory_bytes,
        "kept_bytes": OUTPUT_TAIL_BYTES,
        "scratch": None if scratch is None else str(scratch),
    }
    killed_at = time.monotonic() + allowance.seconds + END_SECONDS
    supervisor = subprocess.Popen(
        [sys.executable, "-m", f"{__package__}._supervisor"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C in a terminal is for us to hear
    )
    assert supervisor.stdin is not None and supervisor.stdout is not None
    try:
        supervisor.stdin.write(json.dumps(job).encode() + b"\n")
        supervisor.stdin.flush()
        _wait(supervisor.stdin, supervisor.stdout, killed_at, cancelled)
        return _program_end(supervisor.stdout, command[0], directory)
    except BrokenPipeError:
        return _program_end(supervisor.stdout, command[0], directory)
    finally:
        _close(supervisor)


def _finite(limit: float) -> float | None:
    return None if math.isinf(limit) else max(0.0, limit)


def _wait(
    stdin: IO[bytes], stdout: IO[bytes], killed_at: float, cancelled: Callable[[], bool]
) -> None:
    """Until there is a report, or the supervisor is out of reach. Tells it when to stop."""
    while not select.select([stdout], [], [], POLL_SECONDS)[0]:
        if not stdin.closed and cancelled():
            stdin.close()
            killed_at = min(killed_at, time.monotonic() + END_SECONDS)
        if time.monotonic() >= killed_at:
            return


def _program_end(stdout: IO[bytes], program: str, directory: Path) -> ProgramEnd:
    line = stdout.readline() if select.select([stdout], [], [], 0)[0] else b""
    if not line.endswith(b"\n"):
        return ProgramEnd(Ending.FAILED, 0, "", "its supervisor died")
    report: dict[str, Any] = json.loads(line)
    # The name of a scratch directory is another one each time: the same failure reads the same.
    code, output = int(report["code"]), str(report["output"]).replace(f"{directory}/", "")
    if not report["is_started"]:
        return ProgramEnd(Ending.FAILED, code, output, f"{program} cannot be started: {output}")
    if report["ending"] is not None:
        return ProgramEnd(Ending(report["ending"]), code, output, str(report["message"]))
    return ProgramEnd(None, code, output, _exit_words(code))


def _exit_words(code: int) -> str:
    if code < 0:
        return f"it died of signal {-code}"
    return f"it ended with exit code {code}" if code else ""


def _close(supervisor: subprocess.Popen[bytes]) -> None:
    """The end of its input makes the supervisor end the program and itself."""
    assert supervisor.stdin is not None and supervisor.stdout is not None
    with suppress(BrokenPipeError):
        supervisor.stdin.close()
    try:
        supervisor.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        supervisor.kill()
        supervisor.wait()
    supervisor.stdout.close()
