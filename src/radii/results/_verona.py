"""A VERONA experiment's folder: which networks, images, epsilons and results it holds.

experiment/
  data/networks/*.onnx, or data/networks/networks.csv with a column `architecture`
  data/images/*.pt and data/image_labels.csv
  results/RUN/configuration.json, results/RUN/results/result_df.csv
"""

from __future__ import annotations

import csv
import itertools
import json
import os
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from radii.datasets import is_verona
from radii.errors import ExperimentError, SpecificationError
from radii.queries import Grid

DECIMALS = 12
"""Of epsilons: numpy.arange makes 0.009000000000000001 of 0.009."""


@dataclass(frozen=True, slots=True)
class VeronaExperiment:
    """`epsilons` are those of the last run's configuration, as it lists them; maybe none."""

    networks: tuple[Path, ...]
    data: Path
    epsilons: tuple[str, ...]
    results: tuple[Path, ...]

    @property
    def grid(self) -> Grid | None:
        """The epsilons, if they are evenly spaced but for the rounding of float64."""
        try:
            values = sorted({round(Fraction(told), DECIMALS) for told in self.epsilons})
            steps = {after - before for before, after in itertools.pairwise(values)} or set(values)
            if len(steps) != 1:
                return None
            step = steps.pop()
            return Grid(values[0], values[-1] + step, step)
        except (ValueError, ZeroDivisionError, SpecificationError):
            return None

    def as_toml(self, *, domain: str, beside: Path) -> str:
        """An experiment file of radii that is to lie in the folder `beside`."""
        names = [_quoted(os.path.relpath(path.resolve(), beside)) for path in self.networks]
        lines = [
            "# made from a VERONA experiment by radii convert",
            f"networks = [{', '.join(names)}]",
            f"data = {_quoted(os.path.relpath(self.data.resolve(), beside))}",
            f"domain = {_quoted(domain)}  # valid inputs",
        ]
        grid = self.grid
        if grid is not None:
            lines.append(f'grid = "{grid}"  # the epsilons of its last run')
        elif self.epsilons:
            lines.append(f"# its epsilons are not evenly spaced: {', '.join(self.epsilons)}")
            lines.append('# grid = "START:STOP:STEP"')
        return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A string of TOML, which, unlike JSON, knows no pairs of surrogates."""
    if not text.isprintable():
        raise ExperimentError(f"{text!r}: has characters that an experiment file cannot hold")
    return json.dumps(text, ensure_ascii=False)


def find_experiment(folder: Path) -> VeronaExperiment:
    """What the folder holds; an ExperimentError says what is missing."""
    if not folder.is_dir():
        raise ExperimentError(f"{folder}: there is no such folder")
    root = folder / "data" if (folder / "data").is_dir() else folder
    if not is_verona(root):
        raise ExperimentError(f"{root}: has no images/*.pt with image_labels.csv, as VERONA's have")
    configurations = sorted(folder.glob("**/configuration.json"), key=lambda p: p.stat().st_mtime)
    return VeronaExperiment(
        networks=_networks(root / "networks"),
        data=root,
        epsilons=_epsilons(configurations[-1]) if configurations else (),
        results=tuple(
            path.parent.parent for path in sorted(folder.glob("**/results/result_df.csv"))
        ),
    )


def _networks(folder: Path) -> tuple[Path, ...]:
    listed = folder / "networks.csv"
    found: tuple[Path, ...]
    if listed.is_file():
        try:
            with listed.open(newline="", encoding="utf-8-sig") as stream:
                rows = list(csv.DictReader(stream))
            told = [row["architecture"] for row in rows if row.get("network_type") == "onnx"]
            names = [name for name in told if name]
        except (OSError, UnicodeDecodeError, csv.Error, KeyError):
            raise ExperimentError(
                f"{listed}: is not a table with architecture and network_type"
            ) from None
        found = tuple(_placed(folder, Path(name)) for name in names)
    else:
        found = tuple(sorted(folder.glob("*.onnx")))
    if not found:
        raise ExperimentError(f"{folder}: holds no network in ONNX")
    return found


def _placed(folder: Path, named: Path) -> Path:
    """A path in networks.csv is from where VERONA was started; its name may lie beside the list."""
    places = (named, folder / named, folder / named.name)
    return next((place for place in places if place.is_file()), folder / named)


def _epsilons(path: Path) -> tuple[str, ...]:
    try:
        told = json.loads(path.read_text("utf-8"))
        return tuple(str(float(value)) for value in told.get("epsilon_list", ()))
    except (OSError, ValueError, AttributeError, TypeError):
        raise ExperimentError(f"{path}: is not a configuration of VERONA") from None
