"""The tutorial's output is real: each command is run again, and says what the page shows.

Numbers may differ (seconds do), so shapes are compared: the words and how many numbers, line by
line; a line with three dots stands for any lines.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from conftest import work_in_this_process
from radii import demo
from radii.cli import main

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "tutorial.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shape(line: str) -> str:
    """The line without its numbers and its spacing."""
    return " ".join(re.sub(r"─+", "─", re.sub(r"\d[\d.]*(e-?\d+)?", "#", line)).split())


def assert_shown(shown: str, told: str) -> None:
    """The lines that the page shows are among those that were printed, in their order."""
    lines = iter([shape(line) for line in told.splitlines()])
    for line in shown.splitlines():
        if line.strip() != "...":
            assert any(shape(line) == one for one in lines), f"not printed: {line}\n{told}"


def run(command: str) -> str:
    words = shlex.split(command.removeprefix("$ "))
    if words[0] == "cp":
        shutil.copy(words[1], words[2])
        return ""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(words[1:]) in (0, 1)
    return out.getvalue()


def executed() -> Iterator[tuple[str, str]]:
    """Each text that the page shows, with all that the commands before it have printed."""
    namespace: dict[str, Any] = {}
    told = ""
    for language, text in FENCE.findall(PAGE.read_text()):
        if language == "text":
            yield text, told
        elif language == "console":
            told = "".join(run(command) for command in text.splitlines())
        else:
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(text, namespace)
            told = out.getvalue()


def test_every_output_is_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)  # tests that run side by side are given one
    work_in_this_process(monkeypatch)
    shown = 0
    for text, told in executed():
        assert_shown(text, told)
        shown += 1
    assert shown >= 6
    assert (tmp_path / "robust-accuracy.png").stat().st_size > 10_000


@pytest.mark.parametrize("page", ["check.md", "gate.md"])
def test_outputs_of_commands_are_real(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On other pages: those that follow commands with a prompt."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    work_in_this_process(monkeypatch)
    monkeypatch.setattr("radii.processes.has_workers", lambda: False)
    shutil.copy(demo.network_path("mlp-standard"), tmp_path / "mlp-standard.onnx")
    blocks = FENCE.findall((DOCS / page).read_text())
    pairs = [
        (commands, shown)
        for (language, commands), (other, shown) in pairwise(blocks)
        if (language, other) == ("console", "text")
    ]
    assert pairs
    for commands, shown in pairs:
        told = "".join(run(command) for command in commands.splitlines())
        assert_shown(shown, told)


@pytest.mark.parametrize(
    "told", ["a 1 b\nc 2", "a 1\nb 2", "a 1 c\nb 2"], ids=["order", "words", "more words"]
)
def test_another_output_is_noticed(told: str) -> None:
    assert_shown("a 7 b\n...\nb 3.5", "a 1 b\nx\nb 2")
    with pytest.raises(AssertionError):
        assert_shown("a 7 b\nb 3.5", told)
