"""What came of each network of a study: one record a network, in a file of its own."""

from __future__ import annotations

import csv
import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from radii.errors import ExperimentError, StoreError
from radii.guarantees import Estimate
from radii.training.studies._description import Recipe, Study

MEMBER_FILE = "result.json"


@dataclass(frozen=True, slots=True)
class Value:
    """A measure: its mean over the sample, at least and at most, and over all test inputs."""

    least: float
    most: float
    low: float
    high: float
    inputs: int

    @classmethod
    def of(cls, estimate: Estimate) -> Value:
        return cls(estimate.least, estimate.most, estimate.low, estimate.high, estimate.samples)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyMember:
    """One network that was made and measured.

    `robustness` and `change` are R and D as the attack sees them, as if it found the worst: R is
    at most that, D at least. `proven_robustness` and `proven_change` hold whatever was decided;
    `unbroken` is the share of the same inputs that the attack did not break. `failure` says why a
    network has no values, `refusal` why it has none that are proven. `converged` is of the
    predictions of a Bayesian network.
    """

    recipe: Recipe
    parameters: int
    accuracy: float | None = None
    robustness: Value | None = None
    change: Value | None = None
    proven_robustness: Value | None = None
    proven_change: Value | None = None
    unbroken: float | None = None
    converged: bool | None = None
    rhat: float | None = None
    effective: float | None = None
    failure: str = ""
    refusal: str = ""
    seconds: float = 0.0

    @property
    def gap(self) -> float | None:
        """The share of inputs that the attack did not break and that are not proven robust."""
        if self.unbroken is None or self.proven_robustness is None:
            return None
        return self.unbroken - self.proven_robustness.least

    @property
    def is_counted(self) -> bool:
        """It has values, and if it is Bayesian its predictions converged."""
        return self.accuracy is not None and self.converged is not False

    def row(self) -> dict[str, Any]:
        """Everything, flat: the columns of the CSV file and the keys of the JSON output."""
        told: dict[str, Any] = {"network": self.recipe.name, "family": self.recipe.family}
        told |= dataclasses.asdict(self.recipe)
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name in _VALUES:
                for part in dataclasses.fields(Value):
                    name = f"{field.name}_{part.name}"
                    told[name] = None if value is None else getattr(value, part.name)
            elif field.name != "recipe":
                told[field.name] = value
        return {**told, "gap": self.gap}


_VALUES = ("robustness", "change", "proven_robustness", "proven_change")


def member_directory(directory: Path, recipe: Recipe) -> Path:
    return directory / "networks" / recipe.name


def read_member(directory: Path, recipe: Recipe) -> StudyMember | None:
    """None while the network is not finished."""
    path = member_directory(directory, recipe) / MEMBER_FILE
    try:
        told = json.loads(path.read_text())
        told["recipe"] = Recipe(**told["recipe"])
        for name in _VALUES:
            told[name] = None if told[name] is None else Value(**told[name])
        return StudyMember(**told)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, LookupError, ExperimentError) as error:
        raise StoreError(
            f"{path}: cannot be read ({error}); remove it to measure the network again"
        ) from None


def read_members(directory: Path) -> list[StudyMember]:
    """Those that are finished, in the order of the study."""
    found = (read_member(directory, recipe) for recipe in Study.read(directory).recipes)
    return [member for member in found if member is not None]


def write_csv(members: Sequence[StudyMember], path: Path) -> None:
    """A line a network."""
    rows = [member.row() for member in members]
    try:
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(rows[0]) if rows else ["network"])
            writer.writeheader()
            writer.writerows(rows)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror})") from None
