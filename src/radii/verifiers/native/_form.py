"""The form in which a question is proven: a fused network, and violations of what it outputs.

A final softmax is moved out of the network into the specification, and so is a ReLU on the outputs:
max(0, a) <= max(0, b) exactly where a <= b or a <= 0. So "class b is at least class a" behind a
final ReLU becomes two linear statements in front of it, and its units need no relaxation. The same
holds with a margin on the right of all three, and in the scale in which they were given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from radii.bounds import (
    Fusion,
    ReluForm,
    ends_in_last,
    fuse,
    fuse_cascades,
    relu_form,
    without_last,
    without_softmax,
)
from radii.networks import Network, OperatorKind, Relu
from radii.problem import REAL, Arithmetic, Halfspaces, Specification
from radii.verifiers.native._mapped_reduction import keeps_structure


@dataclass(frozen=True, slots=True, eq=False)
class ProofForm:
    """No output of the fusion may lie in one of the violations.

    `keeps_structure` says that its layers are maps smaller than matrices, on which trees work. What
    is proven about a `plain` form can be stated in a certificate.
    """

    network: Network
    fusion: Fusion
    violations: tuple[Halfspaces, ...]
    keeps_structure: bool
    plain: bool

    @classmethod
    def of(
        cls,
        network: Network,
        specification: Specification,
        arithmetic: Arithmetic,
        *,
        plain: bool = False,
    ) -> ProofForm:
        """With cascades of units for maxima where trees work on the network's own maps, unless it
        is to be `plain`: maxima one after another, as certificates state them."""
        stated = specification.requirement.violations or ()
        fusion, violations = without_softmax(fuse_cascades(network), stated, arithmetic)
        if plain or not keeps_structure(fusion):
            fusion, violations = without_softmax(fuse(network), stated, arithmetic)
        fusion, violations = unwrapped(fusion, violations)
        return cls(network, fusion, violations, keeps_structure(fusion), plain)

    @property
    def arguments(self) -> int:
        """How many numbers all units read."""
        return sum(math.prod(stage.shape) for stage in self.fusion.stages)

    @property
    def rows(self) -> list[int]:
        """How many rows each violation has."""
        return [len(each.offset) for each in self.violations]

    def relu_form(self) -> ReluForm:
        """Its layers of ReLU units. The fusion is the network's or its beginning, so that the
        network remembers the form by its length."""
        key = ProofForm, len(self.fusion.stages)
        return self.network.memo.get(key, lambda: relu_form(self.fusion))


def is_piecewise_linear(network: Network, specification: Specification) -> bool:
    """Whether units can be split: also behind a final softmax that the specification allows."""
    if network.is_piecewise_linear:
        return True
    bare, _ = without_softmax(fuse(network), specification.requirement.violations or (), REAL)
    return all(stage.operator.kind is OperatorKind.PIECEWISE_LINEAR for stage in bare.stages)


def unwrapped(
    fusion: Fusion, violations: Sequence[Halfspaces]
) -> tuple[Fusion, tuple[Halfspaces, ...]]:
    """The fusion without its final ReLU and equivalent violations; as given if that cannot be."""
    pairs = [_compared_outputs(polyhedron) for polyhedron in violations]
    if not _ends_in_relu(fusion) or any(pair is None for pair in pairs):
        return fusion, tuple(violations)
    outputs = fusion.output.offset.size
    rows: dict[bytes, npt.NDArray[np.float64]] = {}
    for pair in pairs:
        assert pair is not None
        above, below, scale = pair
        positive = _unit(above, outputs)
        for row in (scale * (positive - _unit(below, outputs)), scale * positive):
            rows[row.tobytes()] = row
    return without_last(fusion), tuple(Halfspaces(row, np.zeros(1)) for row in rows.values())


def _compared_outputs(polyhedron: Halfspaces) -> tuple[int, int, float] | None:
    """(a, b, c) if the polyhedron is c y_a <= c y_b."""
    row = polyhedron.matrix[0]
    above, below = np.flatnonzero(row > 0), np.flatnonzero(row < 0)
    is_pair = len(polyhedron.matrix) == 1 and len(above) == len(below) == 1
    if not is_pair or polyhedron.offset[0] != 0 or row[above[0]] != -row[below[0]]:
        return None
    return int(above[0]), int(below[0]), float(row[above[0]])


def _ends_in_relu(fusion: Fusion) -> bool:
    """Every output is exactly one unit of the last layer, in order, and nothing rounds it: what is
    rounded behind the ReLU has no place in front of it."""
    if not fusion.stages or fusion.behind is not None:
        return False
    last = fusion.stages[-1]
    is_plain = fusion.graph.nodes[last.node].shape == last.shape
    return isinstance(last.operator, Relu) and is_plain and ends_in_last(fusion)


def _unit(index: int, size: int) -> npt.NDArray[np.float64]:
    row = np.zeros(size)
    row[index] = 1.0
    return row
