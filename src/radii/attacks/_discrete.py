"""Candidates where features are whole numbers or categories, which gradients alone do not reach.

Points descend within each combination of categories that is in reach; whole numbers are read as
rounded and moved as they are, so that a gradient may add up to the next number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from radii.attacks._batches import batches
from radii.balls import Ball, Box, Features
from radii.networks import Network
from radii.queries import Query
from radii.verdicts import Array

DISCRETE_STEPS = 24
FIRST_STEP, LAST_STEP = 0.5, 0.05
"""Lengths of a step, as parts of the region's width."""
DISCRETE_REPLAYS = 16
"""Points that are replayed, the closest first."""


def with_discrete(network: Network, query: Query, points: Sequence[Array]) -> Sequence[Array]:
    """The candidates, and others whose whole numbers and categories are valid."""
    ball = query.instance.ball(query.eps)
    features = ball.features
    if features is None or not features.is_discrete:
        return points
    pieces = ball.pieces() or [Box(*ball.box())]
    found = [*points, *_descents(network, query, features, pieces)]
    found += [_rounded_outward(ball, features, point) for point in found]
    found.sort(key=lambda point: ball.distance(ball.project(point.reshape(ball.shape))))
    return found[:DISCRETE_REPLAYS]


def _rounded_outward(ball: Ball, features: Features, point: Array) -> Array:
    """Whole numbers one further from the input where they were in between."""
    center = ball.center.ravel()
    offset = np.ravel(point).astype(np.float64) - center
    whole = np.sign(offset) * np.ceil(np.abs(offset))
    moved = center + np.where(features.is_whole, whole, offset)
    return moved.reshape(ball.shape)


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
    whole, found = torch.from_numpy(features.is_whole), points.clone()
    least = torch.full((len(points),), torch.inf, dtype=dtype)
    for step in range(DISCRETE_STEPS + 1):
        valid = torch.where(whole, points.round(), points)
        depths, _, gradients = batch.objective.gradients(valid, tasks)
        is_deeper = depths < least
        least, found[is_deeper] = torch.where(is_deeper, depths, least), valid[is_deeper]
        size = FIRST_STEP + (LAST_STEP - FIRST_STEP) * step / DISCRETE_STEPS
        moved = points - size * (high - low) * gradients.sign()
        points = torch.minimum(torch.maximum(moved, low), high)
    return batch.points(_broken(found, least))


def _broken(points: Tensor, depths: Tensor) -> Tensor:
    """Those that break their task, the deepest first."""
    order = depths.argsort()
    return points[order[depths[order] <= 0]][:DISCRETE_REPLAYS]
