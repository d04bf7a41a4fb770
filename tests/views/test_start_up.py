"""How soon the command line answers, in processor time: machines that run tests are busy."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from made_experiments import STANDARD, Known, write_experiment

HELP, SHOW = 0.4, 2.0
"""Seconds that are promised on a quiet machine."""
BUSY = 2.0
"""What a busy machine adds to processor time: others share its caches."""


def cpu_seconds(*command: object) -> float:
    """Processor time of a process, from its start to its end; the better of two."""
    times = []
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def test_help_comes_at_once() -> None:
    assert cpu_seconds(sys.executable, "-m", "radii", "--help") < BUSY * HELP


def test_a_table_needs_nothing_heavy(tmp_path: Path) -> None:
    results = write_experiment(tmp_path / "results", {"net": STANDARD})
    code = (
        "import sys; from radii.cli import main; code = main(['show', sys.argv[1]]);"
        "print(code, *sys.modules, sep='\\n', file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(results)], check=True, capture_output=True, text=True
    )
    code, *loaded = done.stderr.split()
    assert code == "0"
    heavy = {"torch", "matplotlib", "onnx", "onnxruntime", "pandas", "highspy", "scipy.optimize"}
    assert heavy.isdisjoint(loaded)


@pytest.mark.slow
def test_the_table_of_ten_thousand_instances(tmp_path: Path) -> None:
    """Three answers each, with witnesses of MNIST's size."""
    steps = [1e-5 * step for step in range(10_000)]
    known = [Known(0.01 + step, 0.0205 + step, timed_out_at=0.02 + step) for step in steps]
    results = write_experiment(tmp_path / "results", {"net": known}, shape=(1, 28, 28))
    assert cpu_seconds(sys.executable, "-m", "radii", "show", results) < BUSY * SHOW
