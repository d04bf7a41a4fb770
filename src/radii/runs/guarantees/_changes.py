"""g-bar: how far the outputs, or their softmax, move at most within a ball; each by Linf.

Below by a witness: the largest change that an attack found, replayed on ONNX Runtime. Above by a
proof: bounds of every output, or of all differences for the softmax, over the ball and at the input
itself. A verifier narrows the two to any resolution: it decides whether the outputs can move by a
delta between them (property SR).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from radii.attacks import DomainRows, geometry, softmax_log_odds
from radii.bounds import alpha_crown_bounds, from_differences, pairs_of
from radii.errors import SoundnessError
from radii.networks import Network, Softmax
from radii.problem import (
    FLOAT,
    RESOLUTION,
    Arithmetic,
    Array,
    Ball,
    Instance,
    Query,
    StandardRobustness,
    probabilities,
    resolution,
)
from radii.verifiers import Limits, Verifier

OutputScale = Literal["outputs", "probabilities"]
CHANGE_ROUNDING = 2.0**-48
"""What a change may be off that is measured in float64, relative to what is subtracted."""
PROBABILITY_ROUNDING = 2.0**-20
"""How much more than 1 a probability that a network computes itself may be, generously."""
ASCENTS_REPLAYED = 3
"""Of the points where ascents end, the best that are replayed."""
CHANGE_ALPHA_STEPS = 2
"""Of the optimisation of bounds: they gain most of what ten gain (0.83 to 0.80 of 0.79, mean change
of probabilities on dense MNIST networks) in a third of the time."""


@dataclass(frozen=True, slots=True)
class Change:
    """g-bar is at least `lower`, witnessed, and at most `upper`, proven; inf where nothing is."""

    lower: float
    upper: float = float("inf")

    def __post_init__(self) -> None:
        if not 0 <= self.lower <= self.upper:
            raise SoundnessError(
                f"outputs were seen to change by {self.lower:g} and proven not to change by "
                f"more than {self.upper:g}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeAttack:
    """FGSM with one step, projected ascent with more; starts at the input, then anywhere."""

    steps: int = 20
    restarts: int = 2

    def step_size(self, step: int) -> float:
        """As a part of the radius: all of it if there is only one, else ever less from a half."""
        return 1.0 if self.steps == 1 else 0.5 * (1 - step / self.steps)


CHANGE_ATTACKS = {"pgd": ChangeAttack(), "fgsm": ChangeAttack(steps=1, restarts=1)}


def witnessed_changes(
    network: Network,
    instances: Sequence[Instance],
    eps: float,
    on: OutputScale = "outputs",
    *,
    attack: ChangeAttack = CHANGE_ATTACKS["pgd"],
    seed: int = 0,
) -> list[float]:
    """The largest change found for each input, as ONNX Runtime gives it; at least 0."""
    largest = []
    for instance in instances:
        ball = instance.ball(eps)
        before = _values(network, instance.outputs[None], on)
        points = _ascend(network, instance, ball, on, attack, seed)
        after = _values(network, network(torch.from_numpy(points)).detach().numpy(), on)
        best = _sizes(after - before).argsort()[-ASCENTS_REPLAYED:]
        inside = np.stack([ball.project(points[place], network.input_dtype) for place in best])
        moved = _values(network, network.replay(inside), on)
        largest.append(float(_sizes(moved - before).max()))
    return largest


def proven_changes(
    network: Network,
    instances: Sequence[Instance],
    eps: float,
    on: OutputScale = "outputs",
    *,
    arithmetic: Arithmetic = FLOAT,
) -> list[float]:
    """No output changes by more, for any input of the ball: from what ONNX Runtime gave at the
    input itself to what any execution gives. In real arithmetic both are idealised, and what
    replaying adds is left to the resolution that property LR has.

    Changes are measured in float64, whose own rounding is added.
    """
    low, high = _bounds(network, [instance.ball(eps) for instance in instances], on, arithmetic)
    if arithmetic.is_float:
        outputs = np.stack([instance.outputs for instance in instances])
        at_low = at_high = _values(network, outputs, on)
    else:  # a ball of radius 0 leaves no slope to choose: CROWN's bounds are as good as any
        points = [instance.ball(0.0) for instance in instances]
        at_low, at_high = _bounds(network, points, on, arithmetic, steps=0)
    widest = np.maximum(high - at_low, at_high - low).max(axis=1)
    if not arithmetic.is_float:
        widest += [
            resolution(instance.outputs) if on == "outputs" else RESOLUTION
            for instance in instances
        ]
    sizes = np.maximum(np.abs(high), np.abs(low)).max(axis=1) + np.abs(at_low).max(axis=1)
    proven = np.nextafter(widest + CHANGE_ROUNDING * sizes, np.inf)
    proven = np.where(np.isnan(proven), np.inf, proven)
    most = 1.0 + PROBABILITY_ROUNDING * arithmetic.is_float
    return [float(v) for v in (np.minimum(proven, most) if on == "probabilities" else proven)]


def narrow_change(
    network: Network,
    instance: Instance,
    eps: float,
    change: Change,
    verifier: Verifier,
    limits: Limits,
    *,
    on: OutputScale = "outputs",
    within: float,
    arithmetic: Arithmetic = FLOAT,
) -> Change:
    """The same change between closer bounds, `within` each other unless answers are missing.

    A proof in a weaker arithmetic than is asked for, as of a member of a portfolio, is missing.
    """
    lower, upper = change.lower, change.upper
    while upper - lower > within and limits.expired is None:
        delta = (lower + upper) / 2
        moves = StandardRobustness(delta, on_probabilities=on == "probabilities")
        query = Query(replace(instance, property=moves), eps)
        result = verifier.verify(network, query, limits)
        proof = result.proof
        if proof is not None and proof.arithmetic.strength >= arithmetic.strength:
            upper = delta
        elif result.witness is not None:
            moved = _values(network, result.witness.outputs[None], on)
            before = _values(network, instance.outputs[None], on)
            lower = max(lower, float(np.abs(moved - before).max()))
        else:
            break
    return Change(lower, upper)


def _values(network: Network, outputs: Array, on: OutputScale) -> npt.NDArray[np.float64]:
    """What changes are measured of, in float64."""
    exact = np.asarray(outputs, np.float64)
    if on == "outputs" or network.outputs_are_probabilities:
        return exact
    return probabilities(exact)


def _sizes(changes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The largest change of each row; 0 where outputs are not finite."""
    return np.where(np.isfinite(changes).all(axis=1), np.abs(changes).max(axis=1), 0.0)


