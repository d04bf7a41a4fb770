"""Constraint accuracy: of the points of a ball, how many keep the property?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from radii.balls import Ball, Norm
from radii.errors import SpecificationError
from radii.networks import Network
from radii.queries import Instance, Query
from radii.verdicts import Array
from radii.witnesses import check_witness

__all__ = ["sampled_shares"]

Float64 = npt.NDArray[np.float64]

BORDER = 1e-4
"""A margin nearer to 0 than this, relative to the size of the outputs, may be torch's rounding:
such a point counts as broken only if ONNX Runtime says so."""
CHUNK_VALUES = 2**22
"""Numbers of sampled points that are held at once."""


def sampled_shares(
    network: Network, instances: Sequence[Instance], eps: float, samples: int, *, seed: int = 0
) -> Float64:
    """For each instance the share of uniform samples of its ball that keep its property.

    The samples depend on the instance and the seed alone, and those of two eps are the same
    directions, so that a curve over eps is smooth.
    """
    if samples < 1:
        raise SpecificationError(f"{samples} samples: an estimate needs at least one")
    return np.array([_share(network, Query(each, eps), samples, seed) for each in instances])


def _share(network: Network, query: Query, samples: int, seed: int) -> float:
    instance = query.instance
    rng = np.random.default_rng([seed, int(instance.key, 16)])
    ball = instance.ball(query.eps)
    chunk = max(1, CHUNK_VALUES // instance.input.size)
    broken = 0
    for start in range(0, samples, chunk):
        points = _exact(ball, ball.sample(rng, min(chunk, samples - start)), network)
        broken += _count_broken(network, query, ball, points)
    return 1 - broken / samples


def _exact(ball: Ball, points: Float64, network: Network) -> Array:
    """The points in the network's own type, those that rounding pushed out drawn back in."""
    rounded = points.astype(network.input_dtype)
    low, high = ball.domain.box(ball.shape)
    axes = tuple(range(1, rounded.ndim))
    outside = ((rounded < low) | (rounded > high)).any(axis=axes)
    outside |= _distances(ball, rounded) > ball.eps
    for row in np.flatnonzero(outside):
        rounded[row] = ball.project(points[row], network.input_dtype)
    return rounded


def _count_broken(network: Network, query: Query, ball: Ball, points: Array) -> int:
    requirement = query.instance.requirement
    with torch.no_grad():
        outputs = network(torch.from_numpy(points)).numpy().astype(np.float64)
    margins = requirement.margin(outputs, _distances(ball, points))
    border = BORDER * np.maximum(1.0, np.abs(outputs).max(axis=1))
    unsure = ~(np.abs(margins) > border)  # NaN as well
    replayed = sum(
        check_witness(network, query.specification, points[row]) is not None
        for row in np.flatnonzero(unsure)
    )
    return int(np.sum((margins < 0) & ~unsure)) + replayed


def _distances(ball: Ball, points: Array) -> Float64:
    offsets = points.astype(np.float64).reshape(len(points), -1) - ball.center.ravel()
    order = {Norm.LINF: np.inf, Norm.L2: 2, Norm.L1: 1}[ball.norm]
    return np.asarray(np.linalg.norm(offsets, order, axis=1))
