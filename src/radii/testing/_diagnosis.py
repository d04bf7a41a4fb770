"""What is installed here (packages, verifiers, data sets, plugins), and a self-test.

The self-test measures inputs of known radius through the whole of radii. A linear classifier's
radius has a closed form. Those of the embedded networks were measured by MILP to within 1e-6, and
a test measures them again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.datasets import DIGITS, catalogue, manifest_of, published_names
from radii.errors import InputError, RadiiError
from radii.plugins import PluginGroup, load_plugin, load_plugin_class, package_of, plugin_names

if TYPE_CHECKING:
    from radii.datasets import Dataset
    from radii.networks import Network
    from radii.problem import Bracket


REQUIREMENT = re.compile(r'([\w.-]+)[^;\[]*(?:;.*extra == "([\w-]+)")?')


@dataclass(frozen=True, slots=True)
class PackageStatus:
    """A package that radii uses. `extra` installs it where it is optional; no version: missing."""

    name: str
    version: str | None
    extra: str | None

    @property
    def is_lacking(self) -> bool:
        """It is needed and not there."""
        return self.version is None and self.extra is None


@dataclass(frozen=True, slots=True)
class VerifierStatus:
    """A verifier. `refusal` says why it cannot be used here; None if it can."""

    name: str
    version: str
    refusal: str | None


@dataclass(frozen=True, slots=True)
class DatasetStatus:
    """A data set that radii knows by name. `problem`: it is in place, and damaged."""

    name: str
    is_in_place: bool
    problem: str = ""


@dataclass(frozen=True, slots=True)
class PluginStatus:
    """What another package adds. `problem` says why it cannot be used; empty if it can."""

    family: str
    name: str
    package: str
    problem: str = ""


def packages() -> list[PackageStatus]:
    """All packages that radii's metadata names."""
    statuses = []
    for text in metadata.requires("radii") or []:
        matched = REQUIREMENT.fullmatch(text)
        if matched:  # not those of an extra that only names others
            statuses.append(PackageStatus(matched[1], _version(matched[1]), matched[2]))
    return statuses


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def tools() -> list[VerifierStatus]:
    """Every verifier that the command line knows, offered the smallest of networks."""
    from radii import verifiers
    from radii.problem import Norm
    from radii.testing._networks import LinearClassifier

    network = LinearClassifier.random(0).network
    statuses = []
    for name in verifiers.verifier_names():
        try:
            verifier = verifiers.get(name)
        except InputError as error:
            statuses.append(VerifierStatus(name, "", str(error)))
        else:
            refusal = verifier.unsupported(network, Norm.LINF)
            statuses.append(VerifierStatus(name, verifier.version, refusal))
    return statuses


def plugins(commands: Collection[str] = ()) -> list[PluginStatus]:
    """What other packages add, loaded to see whether it can be; `commands` are radii's own."""
    from radii import attacks, problem, strategy, verifiers

    own: dict[PluginGroup, Collection[str]] = {
        PluginGroup.VERIFIERS: [kind.name for kind in verifiers.VERIFIERS],
        PluginGroup.ATTACKS: [kind.name for kind in attacks.ATTACKS],
        PluginGroup.SEARCHES: [kind.name for kind in strategy.SEARCHES],
        PluginGroup.PROPERTIES: [form.partition(":")[0] for form in problem.PROPERTY_FORMS],
        PluginGroup.DATASETS: [DIGITS, *published_names()],
        PluginGroup.COMMANDS: commands,
    }
    bases: dict[PluginGroup, type[Any]] = {
        PluginGroup.VERIFIERS: verifiers.Verifier,
        PluginGroup.ATTACKS: attacks.Attack,
        PluginGroup.SEARCHES: strategy.Search,
        PluginGroup.PROPERTIES: problem.Property,
    }
    statuses = []
    for group in PluginGroup:
        for name in plugin_names(group):
            reason = ""
            try:
                if name in own.get(group, ()):
                    reason = f"hidden: radii has a {group.word} '{name}' of its own"
                elif group in bases:
                    load_plugin_class(group, name, bases[group])
                else:
                    load_plugin(group, name)
            except InputError as error:
                reason = str(error)
            statuses.append(PluginStatus(group.word, name, package_of(group, name), reason))
    return statuses


