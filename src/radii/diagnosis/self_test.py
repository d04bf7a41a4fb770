"""Inputs whose radii are known, measured through the whole of radii.

A linear classifier's radius has a closed form. Those of the embedded networks were measured by
MILP to within 1e-6; a test measures them again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from radii.errors import RadiiError

if TYPE_CHECKING:
    from radii.brackets import Bracket
    from radii.datasets import Dataset
    from radii.networks import Network

__all__ = ["KNOWN", "Check", "self_test"]

KNOWN = {
    "mlp-standard": {1: 0.0442389, 2: 0.0371914, 4: 0.0144188},
    "cnn-standard": {2: 0.0427820, 4: 0.0205257},
}
"""Linf radii of embedded networks at inputs of `digits:test`."""

ROUNDING = 2e-6
"""How far a side of a bracket may be beyond a known radius: both are rounded."""

REACH = 1.05
"""A counterexample of a working attack is not further away than this times the radius."""

STEP = 0.002
GRID = f"{STEP}:0.2:{STEP}"
SEED = 11
POINTS = 4
TIMEOUT = 20.0


@dataclass(frozen=True, slots=True)
class Check:
    """One part of the self-test. `problem` says what is wrong; empty if nothing is."""

    name: str
    seconds: float
    problem: str

    @property
    def is_passed(self) -> bool:
        return not self.problem


@dataclass(frozen=True, slots=True, eq=False)
class _Subject:
    """A network, inputs, and their radii."""

    network: Network
    data: Dataset
    radii: tuple[float, ...]


def self_test(told: Callable[[Check], None] = lambda _: None) -> list[Check]:
    """Each part on its own: one that fails does not stop the next; `told` hears of each."""
    parts: list[tuple[str, Callable[[], str]]] = [
        ("attack", lambda: _measured(_attacked, "attack-only")),
        ("native", lambda: _measured(_bracketed, "native")),
        ("milp", lambda: _measured(_bracketed, "attack-guided", verifier="milp")),
        ("a worker process", lambda: _measured(_bracketed, "native", jobs=1)),
    ]
    found = []
    for name, part in parts:
        began = time.perf_counter()
        try:
            problem = part()
        except (RadiiError, OSError, ImportError) as error:
            problem = " ".join(str(error).split())
        found.append(Check(name, time.perf_counter() - began, problem))
        told(found[-1])
    return found


def _measured(
    judge: Callable[[float, Bracket], str], search: str, *, verifier: str = "native", jobs: int = 0
) -> str:
    """What is wrong with the brackets that this way of searching finds; empty if nothing is."""
    from radii.experiments import Settings, plan
    from radii.store import Store

    settings = Settings(grid=GRID, search=search, verifier=verifier, timeout=TIMEOUT, seed=SEED)
    for subject in [_linear()] if jobs else _subjects():  # a worker takes seconds to start
        with Store.in_memory() as store:
            plan([subject.network], subject.data, settings).run(store, jobs=jobs)
            found = store.measurements()
            wrong = [str(told) for _, _, told in store.disagreements()]
        for measured, radius in zip(found, subject.radii, strict=True):
            problem = judge(radius, measured.bracket)
            if problem:
                wrong.append(f"{subject.network.name}, input {measured.input}: {problem}")
        if wrong:
            return "; ".join(wrong)
    return ""


def _attacked(radius: float, bracket: Bracket) -> str:
    if bracket.upper < radius - ROUNDING:
        return f"a counterexample at {bracket.upper:.7g} is within the radius {radius:.7g}"
    if bracket.upper > REACH * radius:
        return f"the closest counterexample found is at {bracket.upper:.7g}, not {radius:.7g}"
    return ""


def _bracketed(radius: float, bracket: Bracket) -> str:
    low, high = bracket.lower, bracket.upper
    if not low - ROUNDING <= radius <= high + ROUNDING:
        return f"the bracket [{low:.7g}, {high:.7g}) misses the radius {radius:.7g}"
    if high > REACH * radius or low < radius - 2 * STEP:
        return f"the bracket [{low:.7g}, {high:.7g}) is too wide for the radius {radius:.7g}"
    return ""


def _subjects() -> Iterator[_Subject]:
    from radii import datasets, demo

    yield _linear()
    for name, known in KNOWN.items():
        data = datasets.load_spec("digits:test").take(list(known))
        yield _Subject(demo.load_network(name), data, tuple(known.values()))


def _linear() -> _Subject:
    """Points of a linear classifier that break well inside of the grid."""
    from radii import datasets
    from radii.balls import Norm
    from radii.testing.networks import LinearClassifier

    classifier = LinearClassifier.random(SEED)
    rng = np.random.default_rng(SEED)
    points: list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]] = []
    radii: list[float] = []
    labels: list[int] = []
    while len(points) < POINTS:
        point = rng.uniform(-1, 1, 5).astype(np.float32).astype(np.float64)  # as data sets are
        label = int(np.argmax(classifier.weights @ point + classifier.bias))
        radius = classifier.radius(point, label, Norm.LINF)
        if 0.01 < radius < 0.15:
            points.append(point)
            labels.append(label)
            radii.append(radius)
    data = datasets.from_arrays(np.array(points), np.array(labels))
    return _Subject(classifier.network, data, tuple(radii))
