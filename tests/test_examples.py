"""Every example runs as it stands, in a directory of its own, without a warning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from python_scripts import run_alone, run_script

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))

ALONE = ("quickstart", "pytest_check", "keras_classifier")
"""Runs pytest itself, or chooses a backend for its process; others load torch only once."""


def as_parameter(path: Path) -> Any:
    """Those that start a process of their own; the README has the lines of the quick start."""
    is_slow = path.stem in ("keras_classifier", "pytest_check", "quickstart")
    marks = [pytest.mark.slow] if is_slow else []
    return pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.parametrize("path", [as_parameter(path) for path in EXAMPLES])
def test_example_runs(path: Path, tmp_path: Path) -> None:
    printed = (run_alone if path.stem in ALONE else run_script)(path, tmp_path)
    assert printed.strip()
    if printed.startswith("skipped: "):
        pytest.skip(printed.strip())


def test_there_are_examples() -> None:
    assert {path.stem for path in EXAMPLES} >= {"quickstart", "replay_witness"}
