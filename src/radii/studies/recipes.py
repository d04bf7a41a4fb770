"""The networks of a study: what each is made of, and the grids that many are taken from."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from radii.errors import ExperimentError

__all__ = ["HYPER_PARAMETERS", "KINDS", "Recipe", "expand"]

KINDS = ("deterministic", "pruned", "bayesian")

ACTIVATIONS = ("relu", "tanh", "sigmoid")

_LAYERS: dict[str, tuple[Any, ...]] = {
    "depth": (1,),
    "width": (64,),
    "activation": ("relu",),
    "convolutions": (0,),
    "filters": (5,),
    "kernel": (3,),
}
_GRADIENT: dict[str, tuple[Any, ...]] = {"rate": (0.01,), "epochs": (5,)}
_OWN: dict[str, dict[str, tuple[Any, ...]]] = {
    "deterministic": _GRADIENT,
    "pruned": {**_GRADIENT, "strength": (0.9,), "rounds": (1,)},
    "bayesian": {"step": (0.01,), "steps": (20,), "samples": (100,)},
}
_CONVOLUTIONAL = ("filters", "kernel")
_REAL = ("rate", "strength", "step")
_SHORT = {"rate": "r", "epochs": "e", "strength": "p", "rounds": "x", "step": "h", "steps": "l"}

HYPER_PARAMETERS = (*_LAYERS, *_GRADIENT, "strength", "rounds", "step", "steps", "samples")
"""Whose effects are looked at, in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One network before it is made; None where a hyper-parameter has no meaning for it.

    `depth` and `width` are of the dense layers behind any `convolutions`. `rate` and `epochs` are
    of gradient descent, `step`, `steps` and `samples` of the chains of a Bayesian network.
    """

    kind: str
    depth: int
    width: int
    activation: str
    convolutions: int = 0
    filters: int | None = None
    kernel: int | None = None
    rate: float | None = None
    epochs: int | None = None
    strength: float | None = None
    rounds: int | None = None
    step: float | None = None
    steps: int | None = None
    samples: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ExperimentError(f"kind '{self.kind}' is not one of {', '.join(KINDS)}")
        if self.activation not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise ExperimentError(f"activation '{self.activation}' is not one of {known}")
        for name in HYPER_PARAMETERS:
            if name != "activation" and getattr(self, name) is not None:
                self._check(name)
        if self.strength is not None and not self.strength < 1:
            raise ExperimentError(f"strength {self.strength} must be below 1, such as 0.9")

    def _check(self, name: str) -> None:
        value, least = getattr(self, name), 0 if name in ("convolutions", "depth") else 1
        if name in _REAL:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ExperimentError(f"{name} {value!r} must be a number")
            if not 0 < value < math.inf:
                raise ExperimentError(f"{name} {value} must be above 0")
        elif isinstance(value, bool) or not isinstance(value, int):
            raise ExperimentError(f"{name} {value!r} must be a whole number")
        elif value < least:
            raise ExperimentError(f"{name} {value} must be at least {least}")

    @property
    def family(self) -> str:
        return "convolutional" if self.convolutions else "dense"

    @property
    def architecture(self) -> str:
        """Its name for `radii.training`."""
        widths = "-".join([str(self.width)] * self.depth)
        if not self.convolutions:
            return f"dense:{widths}@{self.activation}"
        layers = "-".join([f"{self.filters}x{self.kernel}"] * self.convolutions)
        return f"conv:{layers}{'+' if widths else ''}{widths}@{self.activation}"

    @property
    def name(self) -> str:
        """Tells it apart from all others of a study; also the name of its directory."""
        parts = [self.kind, f"{self.depth}x{self.width}", self.activation]
        if self.convolutions:
            parts.insert(1, f"{self.convolutions}x{self.filters}k{self.kernel}")
        for field, short in {**_SHORT, "samples": "n"}.items():
            if getattr(self, field) is not None:
                parts.append(f"{short}{getattr(self, field):g}")
        return "-".join([*parts, f"s{self.seed}"])


def expand(kind: str, table: Mapping[str, Any], seed: int) -> list[Recipe]:
    """All combinations of a table's values, or `count` of them at random, by the seed."""
    if kind not in KINDS:
        raise ExperimentError(f"networks '{kind}' are not one of {', '.join(KINDS)}")
    known = {**_LAYERS, **_OWN[kind], "seed": (0,)}
    for name in table:
        if name not in known and name != "count":
            raise ExperimentError(
                f"{kind} networks have no '{name}'; known are {', '.join((*known, 'count'))}"
            )
    axes = {name: _values(name, table.get(name, default)) for name, default in known.items()}
    found: dict[Recipe, None] = {}
    for values in itertools.product(*axes.values()):
        chosen = dict(zip(axes, values, strict=True))
        if not chosen["convolutions"]:
            chosen |= dict.fromkeys(_CONVOLUTIONAL)
            if chosen["depth"] == 0:
                raise ExperimentError("a network without convolutions needs a depth of 1 or more")
        found[Recipe(kind=kind, **chosen)] = None
    return _drawn(list(found), table.get("count"), seed)


def _values(name: str, given: object) -> tuple[Any, ...]:
    values = tuple(given) if isinstance(given, list | tuple) else (given,)
    if not values:
        raise ExperimentError(f"'{name}' has no values")
    return values


def _drawn(recipes: list[Recipe], count: object, seed: int) -> list[Recipe]:
    if count is None:
        return recipes
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= len(recipes):
        raise ExperimentError(
            f"count {count!r} must be a whole number from 1 to the {len(recipes)} combinations"
        )
    places = np.random.default_rng(seed).permutation(len(recipes))[:count]
    return [recipes[place] for place in sorted(places)]
