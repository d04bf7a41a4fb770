"""The import direction of the design, the public surface, and what `import radii` costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import radii

SOURCE = Path(radii.__file__).parent

LAYERS = (
    "errors",
    "terminal",
    "plugins",
    "processes",
    "balls",
    "verdicts",
    "properties",
    "queries",
    "datasets",
    "networks",
    "vnnlib",
    "witnesses",
    "attacks",
    "bounds",
    "certificates",
    "verifiers",
    "search",
    "execution",
    "store",
    "experiments",
    "results",
    "ensembles",
    "distributions",
    "guarantees",
    "plots",
    "report",
    "training",
    "demo",
    "api",
    "testing",
    "cli",
    "__main__",
)

VOCABULARY = ("errors", "verdicts", "balls", "properties", "queries")


def imports_of(path: Path) -> set[str]:
    """The radii modules a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "radii":
            found |= {f"radii.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def layer_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


FILES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_upward(path: Path) -> None:
    own = layer_of(path)
    for name in imports_of(path):
        parts = name.split(".")
        if parts[0] != "radii" or len(parts) == 1 or parts[1] in ("__version__", "load_on_use"):
            continue
        assert LAYERS.index(parts[1]) <= LAYERS.index(own), (
            f"{path.relative_to(SOURCE)} imports {name}, which lies below it"
        )


@pytest.mark.parametrize("name", VOCABULARY)
def test_the_vocabulary_needs_numpy_only(name: str) -> None:
    outside = {
        imported.split(".")[0]
        for path in FILES
        if layer_of(path) == name
        for imported in imports_of(path)
    } - {"radii", "numpy"}
    assert outside <= sys.stdlib_module_names


def test_public_surface() -> None:
    assert set(radii.__all__) == {*radii._HOMES, "__version__"}
    for name in radii.__all__:
        assert getattr(radii, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = radii.nothing  # type: ignore[attr-defined]


def test_public_class_names_are_unique() -> None:
    """One word, one class: a reader who sees a name knows which class is meant."""
    homes: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_other_packages_are_entered_by_their_doors(path: Path) -> None:
    for name in imports_of(path):
        parts = name.split(".")
        assert parts[0] != "radii" or len(parts) <= 2 or parts[1] == layer_of(path), (
            f"{path.relative_to(SOURCE)} imports {name}, not from radii.{parts[1]}"
        )


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize(
    "module", ["radii", "radii.cli", "radii.distributions", "radii.guarantees", "radii.plots"]
)
def test_import_loads_nothing_heavy(module: str) -> None:
    code = f"import {module}, sys; print(*(m for m in sys.modules if '.' not in m))"
    loaded = set(run_python(code).split())
    assert loaded.isdisjoint({"torch", "matplotlib", "onnx", "onnxruntime", "pandas", "highspy"})


def test_import_is_fast() -> None:
    code = "import time; t = time.process_time(); import radii; print(time.process_time() - t)"
    assert min(float(run_python(code)) for _ in range(3)) < 0.3
