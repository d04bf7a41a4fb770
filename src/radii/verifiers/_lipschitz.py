"""Where a network that is too steep at its input shows it: straight ahead, along its gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from radii.attacks import attack_specification
from radii.bounds import centre_of, crown_bounds
from radii.errors import UnsupportedQuery
from radii.networks import Network
from radii.problem import (
    REAL,
    Anchor,
    Arithmetic,
    Array,
    Ball,
    Limits,
    LinearRequirement,
    LipschitzRequirement,
    Norm,
    Specification,
    StandardRobustness,
    Verdict,
    Witness,
    check_witness,
)
from radii.verifiers._base import Answer
from radii.verifiers._case import attack_seconds, check_bounded
from radii.verifiers._jacobian import steepness

RAY_SHARES = (1.0, 0.5, 0.2, 0.05, 0.01, 0.002)
"""Parts of the ball's radius at which each ray is looked at."""

RAY_REPLAYS = 3
"""How many points are replayed, those farthest over the bound first."""


def steepest_ahead(network: Network, specification: Specification) -> Witness | None:
    """A witness on one of the rays that raise or lower an output fastest; None proves nothing."""
    ball, requirement = specification.region, specification.requirement
    assert isinstance(ball, Ball) and isinstance(requirement, LipschitzRequirement)
    directions = _directions(network, ball)
    shares = torch.tensor(RAY_SHARES, dtype=torch.float64)
    steps = ball.eps * shares[:, None, None] * directions
    centre = torch.from_numpy(ball.center.ravel().copy())
    low, high = (torch.tensor(side.ravel()) for side in ball.domain.box(ball.shape))
    points = (centre + steps.reshape(-1, len(centre))).clamp(low, high)
    with torch.no_grad():
        outputs = network(points.reshape(-1, *network.input_shape)).numpy()
    distances = np.array([ball.norm.length(row) for row in (points - centre).numpy()])
    margins = requirement.margin(outputs, distances)
    for place in np.argsort(margins)[:RAY_REPLAYS]:
        if margins[place] > requirement.tau:
            break
        witness = check_witness(network, specification, points[place].numpy())
        if witness is not None:
            return witness
    return None


def _directions(network: Network, ball: Ball) -> Tensor:
    """Unit steps in the ball's norm (2 * outputs, inputs) along which an output changes most."""
    x = torch.from_numpy(ball.center.copy())[None].requires_grad_()
    with torch.enable_grad():
        outputs = network(x)[0]
        gradients = torch.stack(
            [torch.autograd.grad(value, x, retain_graph=True)[0].ravel() for value in outputs]
        )
    both = torch.cat([gradients, -gradients])
    match ball.norm:
        case Norm.LINF:
            return both.sign()
        case Norm.L2:
            lengths: Tensor = torch.linalg.vector_norm(both, dim=1, keepdim=True)
            return both / lengths.clamp_min(1e-300)
        case Norm.L1:
            steep = both.abs().argmax(dim=1, keepdim=True)
            return torch.zeros_like(both).scatter(1, steep, both.gather(1, steep).sign())


# Lipschitz robustness from the inside out: a core by slopes, then shells by linear queries.
#
# Core: where the outputs move at most `rate` times the distance, nothing within r can be broken if
# (rate - L) r <= tau. The bounds on the rate get better as the ball shrinks, so some r always
# works.
#
# Shell: an input at a distance between r and R that breaks LR moves an output by L r + tau or more.
# So LR holds between r and R if SR with that delta holds up to R: a linear query for any verifier.
# Shells are made thinner until the answer is exact up to `thinnest_ratio`.


Decide = Callable[[Network, Specification, Limits], Answer]
"""Decides a specification whose requirement is linear."""


@dataclass(frozen=True, slots=True)
class ShellSettings:
    """How thick shells are, and how long each may take."""

    core_shrinkage: float = 0.5
    """By how much a core that could not be proven is made smaller."""

    thinnest_ratio: float = 1.002
    """A shell whose radii have this ratio is not divided: an output would have to stay within that
    much of the bound, and such a query stays UNKNOWN."""

    first_ratio: float = 2.0
    """Of the first shell after the core; the next are as thick as the last one that was proven."""

    time_share: float = 0.25
    """Of the time that is left, for one shell: near the radius of its query a thinner one is
    easier."""


SHELLS = ShellSettings()


@dataclass(slots=True)
class Shells:
    """What is proven around one input: `proven` is the radius up to which LR holds."""

    proven: float = 0.0
    ratio: float = SHELLS.first_ratio
    settings: ShellSettings = SHELLS


def decide_lipschitz(
    network: Network,
    specification: Specification,
    limits: Limits,
    decide: Decide,
    shells: Shells,
    arithmetic: Arithmetic,
) -> Answer:
    """ROBUST or a candidate; `shells` is what is known of the same input, and learns."""
    region = specification.region
    if not isinstance(region, Ball):
        raise UnsupportedQuery("Lipschitz robustness is about balls: a box has no distance")
    check_bounded(network, specification)
    attempt = _ShellAttempt(network, specification, region, limits, decide, shells, arithmetic)
    return attempt.answer()


