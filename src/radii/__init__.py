"""radii measures how robust a neural network really is.

For every input: the radius within which its prediction provably holds, and a concrete
counterexample just outside it. Heavy packages (torch, matplotlib, onnx) load on first use.

PYTEST_DONT_REWRITE: radii brings a pytest plugin, and pytest warns of a package with one that was
imported before pytest started; this keeps it from doing so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Bracket": "verdicts",
    "Dataset": "datasets",
    "Distribution": "distributions",
    "Domain": "balls",
    "Grid": "queries",
    "Instance": "queries",
    "Network": "networks",
    "Norm": "balls",
    "Query": "queries",
    "Verdict": "verdicts",
    "from_foolbox": "networks",
    "from_sklearn": "networks",
    "from_torch": "networks",
    "load_network": "networks",
    "robustness_distribution": "api",
    "attacks": "",
    "datasets": "",
    "distributions": "",
    "ensembles": "",
    "guarantees": "",
    "plots": "",
    "properties": "",
    "training": "",
    "verifiers": "",
}

__all__ = [
    "Bracket",
    "Dataset",
    "Distribution",
    "Domain",
    "Grid",
    "Instance",
    "Network",
    "Norm",
    "Query",
    "Verdict",
    "__version__",
    "attacks",
    "datasets",
    "distributions",
    "ensembles",
    "from_foolbox",
    "from_sklearn",
    "from_torch",
    "guarantees",
    "load_network",
    "plots",
    "properties",
    "robustness_distribution",
    "training",
    "verifiers",
]

if TYPE_CHECKING:
    from radii import (
        attacks,
        datasets,
        distributions,
        ensembles,
        guarantees,
        plots,
        properties,
        training,
        verifiers,
    )
    from radii.api import robustness_distribution
    from radii.balls import Domain, Norm
    from radii.datasets import Dataset
    from radii.distributions import Distribution
    from radii.networks import Network, from_foolbox, from_sklearn, from_torch, load_network
    from radii.queries import Grid, Instance, Query
    from radii.verdicts import Bracket, Verdict


def load_on_use(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names load their modules when they are asked for.

    `homes` gives the module of the package in which each name is defined, and "" for a name that is
    itself a module of the package.
    """

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        if not homes[name]:
            return import_module(f"{package}.{name}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return load


if not TYPE_CHECKING:  # type checkers see the imports above, and nothing else
    __getattr__ = load_on_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
