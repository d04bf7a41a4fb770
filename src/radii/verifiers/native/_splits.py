"""Which unit to split a node on.

A split is judged by how much of the node's gap to a proof it closes in its worse child, in two
measures: bounds with CROWN's own slopes, and bounds with the multipliers that were optimised for
the node. Each alone goes blind. Slopes optimised for the node hide what a split would gain once
its children's units are bounded again; CROWN's bounds say nothing where they are far below the
node's own. A tree that follows one of them loses what the other sees: its nodes stay open in the
thousands where one split by the other closes them. As parts of the gap the two can be added.
"""

from __future__ import annotations

import torch
from torch import Tensor

from radii.verifiers.native._duals import Layers, Multipliers, Rows, evaluate
from radii.verifiers.native._nodes import Nodes

SHORT_LIST = 8
"""How many units are tried as splits: of those that lose most, in each of the two measures."""
TIE_BREAK = 1e-3
"""The weight of a split's better child, where the worse ones are equal."""
SMALLEST_GAP = 1e-9
"""Of a node: where a measure proves it already, no split can gain anything in it."""


def best_splits(layers: Layers, nodes: Nodes, rows_at_once: int) -> Tensor:
    """For each node the unit to split on; every node must have one that is open."""
    if not len(nodes):
        return torch.arange(0)
    at_once = max(1, rows_at_once // (4 * SHORT_LIST))
    parts = torch.split(torch.arange(len(nodes)), at_once)
    return torch.cat([_best_splits(layers, nodes.pick(part)) for part in parts])


def _best_splits(layers: Layers, nodes: Nodes) -> Tensor:
    every = torch.arange(len(nodes))
    rows = nodes.rows(every).to(torch.float32)
    count = min(SHORT_LIST, rows.lower.shape[1])
    gaps, lists, losses = [], [], []
    for chosen in _measures(layers, nodes, rows):
        found = evaluate(layers, rows, chosen)
        gaps.append((-found.values).clamp_min(SMALLEST_GAP))
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
        worth += gain.amin(0) + TIE_BREAK * gain.amax(0)
    return units[every, worth.where(is_open, -torch.inf).argmax(1)]


def _measures(layers: Layers, nodes: Nodes, rows: Rows) -> tuple[Multipliers, Multipliers]:
    """CROWN's own slopes, and what was found for the nodes (or for their parents)."""
    own = nodes.multipliers(torch.arange(len(nodes)))
    return Multipliers.start(rows, layers.parts), own
