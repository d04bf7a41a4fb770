"""What a task reads: rows of linear functions of named features of a point.

The features are not linear in the outputs themselves (log-odds, the distance to the input), but
all that attacks look for is linear in them: one form for every property.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from radii.properties import Halfspaces

__all__ = ["Feature", "Rows", "StackedRows"]

Float64 = npt.NDArray[np.float64]


class Feature(Enum):
    """A block of numbers that belong to a point.

    Scores are what a network's last nonlinear step, its head, is given. Where that clamps them,
    FLOORED are cut below only, CEILED above only. ODDS are the log-odds of the outputs' softmax,
    SCORE_ODDS those of the scores'. DISTANCE is how far the point is from the input.
    """

    INPUTS = auto()
    OUTPUTS = auto()
    SCORES = auto()
    FLOORED = auto()
    CEILED = auto()
    ODDS = auto()
    SCORE_ODDS = auto()
    DISTANCE = auto()


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """{ point : sum of matrix @ feature over `parts`, plus offset, <= 0 }; a row a halfspace."""

    parts: Mapping[Feature, Float64]
    offset: Float64

    @classmethod
    def of(cls, polyhedron: Halfspaces, feature: Feature = Feature.OUTPUTS) -> Rows:
        return cls({feature: polyhedron.matrix}, polyhedron.offset)

    def and_also(self, other: Rows) -> Rows:
        """The rows of both."""
        mine, theirs = len(self.offset), len(other.offset)
        parts = {}
        for feature in {**self.parts, **other.parts}:
            width = (self.parts if feature in self.parts else other.parts)[feature].shape[1]
            above = self.parts.get(feature, np.zeros((mine, width)))
            below = other.parts.get(feature, np.zeros((theirs, width)))
            parts[feature] = np.vstack([above, below])
        return Rows(parts, np.concatenate([self.offset, other.offset]))


class StackedRows:
    """The rows of all tasks, as tensors; `features` is what they read, in this order.

    `count` is the largest number of rows of a task.
    """

    def __init__(self, tasks: Sequence[Rows], dtype: torch.dtype) -> None:
        widths = {f: task.parts[f].shape[1] for task in tasks for f in task.parts}
        self.features = tuple(feature for feature in Feature if feature in widths)
        self.count = count = max((len(task.offset) for task in tasks), default=1)
        matrices = np.zeros((len(tasks), count, sum(widths.values()) or 1))
        offsets = np.full((len(tasks), count), -np.inf)  # a row that is only padding
        for index, task in enumerate(tasks):
            offsets[index, : len(task.offset)] = task.offset
            start = 0
            for feature in self.features:
                stop = start + widths[feature]
                if feature in task.parts:
                    matrices[index, : len(task.offset), start:stop] = task.parts[feature]
                start = stop
        self._matrices = torch.from_numpy(matrices).to(dtype)
        self._offsets = torch.from_numpy(offsets).to(dtype)

    def rows(self, values: Mapping[Feature, Tensor], tasks: Tensor) -> Tensor:
        """All rows of each point's task; -inf where it has fewer than others."""
        told = [values[feature] for feature in self.features]
        features = told[0] if len(told) == 1 else torch.cat(told, dim=1)
        rows = torch.bmm(self._matrices[tasks], features[:, :, None])[:, :, 0]
        return rows + self._offsets[tasks]

    def largest(self, values: Mapping[Feature, Tensor], tasks: Tensor) -> Tensor:
        """The largest row of each point's task: 0 or below where the point is inside."""
        return self.rows(values, tasks).amax(dim=1)
