"""The networks of a study: what each is made of, and the grids that many are taken from."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from radii.errors import ExperimentError
from radii.problem import Grid
from radii.statistics import Demand

RECIPE_KINDS = ("deterministic", "pruned", "bayesian")

ACTIVATIONS = ("relu", "tanh", "sigmoid")

_LAYERS: dict[str, tuple[Any, ...]] = {
    "depth": (1,),
    "width": (64,),
    "activation": ("relu",),
    "convolutions": (0,),
    "blocks": (0,),
    "filters": (5,),
    "kernel": (3,),
}
_GRADIENT: dict[str, tuple[Any, ...]] = {"rate": (0.01,), "epochs": (5,), "images": (None,)}
_OWN: dict[str, dict[str, tuple[Any, ...]]] = {
    "deterministic": _GRADIENT,
    "pruned": {**_GRADIENT, "strength": (0.9,), "rounds": (1,)},
    "bayesian": {"step": (0.01,), "steps": (20,), "samples": (100,)},
}
_CONVOLUTIONAL = ("filters", "kernel")
_REAL = ("rate", "strength", "step")
_SHORT = {
    "rate": "r",
    "epochs": "e",
    "images": "i",
    "strength": "p",
    "rounds": "x",
    "step": "h",
    "steps": "l",
    "samples": "n",
}

HYPER_PARAMETERS = (*_LAYERS, *_GRADIENT, "strength", "rounds", "step", "steps", "samples")
"""Whose effects are looked at, in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One network before it is made; None where a hyper-parameter has no meaning for it.

    `depth` and `width` are of the dense layers behind any `convolutions`, each of which halves the
    sides, or VGG's `blocks`, each of two convolutions and a pooling. `rate` and `epochs` are of
    gradient descent, on the first `images` or on all; `step`, `steps` and `samples` of the chains
    of a Bayesian network.
    """

    kind: str
    depth: int
    width: int
    activation: str
    convolutions: int = 0
    blocks: int = 0
    filters: int | None = None
    kernel: int | None = None
    rate: float | None = None
    epochs: int | None = None
    images: int | None = None
    strength: float | None = None
    rounds: int | None = None
    step: float | None = None
    steps: int | None = None
    samples: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in RECIPE_KINDS:
            raise ExperimentError(f"kind '{self.kind}' is not one of {', '.join(RECIPE_KINDS)}")
        if self.activation not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise ExperimentError(f"activation '{self.activation}' is not one of {known}")
        for name in HYPER_PARAMETERS:
            if name != "activation" and getattr(self, name) is not None:
                self._check(name)
        if self.strength is not None and not self.strength < 1:
            raise ExperimentError(f"strength {self.strength} must be below 1, such as 0.9")
        if self.convolutions and self.blocks:
            raise ExperimentError("a network has convolutions or blocks: one of them must be 0")

    def _check(self, name: str) -> None:
        least = 0 if name in ("convolutions", "blocks", "depth") else 1
        value = getattr(self, name)
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
        return "convolutional" if self.convolutions or self.blocks else "dense"

    @property
    def architecture(self) -> str:
        """Its name for `radii.training`."""
        widths = "-".join([str(self.width)] * self.depth)
        if self.family == "dense":
            return f"dense:{widths}@{self.activation}"
        form, count = ("vgg", self.blocks) if self.blocks else ("conv", self.convolutions)
        layers = "-".join([f"{self.filters}x{self.kernel}"] * count)
        return f"{form}:{layers}{'+' if widths else ''}{widths}@{self.activation}"

    @property
    def name(self) -> str:
        """Tells it apart from all others of a study; also the name of its directory."""
        parts = [self.kind, f"{self.depth}x{self.width}", self.activation]
        if self.convolutions:
            parts.insert(1, f"{self.convolutions}x{self.filters}k{self.kernel}")
        elif self.blocks:
            parts.insert(1, f"{self.blocks}v{self.filters}k{self.kernel}")
        for field, short in _SHORT.items():
            if getattr(self, field) is not None:
                parts.append(f"{short}{getattr(self, field):g}")
        return "-".join([*parts, f"s{self.seed}"])


def expand(kind: str, table: Mapping[str, Any], seed: int) -> list[Recipe]:
    """All combinations of a table's values, or `count` of them at random, by the seed."""
    if kind not in RECIPE_KINDS:
        raise ExperimentError(f"networks '{kind}' are not one of {', '.join(RECIPE_KINDS)}")
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
        if not chosen["convolutions"] and not chosen["blocks"]:
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


# What a study is: data, networks, and how each of them is measured; from TOML or as a preset.


