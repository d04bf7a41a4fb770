"""Lipschitz robustness from the inside out: a core by slopes, then shells by linear queries.

Core: where the outputs move at most `rate` times the distance, nothing within r can be broken if
(rate - L) r <= tau. The bounds on the rate get better as the ball shrinks, so some r always works.

Shell: an input at a distance between r and R that breaks LR moves an output by L r + tau or more.
So LR holds between r and R if SR with that delta holds up to R: a linear query for any verifier.
Shells are made thinner until the answer is exact up to THINNEST.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from radii.attacks import attack_specification
from radii.balls import Ball
from radii.bounds import centre_of
from radii.errors import UnsupportedQuery
from radii.networks import Network
from radii.properties import (
    Anchor,
    Halfspaces,
    LinearRequirement,
    LipschitzRequirement,
    StandardRobustness,
)
from radii.queries import Specification
from radii.verdicts import Array, Verdict
from radii.verifiers._base import Answer, Limits
from radii.verifiers.case import check_bounded
from radii.verifiers.lipschitz.jacobian import rates
from radii.verifiers.lipschitz.rays import steepest_ahead
from radii.verifiers.replaying import ReplayNoise
from radii.witnesses import check_witness

__all__ = ["Decide", "Shells", "decide_lipschitz"]

Decide = Callable[[Network, Specification, Limits], Answer]
"""Decides a specification whose requirement is linear."""

SHRINK = 0.5
"""By how much a core that could not be proven is made smaller."""

THINNEST = 1.002
"""A shell whose radii have this ratio is not divided: an output would have to stay within that
much of the bound, and such a query stays UNKNOWN."""

FIRST_RATIO = 2.0
"""The first shell after the core; the next ones are as thick as the last one that was proven."""

ATTACK_SECONDS, ATTACK_SHARE = 1.0, 0.1
"""For the attack once slopes leave the answer open, and of the time that is left."""

SHELL_SHARE = 0.25
"""Of the time that is left, for one shell: near the radius of its query a thinner one is easier."""


@dataclass(slots=True)
class Shells:
    """What is proven around one input: `proven` is the radius up to which LR holds."""

    proven: float = 0.0
    margin: float = 0.0
    ratio: float = field(default=FIRST_RATIO)


def decide_lipschitz(
    network: Network,
    specification: Specification,
    limits: Limits,
    decide: Decide,
    shells: Shells | None = None,
) -> Answer:
    """ROBUST or a candidate; `shells` is what is known of the same input, and learns."""
    region = specification.region
    if not isinstance(region, Ball):
        raise UnsupportedQuery("Lipschitz robustness is about balls: a box has no distance")
    check_bounded(network, specification)
    return _Attempt(network, specification, region, limits, decide, shells or Shells()).answer()


@dataclass(slots=True)
class _Attempt:
    network: Network
    specification: Specification
    ball: Ball
    limits: Limits
    decide: Decide
    shells: Shells

    @property
    def requirement(self) -> LipschitzRequirement:
        requirement = self.specification.requirement
        assert isinstance(requirement, LipschitzRequirement)
        return requirement

    def answer(self) -> Answer:
        eps = self.ball.eps
        if 0 < eps <= self.shells.proven:
            return Answer(Verdict.ROBUST, margin=self.shells.margin)
        if self._is_broken(centre_of(self.ball)):
            return Answer(Verdict.NOT_ROBUST, centre_of(self.ball))
        if eps == 0:  # the ball is this one point, and it has been replayed
            return Answer(Verdict.ROBUST)
        ahead = steepest_ahead(self.network, self.specification)
        if ahead is not None:
            return Answer(Verdict.NOT_ROBUST, ahead.input)
        self._prove_core(eps)
        if self.shells.proven < eps:
            seconds = min(ATTACK_SECONDS, ATTACK_SHARE * self.limits.remaining)
            witness = attack_specification(self.network, self.specification, seconds=seconds)
            if witness is not None:
                return Answer(Verdict.NOT_ROBUST, witness.input)
        return self._grow(eps)

    def _prove_core(self, eps: float) -> None:
        """Slopes on smaller and smaller balls, from the whole one down to what is proven."""
        radius = eps
        slack = self._slack(self.ball)
        if slack <= 0:
            return
        while radius > self.shells.proven and self.limits.expired is None:
            steepest = rates(self.network, replace(self.ball, eps=radius))
            excess = steepest - self.requirement.constant
            if excess * radius < slack:
                self._note(radius, self.requirement.tau - slack)
                return
            # The rate on a smaller ball is no larger: at least this radius is proven by now.
            if excess < math.inf and slack / excess * (1 - 1e-9) > self.shells.proven:
                self._note(slack / excess * (1 - 1e-9), self.requirement.tau - slack)
            radius *= SHRINK

    def _slack(self, ball: Ball) -> float:
        """What of tau is above the noise of ONNX Runtime, for every output."""
        everything = replace(self.specification, region=ball)
        unit = np.eye(self.network.output_size)
        noise = ReplayNoise(self.network, everything)
        margin = max(noise.margin(Halfspaces(row, np.zeros(1))) for row in unit)
        offset = np.abs(self._outputs_in_reals() - self.requirement.reference).max()
        return self.requirement.tau - margin - float(offset)

    def _outputs_in_reals(self) -> Array:
        with torch.no_grad():
            return self.network(torch.from_numpy(self.ball.center.copy())[None])[0].numpy()

    def _grow(self, eps: float) -> Answer:
        """One shell after the other, each as thick as can be proven, up to eps."""
        shells, outer = self.shells, eps
        if shells.proven <= 0:
            message = "the network's own rounding hides how steep it is"
            return Answer(self.limits.expired or Verdict.UNKNOWN, message=message)
        outer = min(eps, shells.proven * shells.ratio)
        while shells.proven < eps:
            expired = self.limits.expired
            if expired is not None:
                return Answer(expired)
            told = self._shell(shells.proven, outer)
            if told.verdict is Verdict.ROBUST:
                shells.ratio = max(outer / shells.proven, 1.0) ** 1.5
                self._note(outer, told.margin)
                outer = min(eps, shells.proven * max(shells.ratio, THINNEST))
                continue
            if self._is_broken(told.candidate):
                return Answer(Verdict.NOT_ROBUST, told.candidate)
            if told.verdict in (Verdict.MEMOUT, Verdict.ERROR, Verdict.CANCELLED):
                return Answer(told.verdict, message=told.message)
            if outer <= shells.proven * THINNEST:
                message = f"outputs come within tolerance of the bound at distance {outer:.4g}"
                return Answer(Verdict.UNKNOWN, message=message)
            outer = max(math.sqrt(shells.proven * outer), shells.proven * THINNEST)
            outer = min(outer, eps)
        return Answer(Verdict.ROBUST, margin=shells.margin)

    def _shell(self, inner: float, outer: float) -> Answer:
        """SR up to `outer` with what LR allows at `inner`."""
        requirement = self.requirement
        delta = (requirement.constant * inner + requirement.tau) * (1 - 1e-12)
        near = StandardRobustness(delta).at(Anchor(0, requirement.reference))
        assert isinstance(near, LinearRequirement)
        asked = Specification(replace(self.ball, eps=outer), near, self.specification.inputs)
        share = self.limits.within(SHELL_SHARE * self.limits.remaining)
        return self.decide(self.network, asked, share)

    def _is_broken(self, candidate: Array | None) -> bool:
        return check_witness(self.network, self.specification, candidate) is not None

    def _note(self, radius: float, margin: float) -> None:
        self.shells.proven = max(self.shells.proven, radius)
        self.shells.margin = max(self.shells.margin, margin)
