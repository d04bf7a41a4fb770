"""Candidates where features are whole numbers or categories, which gradients alone do not reach.

Points descend within each combination of categories that is in reach; whole numbers are read as
rounded and moved as they are, so that a gradient may add up to the next number. From the best of
them a random walk among valid points goes on, which asks for distances as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from radii.attacks._batches import Batch, batches
from radii.attacks._random_walks import TOGETHER, RandomWalk
from radii.networks import Network
from radii.problem import Array, Ball, Box, Features, Query

DISCRETE_STEPS = 24
FIRST_STEP, LAST_STEP = 0.5, 0.05
"""Lengths of a step, as parts of the region's width."""
WALK_STEPS = 30
"""Rounds of the random walk at the end."""
DISCRETE_REPLAYS = 16
"""Points that are replayed, the closest first."""


def with_discrete(
    network: Network, queries: Sequence[Query], candidates: Sequence[Sequence[Array]], seed: int
) -> list[Sequence[Array]]:
    """Each query's candidates, and others whose whole numbers and categories are valid."""
    extended = list(candidates)
    places = [place for place, query in enumerate(queries) if query.instance.is_discrete]
    for place in places:
        extended[place] = _with_valid(network, queries[place], extended[place])
    for batch in batches(network, [queries[place] for place in places], rows=TOGETHER):
        members = [places[member] for member in batch.members]
        for place, closest in zip(
            members, _walked(batch, [extended[m] for m in members], seed), strict=True
        ):
            ball = queries[place].instance.ball(queries[place].eps)
            extended[place] = sorted(
                [*extended[place], *closest],
                key=lambda point: ball.distance(ball.project(point.reshape(ball.shape))),
            )[:DISCRETE_REPLAYS]
    return extended


def _with_valid(network: Network, query: Query, points: Sequence[Array]) -> list[Array]:
    """The points, those of a descent, and all of them with whole numbers rounded outward."""
    ball = query.instance.ball(query.eps)
    features = ball.features
    assert features is not None
    extended = list(points)
    if network.has_gradient:
        extended += _descents(network, query, features, ball.pieces() or [Box(*ball.box())])
    return extended + [_rounded_outward(ball, features, point) for point in extended]


def _rounded_outward(ball: Ball, features: Features, point: Array) -> Array:
    """Whole numbers one further from the input where they were in between."""
    center = ball.center.ravel()
    offset = np.ravel(point).astype(np.float64) - center
    whole = np.sign(offset) * np.ceil(np.abs(offset))
    moved = center + np.where(features.is_whole, whole, offset)
    return moved.reshape(ball.shape)


def _walked(batch: Batch, starts: Sequence[Sequence[Array]], seed: int) -> list[list[Array]]:
    """The closest point of each query that a walk finds which begins at the best of its starts."""
    walk = RandomWalk(batch, seed)
    width, dtype = batch.centers.shape[1], batch.centers.dtype
    walk.begin_at(
        [
            torch.from_numpy(np.reshape([np.ravel(point) for point in points], (-1, width))).to(
                dtype
            )
            for points in starts
        ]
    )
    for _ in range(WALK_STEPS):
        walk.step()
    points = batch.points(walk.best)
    return [
        [point] if is_broken else [] for point, is_broken in zip(points, walk.is_found, strict=True)
    ]


def _descents(
    network: Network, query: Query, features: Features, pieces: Sequence[Box]
) -> list[Array]:
    """Points that break a task, one row for each piece and task."""
    (batch,) = batches(network, [query], rows=len(pieces))
    count, dtype = len(batch.owners), batch.centers.dtype
    if count == 0:
        return []
    low, high = (
        torch.from_numpy(np.stack([side.ravel() for side in sides])).to(dtype)
        for sides in zip(*(piece.box() for piece in pieces), strict=True)
    )
    low, high = low.repeat_interleave(count, 0), high.repeat_interleave(count, 0)
    tasks = torch.arange(count).repeat(len(pieces))
    points = torch.minimum(torch.maximum(batch.centers, low), high)
    whole, deepest = torch.from_numpy(features.is_whole), points.clone()
    least = torch.full((len(points),), torch.inf, dtype=dtype)
    for step in range(DISCRETE_STEPS + 1):
        valid = torch.where(whole, points.round(), points)
        depths, _, gradients = batch.objective.gradients(valid, tasks)
        is_deeper = depths < least
        least, deepest[is_deeper] = torch.where(is_deeper, depths, least), valid[is_deeper]
        size = FIRST_STEP + (LAST_STEP - FIRST_STEP) * step / DISCRETE_STEPS
        moved = points - size * (high - low) * gradients.sign()
        points = torch.minimum(torch.maximum(moved, low), high)
    return batch.points(_broken(deepest, least))


def _broken(points: Tensor, depths: Tensor) -> Tensor:
    """Those that break their task, the deepest first."""
    order = depths.argsort()
    return points[order[depths[order] <= 0]][:DISCRETE_REPLAYS]