def data_sets() -> list[DatasetStatus]:
    """The embedded digits, and those that can be put in place."""
    statuses = [DatasetStatus(DIGITS, True)]
    for known in catalogue():
        try:
            statuses.append(DatasetStatus(known.name, manifest_of(known) is not None))
        except InputError as error:
            statuses.append(DatasetStatus(known.name, False, str(error)))
    return statuses


KNOWN_RADII = {
    "mlp-standard": {1: 0.0442389, 2: 0.0371914, 4: 0.0144188},
    "cnn-standard": {2: 0.0427820, 4: 0.0205257},
}
"""Linf radii of embedded networks at inputs of `digits:test`."""

BRACKET_ROUNDING = 2e-6
"""How far a side of a bracket may be beyond a known radius: both are rounded."""

WITNESS_REACH = 1.05
"""A counterexample of a working attack is not further away than this times the radius."""

GRID_STEP = 0.002
SELF_TEST_GRID = f"{GRID_STEP}:0.2:{GRID_STEP}"
SEED = 11
POINTS = 4
SELF_TEST_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class SelfTestStep:
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


def self_test(report: Callable[[SelfTestStep], None] = lambda _: None) -> list[SelfTestStep]:
    """Each part on its own: one that fails does not stop the next; `report` is called with each."""
    parts: list[tuple[str, Callable[[], str]]] = [
        ("attack", lambda: _bracket_problem(_witness_problem, "attack-only")),
        ("native", lambda: _bracket_problem(_side_problem, "native")),
        ("milp", lambda: _bracket_problem(_side_problem, "attack-guided", verifier="milp")),
        ("a worker process", lambda: _bracket_problem(_side_problem, "native", jobs=1)),
    ]
    steps = []
    for name, part in parts:
        began = time.perf_counter()
        try:
            problem = part()
        except (RadiiError, OSError, ImportError) as error:
            problem = " ".join(str(error).split())
        steps.append(SelfTestStep(name, time.perf_counter() - began, problem))
        report(steps[-1])
    return steps


def _bracket_problem(
    judge: Callable[[float, Bracket], str], search: str, *, verifier: str = "native", jobs: int = 0
) -> str:
    """What is wrong with the brackets that this way of searching finds; empty if nothing is."""
    from radii.problem import Grid
    from radii.runs import Settings, plan
    from radii.store import Store

    settings = Settings(
        grid=Grid.parse(SELF_TEST_GRID),
        search=search,
        verifier=verifier,
        timeout=SELF_TEST_SECONDS,
        seed=SEED,
    )
    for subject in [_linear()] if jobs else _subjects():  # a worker takes seconds to start
        with Store.in_memory() as store:
            plan([subject.network], subject.data, settings).run(store, jobs=jobs)
            measured_all = store.measurements()
            wrong = [str(disagreement) for _, _, disagreement in store.disagreements()]
        for measured, radius in zip(measured_all, subject.radii, strict=True):
            problem = judge(radius, measured.bracket)
            if problem:
                wrong.append(f"{subject.network.name}, input {measured.input}: {problem}")
        if wrong:
            return "; ".join(wrong)
    return ""


def _witness_problem(radius: float, bracket: Bracket) -> str:
    if bracket.upper < radius - BRACKET_ROUNDING:
        return f"a counterexample at {bracket.upper:.7g} is within the radius {radius:.7g}"
    if bracket.upper > WITNESS_REACH * radius:
        return f"the closest counterexample found is at {bracket.upper:.7g}, not {radius:.7g}"
    return ""


def _side_problem(radius: float, bracket: Bracket) -> str:
    low, high = bracket.lower, bracket.upper
    if not low - BRACKET_ROUNDING <= radius <= high + BRACKET_ROUNDING:
        return f"the bracket [{low:.7g}, {high:.7g}) misses the radius {radius:.7g}"
    if high > WITNESS_REACH * radius or low < radius - 2 * GRID_STEP:
        return f"the bracket [{low:.7g}, {high:.7g}) is too wide for the radius {radius:.7g}"
    return ""


def _subjects() -> Iterator[_Subject]:
    from radii import datasets, demo

    yield _linear()
    for name, known in KNOWN_RADII.items():
        data = datasets.load_spec("digits:test").take(list(known))
        yield _Subject(demo.load_network(name), data, tuple(known.values()))


def _linear() -> _Subject:
    """Points of a linear classifier that break well inside of the grid."""
    from radii import datasets
    from radii.problem import Norm
    from radii.testing._networks import LinearClassifier

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
