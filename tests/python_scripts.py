"""Python as a reader runs it: scripts, each in a process of its own, where warnings are errors.

A server, one for all workers of a test run, has torch and radii loaded and runs each script in a
fork of itself: none of them pays for loading these again, and each is `__main__` in its process.
Their worker processes are forks of them, for the same reason.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
import types
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["run_alone", "run_script"]

IDLE_SECONDS = 1.0
"""How often the server looks whether the tests that it serves have ended."""

HEAVY = (
    *("matplotlib.pyplot", "onnxruntime", "pandas", "pytest", "scipy.optimize"),
    *("scipy.stats", "sklearn.linear_model", "torch._dynamo", "torch.onnx", "radii_check"),
    *("radii.api", "radii.cli", "radii.demo", "radii.views", "radii.verifiers.native"),
)
"""What one script after the other would load."""


def run_alone(script: Path, directory: Path) -> str:
    """What it prints, run by an interpreter that has loaded nothing yet."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)], cwd=directory, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_script(script: Path, directory: Path) -> str:
    """What it prints, run by a fork of an interpreter that has radii loaded."""
    out, err = directory / ".stdout", directory / ".stderr"
    with _connected() as server:
        server.sendall(json.dumps([str(script), str(directory), str(out), str(err)]).encode())
        code = server.recv(16).decode()
    assert code == "0", err.read_text() if err.exists() else "the server of scripts has died"
    return out.read_text()


def _connected() -> socket.socket:
    """A connection to the server, which is started where there is none."""
    tests = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    place = Path(tempfile.gettempdir()) / f"radii-scripts-{tests}"
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        server = socket.socket(socket.AF_UNIX)
        with suppress(OSError):
            server.connect(str(place))
            return server
        place.unlink(missing_ok=True)
        ready, written = os.pipe()
        command = [sys.executable, __file__, str(place), str(tests)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # threads do not survive a fork
        onto = [(os.POSIX_SPAWN_DUP2, written, 1)]
        os.posix_spawn(command[0], command, environment, file_actions=onto)
        os.close(written)
        os.read(ready, 1)
        os.close(ready)
        server.connect(str(place))
        return server


# --- in the server


def _serve(place: str, tests: int) -> None:
    """Until the process of these tests has ended."""
    import psutil

    from radii.processes import _child

    for module in HEAVY:
        with suppress(ImportError):
            import_module(module)
    import_module("matplotlib").use("agg")
    forking = types.SimpleNamespace(Popen=_ForkedWorker, DEVNULL=subprocess.DEVNULL)
    vars(_child)["subprocess"] = forking
    gc.freeze()  # a collection in a fork would copy every page that holds an object
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen()
        os.write(1, b"r")
        listening.settimeout(IDLE_SECONDS)
        while psutil.pid_exists(tests):
            with suppress(TimeoutError):
                connection, _ = listening.accept()
                if os.fork() == 0:
                    _end_after(partial(_run, connection), connection)
                connection.close()
            with suppress(ChildProcessError):
                os.waitpid(-1, os.WNOHANG)
    for left in (place, f"{place}.lock"):
        Path(left).unlink(missing_ok=True)


def _run(connection: socket.socket) -> None:
    script, directory, out, err = json.loads(connection.recv(1 << 16))
    for place, descriptor in ((os.devnull, 0), (out, 1), (err, 2)):
        os.dup2(os.open(place, os.O_RDWR | os.O_CREAT | os.O_TRUNC), descriptor)
    os.chdir(directory)
    sys.argv, sys.path[0] = [script], str(Path(script).parent)
    warnings.simplefilter("error")
    runpy.run_path(script, run_name="__main__")


def _end_after(work: Callable[[], None], caller: socket.socket | None = None) -> None:
    """Do the work of a forked process and end it; `caller` is sent the exit code."""
    code = 1
    try:
        work()
        if caller is not None:  # a worker would end what its parent began: delete its directories
            atexit._run_exitfuncs()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        if caller is not None:
            caller.sendall(str(code).encode())
        os._exit(code)


class _ForkedWorker:
    """Stands in for the `Popen` of a worker process: what that needs is loaded in a fork."""

    def __init__(
        self,
        command: list[str],
        *,
        pass_fds: tuple[int, ...],
        stderr: Any,
        env: dict[str, str],
        **_: Any,
    ) -> None:
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            os.dup2(stderr.fileno(), 2)
            os.closerange(3, pass_fds[0])
            os.closerange(pass_fds[0] + 1, os.sysconf("SC_OPEN_MAX"))
            os.environ.update(env)
            module, sys.argv[1:] = command[2], command[3:]
            sys.modules.pop(module, None)
            warnings.resetwarnings()
            _end_after(partial(_run_module, module))

    def poll(self) -> int | None:
        return self._reaped(os.WNOHANG)

    def wait(self) -> int | None:
        return self._reaped(0)

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _reaped(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode


def _run_module(module: str) -> None:
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