def _bounds(
    network: Network,
    balls: Sequence[Ball],
    on: OutputScale,
    arithmetic: Arithmetic,
    steps: int = CHANGE_ALPHA_STEPS,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Of everything that changes are measured of, over each ball."""
    if on == "outputs" or network.outputs_are_probabilities:
        bounds = alpha_crown_bounds(network, balls, steps=steps, arithmetic=arithmetic)
    else:
        count = network.output_size
        differences = alpha_crown_bounds(
            network, balls, pairs_of(count).numpy(), steps=steps, arithmetic=arithmetic
        )
        bounds = from_differences(Softmax(0), differences.low, count)
    return bounds.low.double().cpu().numpy(), bounds.high.double().cpu().numpy()


def _ascend(
    network: Network, instance: Instance, ball: Ball, on: OutputScale, how: ChangeAttack, seed: int
) -> Array:
    """For each output, up and down, where a descent ended that pushes it away: a row each."""
    dtype = network.torch_dtype
    count = network.output_size
    center = torch.as_tensor(ball.center.reshape(1, -1), dtype=dtype)
    low, high = (
        torch.as_tensor(np.ascontiguousarray(side).reshape(-1), dtype=dtype)
        for side in ball.domain.box(ball.shape)
    )
    room, norm = DomainRows(low, high), geometry(ball.norm)
    rows = 2 * count * how.restarts
    entries = torch.arange(rows) // 2 % count
    signs = 1.0 - 2.0 * (torch.arange(rows) % 2).to(dtype)
    centers, radii = center.expand(rows, -1), torch.full((rows,), ball.eps, dtype=dtype)
    generator = torch.Generator().manual_seed(seed + instance.index)
    noise = torch.rand(rows, center.shape[1], generator=generator, dtype=dtype) * 2 - 1
    noise[: 2 * count] = 0.0
    points = norm.project(centers + radii[:, None] * noise, centers, radii, room)
    is_logit = on == "probabilities" and not network.outputs_are_probabilities
    for step in range(how.steps):
        slopes = _slopes(network, points, entries, signs, is_logit)
        sizes = radii * how.step_size(step)
        points = norm.project(norm.step(points, -slopes, sizes, room), centers, radii, room)
    return points.reshape(rows, *ball.shape).numpy()


def _slopes(
    network: Network, points: Tensor, entries: Tensor, signs: Tensor, is_logit: bool
) -> Tensor:
    """Gradients of the signed entries; for a softmax of its logarithm, which does not flatten."""
    leaves = points.detach().requires_grad_()
    outputs = network(leaves.reshape(len(points), *network.input_shape)).flatten(1)
    if is_logit:
        outputs = softmax_log_odds(outputs)
    total = (outputs.gather(1, entries[:, None])[:, 0] * signs).sum()
    (slopes,) = torch.autograd.grad(total, leaves)
    return slopes.nan_to_num()
