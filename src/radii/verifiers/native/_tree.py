"""Branch and bound on the signs of units, with bounds under the assumption of a violation.

The scheme is that of Bunel et al. (2020), with beta-CROWN's bounds of whole batches of nodes (Wang
et al. 2021). Unlike there, the units of rich nodes are bounded again in every node, by multipliers
of the violation (INVPROP, Kotha et al. 2023) and of the splits. README.md has the life of a node.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from radii.bounds import Multipliers, Rows, evaluate, improve
from radii.problem import Limits
from radii.verifiers.native._leaves import solve_leaf
from radii.verifiers.native._nodes import (
    MultiplierCache,
    Nodes,
    NodesAside,
    StoredMultipliers,
)
from radii.verifiers.native._patience import TRIALS, Patience, TrialTime
from radii.verifiers.native._proof_log import ProofLog, rounded_down, stated
from radii.verifiers.native._reduction import Reduction
from radii.verifiers.native._settings import TreeSettings, TrialSettings
from radii.verifiers.native._splits import SplitGains, best_splits

TREE = TreeSettings()

ROW_BYTES = 8
"""Of memory, for each unit of a node and each unit that its two bounds have multipliers for."""
IDLE_ASKED, IDLE_SHARE = 32.0, 0.02
"""A unit is idle once it was asked for so often, and moved in less than this share of the cases."""
IDLE_FADING = 0.98
"""What earlier batches weigh against the latest: an idle unit is asked again in time."""


@dataclass(slots=True, eq=False)
class Idleness:
    """Units whose bounds do not move at any node: asking for them again is a waste.

    Such are most units of a first layer: their bounds over the box are exact, and only the
    assumption of a violation could cut them (convSmall: 180 of 200 units asked for, none moved).
    """

    asked: Tensor
    moved: Tensor

    @classmethod
    def of(cls, units: int) -> Idleness:
        return cls(torch.zeros(units), torch.zeros(units))

    def note(self, asked: Tensor, moves: Tensor) -> None:
        """Which units of some nodes were asked for, and which of all units have moved."""
        self.asked = IDLE_FADING * self.asked + asked.sum(0)
        self.moved = IDLE_FADING * self.moved + (asked & moves).sum(0)

    @property
    def is_idle(self) -> Tensor:
        return (self.asked >= IDLE_ASKED) & (self.moved < IDLE_SHARE * self.asked)


class CandidateSearch(Protocol):
    """Who tries the points at which relaxations are least."""

    def try_points(self, points: Tensor) -> bool:
        """True once one of the points (N, inputs), or one near them, is a counterexample."""

    def margins(self, points: Tensor) -> Tensor:
        """How far each point is from a violation in real arithmetic."""


class Tree:
    """All nodes not yet proven, over all specifications of one region.

    `candidates` are shown inputs (N, inputs) that may be counterexamples; once one of them is, the
    search stops. `patience` is asked now and then with the part of the tree that is closed.
    `begun` are open nodes to go on with instead of the root. Multipliers are looked for on
    `device`; proofs stay on the CPU, in float64. Children start from their parents' multipliers as
    far as these fit into `memory_bytes`. The proof's margin is in the reduction's specifications.
    What is shown goes to the `log`, if there is one. With `stops_at_rounding` it ends once it
    `is_unprovable`: some input is so close to a violation in real arithmetic that rounding leaves
    nothing to prove.
    """

    def __init__(
        self,
        reduction: Reduction,
        candidates: CandidateSearch,
        limits: Limits,
        *,
        patience: Patience | None = None,
        device: str = "cpu",
        memory_bytes: int = 1 << 28,
        begun: Nodes | None = None,
        log: ProofLog | None = None,
        stops_at_rounding: bool = False,
        trials: TrialSettings = TRIALS,
        settings: TreeSettings = TREE,
    ) -> None:
        self.settings = settings
        self.log = log
        self.stops_at_rounding = stops_at_rounding
        self.is_unprovable = False
        self.lost, self.stuck_at, self.stuck_rounds = 0.0, -math.inf, 0
        self.names = reduction.units
        self.layers = reduction.layers
        self.region = reduction.region
        self.device = device
        self.layers32 = reduction.layers.to(torch.float32, "cpu")
        self.fast = self.layers32.to(torch.float32, device)
        self.limits = limits
        self.candidates = candidates
        self.patience = patience or Patience()
        self.is_refuted = False
        self.visited = 0
        units = self.layers.units
        fitting = memory_bytes // (1 + ROW_BYTES * units**2)
        self.at_once = max(1, min(self.settings.nodes_at_once, fitting // 2))
        self.most_at_once = self.at_once
        self.trial_time = TrialTime(trials)
        self.rows_at_once = max(
            self.settings.fewest_rows,
            min(
                self.settings.rows_at_once,
                self.settings.row_work_at_once // (1 + self.layers.entries),
            ),
        )
        self.memories = MultiplierCache(memory_bytes)
        self.idleness = Idleness.of(units)
        parts = self.layers.parts
        count = self.layers.spec_rows // parts
        # Probes tell what a split gains in cheap nodes. In trees of rich ones, where bounds of
        # units follow, choices by it double the tree (mnist-net 55: 860 and 1,838 nodes).
        self.gains: SplitGains | None = None
        self.begun_at = time.thread_time()
        roots = Nodes.roots(reduction.lower, reduction.upper, count, parts)
        self.open = roots if begun is None else begun
        self.aside = NodesAside()
        self.undecided = self.open.pick(torch.arange(0))
        self.total = float(self.open.share.sum())

    @property
    def left(self) -> Nodes:
        """What is not proven: open nodes, and leaves that stayed undecided."""
        return Nodes.join(self.open, *self.aside.parts, self.undecided)

    @property
    def is_proven(self) -> bool:
        return not (len(self.open) or self.aside.parts or len(self.undecided))

    @property
    def closed_share(self) -> float:
        """The part of the tree that is proven, every split halving a node's part."""
        left = float(self.open.share.sum()) + self.aside.share + float(self.undecided.share.sum())
        return 1 - left / max(self.total, 1e-300)

    def start(self) -> None:
        """Bound the nodes that it starts from: proves what needs no branching."""
        started = time.thread_time()
        for _ in range(0, len(self.open), self.at_once):
            # The first of the open nodes are bounded, and go to the end of the row if they stay.
            some = self.open.pick(torch.arange(min(self.at_once, len(self.open))))
            rest = self.open.pick(torch.arange(len(some), len(self.open)))
            self.open = Nodes.join(rest, self.bounded(some))
            if self.must_stop():
                return
        self.trial_time.earn(time.thread_time() - started, 0.0)

    def start_cheaply(self) -> None:
        """The same without bounding units again; then, for part of the time that this would take,
        a tree of cheap nodes: in convolutional networks it often is all that is needed."""
        started = time.thread_time()
        specs = self.layers.spec_rows // self.layers.parts
        self.gains = SplitGains.of(specs, self.layers.units, self.settings.splits)
        nodes, count = self.open, len(self.open)
        self.open = nodes.pick(torch.arange(0))
        for part in torch.arange(count).split(
            min(self.settings.cheap_nodes_at_once, self.rows_at_once)
        ):
            found = nodes.pick(part)
            if not self.must_stop():
                found, _ = self.still_open(found, shows=True)
            self.open = Nodes.join(self.open, found)
        if not len(self.open) or self.must_stop():
            return
        seconds = (time.thread_time() - started) / (
            self.settings.spec_steps * count
        )  # a step of one row
        asked = int(self.influential(self.open).sum())
        self.trial_time.earn(
            2 * self.settings.rounds_expected * self.settings.tighten_steps * asked * seconds, 0.0
        )
        failed, left = self.tried(self.open)
        self.open = Nodes.join(failed, left)

    def must_stop(self) -> bool:
        """While roots are bounded nothing can be closed yet: only time makes them hopeless."""
        share = self.closed_share if self.visited else 1.0
        has_ended = self.is_refuted or self.is_unprovable
        return has_ended or self.limits.is_over or self.patience.is_hopeless(share)

    def grow(self) -> None:
        """Branch until everything is proven, a counterexample is found, it is over or hopeless."""
        while (len(self.open) or self.aside.parts) and not self.must_stop():
            self.open = self.aside.exchanged(self.open, self.at_once, self.settings.nodes_at_hand)
            self.note_progress()
            order = self.open.value.argsort(descending=True)
            now, later = order[: self.at_once], order[self.at_once :]
            chosen, rest = self.open.pick(now), self.open.pick(later)
            is_leaf = ~chosen.is_open_unit.any(1)
            self.finish(chosen.pick(is_leaf))
            failed, parts = self.tried(chosen.pick(~is_leaf))
            rest = Nodes.join(rest, parts)
            if self.must_stop():
                self.open = Nodes.join(rest, failed)
                return
            started = time.thread_time()
            before = float(failed.share.sum())
            found = self.bounded(self.children(failed))
            seconds = time.thread_time() - started
            self.trial_time.earn(seconds, before - float(found.share.sum()))
            self.adapt(seconds)
            self.open = Nodes.join(rest, found)

    def children(self, nodes: Nodes) -> Nodes:
        units = self.split_units(nodes)
        split = nodes.split(units)
        if self.log is not None:
            split.id = self.log.split(nodes.id, self.names[units])
        self.visited += len(split)
        return split

    def split_units(self, nodes: Nodes) -> Tensor:
        """For each node the unit to split on, by what probes found where that is better."""
        if self.gains is None or not len(nodes):
            return best_splits(self.layers32, nodes, self.rows_at_once, self.settings.splits)
        if self.gains.is_due(time.thread_time() - self.begun_at, self.visited):
            median = nodes.value.argsort()[len(nodes) // 2]
            self.gains.probe(self.layers32, nodes.pick(median[None]), self.rows_at_once)
        units, is_chosen = self.gains.chosen(nodes)
        rest = (~is_chosen).nonzero().squeeze(1)
        found = best_splits(
            self.layers32, nodes.pick(rest), self.rows_at_once, self.settings.splits
        )
        units[rest] = found
        return units

    def tried(self, nodes: Nodes) -> tuple[Nodes, Nodes]:
        """A tree of cheap nodes below these, as long as it may take.

        Returns the nodes of which little was closed, as they were, and the open parts of others.
        """
        if not len(nodes) or self.trial_time.seconds <= 0:
            return nodes, nodes.pick(torch.arange(0))
        started, spent = time.thread_time(), 0.0
        parts, place = nodes, torch.arange(len(nodes))
        at_once = min(self.settings.cheap_nodes_at_once, self.rows_at_once // 2)
        while spent < self.trial_time.seconds and not self.must_stop():
            order = parts.value.argsort(descending=True)
            order = order[parts.is_open_unit.any(1)[order]][:at_once]
            if not len(order):
                break
            is_kept = torch.ones(len(parts), dtype=torch.bool)
            is_kept[order] = False
            split = self.children(parts.pick(order))
            found, which = self.still_open(split, self.settings.cheap_steps, shows=True)
            parts = Nodes.join(parts.pick(is_kept), found)
            place = torch.cat([place[is_kept], place[order].repeat(2)[which]])
            spent = time.thread_time() - started
        left = torch.zeros_like(nodes.share).index_add(0, place, parts.share)
        has_failed = left > self.settings.worthwhile_rest * nodes.share
        self.trial_time.spend(spent, float((nodes.share - left)[~has_failed].sum()))
        return nodes.pick(has_failed), parts.pick(~has_failed[place])

    def adapt(self, seconds: float) -> None:
        """Smaller batches where one takes long, so that what is learned is used soon."""
        if seconds > self.settings.node_batch_seconds:
            self.at_once = max(1, self.at_once // 2)
        elif seconds < self.settings.node_batch_seconds / 4:
            self.at_once = min(self.most_at_once, 2 * self.at_once)

    # --- bounding

    def bounded(self, nodes: Nodes) -> Nodes:
        """The nodes that remain open after their own bound and some rounds of tightening."""
        nodes, _ = self.still_open(nodes, shows=self.visited == 0)
        if not len(nodes) or self.is_refuted:
            return nodes
        asked = self.influential(nodes)
        memory, first = self.memories.begin(nodes, asked), asked
        for _ in range(self.settings.tightening_rounds):
            if self.must_stop() or not bool((nodes.is_open_unit & asked).any()):
                break
            before = ((nodes.upper - nodes.lower) * first).sum(1)
            nodes, moves = self.tightened(nodes, memory, asked)
            self.idleness.note(asked, moves)
            nodes, kept = self.still_open(nodes)
            memory.pick(kept)
            asked, first = moves[kept], first[kept]
            after = ((nodes.upper - nodes.lower) * first).sum(1)
            if len(nodes) == len(before) and bool(
                (after > self.settings.worthwhile_shrinkage * before).all()
            ):
                break
        nodes, kept = self.still_open(nodes, self.settings.polish_steps, shows=True)
        memory.pick(kept)
        self.memories.hold(nodes, memory)
        return nodes

    def still_open(
        self, nodes: Nodes, steps: int | None = None, *, shows: bool = False
    ) -> tuple[Nodes, Tensor]:
        """The nodes that are neither empty nor proven by their own bound, and which these are.

        `shows` hands the inputs that open nodes are least at to `check`: at the roots at once, and
        of other nodes when all is done for their bounds. A node with a violation stays open until
        then, and its last bound is least nearest to it.
        """
        kept = (~nodes.is_empty).nonzero().squeeze(1)
        nodes = nodes.pick(kept)
        if not len(nodes):
            return nodes, kept
        every = torch.arange(len(nodes))
        rows = nodes.rows(every)
        start = nodes.multipliers(every).to(torch.float32, self.device)
        fast = rows.to(torch.float32, self.device)
        steps = self.settings.spec_steps if steps is None else steps
        chosen, _ = improve(self.fast, fast, start, steps, self.limits)
        chosen = chosen.to(torch.float32, "cpu")
        nodes.remember(chosen)
        exact, slopes = stated(chosen)
        found = evaluate(self.layers, rows, exact)
        nodes.value = found.values
        is_open = ~(found.values > 0)
        self.keep(nodes.id, rows, found.values, exact, slopes, ~is_open)
        if shows and bool(is_open.any()):
            points = self.layers.support.inputs(found.steps[is_open])
            self.is_refuted = self.is_refuted or self.candidates.try_points(points)
            lost = found.rounding[is_open]
            self.note_rounding(points, found.values[is_open] + lost > 0, lost)
        return nodes.pick(is_open), kept[is_open]

    def note_rounding(self, points: Tensor, is_near: Tensor, lost: Tensor) -> None:
        """Whether one of the points is out of reach; only those of nodes that would be closed
        without rounding can be."""
        self.lost = float(lost.max())
        if not self.stops_at_rounding or not bool(is_near.any()):
            return
        margins = self.candidates.margins(points[is_near])
        self.is_unprovable |= bool((margins < self.settings.rounding_share * lost[is_near]).any())

    def note_progress(self) -> None:
        """Whether splits still help, where rounding alone keeps all nodes open."""
        worst = min(float(self.open.value.min()), self.aside.worst)
        is_near = not self.aside.parts and len(self.open) <= self.at_once and worst > -self.lost
        if is_near and worst <= self.stuck_at + self.settings.stuck_gain * self.lost:
            self.stuck_rounds += 1
        else:
            self.stuck_at, self.stuck_rounds = worst, 0
        self.is_unprovable |= (
            self.stops_at_rounding and self.stuck_rounds >= self.settings.stuck_rounds
        )

    def influential(self, nodes: Nodes) -> Tensor:
        """Where nodes lose nearly all that they lose; the bounds of other units matter little.

        As for splits, losses count by CROWN's own slopes: optimised ones hide units, and asking for
        the rest alone is worse than asking for all (256x4, image 0, eps 0.037).
        """
        rows = nodes.rows(torch.arange(len(nodes))).to(torch.float32)
        losses = -evaluate(self.layers32, rows, Multipliers.start(rows, self.layers.parts)).losses
        losses[~nodes.is_open_unit] = 0.0
        ranked, order = losses.sort(1, descending=True)
        before = ranked.cumsum(1) - ranked
        is_large = (before < self.settings.loss_share * ranked.sum(1, keepdim=True)) & (ranked > 0)
        return torch.zeros_like(is_large).scatter(1, order, is_large) & ~self.idleness.is_idle

    def tightened(
        self, nodes: Nodes, memory: StoredMultipliers, asked: Tensor
    ) -> tuple[Nodes, Tensor]:
        """New bounds for units asked for, assuming a violation; and whose bounds still move."""
        if self.log is not None:
            self.log.begin_round()
        node, unit = (nodes.is_open_unit & asked).nonzero(as_tuple=True)
        lower, upper = nodes.lower.clone(), nodes.upper.clone()
        for part in torch.split(torch.arange(len(node)), self.rows_at_once // 2):
            n, i = node[part], unit[part]
            width = (upper[n, i] - lower[n, i]).repeat(2)
            known = torch.cat([lower[n, i], -upper[n, i]])
            sign = torch.ones_like(known)
            sign[len(n) :] = -1.0
            rows = replace(nodes.rows(n.repeat(2)), unit=i.repeat(2), sign=sign)
            start = memory.recall(n, i).to(torch.float32, self.device)
            fast = rows.to(torch.float32, self.device)
            chosen, values = improve(
                self.fast, fast, start, self.settings.tighten_steps, self.limits
            )
            chosen = chosen.to(torch.float32, "cpu")
            memory.keep(n, i, chosen)
            gain = (values.cpu() > known + self.settings.row_gain * width).nonzero().squeeze(1)
            better, slopes = stated(Multipliers.of([part[gain] for part in chosen.parts()]))
            proven = rounded_down(evaluate(self.layers, rows.pick(gain), better).values)
            is_raised = proven > known[gain]
            node_ids = nodes.id[n].repeat(2)[gain]
            self.keep(node_ids, rows.pick(gain), proven, better, slopes, is_raised)
            known[gain] = torch.maximum(known[gain], proven)
            lower[n, i], upper[n, i] = known[: len(n)], -known[len(n) :]
            if self.must_stop():
                break
        width = nodes.upper - nodes.lower
        moves = width - (upper - lower) > self.settings.unit_gain * width
        return replace(nodes, lower=lower, upper=upper), moves

    def keep(
        self,
        node: Tensor,
        rows: Rows,
        bound: Tensor,
        chosen: Multipliers,
        slopes: Tensor,
        holds: Tensor,
    ) -> None:
        """Put those rows that hold into the log."""
        if self.log is None or not bool(holds.any()):
            return
        if rows.unit is None:
            self.log.begin_round()
        kept = Multipliers.of([part[holds] for part in chosen.parts()])
        self.log.keep(node[holds], rows.pick(holds), bound[holds], kept, slopes[holds], self.names)

    # --- leaves: every unit has a sign, so the network is linear there

    def finish(self, leaves: Nodes) -> None:
        """Decide leaves one by one; `undecided` keeps what even that leaves open."""
        for leaf in range(len(leaves)):
            place = torch.tensor([leaf])
            row = leaves.rows(place)
            solved = solve_leaf(self.layers, row, self.region)
            row.signs = torch.where(row.lower >= 0, 1.0, -1.0).double()
            if solved is None:
                start = Multipliers.start(row, self.layers.parts)
                chosen, _ = improve(self.layers, row, start, self.settings.leaf_steps)
                steps = evaluate(self.layers, row, chosen).steps
            else:
                chosen, steps = solved
            values = evaluate(self.layers, row, chosen).values
            if bool(values[0] > 0):
                nothing = torch.zeros_like(chosen.slopes, dtype=torch.uint8)
                self.keep(leaves.id[place], row, values, chosen, nothing, values > 0)
                continue
            self.undecided = Nodes.join(self.undecided, leaves.pick(place))
            self.is_unprovable |= self.stops_at_rounding
            if self.candidates.try_points(self.layers.support.inputs(steps)):
                self.is_refuted = True
            if self.is_refuted or self.is_unprovable or self.limits.is_over:
                rest = torch.arange(leaf + 1, len(leaves))
                self.undecided = Nodes.join(self.undecided, leaves.pick(rest))
                return
