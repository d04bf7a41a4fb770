"""The cost of one CROWN pass at the root, on residual networks of 1,000 to 100,000 units.

Each unit that intervals leave open is bounded by two rows of coefficients, pulled back to the
input. Whole rows cost a forward pass each, so that a pass costs the work of one forward pass times
the units that are open; rows as windows of what a unit sees cost less.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np
import torch

from benchmarks.records import Options
from benchmarks.tables import show
from radii.bounds import (
    LayeredNetwork,
    LinearBounds,
    LinearFunctions,
    State,
    Supports,
    backward,
    fuse,
    layered,
    propagate,
)
from radii.networks import Network, from_torch
from radii.problem import Ball, Norm
from radii.training import architecture

SHAPE = (3, 32, 32)
EPS = 0.002
NETWORKS = (
    "resnet:4/4-4-8/2+20",
    "resnet:4/2-4-8/2+50",
    "resnet:8/2-8-16/2+100",
    "resnet:16/2-16-32/2+100",
    "resnet:32/2-32-64/2+100",
    "resnet:16/1-16-32/2+100",
    "resnet:24/1-24-48/2+100",
)
"""Filters and strides of the blocks: 1,044 to 98,404 units."""

MOST_WHOLE_UNITS = 20_000
"""Whole rows are not measured beyond: that would take minutes."""

Result = TypeVar("Result")


def main(options: Options) -> None:
    torch.set_num_threads(1)
    rows = [_row(name) for name in NETWORKS[: options.images]]
    show(
        f"one CROWN pass, Linf {EPS}, random weights, CPU seconds of one thread",
        (
            "network",
            "units",
            "asked",
            "open",
            "10^6 products",
            "fusing",
            "CROWN",
            "float64 alone",
            "whole rows",
            "ps per asked unit and product",
        ),
        rows,
    )


def _row(name: str) -> list[object]:
    network = _network(name)
    ready, fusing = _timed(lambda: layered(fuse(network)))
    centre = np.random.default_rng(0).uniform(0.2, 0.8, SHAPE)
    ball = Ball(centre, EPS, Norm.LINF, network.domain)
    state, seconds = _timed(lambda: _pass(ready, ball, torch.float64))
    alone = replace(ready, single=None)
    _, double = _timed(lambda: _pass(alone, ball, torch.float64))
    units = sum(layer.size for layer in ready.layers)
    whole = None
    if units <= MOST_WHOLE_UNITS:
        _, whole = _timed(lambda: _pass(alone, ball, torch.float64, _by_whole_rows))
    asked = _asked(state)
    still = sum(int(held.is_loose.sum()) for held in state.relaxations)
    work = sum(held.work for layer in ready.layers for held in layer.maps.values())
    each = 1e12 * seconds / (asked * work)
    return [name, units, asked, still, work / 1e6, fusing, seconds, double, whole, each]


def _pass(
    ready: LayeredNetwork,
    ball: Ball,
    dtype: torch.dtype,
    bound: Callable[[State, LinearFunctions], LinearBounds] = backward,
) -> State:
    with torch.no_grad():
        return propagate(ready, Supports.of([ball], dtype), bound)


def _by_whole_rows(state: State, rows: LinearFunctions) -> LinearBounds:
    return backward(state, rows)


def _asked(state: State) -> int:
    """How many units a backward pass was asked for: those that intervals alone left open."""
    total = 0
    for layer in state.network.layers:
        if not layer.reads_input_only:
            held, _ = layer.arguments(state.values, state.errors)
            total += int(((held.low < 0) & (held.high > 0)).sum())
    return total


def _network(name: str) -> Network:
    module = architecture(name, SHAPE, 10)
    return from_torch(module, input_shape=SHAPE, domain=(0, 1), name=name)


def _timed(call: Callable[[], Result]) -> tuple[Result, float]:
    start = time.process_time()
    result = call()
    return result, time.process_time() - start