@dataclass(slots=True)
class _ShellAttempt:
    network: Network
    specification: Specification
    ball: Ball
    limits: Limits
    decide: Decide
    shells: Shells
    arithmetic: Arithmetic

    @property
    def requirement(self) -> LipschitzRequirement:
        requirement = self.specification.requirement
        assert isinstance(requirement, LipschitzRequirement)
        return requirement.of_each_output

    def answer(self) -> Answer:
        eps = self.ball.eps
        if 0 < eps <= self.shells.proven:
            return Answer(Verdict.ROBUST)
        if self._is_broken(centre_of(self.ball)):
            return Answer(Verdict.NOT_ROBUST, centre_of(self.ball))
        if eps == 0:  # the ball is this one point, and it has been replayed
            return Answer(Verdict.ROBUST)
        ahead = steepest_ahead(self.network, self.specification)
        if ahead is not None:
            return Answer(Verdict.NOT_ROBUST, ahead.input)
        self._prove_core(eps)
        if self.shells.proven < eps:
            seconds = attack_seconds(self.limits)
            witness = attack_specification(self.network, self.specification, seconds=seconds)
            if witness is not None:
                return Answer(Verdict.NOT_ROBUST, witness.input)
        return self._grow(eps)

    def _prove_core(self, eps: float) -> None:
        """Slopes on smaller and smaller balls, from the whole one down to what is proven."""
        radius = eps
        room = self.requirement.tau - self._offset()
        while radius > self.shells.proven and self.limits.expired is None:
            slopes = steepness(self.network, replace(self.ball, eps=radius), self.arithmetic)
            slack = room - slopes.error
            excess = slopes.rate - self.requirement.constant
            if slack > 0 and excess * radius < slack * (1 - 1e-9):
                self._note(radius)
                return
            # The rate on a smaller ball is no larger: at least this radius is proven by now.
            if slack > 0 and 0 < excess < math.inf:
                self._note(min(radius, slack / excess * (1 - 1e-9)))
            radius *= self.shells.settings.core_shrinkage

    def _offset(self) -> float:
        """How far the input's own outputs, as replayed, are from those in real arithmetic at most.

        Bounds over this one point hold the latter, and are as wide as float64 rounds.
        """
        point = replace(self.ball, eps=0.0)
        bounds = crown_bounds(self.network, [point], arithmetic=REAL)
        low, high = (side[0].numpy() for side in (bounds.low, bounds.high))
        reference = self.requirement.reference
        return float(np.maximum(high - reference, reference - low).max())

    def _grow(self, eps: float) -> Answer:
        """One shell after the other, each as thick as can be proven, up to eps."""
        shells, outer = self.shells, eps
        thinnest = shells.settings.thinnest_ratio
        if shells.proven <= 0:
            message = "the network's own rounding hides how steep it is"
            return Answer(self.limits.expired or Verdict.UNKNOWN, message=message)
        outer = min(eps, shells.proven * shells.ratio)
        while shells.proven < eps:
            expired = self.limits.expired
            if expired is not None:
                return Answer(expired)
            answer = self._shell(shells.proven, outer)
            if answer.verdict is Verdict.ROBUST:
                shells.ratio = max(outer / shells.proven, 1.0) ** 1.5
                self._note(outer)
                outer = min(eps, shells.proven * max(shells.ratio, thinnest))
                continue
            if self._is_broken(answer.candidate):
                return Answer(Verdict.NOT_ROBUST, answer.candidate)
            if answer.verdict in (Verdict.MEMOUT, Verdict.ERROR, Verdict.CANCELLED):
                return Answer(answer.verdict, message=answer.message)
            if outer <= shells.proven * thinnest and answer.verdict is Verdict.TIMEOUT:
                return Answer(Verdict.TIMEOUT)
            if outer <= shells.proven * thinnest:
                message = f"outputs come within tolerance of the bound at distance {outer:.4g}"
                return Answer(Verdict.UNKNOWN, message=message)
            outer = max(math.sqrt(shells.proven * outer), shells.proven * thinnest)
            outer = min(outer, eps)
        return Answer(Verdict.ROBUST)

    def _shell(self, inner: float, outer: float) -> Answer:
        """SR up to `outer` with what LR allows at `inner`."""
        requirement = self.requirement
        delta = (requirement.constant * inner + requirement.tau) * (1 - 1e-12)
        near = StandardRobustness(delta).at(Anchor(0, requirement.reference))
        assert isinstance(near, LinearRequirement)
        question = Specification(replace(self.ball, eps=outer), near, self.specification.inputs)
        share = self.limits.within(self.shells.settings.time_share * self.limits.remaining)
        return self.decide(self.network, question, share)

    def _is_broken(self, candidate: Array | None) -> bool:
        return check_witness(self.network, self.specification, candidate) is not None

    def _note(self, radius: float) -> None:
        self.shells.proven = max(self.shells.proven, radius)
