"""An operator is added as CONTRIBUTING shows: in its family's files, and with random models."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import numpy as np, sys
from radii.problem import Query, Verdict
from radii.testing import Sketch, instance_at
from radii.verifiers import BranchAndBound
from radii_check import check

sketch = Sketch([1, 2])
product = sketch.apply("MatMul", sketch.apply("Softsign", "x"), sketch.constant(np.eye(2)))
network = sketch.network(product, domain=(-2, 2))
instance = instance_at(network, [0.5, 0.25])  # both outputs tie at 0.375, 0.125 away
verifier = BranchAndBound(certificates=True)
result = verifier.verify(network, Query(instance, 0.1249))
assert result.verdict is Verdict.ROBUST
assert check(result.proof.certificate, network.onnx_bytes).accepted
assert verifier.verify(network, Query(instance, 0.1251)).verdict is Verdict.NOT_ROBUST
sys.path.insert(0, "scripts")
import derived_texts
assert "Softplus, Softsign" in derived_texts.onnx_operators()
"""

SUITES = (
    "tests/networks/test_operators.py",
    "tests/bounds/test_relaxations.py",
    "tests/bounds/test_interval.py",
    "tests/bounds/test_float_errors.py",
    "tests/radii_check/test_checked_operators.py",
)
"""What holds every operator against its random models."""


def patched(text: str, hunks: list[str]) -> str:
    """A file's text with the hunks of a diff applied, each of which fits in one place."""
    for hunk in hunks:
        lines = hunk.splitlines()[1:]
        before = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
        after = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with the diff of CONTRIBUTING."""
    blocks = re.findall(r"```diff\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    (diff,) = (block for block in blocks if "Softsign" in block)
    copy = tmp_path_factory.mktemp("added")
    for name in ("src", "scripts", "tests", "benchmarks", "pyproject.toml", "conftest.py"):
        if name in ("src", "benchmarks"):
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, copy / name, ignore=ignored)
        else:
            (copy / name).symlink_to(ROOT / name)
    for part in re.split(r"^--- a/", diff, flags=re.MULTILINE)[1:]:
        head, *hunks = re.split(r"^(?=@@)", part, flags=re.MULTILINE)
        file = copy / head.split("\n")[0]
        file.write_text(patched(file.read_text(), hunks))
    return copy


def run(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    return subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=environment, capture_output=True, text=True
    )


def test_it_is_proven_certified_and_in_the_table(tree: Path) -> None:
    done = run(tree, "-c", PROGRAM)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_every_suite_of_operators_holds_for_it(tree: Path) -> None:
    done = run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "Softsign", *SUITES)
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout
