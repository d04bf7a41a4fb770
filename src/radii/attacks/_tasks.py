"""From a requirement to the tasks of an attack: one way to break it each, and what to follow there.

A task reads rows of linear functions of named features of a point. The features are not linear in
the outputs themselves (log-odds, the distance to the input), but all that attacks look for is
linear in them: one form for every property.

Where the network's last step flattens the way to a polyhedron of outputs, its guide reads others:

- ReLU and clip: outputs that should shrink are read as if there were no upper limit, outputs that
  should grow as if there were no lower one, so that there is a slope even where they are cut. In
  addition, where all outputs that should shrink are the least possible every other ties with them,
  which is a violation: a task of its own.
- Sigmoid, tanh, softmax: rows that compare two outputs compare their scores; rows about a single
  output ask its score, with softmax its log-odds, for the value that reaches the threshold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from radii.errors import UnsupportedQuery
from radii.networks import Graph, Network, Reshape, Saturation
from radii.problem import (
    Halfspaces,
    LinearRequirement,
    LipschitzRequirement,
    ProbabilityBound,
    Requirement,
    SoftmaxRequirement,
)

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
class FeatureHalfspaces:
    """{ point : sum of matrix @ feature over `parts`, plus offset, <= 0 }; a row a halfspace."""

    parts: Mapping[Feature, Float64]
    offset: Float64

    @classmethod
    def of(cls, polyhedron: Halfspaces, feature: Feature = Feature.OUTPUTS) -> FeatureHalfspaces:
        return cls({feature: polyhedron.matrix}, polyhedron.offset)

    def and_also(self, other: FeatureHalfspaces) -> FeatureHalfspaces:
        """The rows of both."""
        mine, theirs = len(self.offset), len(other.offset)
        parts = {}
        for feature in {**self.parts, **other.parts}:
            width = (self.parts if feature in self.parts else other.parts)[feature].shape[1]
            above = self.parts.get(feature, np.zeros((mine, width)))
            below = other.parts.get(feature, np.zeros((theirs, width)))
            parts[feature] = np.vstack([above, below])
        return FeatureHalfspaces(parts, np.concatenate([self.offset, other.offset]))


class StackedHalfspaces:
    """The rows of all tasks, as tensors; `features` is what they read, in this order.

    `count` is the largest number of rows of a task.
    """

    def __init__(self, tasks: Sequence[FeatureHalfspaces], dtype: torch.dtype) -> None:
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
        blocks = [values[feature] for feature in self.features]
        features = blocks[0] if len(blocks) == 1 else torch.cat(blocks, dim=1)
        rows = torch.bmm(self._matrices[tasks], features[:, :, None])[:, :, 0]
        return rows + self._offsets[tasks]

    def largest(self, values: Mapping[Feature, Tensor], tasks: Tensor) -> Tensor:
        """The largest row of each point's task: 0 or below where the point is inside."""
        return self.rows(values, tasks).amax(dim=1)


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """A network's last nonlinear step, cut off: how it flattens the scores that `body` gives."""

    body: Graph
    saturation: Saturation

    @property
    def limits(self) -> tuple[float, float] | None:
        """Between which scores are outputs; None if scores are not clamped."""
        return self.saturation.limits

    @property
    def single(self) -> Feature:
        """What the threshold of a single output is one of."""
        return Feature.SCORE_ODDS if self.saturation.is_joint else Feature.SCORES


def find_head(graph: Graph) -> Head | None:
    """The head of a network that ends in an operator which saturates, else None."""
    index = graph.output
    while isinstance(graph.nodes[index].operator, Reshape):
        index = graph.nodes[index].inputs[0]
    node = graph.nodes[index]
    if len(node.inputs) != 1:
        return None
    source = node.inputs[0]
    saturation = node.operator.saturation(graph.nodes[source].shape)
    if saturation is None:
        return None
    return Head(Graph(graph.nodes[: source + 1], source), saturation)


def guide_rows(polyhedron: Halfspaces, head: Head) -> FeatureHalfspaces:
    """What to follow into `polyhedron`, a polyhedron of outputs."""
    matrix, offset = polyhedron.matrix, polyhedron.offset.copy()
    if head.limits is not None:
        parts = {Feature.FLOORED: np.maximum(matrix, 0), Feature.CEILED: np.minimum(matrix, 0)}
        return _without_empty_parts(FeatureHalfspaces(parts, offset))
    parts = {f: np.zeros_like(matrix) for f in (Feature.OUTPUTS, Feature.SCORES, head.single)}
    for index, row in enumerate(matrix):
        about = np.flatnonzero(row)
        if len(about) == 2 and row.sum() == 0 and offset[index] == 0:
            parts[Feature.SCORES][index] = row
            continue
        if len(about) == 1 and head.saturation.inverse is not None:
            weight = float(row[about[0]])
            threshold = head.saturation.inverse(-float(offset[index]) / weight)
            if np.isfinite(threshold):
                parts[head.single][index] = np.sign(row)
                offset[index] = -np.sign(weight) * threshold
                continue
        parts[Feature.OUTPUTS][index] = row
    return _without_empty_parts(FeatureHalfspaces(parts, offset))


