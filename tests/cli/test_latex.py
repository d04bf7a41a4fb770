"""Tables for papers: what LaTeX reads, with nothing lost and every name as text."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from radii.cli import main
from radii.statistics import Distribution
from radii.views import TableColumn, TableRecord, latex_lines

NAMES = ["50%_pruned & {small}", "x^2~\\input{evil} #1 $"]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two networks with names that LaTeX would take for commands."""
    rng = np.random.default_rng(0)
    lower = np.concatenate([rng.uniform(0.01, 0.02, 20), rng.uniform(0.1, 0.2, 20)])
    path = tmp_path / "results.csv"
    made = Distribution.from_arrays(
        lower, lower + 0.001, network=np.repeat(NAMES, 20), input=np.tile(np.arange(20), 2)
    )
    made.to_pandas().to_csv(path, index=False)
    return path


def body(told: str) -> list[list[str]]:
    """The cells of every row; an escaped sign is no sign of LaTeX's."""
    rows = [line for line in told.splitlines() if line.endswith(r"\\")]
    return [re.split(r"(?<!\\)&", row.removesuffix(r"\\")) for row in rows]


def check(told: str) -> None:
    for kind in ("table", "tabular"):
        assert told.count(f"\\begin{{{kind}}}") == told.count(f"\\end{{{kind}}}") > 0
    for line in told.splitlines():
        if line.startswith("%"):
            continue
        bare = re.sub(r"\\[\\&%$#_{}]|\\[a-z]+", "", line)
        assert not re.search(r"[%#_~^]", re.sub(r"\$[^$]*\$", "", bare)), line
        assert bare.count("{") == bare.count("}"), line


@pytest.mark.parametrize("command", ["show", "compare"])
def test_commands_print_latex(
    command: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--permutations", "19"] if command == "compare" else []
    assert main([command, str(results), "--latex", *flags]) == 0
    told = capsys.readouterr().out
    check(told)
    assert r"50\%\_pruned \& \{small\}" in told
    commands = [line for line in told.splitlines() if not line.startswith("%")]
    assert r"\input" not in "\n".join(commands)


def test_nothing_is_folded_or_dropped(
    results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert main(["show", str(results), "--latex"]) == 0
    rows = body(capsys.readouterr().out)
    assert [cell.strip() for cell in rows[0]][:5] == [
        "network",
        "correct",
        "lowest",
        r"25 \%",
        "median",
    ]
    assert len({len(row) for row in rows}) == 1


def test_cells_of_several_lines_are_several_rows() -> None:
    made = TableRecord(
        title="How much?",
        columns=[
            TableColumn("pair", lambda _: ("a", "b")),
            TableColumn("p", lambda _: ("-0.5", "4e-08")),
        ],
        rows=range(2),
        name_width=3,
        notes=["first minus second"],
    )
    lines = latex_lines(made)
    assert r"\caption{How much? First minus second.}" in lines
    assert r"\begin{tabular}{lr}" in lines
    start = lines.index(r"\midrule")
    pair = [r"a & $-$0.5 \\", r"b & $4 \cdot 10^{-8}$ \\"]
    assert lines[start + 1 : start + 6] == [*pair, r"\addlinespace", *pair]
