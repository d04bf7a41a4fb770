"""Branch and bound on the pieces of units, over linear relaxations with proven bounds.

Settling a unit only changes the bounds of a row or a column, so each program starts from the last
basis. No integrality tolerance takes part: on each branch a unit is one linear piece.

Where branching leaves a program open, HiGHS's own integer solver goes on. It bounds a branch by a
basis whose reduced costs may have the wrong sign by its tolerance. Each column or row can turn that
into an error of at most the tolerance times its range. So a bound is believed only after
HIGHS_TOLERANCE times the range of all columns and rows is taken off. Integrality within tolerance
only lets more points in: it weakens a bound and never makes it too large.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from radii.problem import Limits, Verdict
from radii.verifiers._expressions import Float64, Integers
from radii.verifiers._programs import (
    HIGHS_TOLERANCE,
    LinearRelaxation,
    Minimum,
    Program,
    Status,
    exhausted,
    load,
    run_highs,
)
from radii.verifiers.milp._encoding import Encoding
from radii.verifiers.milp._programs import RowLayout, layout_of

EXACT_UNIT = 1e-9
"""A unit whose relaxed value is this near to its true one has nothing left to branch on."""


CHORD_FLOOR = 1e-3
"""Weight of a gap whose chord has no multiplier here, relative to the largest multiplier."""


class Choice(NamedTuple):
    """One unit settled: a hinge off (0) or on (1), or a maximum attained by input `piece`."""

    unit: int
    piece: int


@dataclass(frozen=True, slots=True)
class SolverResult:
    """`bound` is proven to be at most the minimum. `open` says that a larger one may yet be found.

    `point` is where the bound is attained, if the search ended at such a point. A bound that is no
    number is none.
    """

    bound: float
    open: bool
    stopped: Verdict | None = None
    point: Float64 | None = None

    def __post_init__(self) -> None:
        if math.isnan(self.bound):
            object.__setattr__(self, "bound", -math.inf)


@dataclass(order=True, slots=True)
class _Branch:
    key: tuple[float, int]
    bound: float = field(compare=False)
    choices: tuple[Choice, ...] = field(compare=False)


@dataclass(slots=True)
class Branching:
    """Minimises the aim of a relaxation over the true values of an encoding.

    `cutoff()` is the value above which nothing is of interest, asked again at every branch. `visit`
    is shown each relaxation's point and may end the search by returning True.
    """

    encoding: Encoding
    relaxation: LinearRelaxation
    cutoff: Callable[[], float]
    visit: Callable[[Float64], bool]
    limits: Limits
    best_first: bool = False
    _layout: RowLayout = field(init=False)
    _applied: dict[int, int] = field(default_factory=dict)
    _waiting: list[_Branch] = field(default_factory=list)
    _floor: float = np.inf
    _floor_point: Float64 | None = None
    _made: int = 0

    def __post_init__(self) -> None:
        self._layout = layout_of(self.encoding)
        self._wait(-np.inf, ())

    def run(self, branches: int) -> SolverResult:
        """Search through at most so many branches more."""
        stopped = None
        for _ in range(branches):
            stopped = exhausted(self.limits)
            if stopped or not self._waiting:
                break
            if self._search(heapq.heappop(self._waiting)):
                break
        least = min((branch.bound for branch in self._waiting), default=np.inf)
        if least < self._floor:
            return SolverResult(least, open=True, stopped=stopped)
        return SolverResult(self._floor, open=False, point=self._floor_point)

    def _search(self, branch: _Branch) -> bool:
        """Close the branch or divide it; True if the search is to end."""
        if branch.bound > min(self.cutoff(), self._floor):
            self._floor = min(self._floor, branch.bound)
            return False
        self._apply(branch.choices)
        found = self.relaxation.minimum(self.cutoff())
        bound = max(branch.bound, found.bound)
        if bound <= self.cutoff() and found.point is not None:
            if self.visit(found.point):
                self._wait(bound, branch.choices)
                return True
            children = self._children(branch, found)
            for choices in children:
                self._wait(bound, choices)
            if children:
                return False
        if bound < self._floor:
            self._floor, self._floor_point = bound, found.point
        return False

    def _wait(self, bound: float, choices: tuple[Choice, ...]) -> None:
        self._made += 1
        key = (bound if self.best_first else -float(len(choices)), self._made)
        heapq.heappush(self._waiting, _Branch(key, bound, choices))

    def settle_as(self, point: Float64) -> None:
        """Settle every unit of the relaxation the way it is at a point."""
        hinges = self.encoding.hinges
        pieces = (hinges.inputs.at(point) > 0).astype(int)
        choices = [Choice(unit, int(piece)) for unit, piece in enumerate(pieces)]
        for index, unit in enumerate(self.encoding.maxima, start=len(hinges)):
            choices.append(Choice(index, int(np.argmax(unit.inputs.at(point)))))
        self._apply(tuple(choices))

    def _apply(self, choices: tuple[Choice, ...]) -> None:
        """Bring the relaxation from the last branch's choices to these."""
        wanted = dict(choices)
        for unit, piece in list(self._applied.items()):
            if wanted.get(unit) != piece:
                self._settle(Choice(unit, piece), undo=True)
                del self._applied[unit]
        for unit, piece in wanted.items():
            if unit not in self._applied:
                self._settle(Choice(unit, piece), undo=False)
                self._applied[unit] = piece

    def _settle(self, choice: Choice, *, undo: bool) -> None:
        """A hinge that is off has value 0; on, and for a maximum, a row turns into an equation."""
        program, hinges = self.relaxation.program, self.encoding.hinges
        if choice.unit < len(hinges) and choice.piece == 0:
            column = int(hinges.columns[choice.unit])
            high = program.high[column] if undo else 0.0
            self.relaxation.bound_column(column, program.low[column], high)
            return
        if choice.unit < len(hinges):
            row, inputs = self._layout.above(choice.unit), hinges.inputs
            middle = inputs.offset[choice.unit]
        else:
            unit = choice.unit - len(hinges)
            row = self._layout.maxima[unit].start + choice.piece
            middle = self.encoding.maxima[unit].inputs.offset[choice.piece]
        low, high = program.rows.low[row], program.rows.high[row]
        # Equal up to rounding: the slack below the middle is the slack above it.
        self.relaxation.bound_row(row, low, high if undo else 2 * middle - low)

    def _children(self, branch: _Branch, found: Minimum) -> list[tuple[Choice, ...]]:
        """The branches of the unit whose relaxation matters most here, likeliest first."""
        assert found.point is not None
        settled = dict(branch.choices)
        hinge, piece, score = self._worst_hinge(settled, found)
        unit, order, gap = self._worst_maximum(settled, found.point)
        if max(score, gap) <= EXACT_UNIT:
            return []
        if score >= gap:
            return [(*branch.choices, Choice(hinge, p)) for p in (piece, 1 - piece)]
        return [(*branch.choices, Choice(unit, int(p))) for p in order]

    def _worst_hinge(self, settled: dict[int, int], found: Minimum) -> tuple[int, int, float]:
        """The hinge with the largest gap, weighted by what the chord costs; its piece; its gap."""
        hinges, point = self.encoding.hinges, found.point
        if len(hinges) == 0 or point is None:
            return -1, 0, 0.0
        z = hinges.inputs.at(point)
        gap = point[hinges.columns] - np.maximum(z, 0.0)
        gap[[unit for unit in settled if unit < len(hinges)]] = 0.0
        weight = np.ones(len(hinges))
        if found.duals is not None:
            chords = found.duals[len(hinges) : 2 * len(hinges)]
            weight = np.abs(chords) + CHORD_FLOOR * max(1.0, float(np.abs(chords).max()))
        worst = int(np.argmax(np.where(gap > EXACT_UNIT, gap * weight, 0.0)))
        return worst, int(z[worst] > 0), float(gap[worst])

    def _worst_maximum(
        self, settled: dict[int, int], point: Float64
    ) -> tuple[int, Integers, float]:
        """The maximum with the largest gap, its inputs from the largest down, and its gap."""
        first = len(self.encoding.hinges)
        worst, order, largest = -1, np.zeros(0, np.int64), 0.0
        for index, unit in enumerate(self.encoding.maxima, start=first):
            if index in settled:
                continue
            inputs = unit.inputs.at(point)
            gap = float(point[unit.column] - inputs.max())
            if gap > largest:
                worst, order, largest = index, np.argsort(-inputs), gap
        return worst, order, largest


