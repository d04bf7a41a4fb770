"""What the checker is: small, and on its own."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from tiny import certificate, proven

import radii_check

SOURCE = Path(radii_check.__file__).parent
ALLOWED = {"numpy", "onnx", "flint", "radii_check", *sys.stdlib_module_names}


def code_lines(path: Path) -> int:
    """Lines without blank ones, comments and docstrings."""
    text = path.read_text()
    told: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", [])
        for each in body if isinstance(body, list) else []:
            value = getattr(each, "value", None)
            if isinstance(each, ast.Expr) and isinstance(value, ast.Constant):
                told |= set(range(each.lineno, (each.end_lineno or each.lineno) + 1))
    lines = enumerate(text.splitlines(), start=1)
    return sum(
        1
        for n, line in lines
        if line.strip() and not line.strip().startswith("#") and n not in told
    )


def test_it_imports_nothing_of_radii() -> None:
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0
                names = [node.module or ""]
            assert {name.split(".")[0] for name in names} <= ALLOWED, path


CORE = ("_check", "_format", "_trees", "_proof", "_unit_proof", "_rows", "_violations")
"""What an assessor reads first: how a proof is gone through. The rest reads ONNX, bounds rounding,
and knows other kinds of claims and proofs."""


def test_it_stays_small() -> None:
    sizes = {path.name: code_lines(path) for path in SOURCE.rglob("*.py")}
    assert sum(sizes.values()) <= 1800, sizes
    assert max(sizes.values()) <= 400, sizes
    core = {name: len((SOURCE / f"{name}.py").read_text().splitlines()) for name in CORE}
    assert sum(core.values()) <= 900, core


@pytest.mark.slow
def test_it_runs_with_numpy_and_onnx_alone(tmp_path: Path) -> None:
    """The folder alone, in an environment that has nothing else."""
    venv.create(tmp_path / "alone", with_pip=True)
    python = tmp_path / "alone" / "bin" / "python"
    limits = Path(__file__).parents[2] / "constraints.txt"
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "-c", limits, "numpy", "onnx"], check=True
    )
    tiny, claim, arrays = proven(1)
    (tmp_path / "net.onnx").write_bytes(tiny.model)
    (tmp_path / "one.cert").write_bytes(certificate(claim, arrays))
    (tmp_path / "radii_check").symlink_to(SOURCE)
    command: list[str | Path] = [python, "-m", "radii_check", "one.cert", "--network", "net.onnx"]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    exact = subprocess.run(
        [*command, "--exact"], cwd=tmp_path, env=clean, capture_output=True, text=True
    )
    assert exact.returncode == 2
    assert "needs python-flint" in exact.stdout
