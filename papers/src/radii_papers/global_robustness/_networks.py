"""The networks of the study: one study of many networks for each data set, and groups of them."""

from __future__ import annotations

import dataclasses
import importlib.resources
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from radii.errors import DataError
from radii_papers._steps import StudyScale, StudySettings
from radii_papers.tradeoff._description import (
    RECIPE_KINDS,
    Study,
    expand,
    preset_tables,
    read_tables,
)
from radii_papers.tradeoff._results import StudyMember
from radii_papers.tradeoff._workers import run_study

SETS = {"mnist": "MNIST", "fashion": "Fashion-MNIST", "cifar10": "CIFAR-10"}
"""The paper's data sets, by the names of their presets."""

SMALL_NETWORKS = 5
SMALL_SAMPLES = 100
SMALL_PROOFS = 4
"""Of a small study: networks of a grid, inputs attacked and inputs proven of each network."""

LEARNED_SHARE = 0.5
"""A network learned something where it has this share of the best accuracy of its data set. Those
that did not give one class to nearly all inputs, which no attack changes."""


@dataclass(frozen=True, slots=True)
class NetworkStudies:
    """Where the studies of the data sets are described: TOML files of one's own, or presets."""

    folder: Path | None

    def path(self, name: str) -> Path | None:
        """The file of a data set in the folder; None without a folder."""
        return None if self.folder is None else self.folder / f"{name}.toml"

    def study(self, name: str, scale: StudyScale) -> Study:
        """The networks of a data set at a scale; those of one's own files are the same at all."""
        path = self.path(name)
        if path is not None:
            return Study.from_tables(read_tables(path))
        preset = "paper" if scale is StudyScale.FULL else "small"
        tables = preset_tables(f"{name}-{preset}")
        return Study.from_tables(thinned(tables) if scale is StudyScale.SMALL else tables)

    @property
    def files(self) -> list[Path]:
        if self.folder is not None:
            return [self.folder / f"{name}.toml" for name in SETS]
        presets = importlib.resources.files("radii_papers.tradeoff") / "presets"
        return [Path(str(presets / f"{name}-{size}.toml")) for name in SETS
                for size in ("paper", "small")]  # fmt: skip


def read_studies(folder: Path | None) -> NetworkStudies:
    """The presets; with a folder its files, all of which must be there."""
    found = NetworkStudies(folder)
    missing = [path for path in found.files if not path.is_file()]
    if missing:
        raise DataError(
            f"{missing[0]} is not there: --data takes a folder with "
            f"{', '.join(f'{name}.toml' for name in SETS)}, as radii study tradeoff reads them"
        )
    return found


def thinned(tables: dict[str, Any]) -> dict[str, Any]:
    """A few networks of each grid, measured on fewer inputs."""
    fewer = {**tables, "samples": SMALL_SAMPLES}
    fewer["proof_inputs"] = min(SMALL_PROOFS, tables["proof_inputs"])
    for kind in RECIPE_KINDS:
        grids = []
        for grid in tables.get(kind, []):
            every = {name: values for name, values in grid.items() if name != "count"}
            count = min(SMALL_NETWORKS, len(expand(kind, every, 0)))
            grids.append({**every, "count": count})
        if grids:
            fewer[kind] = grids
    return fewer


def make_networks(source: NetworkStudies, settings: StudySettings, name: str) -> list[StudyMember]:
    """All networks of a data set; those that are kept are not made again.

    They lie in the folder of the step that makes them, whichever step asks for them.
    """
    study = source.study(name, settings.scale)
    folder = network_folder(settings, name)
    folder.mkdir(parents=True, exist_ok=True)
    return run_study(study, folder, jobs=max(1, settings.jobs))


def network_folder(settings: StudySettings, name: str) -> Path:
    return settings.folder.parent / f"networks-{name}"


def all_networks(
    source: NetworkStudies, settings: StudySettings, names: Sequence[str] = tuple(SETS)
) -> dict[str, list[StudyMember]]:
    return {name: make_networks(source, settings, name) for name in names}


@dataclass(frozen=True, slots=True, eq=False)
class NetworkGroup:
    """Networks that are looked at together; `learned` are those that learned something."""

    title: str
    members: tuple[StudyMember, ...]
    best_accuracy: float

    @property
    def learned(self) -> NetworkGroup:
        least = LEARNED_SHARE * self.best_accuracy
        kept = tuple(m for m in self.members if (m.accuracy or 0.0) >= least)
        return dataclasses.replace(self, members=kept)


DETERMINISTIC, DENSE, CONVOLUTIONAL = "deterministic", "dense", "convolutional"
PRUNED, BAYESIAN, EVERY_CHAIN = "pruned", "Bayesian", "Bayesian, converged or not"
COUNTERPARTS = "deterministic, on the Bayesian images"


def network_groups(members: Sequence[StudyMember]) -> dict[str, NetworkGroup]:
    """The groups of a data set that have networks, by title.

    `deterministic` leaves out the counterparts of Bayesian networks, which see few images;
    `Bayesian` are those whose predictions converged.
    """
    made = [member for member in members if member.accuracy is not None]
    plain = [m for m in made if m.recipe.kind == "deterministic" and m.recipe.images is None]
    chains = [m for m in made if m.recipe.kind == "bayesian"]
    parts = {
        DETERMINISTIC: plain,
        DENSE: [m for m in plain if m.recipe.family == "dense"],
        CONVOLUTIONAL: [m for m in plain if m.recipe.family == "convolutional"],
        PRUNED: [m for m in made if m.recipe.kind == "pruned"],
        BAYESIAN: [m for m in chains if m.is_counted],
        EVERY_CHAIN: chains,
        COUNTERPARTS: [
            m for m in made if m.recipe.kind == "deterministic" and m.recipe.images is not None
        ],
    }
    best = max((m.accuracy or 0.0 for m in made), default=0.0)
    return {title: NetworkGroup(title, tuple(own), best) for title, own in parts.items() if own}
