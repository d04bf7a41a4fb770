"""Piecewise-linear operators in two forms: sums of hinges, and maxima over windows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from radii.errors import UnsupportedQuery
from radii.networks import Clip, LeakyRelu, MaxPool, Operator, PRelu, Relu

Float64 = npt.NDArray[np.float64]

LOST_SLOPE = 2.0**-44
"""How far the slope of a leaky unit above its knee may be from 1: far less than sums over fused
maps are widened by, relative to what they add up."""


@dataclass(frozen=True, slots=True, eq=False)
class Hinges:
    """Entry i of the result is, for z the entry `sources[i]` of the input:

    slope[i] * z + offset[i] + the sum over k of change[k, i] * max(0, z - knee[k, i]).
    """

    sources: npt.NDArray[np.int64]
    slope: Float64
    offset: Float64
    knee: Float64
    change: Float64


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Entry i of the result is the largest of the input's entries `candidates[i]`."""

    candidates: tuple[npt.NDArray[np.int64], ...]


def hinges_of(operator: Operator, shape: tuple[int, ...], result: tuple[int, ...]) -> Hinges | None:
    """The operator as hinges, from the shapes of its input and its result; None if it is a maximum.

    Raises UnsupportedQuery for an operator that is not piecewise linear.
    """
    if isinstance(operator, MaxPool):
        return None
    count = math.prod(result)
    entries = np.arange(math.prod(shape)).reshape(shape)
    sources = np.broadcast_to(entries, result).ravel()
    match operator:
        case Relu():
            return _one_knee(sources, np.zeros(count))
        case LeakyRelu():
            return _one_knee(sources, np.full(count, float(operator.slope)))
        case PRelu():
            slope = operator.slope.double().cpu().numpy()
            return _one_knee(sources, np.broadcast_to(slope, result).astype(np.float64).ravel())
        case Clip():
            return _clip(sources, float(operator.low), float(operator.high))
    raise UnsupportedQuery(f"operator '{type(operator).__name__}' is not piecewise linear")


def windows_of(operator: MaxPool, shape: tuple[int, ...]) -> Windows:
    """For each entry of the result the entries of the flattened input it is the largest of."""
    places = operator.candidates(shape).numpy()
    return Windows(tuple(np.unique(place[place >= 0]) for place in places))


def _one_knee(sources: npt.NDArray[np.int64], slope: Float64) -> Hinges:
    change = 1.0 - slope
    # What float64 cannot hold of the change, exactly: above the knee both must add up to 1.
    negated = change - 1.0
    lost = np.abs((1.0 - (change - negated)) - (slope + negated))
    if not lost.max(initial=0.0) <= LOST_SLOPE:
        raise UnsupportedQuery(
            f"a leaky unit has slope {slope[lost.argmax()]:g}: too steep to be bounded in float64"
        )
    changes = change[None]
    return Hinges(sources, slope, np.zeros_like(slope), np.zeros_like(changes), changes)


def _clip(sources: npt.NDArray[np.int64], low: float, high: float) -> Hinges:
    ones = np.ones(len(sources))
    if low >= high:  # ONNX takes the maximum with low first, so high wins
        return Hinges(
            sources, 0 * ones, high * ones, np.zeros((0, ones.size)), np.zeros((0, ones.size))
        )
    knees = [(knee, change) for knee, change in ((low, 1.0), (high, -1.0)) if math.isfinite(knee)]
    bounded_below = math.isfinite(low)
    return Hinges(
        sources,
        slope=0 * ones if bounded_below else ones,
        offset=low * ones if bounded_below else 0 * ones,
        knee=np.array([knee * ones for knee, _ in knees]).reshape(len(knees), ones.size),
        change=np.array([change * ones for _, change in knees]).reshape(len(knees), ones.size),
    )
