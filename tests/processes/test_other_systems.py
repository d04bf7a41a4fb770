"""Windows and macOS, as far as Linux can play them: without modules and calls that they lack.

A child process takes away what a system has not, and then runs radii.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from radii.processes import take_lock

WITHOUT = """
import os, signal, sys
import psutil  # has parts of its own for every system, and loads that of Linux here

class Absent:
    names = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "posix_ipc"}
    def find_spec(self, name, path=None, target=None):
        if name in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in Absent.names:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Absent())
for name in sys.argv[1].split(","):
    for module in (os, signal):
        if hasattr(module, name):
            delattr(module, name)
"""

WINDOWS = "killpg,fork,getuid,geteuid,setsid,getpgid,SIGKILL,SIGHUP,O_NOFOLLOW,sched_getaffinity"
MACOS = "sched_getaffinity"

EVERYTHING = """
import pkgutil, importlib, radii
from radii.cli import build_parser
build_parser()
private = ("radii.__main__", "radii.processes._supervisor", "radii.processes._worker")
for module in pkgutil.walk_packages(radii.__path__, "radii."):
    if module.name.startswith("radii.testing") or module.name in private:
        continue
    importlib.import_module(module.name)
"""

MEASURE = """
import shutil
from radii import demo
from radii.cli import main
shutil.copy(demo.network_path("mlp-standard"), "net.onnx")
run = "run --network net.onnx --data digits:test[0:2] --domain 0:1 --grid 0.01:0.1:0.01 --out r"
assert main(run.split()) == 0
for words in ("show r --instances", "report r -o r.html", "export r -o r.csv", "compare r r.csv"):
    assert main(words.split()) == 0, words
assert main(f"{run}2 --jobs 2".split()) == (2 if WINDOWS else 0)
"""


def played(system: str, script: str, directory: Path) -> subprocess.CompletedProcess[str]:
    program = WITHOUT + f"WINDOWS = {system == WINDOWS}\n" + script
    command = [sys.executable, "-c", program, system]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=240)


@pytest.mark.parametrize(
    "system",
    [
        pytest.param(WINDOWS, id="windows"),
        # It lacks one call, which Windows lacks too.
        pytest.param(MACOS, id="macos", marks=pytest.mark.slow),
    ],
)
def test_every_module_loads(system: str, tmp_path: Path) -> None:
    done = played(system, EVERYTHING, tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_network_is_measured_without_worker_processes(tmp_path: Path) -> None:
    done = played(WINDOWS, MEASURE, tmp_path)
    assert done.returncode == 0, done.stderr
    assert " net " in done.stdout
    assert "leave out --jobs, or use WSL on Windows" in done.stderr


def test_a_lock_is_of_one_process_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    with path.open() as one, path.open() as two:
        take_lock(one.fileno(), is_shared=True)
        take_lock(two.fileno(), is_shared=True)
    with path.open() as one, path.open() as two:
        take_lock(one.fileno())
        with pytest.raises(BlockingIOError):
            take_lock(two.fileno())
