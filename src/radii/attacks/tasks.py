"""From a requirement to the tasks of an attack: one way to break it each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from radii.attacks.features import Feature, Rows
from radii.attacks.guides import Head, find_head, guide_rows, tied_tasks
from radii.errors import UnsupportedQuery
from radii.networks import Network
from radii.properties import (
    Halfspaces,
    LipschitzRequirement,
    ProbabilityBound,
    Requirement,
    SoftmaxRequirement,
)

__all__ = ["Task", "tasks_of"]

Float64 = npt.NDArray[np.float64]

SCALES = (1.0, 0.5, 0.2, 0.02)
"""Parts of the radius within which a slope above a Lipschitz constant is looked for: where it is
steep only close to the input, the outputs have turned back further out. One of them is a half
because `MinimumNorm` begins with twice the radius."""


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """The requirement is broken where `exact` holds; an attack follows the slope of `guide` there.

    `reach` is the part of the radius that is searched. Tasks that differ only in it share their
    starts: this one takes each whose number leaves `turn` when divided by `turns`.
    """

    exact: Rows
    guide: Rows
    reach: float = 1.0
    turn: int = 0
    turns: int = 1


def tasks_of(network: Network, requirements: Sequence[Requirement]) -> list[list[Task]]:
    """All tasks of each requirement; none where it cannot be broken."""
    head = find_head(network.graph)
    return [_tasks(requirement, head, network.output_size) for requirement in requirements]


def _tasks(requirement: Requirement, head: Head | None, outputs: int) -> list[Task]:
    if requirement.violations is not None:
        return _of_polyhedra(requirement.violations, head)
    match requirement:
        case SoftmaxRequirement(bounds=bounds):
            return [_of_bound(bound, head, outputs) for bound in bounds]
        case LipschitzRequirement():
            return [
                _of_slope(requirement, index, sign, turn, head)
                for turn in range(len(SCALES))
                for index in range(outputs)
                for sign in (1.0, -1.0)
            ]
    raise UnsupportedQuery(f"radii's attacks do not know how to break {type(requirement).__name__}")


def _of_polyhedra(polyhedra: Sequence[Halfspaces], head: Head | None) -> list[Task]:
    if head is None:
        return [Task(rows, rows) for rows in map(Rows.of, polyhedra)]
    own = [Task(Rows.of(polyhedron), guide_rows(polyhedron, head)) for polyhedron in polyhedra]
    return own + [Task(exact, guide) for exact, guide in tied_tasks(polyhedra, head)]


def _of_bound(bound: ProbabilityBound, head: Head | None, outputs: int) -> Task:
    """In log-odds; before a ReLU or clip, whose outputs have no slope where they are cut."""
    sign = -1.0 if bound.is_ceiling else 1.0
    row, offset = _row(bound.index, sign, outputs), np.array([-sign * bound.log_odds])
    exact = Rows({Feature.ODDS: row}, offset)
    is_cut = head is not None and head.limits is not None
    return Task(exact, Rows({Feature.SCORE_ODDS: row}, offset) if is_cut else exact)


def _of_slope(
    requirement: LipschitzRequirement, index: int, sign: float, turn: int, head: Head | None
) -> Task:
    """sign * (y - its reference) >= constant * distance + tau, for the output of this index."""
    row = _row(index, -sign, len(requirement.reference))
    moved = Halfspaces(row, np.array([requirement.tau + sign * requirement.reference[index]]))
    distance = {Feature.DISTANCE: np.array([[requirement.constant]])}
    exact = Rows({Feature.OUTPUTS: row, **distance}, moved.offset)
    if head is None or head.limits is None:
        return Task(exact, exact, SCALES[turn], turn, len(SCALES))
    guide = guide_rows(moved, head)
    rows = Rows({**guide.parts, **distance}, guide.offset)
    return Task(exact, rows, SCALES[turn], turn, len(SCALES))


def _row(index: int, value: float, size: int) -> Float64:
    row = np.zeros((1, size))
    row[0, index] = value
    return row