CUTOFF_ROOM = 1e-3
"""How far above the value of interest HiGHS may prune, relative to the range of the objective.

A branch is then cut off only by a bound that is larger than needed by much more than any tolerance.
"""

HIGHS_STATUS_MAP = {
    Status.kTimeLimit: Verdict.TIMEOUT,
    Status.kMemoryLimit: Verdict.MEMOUT,
    Status.kInterrupt: Verdict.CANCELLED,
}
"""Ends without an answer. Others than these, kOptimal and kInfeasible are errors."""


def minimise_exactly(
    program: Program,
    *,
    cutoff: float,
    room: float,
    visit: Callable[[Float64], bool],
    limits: Limits,
    threads: int,
) -> SolverResult:
    """Minimise a program with integers, as far as values up to `cutoff` are of interest.

    Ends early once the bound passes the cutoff, or once `visit`, shown each incumbent, says True.
    """
    error = HIGHS_TOLERANCE * program.total_range
    watch = _HighsCallback(cutoff + error, visit, limits)
    solver = load(program, threads=threads, presolve=True)
    solver.setOptionValue("objective_bound", cutoff + error + room)
    solver.cbMipImprovingSolution += watch.see
    solver.cbMipInterrupt += watch.check
    status = run_highs(solver, limits)
    if watch.failure is not None:
        raise watch.failure
    if status == Status.kInfeasible:
        return SolverResult(cutoff + room, open=False)
    # Branches above the objective bound were dropped, so nothing is known beyond it.
    bound = min(float(solver.getInfo().mip_dual_bound), cutoff + error + room) - error
    if not watch.done and (status == Status.kOptimal or bound > cutoff):
        return SolverResult(bound, open=False, point=watch.best)
    stopped = None if watch.done else watch.stopped or HIGHS_STATUS_MAP.get(status, Verdict.ERROR)
    return SolverResult(bound, open=True, stopped=stopped, point=watch.best)


class _HighsCallback:
    """Sees incumbents, and stops HiGHS when there is no reason to go on."""

    def __init__(self, enough: float, visit: Callable[[Float64], bool], limits: Limits) -> None:
        self.enough = enough
        self.visit = visit
        self.limits = limits
        self.best: Float64 | None = None
        self.done = False
        self.stopped: Verdict | None = None
        self.failure: BaseException | None = None

    def see(self, event: Any) -> None:
        self.best = np.array(event.data_out.mip_solution)
        try:
            self.done = self.done or self.visit(self.best)
        except BaseException as failure:  # must not unwind through HiGHS; raised again after it
            self.failure = failure

    def check(self, event: Any) -> None:
        self.stopped = self.stopped or exhausted(self.limits)
        proven = event.data_out.mip_dual_bound > self.enough
        if self.done or self.stopped or self.failure or proven:
            event.interrupt()
