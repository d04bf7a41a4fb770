"""Which unit to split a node on.

Units are listed by what the relaxation loses at them (BaBSR, Bunel et al. 2020), and those on the
list are tried by the bounds of both children (FSB, De Palma et al. 2021).

A split is judged by how much of the node's gap to a proof it closes in its worse child, in two
measures: bounds with CROWN's own slopes, and bounds with the multipliers that were optimised for
the node. Each alone goes blind. Slopes optimised for the node hide what a split would gain once
its children's units are bounded again; CROWN's bounds say nothing where they are far below the
node's own. A tree that follows one of them loses what the other sees: its nodes stay open in the
thousands where one split by the other closes them. As parts of the gap the two can be added.

Both are blind to a third kind of unit: one that loses nothing by itself, since the line below it
serves, and whose split pays once all multipliers are improved again. What a split gains then hardly
differs from node to node of a tree. So in trees that grow large a node is probed now and then
(strong branching, Applegate et al. 1995, with pseudo-costs, Benichou et al. 1971): splits of many
units are tried with some steps of ascent, and where the rule's own choice falls behind what was
found, nodes are split by what probes have found of the units.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor

from radii.bounds import Layers, Multipliers, Rows, evaluate, improve
from radii.verifiers.native._nodes import Nodes
from radii.verifiers.native._settings import SplitSettings

SPLITS = SplitSettings()


def best_splits(
    layers: Layers, nodes: Nodes, rows_at_once: int, settings: SplitSettings = SPLITS
) -> Tensor:
    """For each node the unit to split on; every node must have one that is open."""
    if not len(nodes):
        return torch.arange(0)
    at_once = max(1, rows_at_once // (4 * settings.short_list))
    parts = torch.split(torch.arange(len(nodes)), at_once)
    return torch.cat([_best_splits(layers, nodes.pick(part), settings) for part in parts])


def _best_splits(layers: Layers, nodes: Nodes, settings: SplitSettings) -> Tensor:
    every = torch.arange(len(nodes))
    rows = nodes.rows(every).to(torch.float32)
    count = min(settings.short_list, rows.lower.shape[1])
    gaps, lists, losses = [], [], []
    for chosen in _measures(layers, nodes, rows):
        found = evaluate(layers, rows, chosen)
        gaps.append((-found.values).clamp_min(settings.smallest_gap))
        lost, units = (-found.losses).where(nodes.is_open_unit, -1.0).topk(count, dim=1)
        lists.append(units)
        losses.append(lost)
    units, is_open = torch.cat(lists, 1), torch.cat(losses, 1) >= 0
    trials = nodes.pick(every.repeat_interleave(units.shape[1])).split(units.flatten())
    rows = trials.rows(torch.arange(len(trials))).to(torch.float32)
    worth = torch.zeros_like(units, dtype=torch.float32)
    for gap, chosen in zip(gaps, _measures(layers, trials, rows), strict=True):
        left = -evaluate(layers, rows, chosen).values.view(2, *units.shape)
        gain = (1 - left / gap[:, None]).clamp(0, 1)
        worth += gain.amin(0) + settings.tie_break * gain.amax(0)
    return units[every, worth.where(is_open, -torch.inf).argmax(1)]


def _measures(layers: Layers, nodes: Nodes, rows: Rows) -> tuple[Multipliers, Multipliers]:
    """CROWN's own slopes, and what was found for the nodes (or for their parents)."""
    own = nodes.multipliers(torch.arange(len(nodes)))
    return Multipliers.start(rows, layers.parts), own


@dataclass(slots=True, eq=False)
class SplitGains:
    """What splits gain, by probes: (specifications, 2, units), the active child first.

    It only chooses where to split; no bound rests on it.
    """

    gains: Tensor
    is_known: Tensor
    settings: SplitSettings = SPLITS
    rule_share: float = 1.0
    seconds: float = 0.0

    @classmethod
    def of(cls, specs: int, units: int, settings: SplitSettings = SPLITS) -> SplitGains:
        known = torch.zeros(specs, units, dtype=torch.bool)
        return cls(torch.zeros(specs, 2, units), known, settings)

    def is_due(self, tree_seconds: float, visited: int) -> bool:
        return (
            visited >= self.settings.probed_from
            and self.seconds <= self.settings.probe_share * tree_seconds
        )

    def probe(self, layers: Layers, node: Nodes, rows_at_once: int) -> None:
        """Try many splits of one node; `layers` are for searching, in float32."""
        started = time.thread_time()
        rule = best_splits(layers, node, rows_at_once, self.settings)
        units = torch.cat([self._probed(layers, node), rule]).unique()
        trials = node.pick(torch.zeros_like(units)).split(units)
        values = []
        for part in torch.arange(len(trials)).split(rows_at_once):
            start = trials.multipliers(part)
            rows = trials.rows(part).to(torch.float32)
            values.append(improve(layers, rows, start, self.settings.probe_steps)[1])
        found = (torch.cat(values) - node.value.float()).clamp_min(0).view(2, -1)
        self._note(int(node.spec[0]), units, found)
        worse = found.amin(0)
        share = float(
            worse[units == rule].max() / worse.max().clamp_min(self.settings.smallest_gap)
        )
        self.rule_share += self.settings.latest_weight * (share - self.rule_share)
        self.seconds += time.thread_time() - started

    def _probed(self, layers: Layers, node: Nodes) -> Tensor:
        rows = node.rows(torch.arange(1)).to(torch.float32)
        is_open = node.is_open_unit[0]
        worths = [-evaluate(layers, rows, m).losses[0] for m in _measures(layers, node, rows)]
        worths.append(self.gains[int(node.spec[0])].amin(0))
        counts = (
            self.settings.probed_units,
            self.settings.probed_units,
            self.settings.probed_again,
        )
        lists = [
            worth.where(is_open, -1.0).topk(min(count, len(worth))).indices
            for worth, count in zip(worths, counts, strict=True)
        ]
        units = torch.cat(lists)
        return units[is_open[units]]

    def _note(self, spec: int, units: Tensor, found: Tensor) -> None:
        before = self.gains[spec][:, units]
        mixed = torch.lerp(before, found, self.settings.latest_weight)
        self.gains[spec, :, units] = torch.where(self.is_known[spec, units], mixed, found)
        self.is_known[spec, units] = True

    def chosen(self, nodes: Nodes) -> tuple[Tensor, Tensor]:
        """The unit that gains most in its worse child, and for which nodes that is anything."""
        nothing = torch.zeros(len(nodes), dtype=torch.int64), torch.zeros(len(nodes)).bool()
        if self.rule_share >= self.settings.least_rule_share or not bool(self.is_known.any()):
            return nothing
        gap = (-nodes.value.float()).clamp_min(self.settings.smallest_gap)[:, None, None]
        parts = (self.gains[nodes.spec] / gap).clamp_max(1)
        worth = parts.amin(1) + self.settings.tie_break * parts.amax(1)
        found = worth.where(nodes.is_open_unit & self.is_known[nodes.spec], -1.0).max(1)
        return found.indices, found.values > 0
