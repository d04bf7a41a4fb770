"""Branch and bound on units of any kind: where `_tree` knows only the signs of ReLU units.

The scheme is GenBaB's (Shi et al. 2025). A node of the tree holds an interval for every argument of
the network, and a box of inputs. It is bounded by alpha-CROWN, with multipliers of the intervals
that were split (beta-CROWN, at any point of a unit's argument); what its linear bounds say of
inputs that violate all rows at once clips the box (Clip-and-Verify, Zhou et al. 2025), and as long
as that helps it is bounded again. It is split where that gains most: at a point of one argument, so
that the lines around its unit come closer on both sides, or of an input. All bounds are those of
`radii.bounds`, in float64, less the rounding of the network and their own; nothing here is believed
without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from radii.bounds import (
    OFFSET_ROUNDING,
    Between,
    FreeChoices,
    Fusion,
    LayeredNetwork,
    LinearBounds,
    LinearFunctions,
    State,
    Supports,
    UnitLosses,
    backward,
    input_influence,
    layered,
    optimised,
    propagate,
    unit_losses,
)
from radii.networks import Interval
from radii.problem import FLOAT, Arithmetic, Ball, Box, Halfspaces, Limits
from radii.verifiers.native._candidates import Candidates
from radii.verifiers.native._cuts import ViolationCuts, best_mixture, clipped
from radii.verifiers.native._patience import Patience
from radii.verifiers.native._settings import SmoothTreeSettings

_DEFAULTS = SmoothTreeSettings()


@dataclass(frozen=True, slots=True, eq=False)
class SmoothNodes:
    """Open nodes, a row each; by layers `lows` and `highs` of arguments and which were `split`, and
    behind the layers those of the inputs.

    `lines` and the multipliers `above` and `below` are what children start from (in float32), for
    layers that have any. `spec` is the violation that a node is about, `values` its bound so far,
    `share` its part of the tree, and `best` the row of the violation that was bounded best.
    """

    lows: tuple[Tensor, ...]
    highs: tuple[Tensor, ...]
    split: tuple[Tensor, ...]
    lines: dict[int, Tensor]
    above: dict[int, Tensor]
    below: dict[int, Tensor]
    spec: Tensor
    values: Tensor
    share: Tensor
    best: Tensor

    def __len__(self) -> int:
        return len(self.spec)

    def taken(self, index: Tensor) -> SmoothNodes:
        """Some of the nodes, or the same one several times."""
        return SmoothNodes(
            tuple(low[index] for low in self.lows),
            tuple(high[index] for high in self.highs),
            tuple(split[index] for split in self.split),
            {number: held[:, index] for number, held in self.lines.items()},
            {number: held[index] for number, held in self.above.items()},
            {number: held[index] for number, held in self.below.items()},
            self.spec[index],
            self.values[index],
            self.share[index],
            self.best[index],
        )

    @classmethod
    def joined(cls, parts: Sequence[SmoothNodes]) -> SmoothNodes:
        """Several in one."""
        if len(parts) == 1:
            return parts[0]
        first = parts[0]
        return cls(
            tuple(map(torch.cat, zip(*(part.lows for part in parts), strict=True))),
            tuple(map(torch.cat, zip(*(part.highs for part in parts), strict=True))),
            tuple(map(torch.cat, zip(*(part.split for part in parts), strict=True))),
            {n: torch.cat([part.lines[n] for part in parts], 1) for n in first.lines},
            {n: torch.cat([part.above[n] for part in parts]) for n in first.above},
            {n: torch.cat([part.below[n] for part in parts]) for n in first.below},
            torch.cat([part.spec for part in parts]),
            torch.cat([part.values for part in parts]),
            torch.cat([part.share for part in parts]),
            torch.cat([part.best for part in parts]),
        )

    @property
    def bytes_each(self) -> int:
        """Of memory, for one node."""
        count = max(1, len(self))
        tensors = [*self.lows, *self.highs, *self.split, *self.lines.values()]
        tensors += [*self.above.values(), *self.below.values()]
        return sum(each.nbytes for each in tensors) // count

    def is_empty(self) -> Tensor:
        """Where no input is left: the intervals of some argument exclude each other."""
        pairs = zip(self.lows, self.highs, strict=True)
        return torch.stack([(low > high).any(1) for low, high in pairs]).any(0)

    def cut(self, layer: Tensor, unit: Tensor, point: Tensor, side: int) -> SmoothNodes:
        """Each node with one argument at most (side -1) or at least (+1) a point."""
        lows, highs = [low.clone() for low in self.lows], [high.clone() for high in self.highs]
        split = [held.clone() for held in self.split]
        for number in layer.unique().tolist():
            here = (layer == number).nonzero().squeeze(1)
            place = here, unit[here]
            split[number][place] = True
            if side > 0:
                lows[number][place] = torch.maximum(lows[number][place], point[here])
            else:
                highs[number][place] = torch.minimum(highs[number][place], point[here])
        return replace(self, lows=tuple(lows), highs=tuple(highs), split=tuple(split))


@dataclass(frozen=True, slots=True, eq=False)
class _Splits:
    """For each node candidates (nodes, candidates): an argument of a layer, and where to cut."""

    layer: Tensor
    unit: Tensor
    point: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class _ClippedBoxes:
    """What cuts leave of boxes, and which part of each side is `left`."""

    low: Tensor
    high: Tensor
    left: Tensor


class SmoothTree:
    """All nodes not yet proven, over all violations of one region.

    `candidates` are shown the inputs at which relaxations are least; once one of them is a
    counterexample, the search stops. `patience` is asked now and then with the closed share.
    """

    def __init__(
        self,
        fusion: Fusion,
        region: Ball | Box,
        violations: Sequence[Halfspaces],
        candidates: Candidates,
        limits: Limits,
        *,
        patience: Patience | None = None,
        arithmetic: Arithmetic = FLOAT,
        settings: SmoothTreeSettings = _DEFAULTS,
    ) -> None:
        self.network: LayeredNetwork = layered(fusion, torch.float64, "cpu", arithmetic)
        self.supports = Supports.of([region])
        self.candidates, self.limits, self.settings = candidates, limits, settings
        self.patience = patience or Patience()
        longest = max(len(each.offset) for each in violations)
        chosen = [[min(i, len(each.offset) - 1) for i in range(longest)] for each in violations]
        pairs = list(zip(violations, chosen, strict=True))
        self.rows = torch.stack([torch.from_numpy(each.matrix[c]) for each, c in pairs])
        self.offsets = torch.stack([torch.from_numpy(each.offset[c]) for each, c in pairs])
        self.sizes = [layer.size for layer in self.network.layers]
        self.has_begun = self.is_refuted = False
        self.open: list[SmoothNodes] = []
        self.visited, self.closed = 0, 0.0

    @property
    def is_proven(self) -> bool:
        return self.has_begun and not self.open

    @property
    def closed_share(self) -> float:
        """The part of the tree that is proven, every split halving a node's part."""
        return self.closed / len(self.rows)

    def start(self, known: Sequence[Interval]) -> None:
        """Bound the root, beginning with intervals of all arguments that hold in the region."""
        with torch.no_grad():
            nothing = [torch.zeros(1, size, dtype=torch.bool) for size in self.sizes]
            box = self.supports.box
            root = SmoothNodes(
                (*(each.low for each in known), box.low),
                (*(each.high for each in known), box.high),
                (*nothing, torch.zeros_like(box.low, dtype=torch.bool)),
                {},
                {},
                {},
                torch.zeros(1, dtype=torch.long),
                torch.full((1,), -torch.inf, dtype=torch.float64),
                torch.ones(1, dtype=torch.float64),
                torch.zeros(1, dtype=torch.long),
            )
            for part in torch.arange(len(self.rows)).split(self._at_once()):
                nodes = root.taken(torch.zeros_like(part))
                self._bound(replace(nodes, spec=part), tightens=False)
        self.has_begun = True

    def grow(self) -> None:
        """Split open nodes until none is left, or there is no time or memory for more."""
        with torch.no_grad():
            while self.open and not self._must_stop():
                nodes = self._next()
                self.visited += len(nodes)
                children = self._children(nodes)
                for part in torch.arange(len(children)).split(self._at_once()):
                    self._bound(children.taken(part), tightens=self._tightens())

    # --- limits

    def _must_stop(self) -> bool:
        share = self.closed_share if self.visited else 1.0
        return self.is_refuted or self.limits.is_over or self.patience.is_hopeless(share)

    def _work(self) -> int:
        """Products of one row's way back through the whole network."""
        maps = [h for layer in self.network.layers for h in layer.maps.values()]
        return 1 + sum(held.work for held in maps)

    def _at_once(self) -> int:
        """Nodes bounded together."""
        work = self._work() * self.rows.shape[1]
        return max(1, min(self.settings.nodes_at_once, self.settings.work_at_once // work))

    def _tightens(self) -> bool:
        """Whether arguments of children are bounded again by CROWN: where that is little beside
        the ascent of a node's own bound."""
        return 2 * sum(self.sizes) <= self.settings.tightened_rows * self.settings.steps

    def _next(self) -> SmoothNodes:
        """The open nodes nearest to a proof; once memory is short, those that came last."""
        nodes = SmoothNodes.joined(self.open)
        if len(nodes) * nodes.bytes_each > self.settings.memory_bytes:
            order = torch.arange(len(nodes)).flip(0)
        else:
            order = nodes.values.argsort(descending=True)
        count = max(1, self._at_once() // 2)
        rest = order[count:].sort().values
        self.open = [nodes.taken(rest)] if len(rest) else []
        return nodes.taken(order[:count])

    # --- bounds

    def _state(self, nodes: SmoothNodes, *, tightens: bool) -> State:
        """Everything that is known in some nodes: intervals, and lines from them."""
        *known, box = [
            Interval(low, high) for low, high in zip(nodes.lows, nodes.highs, strict=True)
        ]
        supports = self.supports.taken(torch.zeros(len(nodes), dtype=torch.long))
        bound = backward if tightens else None
        return propagate(self.network, replace(supports, box=box), bound, known, self.limits)

    def _functions(self, state: State, rows: Tensor) -> LinearFunctions:
        output = self.network.output
        _, loss = output.arguments(state.values, state.errors)
        return LinearFunctions.of_functions(output, loss, torch.arange(len(state)), rows)

    def _choices(self, nodes: SmoothNodes, state: State, rows: LinearFunctions) -> FreeChoices:
        """What nodes start from: their parents' choices, CROWN's where there are none."""
        start = FreeChoices.start(state, rows).lines
        lines = {
            n: nodes.lines[n].double() if n in nodes.lines else own for n, own in start.items()
        }
        between = {}
        for number, is_split in enumerate(nodes.split[:-1]):
            units = is_split.any(0).nonzero().squeeze(1)
            if len(units):
                empty = rows.constants.new_zeros(*rows.shape, len(units))
                above, below = (
                    held[number][:, :, units].double() if number in held else empty.clone()
                    for held in (nodes.above, nodes.below)
                )
                between[number] = Between(units, above, below)
        return FreeChoices(lines, between)

    def _cuts(self, bounds: LinearBounds, spec: Tensor) -> ViolationCuts:
        """Linear functions of the input that are at most 0 at every violation in a node."""
        offsets = self.offsets[spec]
        rounding = OFFSET_ROUNDING * (bounds.constants.abs() + offsets.abs())
        return ViolationCuts(bounds.slopes, bounds.constants + offsets - rounding)

    def _margins(self, bounds: LinearBounds, spec: Tensor) -> Tensor:
        """(nodes, rows): a violation of the node needs all of them to be at most 0."""
        offsets = self.offsets[spec]
        sums = bounds.values + offsets
        sums = sums - OFFSET_ROUNDING * (bounds.values.abs() + offsets.abs())
        return torch.where(torch.isfinite(sums), sums, -torch.inf)

    def _bound(self, nodes: SmoothNodes, *, tightens: bool) -> None:
        """Bound some nodes, and keep those that stay open: again as long as their boxes shrink."""
        for _ in range(self.settings.rounds):
            is_left = ~nodes.is_empty()
            self.closed += float(nodes.share[~is_left].sum())
            nodes = nodes.taken(is_left.nonzero().squeeze(1))
            if not len(nodes):
                return
            nodes, shrinks = self._bounded(nodes, tightens=tightens)
            self._keep(nodes.taken((~shrinks).nonzero().squeeze(1)))
            nodes = nodes.taken(shrinks.nonzero().squeeze(1))
            if self.is_refuted or self.limits.is_over:
                break
        self._keep(nodes)

    def _keep(self, nodes: SmoothNodes) -> None:
        if len(nodes):
            self.open.append(nodes)

    def _bounded(self, nodes: SmoothNodes, *, tightens: bool) -> tuple[SmoothNodes, Tensor]:
        """The nodes that stay open, and which of them are worth another round."""
        state = self._state(nodes, tightens=tightens)
        rows = self._functions(state, self.rows[nodes.spec])
        start = self._choices(nodes, state, rows)
        bounds, found = optimised(state, rows, start, self.settings.steps, self.limits)
        low, high = nodes.lows[-1], nodes.highs[-1]
        cuts = self._cuts(bounds, nodes.spec)
        mixture = best_mixture(cuts, low, high)
        values, best = self._margins(bounds, nodes.spec).max(1)
        values = torch.maximum(values, mixture.values)
        is_open = ~(values > 0)
        self.closed += float(nodes.share[~is_open].sum())
        index = is_open.nonzero().squeeze(1)
        if len(index):
            points = torch.cat([bounds.points[index, best[index]], mixture.points[index]])
            self.is_refuted |= self.candidates.try_points(points)
        left = self._clipped(cuts, nodes)
        is_worthwhile = left.left.amin(1) < 1 - self.settings.worthwhile_clip
        kept = self._kept(nodes, state, found, values, best)
        kept = replace(kept, lows=(*kept.lows[:-1], left.low), highs=(*kept.highs[:-1], left.high))
        return kept.taken(index), is_worthwhile[index]

    def _kept(
        self, nodes: SmoothNodes, state: State, found: FreeChoices, values: Tensor, best: Tensor
    ) -> SmoothNodes:
        """The nodes with what was found of them."""
        above, below = {}, {}
        for number, size in enumerate(self.sizes):
            shape = *self.rows[nodes.spec].shape[:2], size
            above[number], below[number] = torch.zeros(shape), torch.zeros(shape)
            if number in found.between:
                known = found.between[number]
                above[number][:, :, known.units] = known.above.float()
                below[number][:, :, known.units] = known.below.float()
        return replace(
            nodes,
            lows=(*(each.low for each in state.arguments), nodes.lows[-1]),
            highs=(*(each.high for each in state.arguments), nodes.highs[-1]),
            lines={number: held.float() for number, held in found.lines.items()},
            above=above,
            below=below,
            values=torch.maximum(nodes.values, values),
            best=best,
        )

    # --- splits

    def _children(self, nodes: SmoothNodes) -> SmoothNodes:
        """Both sides of the best split of each node."""
        splits = self._candidates(nodes)
        place = self._best(nodes, splits) if splits.layer.shape[1] > 1 else None
        if place is None:
            place = torch.zeros(len(nodes), dtype=torch.long)
        layer, unit, point = (
            each.gather(1, place[:, None]).squeeze(1)
            for each in (splits.layer, splits.unit, splits.point)
        )
        halved = replace(nodes, share=nodes.share / 2)
        return SmoothNodes.joined([halved.cut(layer, unit, point, side) for side in (-1, 1)])

    def _own_rows(self, nodes: SmoothNodes) -> Tensor:
        """The row of each node's violation that is bounded best, (nodes, 1, outputs)."""
        return self.rows[nodes.spec, nodes.best][:, None]

    def _own_choices(self, nodes: SmoothNodes, state: State, rows: LinearFunctions) -> FreeChoices:
        """The choices of that row."""
        best = nodes.best
        numbers = torch.arange(len(nodes))
        alone = replace(
            nodes,
            lines={n: held[:, numbers, best][:, :, None] for n, held in nodes.lines.items()},
            above={n: held[numbers, best][:, None] for n, held in nodes.above.items()},
            below={n: held[numbers, best][:, None] for n, held in nodes.below.items()},
        )
        return self._choices(alone, state, rows)

    def _candidates(self, nodes: SmoothNodes) -> _Splits:
        """The arguments whose units' lines cost the bound most, with points to cut them at, and
        the inputs that matter most for how loose lines are."""
        state = self._state(nodes, tightens=False)
        rows = self._functions(state, self._own_rows(nodes))
        choices = self._own_choices(nodes, state, rows)
        splits = self._of_units(nodes, unit_losses(state, rows, choices.lines, choices.between))
        if self.network.inputs > self.settings.split_inputs:
            return splits
        low, high = nodes.lows[-1], nodes.highs[-1]
        count = min(self.settings.short_list, self.network.inputs)
        inputs = (input_influence(state) * (high > low)).topk(count, 1).indices
        layer = torch.full_like(inputs, len(self.sizes))
        middle = (low / 2 + high / 2).gather(1, inputs)
        return _Splits(
            torch.cat([splits.layer, layer], 1),
            torch.cat([splits.unit, inputs], 1),
            torch.cat([splits.point, middle], 1),
        )

    def _of_units(self, nodes: SmoothNodes, found: UnitLosses) -> _Splits:
        lows, highs = torch.cat(nodes.lows[:-1], 1), torch.cat(nodes.highs[:-1], 1)
        losses = torch.cat(
            [
                torch.zeros_like(low) if loss is None else loss
                for loss, low in zip(found.losses, nodes.lows, strict=False)
            ],
            1,
        )
        widths = highs - lows
        # Where the lines touch their functions, what could be lost elsewhere decides.
        score = torch.where(widths > 0, losses, -1.0) + self.settings.tie_break * widths
        most = score.topk(min(self.settings.short_list, score.shape[1]), 1)
        # Cuts of arguments that cost nothing leave a node as it is: the first one stands for them.
        is_worthwhile = most.values >= self.settings.least_loss * most.values[:, :1]
        units = torch.where(is_worthwhile, most.indices, most.indices[:, :1])
        at = torch.cat(found.arguments, 1).gather(1, units)
        low, high = lows.gather(1, units), highs.gather(1, units)
        edge = self.settings.edge_share * (high - low)
        points = [low / 2 + high / 2, torch.minimum(torch.maximum(at, low + edge), high - edge)]
        firsts = torch.tensor([0, *self.sizes[:-1]]).cumsum(0)
        layer = torch.bucketize(units, firsts, right=True) - 1
        knees = self._knees(layer, units - firsts[layer], low, high)
        points = [torch.where(torch.isfinite(knees), knees, point) for point in points]
        return _Splits(
            layer.repeat(1, len(points)),
            (units - firsts[layer]).repeat(1, len(points)),
            torch.cat(points, 1),
        )

    def _knees(self, layer: Tensor, unit: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Where a piecewise-linear unit bends inside its interval; infinite for other units."""
        knees = torch.full_like(low, torch.inf)
        for number in layer.unique().tolist():
            hinges = self.network.layers[number].hinges
            if hinges is None:
                continue
            here = layer == number
            for knee in torch.from_numpy(hinges.knee):
                own = knee[unit[here]]
                is_inside = (low[here] < own) & (own < high[here])
                knees[here] = torch.where(is_inside, own, knees[here])
        return knees

    def _best(self, nodes: SmoothNodes, splits: _Splits) -> Tensor:
        """The candidate of each node that gains most, by the product of what both of its children
        gain: strong branching (Achterberg 2007)."""
        count, each = splits.layer.shape
        parents = torch.arange(count).repeat_interleave(each)
        score = nodes.values.new_ones(count * each)
        for side in (-1, 1):
            for part in torch.arange(count * each).split(self._at_once()):
                children = nodes.taken(parents[part]).cut(
                    splits.layer.flatten()[part],
                    splits.unit.flatten()[part],
                    splits.point.flatten()[part],
                    side,
                )
                score[part] *= self.settings.least_gain + self._gains(children)
        return score.reshape(count, each).argmax(1)

    def _gains(self, children: SmoothNodes) -> Tensor:
        """How much of the way to a proof each child has come beyond its parent, by a short ascent
        from the parent's choices, and the share of its box that this clips."""
        state = self._state(children, tightens=False)
        rows = self._functions(state, self.rows[children.spec])
        choices = self._choices(children, state, rows)
        bounds, _ = optimised(state, rows, choices, self.settings.trial_steps, self.limits)
        values = self._margins(bounds, children.spec).amax(1)
        before = children.values.clamp_max(0)
        tiny = torch.finfo(before.dtype).tiny
        risen = ((values - before) / (-before).clamp_min(tiny)).nan_to_num(0.0).clamp(0, 1)
        cut = self._clipped(self._cuts(bounds, children.spec), children)
        lost = self.settings.clip_weight * (1 - cut.left).mean(1)
        return torch.where(children.is_empty(), 1.0, risen) + lost

    def _clipped(self, cuts: ViolationCuts, nodes: SmoothNodes) -> _ClippedBoxes:
        low, high = nodes.lows[-1], nodes.highs[-1]
        lower, upper = clipped(cuts, low, high)
        width = (high - low).clamp_min(torch.finfo(low.dtype).tiny)
        return _ClippedBoxes(lower, upper, ((upper - lower) / width).nan_to_num(0.0).clamp(0, 1))
