"""An experiment file, with comments that say what was checked and what to change."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import numpy as np

from radii import __version__
from radii.datasets import DIGITS, Spec, exists, extent, find_published
from radii.problem import Domain
from radii.runs._description import Experiment
from radii.runs._fields import printable, to_toml
from radii.runs._inspection import Inspection

SUGGESTED_GRID = (0.001, 0.4, 0.002)
"""As in the papers, for pixels between 0 and 1: start, stop, step."""

GRID_OF_TABLES = "0.01:1.01:0.01"
"""For features that move by their deviation at eps 1."""

EXAMPLE = (0.5,)
"""Of a mean or a deviation, commented out where networks are fed the data as they are."""


def experiment_text(
    inspections: Sequence[Inspection],
    paths: Sequence[str],
    data: str,
    domain: Domain,
    *,
    file: Path,
    label: str | None = None,
    classes: Sequence[str] | None = None,
    features: str | None = None,
) -> str:
    """TOML that `radii run` takes, to be written to `file`; paths in it are relative to that.

    `classes` are the names of the outputs that were given; `features` is the file that says what
    the columns of a table are, their bounds included.
    """
    beside = file.resolve().parent
    feeding = inspections[0].best.preprocessing
    data_set = inspections[0].data
    classes = classes or (data_set.classes if data_set.assumes_order else None)
    is_fed_as_it_is = feeding.mean is None or feeding.std is None
    values: dict[str, object] = {
        "networks": [_relative(path, beside) for path in paths],
        "data": _relative_spec(data, beside),
        **({} if label is None else {"label": label}),
        **({} if classes is None else {"classes": classes}),
        **({"domain": domain} if features is None else {"features": features}),
        "mean": EXAMPLE if is_fed_as_it_is else feeding.mean,
        "std": EXAMPLE if is_fed_as_it_is else feeding.std,
        **({"layout": feeding.layout} if feeding.layout else {}),
        "property": "one-to-any",
        "norm": "linf",
        "grid": _grid_text(domain) if features is None else GRID_OF_TABLES,
        "verifier": "native",
        "arithmetic": "float",
        "timeout": 60,
        "seed": 0,
    }
    notes = {
        "networks": _network_lines(inspections),
        "data": _data_lines(inspections[0]),
        "classes": ["In alphabetical order: CHECK THIS."] if data_set.assumes_order else [],
        "mean": [line for one in inspections for line in findings_lines(one)],
    }
    examples = ("mean", "std") if is_fed_as_it_is else ()
    return (
        f"# An experiment for radii {__version__}, written by radii init on {date.today()}.\n"
        f"# Run it, and run it again to continue:  radii run {printable(file.name)} --out results\n"
        f"{to_toml(Experiment, values, notes, examples)}"
    )


def findings_lines(one: Inspection) -> list[str]:
    """The evidence for how a network is fed, a line a guess."""
    count, best = len(one.data), one.best
    lines = [f"{one.network.name}:"]
    for finding in one.findings:
        mark = "<- chosen" if finding is best else ""
        right = int(finding.is_right.sum())
        line = f"  {right:>4} of {count} right ({finding.accuracy:.1%})  {finding.preprocessing}"
        lines.append(f"{line}  {mark}".rstrip())
    others = [str(other.preprocessing) for other in one.alternatives]
    if one.is_doubtful:
        lines.append(
            "  CHECK THIS: none is surely better than guessing; the labels or the way of feeding "
            "may be others than in training."
        )
    elif others:
        lines.append(f"  These inputs do not tell it from: {'; '.join(others)}.")
    return lines


def _network_lines(inspections: Sequence[Inspection]) -> list[str]:
    lines = []
    for one in inspections:
        network = one.network
        kind = "piecewise linear" if network.is_piecewise_linear else "not piecewise linear"
        shape = extent(network.input_shape)
        lines.append(f"{network.name}: {shape} -> {network.output_size} classes, {kind}")
    return lines


def _data_lines(one: Inspection) -> list[str]:
    data = one.data
    counts = np.bincount(data.labels)
    present = counts[counts > 0]
    spread = f"{present.min()} to {present.max()} inputs each"
    images = data.images
    return [
        f"Looked at: {len(data)} inputs of {extent(data.shape)}, values from "
        f"{images.min():g} to {images.max():g}, {len(present)} classes with {spread}."
    ]


def _grid_text(domain: Domain) -> str:
    """The usual grid, in proportion where values range over more than 0 to 1."""
    width = float(np.max(domain.high - domain.low))
    width = width if np.isfinite(width) else 1.0
    return ":".join(f"{width * side:.4g}" for side in SUGGESTED_GRID)


def _relative(path: str, beside: Path) -> str:
    return os.path.relpath(Path(path).expanduser().resolve(), beside)


def _relative_spec(data: str, beside: Path) -> str:
    """A spec of a file, with the file's path relative; names of data sets stay."""
    location = Spec.parse(data).location
    is_name = location.lower() == DIGITS or find_published(location)
    if is_name or not exists(location):
        return data
    return data.replace(location, _relative(location, beside), 1)
