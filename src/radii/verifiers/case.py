"""A network over a region, with its violations: what deciding and measuring start from."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from radii.bounds import Interval, box_of, interval_bounds
from radii.errors import SpecificationError
from radii.networks import Network
from radii.properties import Halfspaces
from radii.queries import Specification
from radii.verdicts import Witness
from radii.verifiers._base import Limits
from radii.verifiers.linear.expressions import Float64
from radii.verifiers.replaying import ReplayNoise
from radii.witnesses import check_witness

__all__ = ["Case", "check_bounded"]


def check_bounded(network: Network, specification: Specification) -> None:
    """A SpecificationError unless every input has finite bounds."""
    if not all(np.isfinite(side).all() for side in box_of(specification.region)):
        raise SpecificationError(
            f"{network.name}: the region is unbounded; verifiers need finite bounds on every input"
        )


@dataclass(slots=True)
class Case:
    """One specification of one network. Sees every candidate; keeps the closest witness."""

    network: Network
    specification: Specification
    limits: Limits
    witness: Witness | None = None
    noise: ReplayNoise = field(init=False)
    intervals: list[Interval] = field(init=False)

    def __post_init__(self) -> None:
        check_bounded(self.network, self.specification)
        self.noise = ReplayNoise(self.network, self.specification)
        shape = (1, *self.network.input_shape)
        low, high = (side.reshape(shape) for side in box_of(self.specification.region))
        self.intervals = interval_bounds(self.network.graph, Interval.around(low, high))

    @property
    def violations(self) -> tuple[Halfspaces, ...]:
        return self.specification.requirement.violations or ()

    def margin(self, polyhedron: Halfspaces) -> float:
        """How far above zero a bound has to be to count, in units of the outputs."""
        return self.noise.margin(polyhedron)

    @property
    def largest_margin(self) -> float:
        """What every proof of this case has passed."""
        return max((self.margin(polyhedron) for polyhedron in self.violations), default=0.0)

    def reachable(self) -> list[Halfspaces]:
        """The polyhedra that interval bounds on the outputs do not exclude."""
        outputs = self.intervals[self.network.graph.output]
        low, high = outputs.low.numpy().ravel(), outputs.high.numpy().ravel()
        kept = []
        for polyhedron in self.violations:
            positive, negative = np.maximum(polyhedron.matrix, 0), np.minimum(polyhedron.matrix, 0)
            least = positive @ low + negative @ high + polyhedron.offset
            if not least.max() > self.margin(polyhedron):  # also where it is NaN
                kept.append(polyhedron)
        return kept

    def try_input(self, candidate: Float64) -> bool:
        """Replay a flattened input; True if it is a witness."""
        found = check_witness(self.network, self.specification, candidate)
        if found is None:
            return False
        if self.witness is None or found.distance < self.witness.distance:
            self.witness = found
        return True
