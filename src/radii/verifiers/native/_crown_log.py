"""A proof by CROWN alone as a log: its bounds of all units, and one closing row a violation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from radii.bounds import Fusion, State, bound_rows, crown_state
from radii.networks import Relu
from radii.problem import Arithmetic, Ball, Box, Halfspaces
from radii.verifiers.native._duals import Multipliers, Rows
from radii.verifiers.native._proof_log import Ground, ProofLog, slope_bytes


def crown_log(
    fusion: Fusion,
    region: Ball | Box,
    violations: Sequence[Halfspaces],
    arithmetic: Arithmetic,
    *,
    on_intervals: bool = False,
) -> ProofLog | None:
    """The log of the proof that CROWN finds; None for networks of other units than ReLU.

    `on_intervals` bounds units by plain intervals, as the cheapest proof does.
    """
    if not has_relu_alone(fusion):
        return None
    with torch.no_grad():
        state = crown_state(fusion, [region], arithmetic, on_intervals=on_intervals)
        gamma = _best_rows(state, violations)
    nothing = torch.zeros(0, dtype=torch.float64)
    lower = torch.cat([nothing, *(held.low[0] for held in state.arguments)])
    upper = torch.cat([nothing, *(held.high[0] for held in state.arguments)])
    firsts = np.cumsum([0, *(held.low.shape[1] for held in state.arguments)])[:-1]
    log = ProofLog(region, (Ground(lower, upper),), len(violations), tuple(firsts.tolist()))
    count = len(violations)
    rows = Rows(lower.expand(count, -1), upper.expand(count, -1), torch.arange(count))
    slopes = slope_bytes(Multipliers.start(rows, 1).slopes)
    log.begin_round()
    log.keep(
        torch.arange(count),
        rows,
        torch.zeros(count),
        Multipliers(rows.lower, gamma, None),
        slopes,
        torch.arange(len(lower)),
    )
    return log


def has_relu_alone(fusion: Fusion) -> bool:
    """Whether every stage is of ReLU units, one for each entry."""
    return all(
        isinstance(stage.operator, Relu) and fusion.graph.nodes[stage.node].shape == stage.shape
        for stage in fusion.stages
    )


def _best_rows(state: State, violations: Sequence[Halfspaces]) -> torch.Tensor:
    """For each violation the row alone that CROWN bounds best, as multipliers."""
    rows = np.vstack([held.matrix for held in violations])
    offsets = np.concatenate([held.offset for held in violations])
    found = bound_rows(state, torch.from_numpy(rows)[None]).low[0].numpy() + offsets
    longest = max(len(held.offset) for held in violations)
    gamma = np.zeros((len(violations), longest))
    first = 0
    for place, held in enumerate(violations):
        gamma[place, int(np.argmax(found[first : first + len(held.offset)]))] = 1.0
        first += len(held.offset)
    return torch.from_numpy(gamma)
