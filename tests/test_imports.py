"""The import direction of the design, the public surface, and what `import radii` costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import radii

SOURCE = Path(radii.__file__).parent

LAYERS = (
    "errors",
    "terminal",
    "plugins",
    "processes",
    "problem",
    "datasets",
    "networks",
    "vnnlib",
    "attacks",
    "bounds",
    "verifiers",
    "strategy",
    "store",
    "statistics",
    "runs",
    "ensembles",
    "views",
    "training",
    "demo",
    "api",
    "testing",
    "cli",
    "__main__",
)

VOCABULARY = ("errors", "problem")

FILES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(module: ast.Module) -> tuple[ast.AST, ...]:
    """Everything in it: walking all sources takes as long as parsing them."""
    return tuple(ast.walk(module))


@cache
def imports_of(path: Path) -> frozenset[str]:
    """The modules a file imports, wherever in the file; names of radii itself as its modules."""
    found = set()
    for node in nodes_of(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "radii":
            found |= {f"radii.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return frozenset(found)


def layer_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports_of_radii() -> Iterator[tuple[Path, list[str]]]:
    """Every file with the parts of each module of radii that it imports."""
    for path in FILES:
        for name in sorted(imports_of(path)):
            parts = name.split(".")
            if parts[0] == "radii" and len(parts) > 1:
                yield path, parts


def test_imports_point_upward() -> None:
    offenders = [
        f"{path.relative_to(SOURCE)} imports {'.'.join(parts)}, which lies below it"
        for path, parts in imports_of_radii()
        if parts[1] != "__version__" and LAYERS.index(parts[1]) > LAYERS.index(layer_of(path))
    ]
    assert not offenders


def test_other_packages_are_entered_by_their_doors() -> None:
    offenders = [
        f"{path.relative_to(SOURCE)} imports {'.'.join(parts)}, not from radii.{parts[1]}"
        for path, parts in imports_of_radii()
        if len(parts) > 2 and parts[1] != layer_of(path)
    ]
    assert not offenders


@pytest.mark.parametrize("name", VOCABULARY)
def test_the_vocabulary_needs_numpy_only(name: str) -> None:
    outside = {
        imported.split(".")[0]
        for path in FILES
        if layer_of(path) == name
        for imported in imports_of(path)
    } - {"radii", "numpy", "lazy_loader"}
    assert outside <= sys.stdlib_module_names


def test_public_surface() -> None:
    for name in radii.__all__:
        assert getattr(radii, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = radii.nothing  # type: ignore[attr-defined]


def test_public_class_names_are_unique() -> None:
    """One word, one class: a reader who sees a name knows which class is meant."""
    homes: dict[str, list[str]] = {}
    for path in FILES:
        for node in nodes_of(tree_of(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


CONTAINERS = {"dict", "list", "set", "bytearray", "defaultdict", "deque", "OrderedDict", "Counter"}
CONTAINERS |= {"Memo", "count", "WeakKeyDictionary", "WeakValueDictionary", "WeakSet"}
"""What holds state, as a call: displays and comprehensions of the first three count as well."""

CHANGES = {"add", "append", "appendleft", "clear", "discard", "extend", "insert"}
CHANGES |= {"pop", "popitem", "remove", "setdefault", "update"}
"""Methods that change a container."""

REGISTRIES = {"TRANSLATORS", "TRANSLATED", "MEASURED_ERRORS"}
"""Filled by the modules that define their entries, while these are imported."""

OF_THE_PROCESS = {"_spares", "_unready", "_living_children"}
"""In processes/_child.py: the operating system keeps a process's children for it as a whole."""


def is_container(value: ast.expr | None) -> bool:
    displays = ast.Dict | ast.List | ast.Set | ast.DictComp | ast.ListComp | ast.SetComp
    if isinstance(value, ast.Call):
        called = value.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        return name in CONTAINERS
    return isinstance(value, displays)


def containers_of(module: ast.Module) -> set[str]:
    """The names that a module binds to containers."""
    found = set()
    for node in module.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and is_container(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def changed_in(module: ast.Module) -> Iterator[str]:
    """The names whose values, if they are containers, some line of the module changes."""
    for node in nodes_of(module):
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            changed: ast.expr = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            changed = node.func.value if node.func.attr in CHANGES else node
        else:
            continue
        if isinstance(changed, ast.Name):
            yield changed.id


def state_of(module: ast.Module) -> Iterator[str]:
    """What a module keeps from call to call: containers that are changed or look as if they were,
    `global` names, and functions that are called once to make a container."""
    names = containers_of(module) - REGISTRIES
    constants = {name for name in names if name.lstrip("_").isupper() or name.startswith("__")}
    yield from (names - constants) | (names & set(changed_in(module)))
    for node in nodes_of(module):
        if isinstance(node, ast.Global):
            yield from node.names
        if isinstance(node, ast.FunctionDef) and "cache" in map(ast.unparse, node.decorator_list):
            returned = ast.unparse(node.returns) if node.returns else ""
            if any(returned.split("[")[0].endswith(kind) for kind in CONTAINERS - {"dict"}):
                yield node.name


def test_no_module_keeps_state() -> None:
    """What outlives a call belongs to an object with an owner, such as a network's memo."""
    offenders = [
        f"{path.relative_to(SOURCE)}: {name}"
        for path in FILES
        for name in sorted(set(state_of(tree_of(path))) - OF_THE_PROCESS)
    ]
    assert not offenders


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("module", ["radii", "radii.cli", "radii.statistics", "radii.views"])
def test_import_loads_nothing_heavy(module: str) -> None:
    code = f"import {module}, sys; print(*(m for m in sys.modules if '.' not in m))"
    loaded = set(run_python(code).split())
    assert loaded.isdisjoint({"torch", "matplotlib", "onnx", "onnxruntime", "pandas", "highspy"})


def test_import_is_fast() -> None:
    code = "import time; t = time.process_time(); import radii; print(time.process_time() - t)"
    assert min(float(run_python(code)) for _ in range(3)) < 0.3
