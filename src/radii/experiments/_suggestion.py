"""An experiment file, with comments that say what was checked and what to change."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path

import numpy as np

from radii import __version__
from radii.balls import Domain
from radii.datasets import Spec, exists, extent
from radii.datasets import _catalogue as catalogue
from radii.datasets import _digits as digits
from radii.experiments._inspection import Inspection

SUGGESTED_GRID = (0.001, 0.4, 0.002)
"""As in the papers, for pixels between 0 and 1: start, stop, step."""


def experiment_text(
    found: Sequence[Inspection], paths: Sequence[str], data: str, domain: str, *, file: Path
) -> str:
    """TOML that `radii run` takes, to be written to `file`; paths in it are relative to that."""
    beside = file.resolve().parent
    lines = [
        f"# An experiment for radii {__version__}, written by radii init on {date.today()}.",
        f"# Run it, and run it again to continue:  radii run {_plain(file.name)} --out results",
        "",
        "# The networks, as ONNX files; paths are relative to this file.",
        *_comments(_network_lines(found)),
        f"networks = [{', '.join(_quoted(_relative(path, beside)) for path in paths)}]",
        "",
        "# The inputs. Other selections: [0:100], [stratified 100 seed 1], [per-class 10].",
        *_comments(_data_lines(found[0])),
        f"data = {_quoted(_relative_spec(data, beside))}",
        "",
        "# Which inputs are valid at all; counterexamples outside of it do not count.",
        f"domain = {_quoted(domain)}",
        "",
        "# How the networks are fed: (x - mean) / std. What was tried, on the images above:",
        *_comments(line for one in found for line in findings_lines(one)),
        *_preprocessing_lines(found[0]),
        "",
        "# What must stay true: the class (one-to-any), or that it is not a certain other one.",
        'property = "one-to-any"',
        "# How distance is measured: linf (the largest change of a value), l2 or l1.",
        'norm = "linf"',
        "# The radii that are asked about: start:stop:step, stop excluded.",
        f"grid = {_quoted(_grid_text(domain))}",
        "",
        "# Who proves (radii doctor lists who is here), and for how long: wall seconds an input.",
        'verifier = "native"',
        "# What proofs speak of: the network as it runs (float), or without rounding (real).",
        'arithmetic = "float"',
        "timeout = 60",
        "seed = 0",
    ]
    return "\n".join(lines) + "\n"


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
        lines.append(f"  These images do not tell it from: {'; '.join(others)}.")
    return lines


def _network_lines(found: Sequence[Inspection]) -> list[str]:
    lines = []
    for one in found:
        network = one.network
        kind = "piecewise linear" if network.is_piecewise_linear else "not piecewise linear"
        shape = extent(network.input_shape)
        lines.append(f"{network.name}: {shape} -> {network.output_size} classes, {kind}")
    return lines


def _data_lines(one: Inspection) -> list[str]:
    data = one.data
    counts = np.bincount(data.labels)
    present = counts[counts > 0]
    spread = f"{present.min()} to {present.max()} images each"
    images = data.images
    return [
        f"Looked at: {len(data)} images of {extent(data.shape)}, values from "
        f"{images.min():g} to {images.max():g}, {len(present)} classes with {spread}."
    ]


def _preprocessing_lines(one: Inspection) -> list[str]:
    chosen = one.best.preprocessing
    lines = ["# mean = [0.5]", "# std = [0.5]"]
    if chosen.mean is not None and chosen.std is not None:
        lines = [f"mean = {list(chosen.mean)}", f"std = {list(chosen.std)}"]
    return [*lines, *([f"layout = {_quoted(chosen.layout)}"] if chosen.layout else [])]


def _grid_text(domain: str) -> str:
    """The usual grid, in proportion where values range over more than 0 to 1."""
    bounds = Domain.parse(domain)
    width = float(np.max(np.asarray(bounds.high) - np.asarray(bounds.low)))
    width = width if np.isfinite(width) else 1.0
    return ":".join(f"{width * side:.4g}" for side in SUGGESTED_GRID)


def _comments(lines: Iterable[str]) -> list[str]:
    return [f"#   {_plain(line)}" for line in lines]


def _plain(text: str) -> str:
    """Names of files may hold anything; a comment ends at the end of its line."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _quoted(text: str) -> str:
    """A basic string of TOML, which is one of JSON but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def _relative(path: str, beside: Path) -> str:
    return os.path.relpath(Path(path).expanduser().resolve(), beside)


def _relative_spec(data: str, beside: Path) -> str:
    """A spec of a file, with the file's path relative; names of data sets stay."""
    location = Spec.parse(data).location
    is_name = location.lower() == digits.NAME or catalogue.find(location)
    if is_name or not exists(location):
        return data
    return data.replace(location, _relative(location, beside), 1)
