"""What a study is: data, networks, and how each of them is measured; from TOML or as a preset."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from radii.errors import ExperimentError
from radii.global_robustness import one_value_grid
from radii.guarantees import Demand
from radii.studies.recipes import KINDS, Recipe, expand

__all__ = ["FILE_NAME", "Study", "preset_names", "preset_tables", "read_tables"]

FILE_NAME = "study.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Checked on creation.

    R and D are estimated by `attack` on as many inputs of `test` as `error` needs, or on
    `samples`. On the first `proof_inputs` of them, networks of the kinds in `prove` are also given
    to `verifier`, for `proof_timeout` seconds an input. Bayesian networks are trained on the first
    `bayesian_images`, by `chains` chains, of which `members` samples are kept.
    """

    data: str
    test: str
    eps: str
    recipes: tuple[Recipe, ...]
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
    prior: float = 3.0
    seed: int = 0

    def __post_init__(self) -> None:
        one_value_grid(self.eps)
        _ = self.demand
        if self.attack not in ("fgsm", "pgd"):
            raise ExperimentError(f"attack '{self.attack}' is not one of fgsm, pgd")
        for kind in self.prove:
            if kind not in KINDS:
                raise ExperimentError(f"prove '{kind}' is not one of {', '.join(KINDS)}")
        for name in ("proof_inputs", "bayesian_images", "chains", "members", "batch"):
            value = getattr(self, name)
            least = 0 if name == "proof_inputs" else 1
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ExperimentError(f"{name} {value!r} must be a whole number, {least} or more")
        if not self.proof_timeout > 0:
            raise ExperimentError(f"proof_timeout {self.proof_timeout} must be above 0")
        if not self.recipes:
            raise ExperimentError(
                f"a study needs networks: give a table [[{KINDS[0]}]], or of {', '.join(KINDS[1:])}"
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
        for kind in KINDS:
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
        path = directory / FILE_NAME
        try:
            told = json.loads(path.read_text())
            recipes = tuple(Recipe(**recipe) for recipe in told.pop("recipes"))
            return cls(recipes=recipes, prove=tuple(told.pop("prove")), **told)
        except FileNotFoundError:
            raise ExperimentError(
                f"{directory}: holds no study ('{FILE_NAME}' is missing)"
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
    folder = resources.files("radii.studies") / "presets"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir())


def preset_tables(name: str) -> dict[str, Any]:
    """The tables of a preset."""
    if name not in preset_names():
        raise ExperimentError(f"preset '{name}' is not one of {', '.join(preset_names())}")
    text = (resources.files("radii.studies") / "presets" / f"{name}.toml").read_text()
    return tomllib.loads(text)
