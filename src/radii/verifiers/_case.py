"""A network over a region, with its violations: what deciding and measuring start from."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from radii.bounds import SUM_ROUNDING, Fusion, StageBounds, box_of, fuse, stage_bounds
from radii.errors import SpecificationError
from radii.networks import Network
from radii.problem import (
    FLOAT,
    Arithmetic,
    Halfspaces,
    Instance,
    Limits,
    Specification,
    Witness,
    check_witness,
)
from radii.verifiers._expressions import Float64
from radii.verifiers._programs import HIGHS_TOLERANCE


def check_bounded(network: Network, specification: Specification) -> None:
    """A SpecificationError unless every input has finite bounds."""
    if not all(np.isfinite(side).all() for side in box_of(specification.region)):
        raise SpecificationError(
            f"{network.name}: the region is unbounded; verifiers need finite bounds on every input"
        )


@dataclass(slots=True)
class BoundedProblem:
    """One specification of one network. Sees every candidate; keeps the closest witness.

    `stages` has an interval and the network's own rounding for what each stage of the fused network
    reads, and `output` those of the output.
    """

    network: Network
    specification: Specification
    limits: Limits
    arithmetic: Arithmetic = FLOAT
    witness: Witness | None = None
    fusion: Fusion = field(init=False)
    stages: tuple[StageBounds, ...] = field(init=False)
    output: StageBounds = field(init=False)

    def __post_init__(self) -> None:
        check_bounded(self.network, self.specification)
        self.fusion = fuse(self.network)
        low, high = box_of(self.specification.region)
        *stages, self.output = stage_bounds(self.fusion, low, high, self.arithmetic)
        self.stages = tuple(stages)

    @property
    def violations(self) -> tuple[Halfspaces, ...]:
        return self.specification.requirement.violations or ()

    @property
    def overflow(self) -> str | None:
        """Why nothing can be proven, if something may overflow in the region."""
        if all(np.isfinite(bounds.error).all() for bounds in (*self.stages, self.output)):
            return None
        return "a value may overflow in the region, so that nothing can be proven there"

    def reachable(self) -> list[Halfspaces]:
        """The polyhedra that interval bounds on the outputs do not exclude."""
        low, high = self.output.low, self.output.high
        kept = []
        for polyhedron in self.violations:
            positive, negative = np.maximum(polyhedron.matrix, 0), np.minimum(polyhedron.matrix, 0)
            least = positive @ low + negative @ high + polyhedron.offset
            size = np.abs(polyhedron.matrix) @ np.maximum(np.abs(low), np.abs(high))
            least -= SUM_ROUNDING * (size + np.abs(polyhedron.offset))
            if not least.max() > 0:  # also where it is NaN
                kept.append(polyhedron)
        return kept

    def try_input(self, candidate: Float64) -> bool:
        """Replay a flattened input; True if it is a witness."""
        witness = check_witness(self.network, self.specification, candidate)
        if witness is None:
            return False
        if self.witness is None or witness.distance < self.witness.distance:
            self.witness = witness
        return True


# How far an input can go, and how deep into a violation a witness is sought.


BALL_MARGIN = 1.001
"""A ball that is to hold a violation known at some distance reaches this much farther.

What replays on ONNX Runtime at a distance may be a violation in real arithmetic just beyond it.
"""

DEPTH_STEPS = (0.0, 1 / 256, 1 / 32, 0.25, 1.0, 4.0)


def replay_depths(error: float) -> list[float]:
    """Growing depths, in units of the outputs, at which a violation should replay.

    A violation of depth 0 in real arithmetic is a coin toss on ONNX Runtime; one twice as deep as
    the network may round is none, and mostly much less suffices. HiGHS places no point more finely
    than its tolerance.
    """
    step = max(error, 64 * HIGHS_TOLERANCE)
    return [factor * step for factor in DEPTH_STEPS]


ATTACK_SECONDS, ATTACK_SHARE = 1.0, 0.1
"""For an attack once the first bounds leave the answer open: at most, and of the time left."""


def attack_seconds(limits: Limits) -> float:
    """How long to look for a counterexample before the long way to a proof."""
    return min(ATTACK_SECONDS, ATTACK_SHARE * limits.remaining)


def farthest(instance: Instance) -> float:
    """The largest distance of any valid input from the instance's."""
    low, high = instance.domain.box(instance.input.shape)
    centre = np.asarray(instance.input, np.float64)
    steps = np.maximum(np.abs(high - centre), np.abs(centre - low)).ravel()
    if instance.features is not None:
        steps = np.where(instance.features.scale > 0, instance.features.units(steps), 0.0)
    return instance.norm.length(steps)
