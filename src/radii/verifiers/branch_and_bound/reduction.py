"""A network over one region, reduced to the units whose sign the region leaves open.

Layer by layer: units that never bend are replaced by what they are (zero, or their argument), so
that later layers read the input and the open units only. All in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from radii.balls import Ball, Box
from radii.bounds.relu_form import ReluForm
from radii.properties import Halfspaces
from radii.verifiers.branch_and_bound.duals import ROUNDING, Layers, Multipliers, Rows, evaluate
from radii.verifiers.branch_and_bound.supports import support_of

__all__ = ["Reduction", "reduce"]


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """Open units with their bounds over the whole region, and specifications over the columns.

    `specs[p]` (rows, columns): violated where all rows are <= 0 for some p.
    """

    layers: Layers
    lower: Tensor
    upper: Tensor
    specs: tuple[Tensor, ...]
    region: Ball | Box


def reduce(
    form: ReluForm,
    region: Ball | Box,
    violations: Sequence[Halfspaces],
    inputs: Halfspaces | None = None,
) -> Reduction:
    """Root bounds by CROWN, and what they leave open. `inputs` must hold in a violation too."""
    return _Reducer(form, region).run(violations, inputs)


class _Reducer:
    def __init__(self, form: ReluForm, region: Ball | Box) -> None:
        self.form = form
        self.region = region
        self.support = support_of(region)
        self.matrices: list[Tensor] = []
        self.lower = torch.zeros(0, dtype=torch.float64)
        self.upper = torch.zeros(0, dtype=torch.float64)
        self.magnitudes = torch.zeros(0, dtype=torch.float64)
        # What each unit's output is, over the open columns; grows with the layers.
        inputs = form.inputs + 1
        self.known = torch.eye(inputs, dtype=torch.float64)

    def run(self, violations: Sequence[Halfspaces], inputs: Halfspaces | None) -> Reduction:
        for layer in self.form.layers:
            self.add(self.rows(layer))
        output = self.rows(self.form.output)
        specs = []
        for polyhedron in violations:
            rows = torch.from_numpy(polyhedron.matrix) @ output
            rows[:, self.form.inputs] += torch.from_numpy(polyhedron.offset)
            if inputs is not None:
                cuts = torch.zeros(len(inputs.offset), rows.shape[1], dtype=torch.float64)
                cuts[:, : self.form.inputs] = torch.from_numpy(inputs.matrix)
                cuts[:, self.form.inputs] = torch.from_numpy(inputs.offset)
                rows = torch.cat([rows, cuts])
            specs.append(rows)
        return Reduction(self.layers, self.lower, self.upper, tuple(specs), self.region)

    @property
    def layers(self) -> Layers:
        return Layers(tuple(self.matrices), self.magnitudes, self.support)

    def rows(self, matrix: csr_array) -> Tensor:
        """Rows over the form's columns, rewritten over the open columns."""
        coordinates = matrix.tocoo()
        indices = torch.from_numpy(np.stack([coordinates.row, coordinates.col]).astype(np.int64))
        sparse = torch.sparse_coo_tensor(
            indices, torch.from_numpy(coordinates.data), matrix.shape, check_invariants=False
        )
        rewritten: Tensor = torch.sparse.mm(sparse, self.known)
        return rewritten

    def add(self, arguments: Tensor) -> None:
        """A layer of units with the given arguments over the open columns."""
        sizes = torch.cat([self.support.sizes, torch.ones(1, dtype=torch.float64), self.reach()])
        magnitudes = arguments.abs() @ sizes
        lower, upper = self.bounds(arguments, magnitudes)
        is_open = (lower < 0) & (upper > 0)
        count = int(is_open.sum())
        self.known = torch.cat([self.known, torch.zeros(len(self.known), count)], 1)
        outputs = torch.zeros(len(arguments), self.known.shape[1], dtype=torch.float64)
        is_active = (lower >= 0) & ~is_open
        outputs[is_active, : arguments.shape[1]] = arguments[is_active]
        outputs[is_open.nonzero().squeeze(1), arguments.shape[1] + torch.arange(count)] = 1.0
        self.known = torch.cat([self.known, outputs])
        self.matrices.append(arguments[is_open])
        self.lower = torch.cat([self.lower, lower[is_open]])
        self.upper = torch.cat([self.upper, upper[is_open]])
        self.magnitudes = torch.cat([self.magnitudes, magnitudes[is_open]])

    def reach(self) -> Tensor:
        """The largest output of each open unit."""
        return self.upper.clamp_min(0)

    def bounds(self, arguments: Tensor, magnitudes: Tensor) -> tuple[Tensor, Tensor]:
        """Interval bounds of all units, then CROWN where they leave the sign open."""
        inputs = self.form.inputs
        on_units = arguments[:, inputs + 1 :]
        below, _ = self.support.least(arguments[:, :inputs])
        above, _ = self.support.least(-arguments[:, :inputs])
        constant = arguments[:, inputs]
        lower = below + constant + on_units.clamp_max(0) @ self.reach() - ROUNDING * magnitudes
        upper = constant - above + on_units.clamp_min(0) @ self.reach() + ROUNDING * magnitudes
        chosen = ((lower < 0) & (upper > 0)).nonzero().squeeze(1)
        if len(chosen) and len(self.lower):
            asked = torch.cat([arguments[chosen], -arguments[chosen]])
            found = self.crown(asked)
            lower[chosen] = torch.maximum(lower[chosen], found[: len(chosen)])
            upper[chosen] = torch.minimum(upper[chosen], -found[len(chosen) :])
        return lower, upper

    def crown(self, objectives: Tensor) -> Tensor:
        """Lower bounds of rows over the open columns."""
        count = len(objectives)
        rows = Rows(
            self.lower.expand(count, -1), self.upper.expand(count, -1), objectives[:, None, :]
        )
        return evaluate(self.layers, rows, Multipliers.start(rows)).values
