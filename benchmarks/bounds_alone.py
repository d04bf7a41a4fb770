"""Verifiers that only bound, and never branch or attack: baselines."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from radii import __version__
from radii.balls import Norm
from radii.bounds import Interval, alpha_crown_bounds, crown_bounds
from radii.networks import Network
from radii.queries import Specification
from radii.verdicts import Verdict
from radii.verifiers import Answer, Limits, Verifier

MARGIN = 1e-6


class BoundsAlone(Verifier):
    """ROBUST if for every way to break the requirement some row is bounded above 0."""

    norms: ClassVar[frozenset[Norm]] = frozenset(Norm)
    bounds: ClassVar[Callable[..., Interval]]

    @property
    def version(self) -> str:
        return __version__

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        polyhedra = specification.requirement.violations or ()
        rows = np.vstack([polyhedron.matrix for polyhedron in polyhedra])
        found = type(self).bounds(network, [specification.region], rows)
        least = found.low[0].numpy()
        first = 0
        for polyhedron in polyhedra:
            last = first + len(polyhedron.offset)
            if (least[first:last] + polyhedron.offset).max() <= MARGIN:
                return Answer(Verdict.UNKNOWN)
            first = last
        return Answer(Verdict.ROBUST, margin=MARGIN)


class Crown(BoundsAlone):
    name: ClassVar[str] = "CROWN alone"
    bounds = staticmethod(crown_bounds)


class AlphaCrown(BoundsAlone):
    name: ClassVar[str] = "alpha-CROWN alone"
    bounds = staticmethod(alpha_crown_bounds)
