"""Counterexamples to a specification over a box, as VNN-LIB files state them."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from radii.attacks.batches import Clock
from radii.attacks.geometry import Room
from radii.attacks.objectives import Objective
from radii.networks import Network
from radii.queries import Specification
from radii.verdicts import Witness
from radii.witnesses import check_witness

__all__ = ["attack_specification"]

ROWS = 16
"""Points that move at once for each polyhedron of violating outputs."""
STEPS = 60
ROUNDS = 8
MOMENTUM = 0.75
FIRST_STEP, LAST_STEP = 0.5, 0.005
"""Lengths of a step, as parts of the box's width in each feature."""


def attack_specification(
    network: Network, specification: Specification, *, seed: int = 0, seconds: float = math.inf
) -> Witness | None:
    """A replayed witness, or None if none was found, which proves nothing."""
    violations = specification.requirement.violations
    if not violations:
        return None
    objective = Objective(network, [violations], specification.inputs)
    low, high = (
        torch.from_numpy(np.array(side, network.input_dtype).ravel())
        for side in specification.region.box()
    )
    clock = Clock.of(seconds)
    generator = torch.Generator().manual_seed(seed)
    tasks = torch.arange(len(objective.owners)).repeat(ROWS)
    for turn in range(ROUNDS):
        if clock.is_over:
            return None
        points = _starts(low, high, len(tasks), generator, is_first=turn == 0)
        for found in _descend(objective, points, tasks, Room(low, high), clock):
            point = found.reshape(network.input_shape).numpy()
            witness = check_witness(network, specification, point)
            if witness is not None:
                return witness
    return None


def _starts(
    low: Tensor, high: Tensor, count: int, generator: torch.Generator, *, is_first: bool
) -> Tensor:
    """Random points, half of them corners; the first round also tries the middle."""
    noise = torch.rand(count, len(low), generator=generator, dtype=low.dtype)
    noise[1::2] = noise[1::2].round()
    if is_first:
        noise[0] = 0.5
    return low + noise * (high - low)


def _descend(
    objective: Objective, points: Tensor, tasks: Tensor, room: Room, clock: Clock
) -> list[Tensor]:
    """The points that broke their task on the way, deepest first."""
    width = room.high - room.low
    momentum = torch.zeros_like(points)
    deepest, record = points.clone(), torch.full((len(points),), math.inf, dtype=points.dtype)
    for step in range(STEPS + 1):
        depths, _, gradients = objective.gradients(points, tasks)
        is_deeper = depths < record
        record = torch.where(is_deeper, depths, record)
        deepest[is_deeper] = points[is_deeper]
        if clock.is_over or bool((record <= 0).any() and step % 10 == 0):
            break
        size = LAST_STEP + (FIRST_STEP - LAST_STEP) * 0.5 * (1 + math.cos(math.pi * step / STEPS))
        scale = gradients.abs().mean(dim=1, keepdim=True) + 1e-30
        momentum = MOMENTUM * momentum + gradients / scale
        points = room.clip(points - size * width * momentum.sign())
    order = record.argsort()
    return [deepest[row] for row in order.tolist() if record[row] <= 0]
