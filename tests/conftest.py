"""What many tests share: tiny networks whose radius is known by hand, and small data files."""

from __future__ import annotations

import argparse
import sqlite3
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from radii import plugins

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"

needs_shared_data = pytest.mark.skipif(
    not SHARED_DATA.is_dir(), reason="the published networks (../shared/data) are not here"
)


def dense_model(*layers: tuple[np.ndarray, np.ndarray]) -> onnx.ModelProto:
    """Gemm layers with ReLU between them, as ONNX; each layer is (weights (out, in), bias)."""
    nodes, constants, value = [], [], "x"
    for place, (weights, bias) in enumerate(layers):
        for name, array in (("w", weights), ("b", bias)):
            constants.append(numpy_helper.from_array(array.astype(np.float32), f"{name}{place}"))
        nodes.append(
            helper.make_node("Gemm", [value, f"w{place}", f"b{place}"], [f"z{place}"], transB=1)
        )
        value = f"z{place}"
        if place < len(layers) - 1:
            nodes.append(helper.make_node("Relu", [value], [f"h{place}"]))
            value = f"h{place}"
    inputs, outputs = layers[0][0].shape[1], layers[-1][0].shape[0]
    graph = helper.make_graph(
        nodes,
        "dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", inputs])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, ["batch", outputs])],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser and those of all commands below it."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from parsers(below)


ADDED_COLUMNS = {
    1: ("cpu_seconds", "added_seconds"),
    2: ("allowed_seconds",),
    3: ("proof_arithmetic",),
}
"""What each version of the store lacked in the table of queries, and the next one has."""


def make_older(directory: Path, version: int) -> None:
    """Turn a store into one as that version of the schema wrote it."""
    with sqlite3.connect(directory / "radii.sqlite") as db:
        for since, columns in ADDED_COLUMNS.items():
            for column in columns if since >= version else ():
                db.execute(f"ALTER TABLE queries DROP COLUMN {column}")
        db.execute("UPDATE meta SET value = json_remove(value, '$.arithmetic')")
        db.execute(f"PRAGMA user_version = {version}")
    db.close()


def work_in_this_process(patch: pytest.MonkeyPatch) -> None:
    """Commands do without worker processes, whose start costs seconds each."""
    patch.setattr("radii.experiments._plan.default_jobs", lambda: 0)
    patch.setattr("radii.experiments.Plan.default_jobs", lambda _: 0)


def write_linear(directory: Path) -> Path:
    """Two inputs, two classes: y0 - y1 = x0 - x1, so the Linf radius is (x0 - x1) / 2."""
    path = directory / "linear.onnx"
    onnx.save(dense_model((np.eye(2), np.zeros(2))), path)
    return path


def write_points(directory: Path) -> Path:
    """Four points for `write_linear`: radii 0.1, 0.25, 0 (misclassified), 0 (a tie)."""
    path = directory / "points.npz"
    images = np.array([[0.5, 0.3], [0.25, 0.75], [0.9, 0.1], [0.5, 0.5]], np.float32)
    np.savez(path, images=images, labels=np.array([0, 1, 1, 0]))
    return path


@pytest.fixture
def linear_file(tmp_path: Path) -> Path:
    return write_linear(tmp_path)


@pytest.fixture
def points_file(tmp_path: Path) -> Path:
    return write_points(tmp_path)


@pytest.fixture
def relu_file(tmp_path: Path) -> Path:
    """A seeded 6-12-8-3 ReLU network."""
    rng = np.random.default_rng(7)
    sizes = (6, 12, 8, 3)
    layers = [
        (rng.normal(size=(o, i)) / np.sqrt(i / 2), rng.normal(size=o) / 4)
        for i, o in pairwise(sizes)
    ]
    path = tmp_path / "relu.onnx"
    onnx.save(dense_model(*layers), path)
    return path


@pytest.fixture
def relu_points_file(tmp_path: Path, relu_file: Path) -> Path:
    """Twelve points for `relu_file`, labelled as the network sees them, but for the last."""
    import onnxruntime

    images = np.random.default_rng(8).uniform(0.2, 0.8, (12, 6)).astype(np.float32)
    session = onnxruntime.InferenceSession(relu_file, providers=["CPUExecutionProvider"])
    labels = session.run(None, {"x": images})[0].argmax(axis=1)
    labels[-1] = (labels[-1] + 1) % 3
    path = tmp_path / "relu_points.npz"
    np.savez(path, images=images, labels=labels)
    return path


EXAMPLE_PACKAGE = Path(__file__).parent / "plugins" / "example"


@pytest.fixture
def example_package(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that extends radii, as if it was installed: here, and in processes started here."""
    monkeypatch.syspath_prepend(EXAMPLE_PACKAGE)
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLE_PACKAGE), prepend=":")
    plugins._entry_points.cache_clear()
    yield EXAMPLE_PACKAGE
    plugins._entry_points.cache_clear()