STUDY_FILE = "study.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Checked on creation.

    R, R(gamma) and D are estimated by `attack` on as many inputs of `test` as `error` needs, or on
    `samples`. On the first `proof_inputs` of them, networks of the kinds in `prove` are also given
    to `verifier`, for `proof_timeout` seconds an input. Bayesian networks are trained on the first
    `bayesian_images`, by `chains` chains, of which `members` samples are kept; with `adapts` the
    step size of a recipe is only where warming up begins to tune it.
    """

    data: str
    test: str
    eps: str
    recipes: tuple[Recipe, ...]
    gamma: float = 0.5
    error: float = 0.05
    samples: int | None = None
    confidence: float = 0.95
    attack: str = "fgsm"
    prove: tuple[str, ...] = ("deterministic", "pruned")
    proof_inputs: int = 50
    proof_timeout: float = 1.0
    verifier: str = "native"
    optimizer: str = "sgd"
    momentum: float = 0.0
    batch: int = 32
    bayesian_images: int = 500
    chains: int = 2
    warmup: int = 100
    members: int = 10
    adapts: bool = True
    prior: float = 3.0
    seed: int = 0

    def __post_init__(self) -> None:
        Grid.of_one(self.eps)
        _ = self.demand
        if self.attack not in ("fgsm", "pgd"):
            raise ExperimentError(f"attack '{self.attack}' is not one of fgsm, pgd")
        for kind in self.prove:
            if kind not in RECIPE_KINDS:
                raise ExperimentError(f"prove '{kind}' is not one of {', '.join(RECIPE_KINDS)}")
        for name in ("proof_inputs", "bayesian_images", "chains", "members", "batch"):
            value = getattr(self, name)
            least = 0 if name == "proof_inputs" else 1
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ExperimentError(f"{name} {value!r} must be a whole number, {least} or more")
        if not 0 < self.gamma <= 1:
            raise ExperimentError(f"gamma {self.gamma} must be above 0 and at most 1, such as 0.5")
        if not self.proof_timeout > 0:
            raise ExperimentError(f"proof_timeout {self.proof_timeout} must be above 0")
        if not self.recipes:
            raise ExperimentError(
                f"a study needs networks: give a table [[{RECIPE_KINDS[0]}]], "
                f"or of {', '.join(RECIPE_KINDS[1:])}"
            )
        if len({recipe.name for recipe in self.recipes}) < len(self.recipes):
            raise ExperimentError("two grids of the study hold the same network; remove it in one")

    @property
    def demand(self) -> Demand:
        """How precise the estimates by attack are."""
        return Demand(
            error=None if self.samples is not None else self.error,
            samples=self.samples,
            confidence=self.confidence,
        )

    @classmethod
    def from_tables(cls, tables: Mapping[str, Any]) -> Study:
        """From what a TOML file holds: settings, and a list of grids for each kind of network."""
        given = dict(tables)
        seed = given.get("seed", 0)
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
            raise ExperimentError(f"seed {seed!r} must be a whole number from 0 to 2^32 - 1")
        recipes: list[Recipe] = []
        for kind in RECIPE_KINDS:
            grids = given.pop(kind, [])
            if not isinstance(grids, list) or not all(isinstance(grid, dict) for grid in grids):
                raise ExperimentError(f"'{kind}' must be a list of tables: [[{kind}]]")
            for place, grid in enumerate(grids):
                recipes += expand(kind, grid, seed + place)
        if "prove" in given:
            given["prove"] = tuple(given["prove"])
        given["eps"] = str(given.get("eps", ""))
        known = {field.name for field in dataclasses.fields(cls)} - {"recipes"}
        for name in given:
            if name not in known:
                raise ExperimentError(f"a study has no setting '{name}'")
        for name in ("data", "test", "eps"):
            if not given.get(name):
                raise ExperimentError(f"a study needs '{name}'")
        try:
            return cls(recipes=tuple(recipes), **given)
        except TypeError as error:
            raise ExperimentError(f"the study's settings do not fit ({error})") from None

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that decides its results, as JSON has it."""
        told: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        return told

    @classmethod
    def read(cls, directory: Path) -> Study:
        """The study that a directory holds."""
        path = directory / STUDY_FILE
        try:
            told = json.loads(path.read_text())
            recipes = tuple(Recipe(**recipe) for recipe in told.pop("recipes"))
            return cls(recipes=recipes, prove=tuple(told.pop("prove")), **told)
        except FileNotFoundError:
            raise ExperimentError(
                f"{directory}: holds no study ('{STUDY_FILE}' is missing)"
            ) from None
        except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
            raise ExperimentError(f"{path}: cannot be read as a study ({error})") from None


def read_tables(path: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ExperimentError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise ExperimentError(f"{path}: is not TOML ({error})") from None


def preset_names() -> list[str]:
    """The studies that come with radii."""
    folder = resources.files("radii_papers.tradeoff") / "presets"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir())


def preset_tables(name: str) -> dict[str, Any]:
    """The tables of a preset."""
    if name not in preset_names():
        raise ExperimentError(f"preset '{name}' is not one of {', '.join(preset_names())}")
    text = (resources.files("radii_papers.tradeoff") / "presets" / f"{name}.toml").read_text()
    return tomllib.loads(text)
