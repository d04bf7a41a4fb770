"""Bounds on probabilities, by linear queries about the outputs that a softmax reads.

Outputs at which a probability passes a level are put into outer polyhedra, which one and the same
complete verifier decides; where it shows a point that is no violation, they are refined there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from radii.attacks import attack_specification
from radii.bounds import centre_of, crown_bounds, fuse
from radii.networks import Network, softmax_error, without_last
from radii.problem import (
    Arithmetic,
    Array,
    Halfspaces,
    Limits,
    LinearRequirement,
    ProbabilityBound,
    SoftmaxRequirement,
    Specification,
    Verdict,
    check_witness,
)
from radii.verifiers._base import Answer
from radii.verifiers._case import attack_seconds, check_bounded
from radii.verifiers.certificates._covers import ProbabilityCover

Float64 = npt.NDArray[np.float64]

# Outputs at which a probability rises to a level or above, in outer polyhedra.
#
# With d_j = y_j - y_c for the classes j other than c, that is log sum exp(d) <= t: a convex set, so
# each of its tangents is a halfspace that holds all of it.


TANGENT_SLACK = 2.0**-40
"""What the rounding of a tangent may be, relative to the numbers in it."""


def log_sum_exp(point: Float64) -> float:
    largest = float(point.max())
    return largest + float(np.log(np.exp(point - largest).sum()))


class Tangents:
    """A polyhedron around the violations, cut down by one tangent after the other."""

    def __init__(self, rows: Float64, top: float, low: Float64) -> None:
        """`low` are bounds on the differences: the first tangent is the one above them."""
        self._rows, self._top = rows, top
        self._matrix: list[Float64] = [*rows]  # no difference alone may be above `top`
        self._offset = [-top] * len(rows)
        self.shares: list[Float64] = [*np.eye(len(rows))]
        self.add(low + (top - log_sum_exp(low)))

    def add(self, point: Float64) -> None:
        """The tangent at a point: log sum exp there plus shares @ (d - point) <= top."""
        value = log_sum_exp(point)
        shares = np.exp(point - value)
        slack = TANGENT_SLACK * (1 + abs(value) + abs(self._top) + float(shares @ np.abs(point)))
        self.shares.append(shares)
        self._matrix.append(shares @ self._rows)
        self._offset.append(value - self._top - float(shares @ point) - slack)

    @property
    def polyhedron(self) -> Halfspaces:
        return Halfspaces(np.stack(self._matrix), np.array(self._offset))


# Outputs at which a probability falls to a level or below, in outer polyhedra.
#
# With d_j = y_j - y_c for the classes j other than c, the probability of c is at most the level
# exactly where the sum over j of exp(d_j) is at least e^t, t = log(1/level - 1). That set is not
# convex. It is all of d_j >= t, for any one j, and a part of the cell where every d_j <= t. On a
# cell exp lies below its chords, so that the sum of chords >= e^t holds wherever it is broken: one
# halfspace. Smaller cells have better chords.
#
# Everything is scaled by e^-t, so that no number is above 1.


CHORD_SLACK = 2.0**-40
"""What the rounding of a chord may be, relative to the numbers in it: thousands of roundings."""

NARROW_CELL = 1e-9
"""Cells this narrow in a difference get a constant in place of a chord."""

INNER_SHARE = 0.02
"""No cell is divided nearer to its sides than this part of its width."""


def differences(index: int, outputs: int) -> Float64:
    """Rows y_j - y_index for every other class j, in order."""
    rows = np.delete(np.eye(outputs), index, axis=0)
    rows[:, index] = -1.0
    return rows


def halfspaces_of_rivals(rows: Float64, top: float, high: Float64) -> list[Halfspaces]:
    """d_j >= top for each difference that can get there: violations, every point of them."""
    return [
        Halfspaces(-row, np.array([top]))
        for row, most in zip(rows, high, strict=True)
        if not most < top  # also where it is NaN
    ]


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """Differences between low and high; no high is above `top`, where the sum alone reaches 1.

    `is_cut_low` and `is_cut_high` say where a side is a division, and not a bound that every
    output keeps anyhow.
    """

    low: Float64
    high: Float64
    top: float
    is_cut_low: npt.NDArray[np.bool_]
    is_cut_high: npt.NDArray[np.bool_]

    def polyhedron(self, rows: Float64) -> Halfspaces | None:
        """Contains every violation in the cell; None if there is none."""
        slope, constant, slack = self._chords()
        if float((slope * self.high + constant).sum()) + slack < 1:
            return None
        scale = float(slope.max(initial=0.0)) or 1.0
        reached = (1 - constant.sum() - slack) / scale
        cuts_low, cuts_high = rows[self.is_cut_low], rows[self.is_cut_high]
        matrix = np.vstack([-(slope / scale) @ rows, -cuts_low, cuts_high])
        offset = np.concatenate(
            [[reached], self.low[self.is_cut_low], -self.high[self.is_cut_high]]
        )
        return Halfspaces(matrix, offset)

    def gaps(self, point: Float64) -> Float64:
        """How far each chord is above exp at a point, relative to e^top."""
        slope, constant, _ = self._chords()
        inside = np.clip(point, self.low, self.high)
        return np.asarray(slope * inside + constant - np.exp(inside - self.top))

    def cut(self, point: Float64) -> tuple[int, float]:
        """Where it is cut best for a point: in the difference whose chord is farthest off there."""
        worst = int(np.argmax(self.gaps(point)))
        room = INNER_SHARE * (self.high[worst] - self.low[worst])
        at = float(np.clip(point[worst], self.low[worst] + room, self.high[worst] - room))
        return worst, at

    def divided(self, worst: int, at: float) -> tuple[Cell, Cell]:
        """Cut in two in one difference; the cell above the cut comes first."""
        high, cut_high = self.high.copy(), self.is_cut_high.copy()
        high[worst], cut_high[worst] = at, True
        low, cut_low = self.low.copy(), self.is_cut_low.copy()
        low[worst], cut_low[worst] = at, True
        return replace(self, low=low, is_cut_low=cut_low), replace(
            self, high=high, is_cut_high=cut_high
        )

    def _chords(self) -> tuple[Float64, Float64, float]:
        """Slopes and constants of lines above exp(d - top), and what their rounding may be."""
        width = self.high - self.low
        at_low, at_high = np.exp(self.low - self.top), np.exp(self.high - self.top)
        is_narrow = width < NARROW_CELL
        slope = np.where(is_narrow, 0.0, (at_high - at_low) / np.where(is_narrow, 1.0, width))
        constant = np.where(is_narrow, at_high, at_high - slope * self.high)
        size = (
            1 + np.abs(constant) + np.abs(slope) * np.maximum(np.abs(self.low), np.abs(self.high))
        )
        return slope, constant, CHORD_SLACK * float(size.sum())


def first_cell(low: Float64, high: Float64, top: float) -> Cell | None:
    """All differences between proven bounds, up to `top`; None if some bound is above it."""
    if np.any(low > top):
        return None
    nothing = np.zeros(len(low), np.bool_)
    return Cell(low, np.minimum(high, top), top, nothing, high > top)


# Bounds on probabilities by linear queries to one and the same complete verifier.
#
# Bounds on the differences of outputs come first and may be enough. Else the violations are put
# into polyhedra, and the verifier either proves these out of reach or shows
# a point in them. If that point is no violation, the polyhedra are refined there and asked about
# again.


Decide = Callable[[Network, Specification, Limits], Answer]
"""Decides a specification whose requirement is linear."""

FINEST_GAP = 1e-7
"""Where chords or tangents are this near to the true set, relative to the odds, and the point is
no violation, nothing finer is asked: what is left is within the rounding of the network."""

MOST_QUERIES = 4096
"""Linear queries for one bound on a probability."""

UNBOUNDED_MESSAGE = "the outputs have no finite bounds"


def decide_softmax(
    network: Network,
    specification: Specification,
    limits: Limits,
    decide: Decide,
    arithmetic: Arithmetic,
    covers: list[ProbabilityCover] | None = None,
) -> Answer:
    """ROBUST if every bound is proven; a candidate once a point breaks one of them.

    What shows that all bounds are proven is added to `covers`.
    """
    check_bounded(network, specification)
    refinement = _Refinement(network, specification, limits, decide, arithmetic)
    answer = refinement.answer()
    if covers is not None and answer.verdict is Verdict.ROBUST:
        covers += refinement.covers
    return answer


@dataclass(slots=True)
class _Refinement:
    network: Network
    specification: Specification
    limits: Limits
    decide: Decide
    arithmetic: Arithmetic
    found: Array | None = None
    attacked: bool = False
    covers: list[ProbabilityCover] = field(default_factory=list)

    def answer(self) -> Answer:
        requirement = self.specification.requirement
        assert isinstance(requirement, SoftmaxRequirement)
        if self.replays(centre_of(self.specification.region)):
            return Answer(Verdict.NOT_ROBUST, self.found)
        if not requirement.bounds and not self._is_finite():
            return Answer(Verdict.UNKNOWN, message=UNBOUNDED_MESSAGE)
        missing = None
        for bound in requirement.bounds:
            told = self.settle(bound)
            if self.found is not None:
                return Answer(Verdict.NOT_ROBUST, self.found)
            if told.verdict is not Verdict.ROBUST:
                missing = missing or told
        return missing or Answer(Verdict.ROBUST)

    def _is_finite(self) -> bool:
        """Whether all outputs are numbers in the region: a bound that none passes needs that."""
        inside = crown_bounds(self.network, [self.specification.region], arithmetic=self.arithmetic)
        return bool(inside.low.isfinite().all() and inside.high.isfinite().all())

    def settle(self, bound: ProbabilityBound) -> Answer:
        """ROBUST if the bound is proven; anything else, with `found` set, if it is broken."""
        rows = differences(bound.index, self.network.output_size)
        region = self.specification.region
        inside = crown_bounds(self.network, [region], rows, arithmetic=self.arithmetic)
        low, high = inside.low[0].numpy(), inside.high[0].numpy()
        cover = ProbabilityCover(bound, low, high)
        self.covers.append(cover)
        return (self._settle_ceiling if bound.is_ceiling else self._settle_floor)(rows, cover)

    def _settle_floor(self, rows: Float64, cover: ProbabilityCover) -> Answer:
        low, high, top = cover.low, cover.high, cover.top
        if not np.isfinite(low).all():
            return Answer(Verdict.UNKNOWN, message=UNBOUNDED_MESSAGE)
        rivals = halfspaces_of_rivals(rows, top, high)
        whole = first_cell(low, high, top)
        cells = [] if whole is None else [(0, whole)]
        shape = None if whole is None else whole.polyhedron(rows)
        if shape is None and not rivals:
            return Answer(Verdict.ROBUST)
        told = self.ask([*rivals, *([] if shape is None else [shape])])
        if told.verdict is Verdict.ROBUST or self.found is not None:
            return told
        if rivals and cells:  # which of them it was is not said; each is asked about alone
            told = self.ask(rivals)
        if rivals and told.verdict is not Verdict.ROBUST:
            return self.open(told)
        known = None if rivals else told  # of the first cell
        for _ in range(MOST_QUERIES):
            if not cells or self.found is not None:
                return Answer(Verdict.ROBUST)
            node, cell = cells.pop()
            told, known = known or self._about(cell, rows), None
            if told.verdict is Verdict.ROBUST or self.found is not None:
                continue
            if told.candidate is None:
                return self.open(told)
            point = rows @ self.outputs(told.candidate)
            if not float(cell.gaps(point).sum()) >= FINEST_GAP:  # also where it is NaN
                return self.open(None)
            axis, at = cell.cut(point)
            halves = zip(cover.split(node, axis, at), cell.divided(axis, at), strict=True)
            cells.extend(halves)
        return self.open(None)

    def _about(self, cell: Cell, rows: Float64) -> Answer:
        shape = cell.polyhedron(rows)
        return Answer(Verdict.ROBUST) if shape is None else self.ask([shape])

    def _settle_ceiling(self, rows: Float64, cover: ProbabilityCover) -> Answer:
        low, top = cover.low, cover.top
        if not np.isfinite(low).all():
            return Answer(Verdict.UNKNOWN, message=UNBOUNDED_MESSAGE)
        tangents = Tangents(rows, top, low)
        cover.shares = tangents.shares
        if log_sum_exp(low) > top + FINEST_GAP * (1 + abs(top)):
            return Answer(Verdict.ROBUST)
        for _ in range(MOST_QUERIES):
            told = self.ask([tangents.polyhedron])
            if told.verdict is Verdict.ROBUST or self.found is not None:
                return told
            if told.candidate is None:
                return self.open(told)
            point = rows @ self.outputs(told.candidate)
            if not log_sum_exp(point) >= top + FINEST_GAP:  # also where it is NaN
                return self.open(None)
            tangents.add(point)
        return self.open(None)

    def ask(self, polyhedra: Sequence[Halfspaces]) -> Answer:
        """The verifier's own answer on polyhedra; a candidate of it is tried as a violation."""
        expired = self.limits.expired
        if expired is not None:
            return Answer(expired)
        region, inputs = self.specification.region, self.specification.inputs
        asked = Specification(region, LinearRequirement(tuple(polyhedra)), inputs)
        told = self.decide(self.network, asked, self.limits)
        if told.verdict is not Verdict.ROBUST and not self.replays(told.candidate):
            self.attack()
        return told

    def attack(self) -> None:
        """Once: most violations are found by it, and the rest is then about proving."""
        if self.attacked:
            return
        self.attacked = True
        seconds = attack_seconds(self.limits)
        witness = attack_specification(self.network, self.specification, seconds=seconds)
        if witness is not None:
            self.found = witness.input

    def replays(self, candidate: Array | None) -> bool:
        """Whether the candidate breaks one of the bounds; kept if so."""
        witness = check_witness(self.network, self.specification, candidate)
        if witness is not None:
            self.found = witness.input
        return witness is not None

    def outputs(self, candidate: Array) -> Float64:
        shape = (1, *self.network.input_shape)
        point = np.asarray(candidate, self.network.input_dtype).reshape(shape)
        return np.asarray(self.network.replay(point)[0], np.float64)

    def open(self, told: Answer | None) -> Answer:
        """Why a bound could not be decided."""
        if told is None or told.verdict in (Verdict.NOT_ROBUST, Verdict.ROBUST):
            message = "the probability comes so near to its bound that rounding decides"
            return Answer(Verdict.UNKNOWN, message=message)
        return Answer(told.verdict, message=told.message)


