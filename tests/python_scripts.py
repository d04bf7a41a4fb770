"""Python as a reader runs it: in a process of its own, or in this one, which has torch loaded."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import work_in_this_process

__all__ = ["run_alone", "run_here"]


def run_alone(script: Path, directory: Path) -> str:
    """What it prints, run by an interpreter of its own; warnings are errors."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)], cwd=directory, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_here(script: Path, directory: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What it prints, run as `__main__` of this process; warnings are errors here, too."""
    with pytest.MonkeyPatch.context() as patch:
        work_in_this_process(patch)
        patch.chdir(directory)
        patch.setattr(sys, "argv", [str(script)])
        runpy.run_path(str(script), run_name="__main__")
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    return capsys.readouterr().out
