"""Counterexamples to a specification, as VNN-LIB files state them: over a box, or over a ball."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from radii.attacks._batches import Clock
from radii.attacks._geometry import DomainRows, geometry
from radii.attacks._objectives import Objective, Origins
from radii.attacks._tasks import tasks_of
from radii.networks import Network
from radii.problem import Ball, Specification, Witness, check_witness

POINTS_A_POLYHEDRON = 16
"""Points that move at once for each polyhedron of violating outputs."""
STATE_ROWS = 4096
"""Points that move at once altogether; more polyhedra than fit take turns."""
REGION_STEPS = 60
REGION_ROUNDS = 8
STEPS_BETWEEN_CHECKS = 10
"""Steps between two checks for broken points."""
REGION_REPLAYS = 20
"""Broken points of one descent that are replayed, the deepest first."""
MOMENTUM = 0.75
REGION_FIRST_STEP, REGION_LAST_STEP = 0.5, 0.005
"""Lengths of a step, as parts of the region's width."""
SECANT_WIDTHS = (0.0, 0.25, 0.5, 1.0)
"""Widths of the secants that stand for gradients in the first half of the steps."""

Move = Callable[[Tensor, Tensor, float, Tensor], Tensor]


def attack_specification(
    network: Network, specification: Specification, *, seed: int = 0, seconds: float = math.inf
) -> Witness | None:
    """A replayed witness, or None, which proves nothing."""
    ways = tasks_of(network, [specification.requirement])
    if not ways[0]:
        return None
    clock = Clock.of(seconds)
    objective = Objective(network, ways, specification.inputs, _origins(network, specification))
    low, high = (_flat_row(network, side) for side in specification.region.box())
    move = _mover(network, specification, DomainRows(low, high))
    generator = torch.Generator().manual_seed(seed)
    every = torch.arange(len(objective.owners))
    for turn in range(REGION_ROUNDS):
        for some in torch.split(every, max(1, STATE_ROWS // POINTS_A_POLYHEDRON)):
            tasks, turns = (
                some.repeat(POINTS_A_POLYHEDRON),
                torch.arange(POINTS_A_POLYHEDRON).repeat_interleave(len(some)),
            )
            points = _starts(low, high, turns, generator)
            if turn == 0:
                points[0] = (low + high) / 2
            widths = torch.tensor(SECANT_WIDTHS, dtype=points.dtype)[turns % len(SECANT_WIDTHS)]
            for end in _descend(objective, points, tasks, widths, move, clock):
                point = end.reshape(network.input_shape).numpy()
                witness = check_witness(network, specification, point)
                if witness is not None:
                    return witness
            if clock.is_over:
                return None
    return None


def _flat_row(network: Network, values: npt.ArrayLike) -> Tensor:
    return torch.from_numpy(np.array(values, network.input_dtype).ravel())


def _origins(network: Network, specification: Specification) -> Origins | None:
    """What distances are measured from: the centre of a ball; a box has none."""
    region = specification.region
    if not isinstance(region, Ball):
        return None
    norm = geometry(region.norm, region.features, network.torch_dtype)
    return Origins(_flat_row(network, region.center)[None], norm)


def _mover(network: Network, specification: Specification, room: DomainRows) -> Move:
    """How points step against a direction, by a part of the region's width, and stay inside.

    Of a ball, each row uses the part that its reach, the last argument, says.
    """
    region = specification.region
    if not isinstance(region, Ball):
        width = room.high - room.low
        return lambda points, along, size, _: room.clip(points - size * width * along.sign())
    norm = geometry(region.norm, region.features, network.torch_dtype)
    center, domain = _flat_row(network, region.center)[None], room
    if region.features is None:
        low, high = (_flat_row(network, side) for side in region.domain.box(region.shape))
        domain = DomainRows(low, high)

    def move(points: Tensor, along: Tensor, size: float, reaches: Tensor) -> Tensor:
        radii = region.eps * reaches
        stepped = norm.step(points, along, 2 * size * radii, domain)
        return norm.project(stepped, center, radii, domain)

    return move


def _starts(low: Tensor, high: Tensor, turns: Tensor, generator: torch.Generator) -> Tensor:
    """Random points, and random corners in every other turn of the widths."""
    noise = torch.rand(len(turns), len(low), generator=generator, dtype=low.dtype)
    is_corner = (turns // len(SECANT_WIDTHS)) % 2 == 1
    noise[is_corner] = noise[is_corner].round()
    return low + noise * (high - low)


def _descend(
    objective: Objective, points: Tensor, tasks: Tensor, widths: Tensor, move: Move, clock: Clock
) -> list[Tensor]:
    """The points that broke their task on the way, deepest first."""
    momentum = torch.zeros_like(points)
    deepest, record = points.clone(), torch.full((len(points),), math.inf, dtype=points.dtype)
    for step in range(REGION_STEPS + 1):
        narrow = 1 - 2 * step / REGION_STEPS
        depths, _, gradients = objective.gradients(
            points, tasks, widths * narrow if narrow > 0 else None
        )
        is_deeper = depths < record
        record = torch.where(is_deeper, depths, record)
        deepest[is_deeper] = points[is_deeper]
        if clock.is_over or (step % STEPS_BETWEEN_CHECKS == 0 and bool((record <= 0).any())):
            break
        size = REGION_LAST_STEP + (REGION_FIRST_STEP - REGION_LAST_STEP) * 0.5 * (
            1 + math.cos(math.pi * step / REGION_STEPS)
        )
        scale = gradients.abs().mean(dim=1, keepdim=True) + 1e-30
        momentum = MOMENTUM * momentum + gradients / scale
        points = move(points, momentum, size, objective.reaches[tasks])
    order = record.argsort()[:REGION_REPLAYS]
    return [deepest[row] for row in order.tolist() if record[row] <= 0]
