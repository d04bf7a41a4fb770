"""What `radii init` finds out of networks and data, and the experiment file that it writes.

Networks are commonly fed (x - mean) / std of the data's own units. Which mean and deviation is
found by trying the usual ones and comparing how many images are classified correctly.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii import __version__, datasets
from radii.datasets import Spec, exists, extent, is_named
from radii.errors import DataError, ExperimentError
from radii.networks import Network, as_classifier, load_network
from radii.problem import Domain
from radii.runs._data_terms import DataTerms
from radii.runs._description import Experiment
from radii.runs._fields import printable, to_toml
from radii.runs._selection import AXIS_ORDERS, EXCHANGED_ORDERS, check_labels, images_for

if TYPE_CHECKING:
    from radii.datasets import Dataset


ChannelValues = tuple[float, ...]

IMAGENET = ("ImageNet's means and deviations", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
"""Of pixels between 0 and 1: networks that were trained on ImageNet first keep them."""


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """A network is fed (x - mean) / std, one number each or one a channel; None: x as it is.

    `layout` is how a flat network input lists coloured images.
    """

    name: str
    mean: ChannelValues | None = None
    std: ChannelValues | None = None
    layout: str | None = None

    def apply(self, images: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        """Images (N, channels, ...), or flat ones with one number, as the network is fed them."""
        if self.mean is None or self.std is None:
            return images
        shape = (1, -1, *(1,) * (images.ndim - 2)) if len(self.mean) > 1 else ()
        mean, std = (np.reshape(side, shape or ()) for side in (self.mean, self.std))
        fed: npt.NDArray[np.floating] = ((images - mean) / std).astype(images.dtype)
        return fed

    def __str__(self) -> str:
        order = f", listed as {self.layout}" if self.layout else ""
        if self.mean is None or self.std is None:
            return f"{self.name}{order}"
        numbers = [" ".join(f"{n:g}" for n in side) for side in (self.mean, self.std)]
        return f"{self.name} (mean {numbers[0]}, std {numbers[1]}){order}"


def candidates(
    images: npt.NDArray[np.floating], *, layouts: tuple[str | None, ...] = (None,)
) -> list[Preprocessing]:
    """What to try, the simplest first. Images are (N, channels, height, width), or flat."""
    ways: list[tuple[str, ChannelValues | None, ChannelValues | None]] = [
        ("as they are", None, None)
    ]
    if images.min() >= 0 and images.max() <= 1:
        ways += [("from 0 to 255", (0.0,), (1 / 255,)), ("from -1 to 1", (0.5,), (0.5,))]
        ways += [("around 0, from -0.5 to 0.5", (0.5,), (1.0,))]
        channels = images.shape[1] if images.ndim == 4 else 1
        usual = [(n.title, n.mean, n.std) for k in datasets.catalogue() for n in k.normalisations]
        ways += [
            (title, mean, std)
            for title, mean, std in (*usual, IMAGENET)
            if len(mean) == channels and images.ndim == 4
        ]
    elif images.min() >= 0 and images.max() <= 255:
        ways += [("from 0 to 1", (0.0,), (255.0,)), ("from -1 to 1", (127.5,), (127.5,))]
    own = _own(images)
    if own is not None:
        ways.append(("this data's own mean and deviation", *own))
    if images.ndim == 2 and images.shape[1] <= MOST_COLUMNS:
        ways += _by_column(images)
    return [Preprocessing(*one, layout=layout) for layout in layouts for one in ways]


def _by_column(
    images: npt.NDArray[np.floating],
) -> list[tuple[str, ChannelValues, ChannelValues]]:
    """Each column of a table brought to mean 0 and deviation 1, or to 0 to 1."""

    def numbers(values: npt.NDArray[np.float64]) -> ChannelValues:
        return tuple(float(f"{value:.6g}") for value in values.tolist())

    table = images.astype(np.float64)
    low, width = table.min(axis=0), np.ptp(table, axis=0)
    deviation = table.std(axis=0)
    return [
        (
            "each column's own mean and deviation",
            numbers(table.mean(axis=0)),
            numbers(np.where(deviation > 0, deviation, 1.0)),
        ),
        ("each column from 0 to 1", numbers(low), numbers(np.where(width > 0, width, 1.0))),
    ]


def _own(images: npt.NDArray[np.floating]) -> tuple[ChannelValues, ChannelValues] | None:
    """Of each channel of pictures, of all features together otherwise."""
    axes = (0, *range(2, images.ndim)) if images.ndim == 4 else None
    mean = np.atleast_1d(images.mean(axis=axes, dtype=np.float64))
    std = np.atleast_1d(images.std(axis=axes, dtype=np.float64))
    if not np.all(std > 0):
        return None
    return tuple(round(float(m), 4) for m in mean), tuple(float(f"{s:.4g}") for s in std)


SUGGESTED_GRID = (0.001, 0.4, 0.002)
"""As in the papers, for pixels between 0 and 1: start, stop, step."""

GRID_OF_TABLES = "0.01:1.01:0.01"
"""For features that move by their deviation at eps 1."""

EXAMPLE = (0.5,)
"""Of a mean or a deviation, commented out where networks are fed the data as they are."""

INSPECTED_IMAGES = 500
"""Images on which accuracy is compared: enough to tell 90 % from 95 %, and quick."""

MOST_COLUMNS = 256
"""Tables of more columns are embeddings, or pictures that were made flat: they share one scale."""

DOUBT_LEVEL = 0.05
"""Two guesses count as equally good where chance explains their difference with at least this
probability."""


@dataclass(frozen=True, slots=True, eq=False)
class PreprocessingTrial:
    """How many of the images a network classifies correctly, fed in one way."""

    preprocessing: Preprocessing
    is_right: npt.NDArray[np.bool_]

    @property
    def accuracy(self) -> float:
        return float(self.is_right.mean())

    def is_surely_better_than(self, other: PreprocessingTrial) -> bool:
        """By the images on which only one of them is right (an exact sign test, two-sided)."""
        wins = int((self.is_right & ~other.is_right).sum())
        losses = int((other.is_right & ~self.is_right).sum())
        count = wins + losses
        if wins <= losses:
            return False
        tail = sum(math.comb(count, k) for k in range(losses + 1)) / 2**count
        return bool(2 * tail < DOUBT_LEVEL)


@dataclass(frozen=True, slots=True, eq=False)
class Inspection:
    """One network with the data. `findings` are in the order in which they were tried."""

    network: Network
    data: Dataset
    findings: tuple[PreprocessingTrial, ...]

    @property
    def best(self) -> PreprocessingTrial:
        """The most accurate; of equals, the simplest."""
        return max(self.findings, key=lambda finding: finding.is_right.sum())

    @property
    def alternatives(self) -> list[PreprocessingTrial]:
        """Those that these images do not tell from the best."""
        best = self.best
        return [f for f in self.findings if f is not best and not best.is_surely_better_than(f)]

    @property
    def is_doubtful(self) -> bool:
        """Even the best is not surely better than always naming the most frequent class."""
        labels = self.data.labels
        guessed = PreprocessingTrial(
            Preprocessing("guessed"), labels == np.bincount(labels).argmax()
        )
        return not self.best.is_surely_better_than(guessed)


def inspect(
    paths: Sequence[str],
    spec: str,
    *,
    domain: Domain | None = None,
    preprocessing: Preprocessing | None = None,
    label: str | None = None,
    classes: Sequence[str] | None = None,
) -> tuple[Domain, list[Inspection]]:
    """The input domain, as given or as the data suggests, and each network with the data.

    A `preprocessing` that is given is the only one tried. `label` names the column of the label,
    `classes` those of the outputs.
    """
    whole = datasets.load_whole(spec, label=label)
    whole = whole if domain is None else whole.in_units_of(domain)
    data = datasets.Spec.parse(spec).select(whole)
    sample = data if len(data) <= INSPECTED_IMAGES else data.random(INSPECTED_IMAGES)
    chosen = domain or _usual_domain(sample.images)
    networks = [as_classifier(load_network(path, domain=chosen)) for path in paths]
    sample = DataTerms().apply(sample, networks, classes)
    inspections = [_inspect(network, sample, preprocessing) for network in networks]
    _check_agreement(inspections)
    return chosen, inspections


def _inspect(network: Network, data: Dataset, given: Preprocessing | None) -> Inspection:
    check_labels(network, data)
    if given is not None:
        return Inspection(network, data, (_finding(network, data, given),))
    tried = candidates(data.images, layouts=_layouts(network, data))
    found = Inspection(network, data, tuple(_finding(network, data, one) for one in tried))
    exchanged = _exchanged(network, data)
    if not exchanged or not found.is_doubtful:
        return found
    tried = candidates(data.images, layouts=exchanged)
    more = tuple(_finding(network, data, one) for one in tried)
    return replace(found, findings=(*found.findings, *more))


def _exchanged(network: Network, data: Dataset) -> tuple[str, ...]:
    """Layouts with rows and columns exchanged that fit; nothing but accuracy tells of them."""
    if len(data.shape) != 3 or 1 in data.shape[1:]:
        return ()
    fitting = []
    for layout in EXCHANGED_ORDERS:
        try:
            images_for(network, data.first(1), layout)
        except DataError:
            continue
        fitting.append(layout)
    is_flat = len([n for n in network.input_shape if n != 1]) == 1 and data.shape[0] > 1
    return tuple(fitting) if is_flat else tuple(fitting[:1])


def _finding(network: Network, data: Dataset, tried: Preprocessing) -> PreprocessingTrial:
    fed = datasets.from_arrays(tried.apply(data.images), data.labels, name=data.name)
    outputs = network.replay(images_for(network, fed, tried.layout))
    return PreprocessingTrial(tried, outputs.argmax(axis=1) == data.labels)


def _layouts(network: Network, data: Dataset) -> tuple[str | None, ...]:
    """Both orders where only trying tells which one it is."""
    try:
        images_for(network, data.first(1), None)
    except DataError:
        if exchanged := _exchanged(network, data):
            is_flat = len([n for n in network.input_shape if n != 1]) == 1
            return AXIS_ORDERS if is_flat else exchanged
        images_for(
            network, data.first(1), AXIS_ORDERS[0]
        )  # raises what is wrong, if that is not it
        return AXIS_ORDERS
    return (None,)


def _usual_domain(images: npt.NDArray[np.floating]) -> Domain:
    """The usual range that holds the data most tightly; whole numbers around it otherwise."""
    low, high = float(images.min()), float(images.max())
    for start, stop in ((0, 1), (-1, 1), (0, 255)):
        if start <= low and high <= stop:
            return Domain.parse(f"{start}:{stop}")
    return Domain.parse(f"{math.floor(low)}:{math.ceil(high)}")


def _check_agreement(inspections: Sequence[Inspection]) -> None:
    """One experiment feeds all its networks alike."""
    first = inspections[0]
    for other in inspections[1:]:
        chosen = first.best.preprocessing
        own = next((f for f in other.findings if f.preprocessing == chosen), None)
        if own is None or other.best.is_surely_better_than(own):
            raise ExperimentError(
                f"{first.network.name} and {other.network.name} want to be fed differently "
                f"({chosen}; {other.best.preprocessing}): make an experiment for each"
            )


# --- the experiment file, with comments that say what was checked and what to change


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
    if is_named(location) or not exists(location):
        return data
    return data.replace(location, _relative(location, beside), 1)
