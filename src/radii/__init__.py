"""radii measures how robust a neural network really is.

For every input: the radius within which its prediction provably holds, and a concrete
counterexample just outside it. Heavy packages (torch, matplotlib, onnx) load on first use.

PYTEST_DONT_REWRITE: radii brings a pytest plugin, and pytest warns of a package with one that was
imported before pytest started; this keeps it from doing so.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Bracket": "radii.verdicts",
    "Dataset": "radii.datasets",
    "Distribution": "radii.distributions",
    "Domain": "radii.balls",
    "Grid": "radii.queries",
    "Instance": "radii.queries",
    "Network": "radii.networks",
    "Norm": "radii.balls",
    "Query": "radii.queries",
    "Verdict": "radii.verdicts",
    "from_foolbox": "radii.networks",
    "from_torch": "radii.networks",
    "load_network": "radii.networks",
    "robustness_distribution": "radii.api",
}
_MODULES = frozenset(
    {
        "attacks",
        "datasets",
        "distributions",
        "ensembles",
        "guarantees",
        "plots",
        "properties",
        "training",
        "verifiers",
    }
)

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
    from radii.networks import Network, from_foolbox, from_torch, load_network
    from radii.queries import Grid, Instance, Query
    from radii.verdicts import Bracket, Verdict


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"radii.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'radii' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