def _without_empty_parts(rows: FeatureHalfspaces) -> FeatureHalfspaces:
    """Features that no row reads left out, so that nobody computes them."""
    read = {feature: part for feature, part in rows.parts.items() if part.any()}
    return FeatureHalfspaces(read, rows.offset) if read else rows


def tied_tasks(
    polyhedra: Sequence[Halfspaces], head: Head
) -> list[tuple[FeatureHalfspaces, FeatureHalfspaces]]:
    """One task for each set of outputs that break the requirement by all being least possible."""
    if head.limits is None or not math.isfinite(head.limits[0]):
        return []
    low = head.limits[0]
    found: dict[tuple[int, ...], tuple[FeatureHalfspaces, FeatureHalfspaces]] = {}
    for polyhedron in polyhedra:
        rising = np.flatnonzero((polyhedron.matrix > 0).any(axis=0))
        at_low = low * polyhedron.matrix.sum(axis=1) + polyhedron.offset
        if len(rising) and np.all(at_low <= 0):
            scores = np.eye(polyhedron.matrix.shape[1])[rising]
            guide = FeatureHalfspaces({Feature.SCORES: scores}, np.full(len(rising), -low))
            found.setdefault(tuple(rising.tolist()), (FeatureHalfspaces.of(polyhedron), guide))
    return list(found.values())


SLOPE_SCALES = (1.0, 0.5, 0.2, 0.02)
"""Parts of the radius within which a slope above a Lipschitz constant is looked for: where it is
steep only close to the input, the outputs have turned back further out. One of them is a half
because `MinimumNorm` begins with twice the radius."""


@dataclass(frozen=True, slots=True, eq=False)
class AttackTask:
    """The requirement is broken where `exact` holds; an attack follows the slope of `guide` there.

    `reach` is the part of the radius that is searched. Tasks that differ only in it share their
    starts: this one takes each whose number leaves `turn` when divided by `turns`.
    """

    exact: FeatureHalfspaces
    guide: FeatureHalfspaces
    reach: float = 1.0
    turn: int = 0
    turns: int = 1


def tasks_of(network: Network, requirements: Sequence[Requirement]) -> list[list[AttackTask]]:
    """All tasks of each requirement; none where it cannot be broken."""
    head = find_head(network.graph)
    return [_tasks(requirement, head, network.output_size) for requirement in requirements]


def _tasks(requirement: Requirement, head: Head | None, outputs: int) -> list[AttackTask]:
    if isinstance(requirement, LinearRequirement):
        return _polyhedron_tasks(requirement.attacked, head)
    if requirement.violations is not None:
        return _polyhedron_tasks(requirement.violations, head)
    match requirement:
        case SoftmaxRequirement(bounds=bounds):
            return [_probability_task(bound, head, outputs) for bound in bounds]
        case LipschitzRequirement():
            return [
                _slope_task(requirement, index, sign, turn, head)
                for turn in range(len(SLOPE_SCALES))
                for index in range(outputs)
                for sign in (1.0, -1.0)
            ]
    raise UnsupportedQuery(f"radii's attacks do not know how to break {type(requirement).__name__}")


def _polyhedron_tasks(polyhedra: Sequence[Halfspaces], head: Head | None) -> list[AttackTask]:
    if head is None:
        return [AttackTask(rows, rows) for rows in map(FeatureHalfspaces.of, polyhedra)]
    own = [
        AttackTask(FeatureHalfspaces.of(polyhedron), guide_rows(polyhedron, head))
        for polyhedron in polyhedra
    ]
    return own + [AttackTask(exact, guide) for exact, guide in tied_tasks(polyhedra, head)]


def _probability_task(bound: ProbabilityBound, head: Head | None, outputs: int) -> AttackTask:
    """In log-odds; before a ReLU or clip, whose outputs have no slope where they are cut."""
    sign = -1.0 if bound.is_ceiling else 1.0
    row, offset = _unit_row(bound.index, sign, outputs), np.array([-sign * bound.log_odds])
    exact = FeatureHalfspaces({Feature.ODDS: row}, offset)
    is_cut = head is not None and head.limits is not None
    return AttackTask(
        exact, FeatureHalfspaces({Feature.SCORE_ODDS: row}, offset) if is_cut else exact
    )


def _slope_task(
    requirement: LipschitzRequirement, index: int, sign: float, turn: int, head: Head | None
) -> AttackTask:
    """sign * (y - its reference) >= constant * distance + tau, for the output of this index."""
    row = _unit_row(index, -sign, len(requirement.reference))
    moved = Halfspaces(row, np.array([requirement.tau + sign * requirement.reference[index]]))
    distance = {Feature.DISTANCE: np.array([[requirement.constant]])}
    exact = FeatureHalfspaces({Feature.OUTPUTS: row, **distance}, moved.offset)
    if head is None or head.limits is None:
        return AttackTask(exact, exact, SLOPE_SCALES[turn], turn, len(SLOPE_SCALES))
    guide = guide_rows(moved, head)
    rows = FeatureHalfspaces({**guide.parts, **distance}, guide.offset)
    return AttackTask(exact, rows, SLOPE_SCALES[turn], turn, len(SLOPE_SCALES))


def _unit_row(index: int, value: float, size: int) -> Float64:
    row = np.zeros((1, size))
    row[0, index] = value
    return row