# Networks that end in a softmax: bounds on their outputs become bounds on a softmax of logits.
#
# The network is cut in front of its softmax, so that the rest is decided as any network that
# outputs logits. Levels are moved by what the softmax itself may round.


LEVEL_ROUNDING = 2.0**-40
"""What a level may be off for its own computation in float64."""


def logit_question(
    network: Network, specification: Specification, arithmetic: Arithmetic
) -> tuple[Network, Specification] | None:
    """The same question about the logits, a little stricter; None if it is none of probabilities.

    Only for polyhedra that bound a single probability: comparisons of two need no such detour.
    """
    violations = specification.requirement.violations
    if not violations or not network.outputs_are_probabilities:
        return None
    slack = LEVEL_ROUNDING
    if arithmetic.is_float:
        rounding = softmax_error(network.output_size, fuse(network).number.unit)
        slack += rounding * arithmetic.widening
    reachable = [polyhedron for polyhedron in violations if not _is_out_of_reach(polyhedron, slack)]
    bounds = [_bound(polyhedron, slack) for polyhedron in reachable]
    logits = None if None in bounds else _without_softmax(network)
    if logits is None:
        return None
    requirement = SoftmaxRequirement(tuple(bound for bound in bounds if bound is not None))
    return logits, Specification(specification.region, requirement, specification.inputs)


def _is_out_of_reach(polyhedron: Halfspaces, slack: float) -> bool:
    """Whether no probabilities lie in it, by one of its rows alone: each is between 0 and 1."""
    least = np.minimum(polyhedron.matrix, 0).sum(axis=1) + polyhedron.offset
    return bool(np.any(least > slack * (1 + np.abs(polyhedron.matrix).sum(axis=1))))


def _bound(polyhedron: Halfspaces, slack: float) -> ProbabilityBound | None:
    """The bound that a polyhedron y_i <= level or y_i >= level breaks; None if it is another."""
    row = polyhedron.matrix[0]
    places = np.flatnonzero(row)
    if len(polyhedron.matrix) != 1 or len(places) != 1:
        return None
    index = int(places[0])
    is_ceiling = bool(row[index] < 0)
    level = -float(polyhedron.offset[0]) / float(row[index])
    level += -slack if is_ceiling else slack
    return ProbabilityBound(index, level, is_ceiling) if slack < level < 1 - slack else None


def _without_softmax(network: Network) -> Network | None:
    """The network up to the argument of its last node, made once; None if that is no softmax."""
    return network.memo.get(_without_softmax, lambda: without_last(network, "Softmax"))
