"""Bars where somebody looks: on terminals and in notebooks, and nowhere else."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import radii
from radii.runs import ProgressBar, progress_bar


class Shown:
    """Stands for the output of a cell: what was drawn in it, one after the other."""

    drawn: list[str]

    def display(self, what: Any) -> None:
        Shown.drawn = []
        self.update(what)

    def update(self, what: Any) -> None:
        Shown.drawn.append(what._repr_html_())


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    module, display = ModuleType("IPython"), ModuleType("IPython.display")
    vars(module)["get_ipython"] = lambda: SimpleNamespace(kernel=object())
    vars(display)["DisplayHandle"] = Shown
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", display)


def test_a_notebook_has_a_bar_and_then_a_line(
    notebook: None, linear_file: Path, points_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("radii.runs._progress.UPDATE_SECONDS", 0.0)
    radii.robustness_distribution(
        linear_file, str(points_file), domain=(0, 1), grid="0.05:0.4:0.05", jobs=0
    )
    first, *between, last = Shown.drawn
    assert "loading" in first
    assert all("<progress" in each for each in between)
    assert "4 of 4 brackets" in last
    assert "<progress" not in last
    with pytest.raises(KeyboardInterrupt), progress_bar():
        raise KeyboardInterrupt
    assert "stopped" in Shown.drawn[-1]


def test_no_bar_without_anybody_to_look(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    with progress_bar() as bar:
        assert bar is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress_bar() as bar:
        assert isinstance(bar, ProgressBar)


def test_progress_can_be_left_out(notebook: None, linear_file: Path, points_file: Path) -> None:
    Shown.drawn = []
    radii.robustness_distribution(
        linear_file, str(points_file), domain=(0, 1), grid="0.1:0.2:0.1", jobs=0, progress=False
    )
    assert Shown.drawn == []
