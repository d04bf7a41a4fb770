"""What many tests share: tiny networks whose radius is known by hand, and small data files."""

from __future__ import annotations

import argparse
import fcntl
import gc
import os
import random
import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, settings
from onnx import TensorProto, helper, numpy_helper

from radii import plugins

# A busy machine makes any example slow, so none has a time limit. `make test-all` tries more.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", _PATIENT, max_examples=40)
settings.register_profile("long", _PATIENT, max_examples=400)
settings.load_profile("quick")

BUSY_SECONDS = 20.0
"""What a busy machine may add to a time that a test measures. It still tells what ends at its limit
from what does not: that would go on for a minute or an hour."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--sample",
        type=int,
        metavar="SEED",
        help="run only N cases, drawn by this seed, of each test that is marked sampled(N)",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collecting imports everything: garbage collection meanwhile finds nothing, and what is there
    afterwards stays, so that no later collection needs to look at it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The workers of a test run must collect the same tests in the same order; sets have none."""
    for mark in metafunc.definition.iter_markers("parametrize"):
        if any(isinstance(values, set | frozenset) for values in mark.args):
            name = metafunc.definition.nodeid
            raise pytest.UsageError(f"{name} is parametrized by a set: sort its values")


@pytest.hookimpl(trylast=True)  # after tests marked `slow` are gone
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seed = config.getoption("--sample")
    if seed is None:
        return
    cases: dict[str, list[pytest.Function]] = {}
    for item in items:
        if item.get_closest_marker("sampled") and hasattr(item, "callspec"):
            assert isinstance(item, pytest.Function)
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out = {case for name in cases for case in _left_out(cases[name], f"{seed} {name}")}
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]


def _left_out(cases: list[pytest.Function], seed: str) -> list[pytest.Function]:
    """All cases of a test but the N of its mark, or as many more as it takes to try every value of
    every parameter once. The values of a parameter `seed`, and of those that the mark names behind
    N, are repetitions, and do not count.
    """
    marker = cases[0].get_closest_marker("sampled")
    assert marker is not None
    count, *repeated = marker.args
    shuffled = random.Random(seed).sample(cases, len(cases))
    needed: list[pytest.Function] = []
    others: list[pytest.Function] = []
    tried: set[tuple[str, str]] = set()
    for case in shuffled:
        parameters = case.callspec.params.items()
        values = {
            (name, repr(value)) for name, value in parameters if name not in ("seed", *repeated)
        }
        (others if values <= tried else needed).append(case)
        tried |= values
    return others[max(0, count - len(needed)) :]


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A directory that `make` fills once for all workers of a test run; no test may change it."""
    common = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        common = common.parent
    place, done = common / name, common / f"{name}.done"
    with (common / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            place.mkdir()
            make(place)
            done.touch()
    return place


SHARED_DATA = Path(__file__).parents[1] / "shared" / "data"

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
    4: ("step",),
    5: ("certificate",),
    6: ("ending",),
}
"""What each version of the store lacked in the table of queries, and the next one has."""


def make_older(directory: Path, version: int) -> None:
    """Turn a store into one as that version of the schema wrote it."""
    with sqlite3.connect(directory / "radii.sqlite") as db:
        for since, columns in ADDED_COLUMNS.items():
            for column in columns if since >= version else ():
                db.execute(f"ALTER TABLE queries DROP COLUMN {column}")
        db.execute("DROP TABLE inputs")
        if version <= 5:
            db.executescript("DROP TABLE checks; DROP TABLE certificates;")
            db.execute("ALTER TABLE networks DROP COLUMN model")
        if version <= 4:
            db.executescript("DROP TABLE step_instances; DROP TABLE steps;")
            db.execute("ALTER TABLE networks DROP COLUMN feeding")
        if version <= 3:
            db.execute("UPDATE meta SET value = json_remove(value, '$.arithmetic')")
        db.execute(f"PRAGMA user_version = {version}")
    db.close()


def work_in_this_process(patch: pytest.MonkeyPatch) -> None:
    """Commands do without worker processes, whose start costs seconds each; also with --jobs 1."""
    from radii.runs import Plan

    patch.setattr("radii.runs._plan.default_jobs", lambda: 0)
    patch.setattr("radii.runs.default_jobs", lambda: 0)  # the door keeps it after the first use
    patch.setattr("radii.runs.Plan.default_jobs", lambda _: 0)
    run = Plan.run
    patch.setattr(Plan, "run", lambda plan, store, **more: run(plan, store, **{**more, "jobs": 0}))


@contextmanager
def in_this_process() -> Iterator[None]:
    """For fixtures that several tests share: `without_workers` begins later."""
    with pytest.MonkeyPatch.context() as patch:
        work_in_this_process(patch)
        yield


@pytest.fixture
def without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test is about is no matter of processes."""
    work_in_this_process(monkeypatch)


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


def write_wide(directory: Path) -> tuple[Path, Path]:
    """A seeded 16-8-3 ReLU network, whose proofs split units, and four points for it: the label of
    the last is wrong. The others have radii between 0.07 and 0.1."""
    import onnxruntime

    rng = np.random.default_rng(3)
    layers = [(rng.normal(size=(o, i)), np.zeros(o)) for i, o in ((16, 8), (8, 3))]
    network, data = directory / "wide.onnx", directory / "wide_points.npz"
    onnx.save(dense_model(*layers), network)
    images = rng.uniform(0.3, 0.7, (4, 16)).astype(np.float32)
    session = onnxruntime.InferenceSession(network, providers=["CPUExecutionProvider"])
    labels = session.run(None, {"x": images})[0].argmax(axis=1)
    labels[-1] = (labels[-1] + 1) % 3
    np.savez(data, images=images, labels=labels)
    return network, data


def write_certified(directory: Path, **options: object) -> Path:
    """A run on `write_wide` that keeps certificates; returns its directory."""
    from radii.runs import Experiment, prepare
    from radii.store import Store

    network, data = write_wide(directory)
    described = {"networks": [str(network)], "data": str(data), "domain": "0:1"}
    plan = prepare(Experiment.from_options({**described, "grid": "0.01:0.5:0.01", **options}))
    with Store.create_or_open(directory / "certified") as store:
        plan.run(store, jobs=0)
    return directory / "certified"


@pytest.fixture(autouse=True)
def _no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that run side by side are given a width of a terminal, which none of them has."""
    monkeypatch.delenv("COLUMNS", raising=False)


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


EXAMPLE_PACKAGE = Path(__file__).parent / "tests" / "plugins" / "example"


@pytest.fixture
def example_package(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that extends radii, as if it was installed: here, and in processes started here."""
    monkeypatch.syspath_prepend(EXAMPLE_PACKAGE)
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLE_PACKAGE), prepend=":")
    plugins._entry_points.cache_clear()
    yield EXAMPLE_PACKAGE
    plugins._entry_points.cache_clear()
