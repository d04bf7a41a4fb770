"""Branch and bound on boxes of inputs: for networks with few inputs, and for smooth ones.

As ReluVal does (Wang et al. 2018), with tighter bounds. Each round takes a batch of boxes. Linear
bounds of the outputs (CROWN, Zhang et al. 2018) say where in a box a violation can be; nothing is
left of a proven one, and the rest of the others is cut in two where that moves the bounds most. The
corners that the bounds are least at, and the middles of boxes, are tried as counterexamples.

A chain of ReLU layers has quicker bounds: loose ones first, tight ones where those nearly suffice
(at once while most do), and boxes that they are far from deciding are cut several times before they
are bounded again. Pieces of a box inherit what its units read where a violation may be.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum, auto

import torch
from torch import Tensor

from radii.bounds import (
    LayeredNetwork,
    LinearBounds,
    LinearFunctions,
    State,
    Supports,
    backward,
    box_of,
    fuse,
    input_influence,
    layered,
    linear_bounds,
    propagate,
    without_softmax,
)
from radii.errors import UnsupportedQuery
from radii.networks import Interval, Network
from radii.problem import FLOAT, Arithmetic, Ball, Limits, Norm, Specification
from radii.verifiers.native._boxes import Boxes
from radii.verifiers.native._candidates import Descent
from radii.verifiers.native._cuts import CutMixture, Statement, ViolationCuts
from radii.verifiers.native._dense_chain import DenseChain
from radii.verifiers.native._settings import BoxSettings

_DEFAULTS = BoxSettings()


class SplitOutcome(Enum):
    """What splitting came to."""

    PROVEN = auto()
    REFUTED = auto()
    OPEN = auto()


@dataclass(frozen=True, slots=True)
class SplitResult:
    """The outcome, how many boxes were bounded, and how many were left (or too small to split)."""

    outcome: SplitOutcome
    boxes: int
    open_boxes: int


def split_inputs(
    network: Network,
    specification: Specification,
    limits: Limits,
    check: Callable[[Tensor], bool],
    *,
    arithmetic: Arithmetic = FLOAT,
    device: torch.device | str = "cpu",
    settings: BoxSettings = _DEFAULTS,
) -> SplitResult:
    """Decide a specification with linear violations by splitting its region of inputs.

    `check` is given inputs (points, inputs) in float64 that seem to violate the specification, and
    says whether one of them does; the search then ends. It ends as well, open, once `limits` have
    expired. Every network that can be bounded is taken; only networks with few inputs (some 20) or
    small regions are decided soon. Raises UnsupportedQuery if the violations are not linear.
    """
    violations = specification.requirement.violations
    if violations is None:
        raise UnsupportedQuery("input splitting does not decide requirements that are not linear")
    if not violations:
        return SplitResult(SplitOutcome.PROVEN, 0, 0)
    search = _BoxSearch(network, specification, limits, check, arithmetic, device, settings)
    return search.run()


class _ExpiredError(Exception):
    """The limits expired in the middle of a round."""


@dataclass(frozen=True, slots=True, eq=False)
class _BoundedBoxes:
    """Boxes with what bounds say of them.

    `parts` are the best mixtures of cuts for each violation, `worst` their least value (> 0: no
    violation); `influence` says how much each input matters for the bounds' looseness.
    """

    boxes: Boxes
    cuts: ViolationCuts
    parts: list[CutMixture]
    worst: Tensor
    influence: Tensor

    def taken(self, index: Tensor) -> _BoundedBoxes:
        return _BoundedBoxes(
            self.boxes.taken(index),
            self.cuts.taken(index),
            [part.taken(index) for part in self.parts],
            self.worst[index],
            self.influence[index],
        )

    @property
    def is_open(self) -> Tensor:
        return ~(self.worst > 0)

    @property
    def middles(self) -> Tensor:
        return self.boxes.low / 2 + self.boxes.high / 2

    @property
    def slopes(self) -> Tensor:
        """How steep the mixtures are that leave a violation open; flat where none does."""
        open_slopes = [
            torch.where((part.values > 0)[:, None], 0.0, part.slopes.abs()) for part in self.parts
        ]
        return torch.stack(open_slopes).amax(0)


class _BoxSearch:
    def __init__(
        self,
        network: Network,
        specification: Specification,
        limits: Limits,
        check: Callable[[Tensor], bool],
        arithmetic: Arithmetic,
        device: torch.device | str,
        settings: BoxSettings,
    ) -> None:
        self.settings = settings
        self.network, self.specification = network, specification
        self.limits, self.check = limits, check
        stated = specification.requirement.violations
        assert stated
        fusion, violations = without_softmax(fuse(network), stated, arithmetic)
        self.layered: LayeredNetwork = layered(fusion, torch.float64, device, arithmetic)
        is_narrow = self.layered.inputs <= self.settings.influence_inputs
        self.statement = Statement.of(violations, specification, device)
        low, high = (
            torch.from_numpy(side).to(device)[None] for side in box_of(specification.region)
        )
        self.widths = (high - low).clamp_min(1e-300)
        self.low, self.high = low, high
        self.chain = DenseChain.of(self.layered, Interval(low, high)) if is_narrow else None
        self.pool = [Boxes(low, high)]
        self.descent = Descent(network, specification)
        self.boxes = self.stuck = self.rounds = 0
        self.batch = 16 if self.chain is None else self.settings.smallest_chain_batch
        self.near_share = 0.0
        units = sum(layer.size for layer in self.layered.layers)
        self.largest_batch = max(
            1, min(self.settings.largest_batch, self.settings.entries_kept // max(1, units))
        )

    def run(self) -> SplitResult:
        is_bounded = torch.isfinite(self.widths) & (self.low <= self.high)
        if not bool(is_bounded.all()):
            return self._result(SplitOutcome.OPEN)
        with torch.no_grad():
            while self.pool:
                if self.limits.expired is not None:
                    return self._result(SplitOutcome.OPEN)
                started = time.thread_time()
                boxes = self._next()
                try:
                    if self._round(boxes):
                        return self._result(SplitOutcome.REFUTED)
                except _ExpiredError:
                    self.pool.append(boxes)
                    return self._result(SplitOutcome.OPEN)
                self._adapt(len(boxes), time.thread_time() - started)
        return self._result(SplitOutcome.OPEN if self.stuck else SplitOutcome.PROVEN)

    def _result(self, outcome: SplitOutcome) -> SplitResult:
        return SplitResult(outcome, self.boxes, sum(map(len, self.pool)) + self.stuck)

    def _next(self) -> Boxes:
        """A batch of the boxes that came last: depth first, so that few are kept."""
        taken: list[Boxes] = []
        missing = self.batch
        while self.pool and missing > 0:
            last = self.pool.pop()
            if len(last) > missing:
                self.pool.append(last.taken(slice(0, len(last) - missing)))
                last = last.taken(slice(len(last) - missing, None))
            taken.append(last)
            missing -= len(last)
        return Boxes.joined(taken)

    def _adapt(self, count: int, seconds: float) -> None:
        if seconds > self.settings.round_seconds:
            least = 1 if self.chain is None else self.settings.smallest_chain_batch
            self.batch = max(least, int(count * self.settings.round_seconds / seconds))
        elif count == self.batch:
            self.batch = min(self.largest_batch, 2 * self.batch)

    def _round(self, boxes: Boxes) -> bool:
        """Bound, clip, try and split some boxes; True once a counterexample is found."""
        self.boxes += len(boxes)
        for judged in self._bounded(boxes):
            margins = self.descent.margins(judged.middles)
            if self._is_refuted(torch.cat([judged.middles, *(p.points for p in judged.parts)])):
                return True
            order = judged.worst.argsort(descending=True)  # the most violating end up on top
            self._split(judged.taken(order), self._halvings(judged.worst, margins)[order])
        return False

    def _bounded(self, boxes: Boxes) -> list[_BoundedBoxes]:
        """What stays open of the boxes, in parts that were bounded alike."""
        if self.chain is None:
            judged = self._by_crown(boxes)
            left = [judged.taken(_chosen_entries(judged.is_open))]
        else:
            at_once = self.near_share > self.settings.tight_first_share
            judged = self._by_chain(self.chain, boxes, tight=at_once)
            judged = judged.taken(_chosen_entries(judged.is_open))
            is_near = judged.worst > -self.settings.near_margins * self.descent.margins(
                judged.middles
            )
            self.near_share = 1 - float((~is_near).sum()) / len(boxes)
            left = [judged]
            if not at_once:
                far, near = (
                    judged.taken(_chosen_entries(~is_near)),
                    judged.taken(_chosen_entries(is_near)),
                )
                if len(near.boxes):
                    near = self._by_chain(self.chain, near.boxes, tight=True)
                left = [far, near.taken(_chosen_entries(near.is_open))]
        return [part for part in left if len(part.boxes)]

    def _by_chain(self, chain: DenseChain, boxes: Boxes, *, tight: bool) -> _BoundedBoxes:
        found = chain.bounds(boxes, self.statement, self._poll, tight=tight)
        boxes = Boxes(boxes.low, boxes.high, found.known)
        judged = self._judged(boxes, found.slopes, found.constants, found.influence)
        return replace(judged, worst=torch.where(found.is_proven, torch.inf, judged.worst))

    def _by_crown(self, boxes: Boxes) -> _BoundedBoxes:
        """By the backward pass that every network has; the boxes remember their intervals."""
        supports = Supports(Interval(boxes.low, boxes.high))
        state = propagate(self.layered, supports, self._polled, boxes.known)
        _, loss = self.layered.output.arguments(state.values, state.errors)
        rows = self.statement.rows.expand(len(boxes), -1, -1)
        found = linear_bounds(state, self.layered.output, loss, rows, self._polled)
        known = Boxes(boxes.low, boxes.high, tuple(state.arguments))
        is_narrow = self.layered.inputs <= self.settings.influence_inputs
        influence = input_influence(state) if is_narrow else torch.zeros_like(boxes.low)
        return self._judged(known, found.slopes, found.constants, influence)

    def _judged(
        self, boxes: Boxes, slopes: Tensor, constants: Tensor, influence: Tensor
    ) -> _BoundedBoxes:
        cuts = self.statement.cuts(slopes, constants, boxes.low, boxes.high)
        parts = self.statement.weighed(cuts, boxes.low, boxes.high)
        worst = torch.stack([part.values for part in parts]).amin(0)
        return _BoundedBoxes(boxes, cuts, parts, worst, influence)

    def _halvings(self, worst: Tensor, margins: Tensor) -> Tensor:
        """How often to cut each box before it is bounded again."""
        once = torch.ones_like(worst, dtype=torch.long)
        if self.chain is None:
            return once
        missing = (margins - worst) / margins.clamp_min(1e-300)
        times = (missing.clamp_min(1).log() / math.log(self.settings.halving_gain)).nan_to_num(
            0, self.settings.most_halvings
        )
        return torch.where(margins > 0, times.long().clamp(1, self.settings.most_halvings), once)

    def _poll(self) -> None:
        if self.limits.expired is not None:
            raise _ExpiredError

    def _polled(self, state: State, rows: LinearFunctions) -> LinearBounds:
        """A pass of a few rows; large networks need many for a single box."""
        self._poll()
        return backward(state, rows)

    def _is_refuted(self, points: Tensor) -> bool:
        """Try the most violating points, every so often after a short descent from them."""
        margins = self.descent.margins(points)
        order = margins.argsort()[: self.settings.points_tried]
        points, margins = points[order], margins[order]
        self.rounds += 1
        if (
            self.rounds <= self.settings.eager_rounds
            or self.rounds % self.settings.eager_rounds == 0
        ):
            points = torch.cat([points, self.descent.run(points, self.low, self.high)])
            margins = self.descent.margins(points)
        is_candidate = margins <= 0
        return bool(is_candidate.any()) and self.check(points[is_candidate])

    def _split(self, judged: _BoundedBoxes, halvings: Tensor) -> None:
        """Cut what the cuts leave of each box in two, so many times."""
        boxes, cuts, slopes = judged.boxes, judged.cuts, judged.slopes
        low, high = self.statement.clipped(cuts, boxes.low, boxes.high)
        sides = (boxes.high - boxes.low).clamp_min(1e-300)
        source = _chosen_entries((low <= high).all(1))  # which box each piece is of
        low, high, halvings = low[source], high[source], halvings[source]
        done: list[tuple[Tensor, Tensor, Tensor]] = []
        while len(source):
            widths = high - low
            # Where nothing is loose, several cuts have to be told apart: by how steep they are.
            score = judged.influence[source] * (widths / sides[source])
            for other in (widths * slopes[source], widths / self.widths):
                score = torch.where(score.amax(1, keepdim=True) > 0, score, other)
            place = score.argmax(1, keepdim=True)
            middle = (low / 2 + high / 2).gather(1, place)
            is_stuck = (widths / self.widths).amax(1) <= self.settings.smallest_width
            is_stuck |= ((middle <= low.gather(1, place)) | (middle >= high.gather(1, place)))[:, 0]
            self.stuck += int(is_stuck.sum())
            go = _chosen_entries(~is_stuck)
            lows = torch.stack([low, low.scatter(1, place, middle)], 1)[go].flatten(0, 1)
            highs = torch.stack([high.scatter(1, place, middle), high], 1)[go].flatten(0, 1)
            both = go.repeat_interleave(2)
            lows, highs = self.statement.clipped(cuts.taken(source[both]), lows, highs)
            kept = _chosen_entries((lows <= highs).all(1) & self._meets_region(lows, highs))
            low, high = lows[kept], highs[kept]
            source, halvings = source[both[kept]], halvings[both[kept]] - 1
            is_done = halvings <= 0
            done.append((low[is_done], high[is_done], source[is_done]))
            low, high, source, halvings = (held[~is_done] for held in (low, high, source, halvings))
        for lows, highs, source in done:
            if len(source):
                self.pool.append(boxes.taken(source).within(lows, highs))

    def _meets_region(self, low: Tensor, high: Tensor) -> Tensor:
        """Boxes that may hold a point of the region, if that is a ball."""
        region = self.specification.region
        if not isinstance(region, Ball) or region.norm is Norm.LINF:
            return torch.ones(len(low), dtype=torch.bool, device=low.device)
        centre = torch.from_numpy(region.center.ravel().copy()).to(low)
        steps = torch.maximum(low - centre, centre - high).clamp_min(0)
        length = steps.sum(1) if region.norm is Norm.L1 else torch.linalg.vector_norm(steps, dim=1)
        return length <= region.eps * (1 + 1e-9) + 1e-12


def _chosen_entries(chosen: Tensor) -> Tensor:
    """The numbers of the entries that are chosen."""
    return chosen.nonzero().squeeze(1)
