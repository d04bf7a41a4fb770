"""What a network and data look like together: shapes, classes, and accuracy under each guess."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii import datasets
from radii.balls import Domain
from radii.errors import DataError, ExperimentError
from radii.inspection.preprocessing import Preprocessing, candidates
from radii.networks import Network, load_network
from radii.selection import LAYOUTS, check_labels, shaped

if TYPE_CHECKING:
    from radii.datasets import Dataset

__all__ = ["Finding", "Inspection", "inspect"]

LOOKED_AT = 500
"""Images on which accuracy is compared: enough to tell 90 % from 95 %, and quick."""

DOUBT = 0.05
"""Guesses whose errors differ by chance with at least this probability are not told apart."""


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """How many of the images a network classifies correctly, fed in one way."""

    preprocessing: Preprocessing
    is_right: npt.NDArray[np.bool_]

    @property
    def accuracy(self) -> float:
        return float(self.is_right.mean())

    def is_surely_better_than(self, other: Finding) -> bool:
        """By the images on which only one of them is right (an exact sign test, two-sided)."""
        wins = int((self.is_right & ~other.is_right).sum())
        losses = int((other.is_right & ~self.is_right).sum())
        count = wins + losses
        if wins <= losses:
            return False
        tail = sum(math.comb(count, k) for k in range(losses + 1)) / 2**count
        return bool(2 * tail < DOUBT)


@dataclass(frozen=True, slots=True, eq=False)
class Inspection:
    """One network with the data. `findings` are in the order in which they were tried."""

    network: Network
    data: Dataset
    findings: tuple[Finding, ...]

    @property
    def best(self) -> Finding:
        """The most accurate; of equals, the simplest."""
        return max(self.findings, key=lambda finding: finding.is_right.sum())

    @property
    def alternatives(self) -> list[Finding]:
        """Those that these images do not tell from the best."""
        best = self.best
        return [f for f in self.findings if f is not best and not best.is_surely_better_than(f)]

    @property
    def is_doubtful(self) -> bool:
        """Even the best is not surely better than always naming the most frequent class."""
        labels = self.data.labels
        guessed = Finding(Preprocessing("guessed"), labels == np.bincount(labels).argmax())
        return not self.best.is_surely_better_than(guessed)


def inspect(
    paths: Sequence[str],
    spec: str,
    *,
    domain: str | None = None,
    preprocessing: Preprocessing | None = None,
) -> tuple[str, list[Inspection]]:
    """The input domain, as given or as the data suggests, and each network with the data.

    A `preprocessing` that is given is the only one tried.
    """
    data = datasets.load_spec(spec)
    looked_at = data if len(data) <= LOOKED_AT else data.random(LOOKED_AT)
    chosen = domain or _domain(looked_at.images)
    found = [
        _inspect(load_network(path, domain=Domain.parse(chosen)), looked_at, preprocessing)
        for path in paths
    ]
    _check_agreement(found)
    return chosen, found


def _inspect(network: Network, data: Dataset, given: Preprocessing | None) -> Inspection:
    check_labels(network, data)
    layouts = _layouts(network, data)
    tried = candidates(data.images, layouts=layouts) if given is None else [given]
    return Inspection(network, data, tuple(_finding(network, data, one) for one in tried))


def _finding(network: Network, data: Dataset, tried: Preprocessing) -> Finding:
    fed = datasets.from_arrays(tried.apply(data.images), data.labels, name=data.name)
    outputs = network.replay(shaped(network, fed, tried.layout))
    return Finding(tried, outputs.argmax(axis=1) == data.labels)


def _layouts(network: Network, data: Dataset) -> tuple[str | None, ...]:
    """Both orders where only trying tells which one it is."""
    try:
        shaped(network, data.first(1), None)
    except DataError:
        shaped(network, data.first(1), LAYOUTS[0])  # raises what is wrong, if that is not it
        return LAYOUTS
    return (None,)


def _domain(images: npt.NDArray[np.floating]) -> str:
    """The usual range that holds the data most tightly; whole numbers around it otherwise."""
    low, high = float(images.min()), float(images.max())
    for start, stop in ((0, 1), (-1, 1), (0, 255)):
        if start <= low and high <= stop:
            return f"{start}:{stop}"
    return f"{math.floor(low)}:{math.ceil(high)}"


def _check_agreement(found: Sequence[Inspection]) -> None:
    """One experiment feeds all its networks alike."""
    first = found[0]
    for other in found[1:]:
        chosen = first.best.preprocessing
        own = next((f for f in other.findings if f.preprocessing == chosen), None)
        if own is None or other.best.is_surely_better_than(own):
            raise ExperimentError(
                f"{first.network.name} and {other.network.name} want to be fed differently "
                f"({chosen}; {other.best.preprocessing}): make an experiment for each"
            )
