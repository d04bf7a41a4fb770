"""A ReLU on the outputs, moved out of the network into the specification.

max(0, a) <= max(0, b) exactly where a <= b or a <= 0. So "class b is at least class a" behind a
final ReLU becomes two linear statements in front of it, and its units need no relaxation. The same
holds with a margin on the right of all three, and in the scale in which they were given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from radii.bounds.magnitudes import EXACT
from radii.bounds.relu_form import ReluForm
from radii.networks.operators import Relu
from radii.properties import Halfspaces

__all__ = ["unwrapped"]


def unwrapped(
    form: ReluForm, violations: Sequence[Halfspaces]
) -> tuple[ReluForm, tuple[Halfspaces, ...]]:
    """The form without its final ReLU and equivalent violations; as given if that cannot be."""
    pairs = [_compared(polyhedron) for polyhedron in violations]
    if not _ends_in_relu(form) or any(pair is None for pair in pairs):
        return form, tuple(violations)
    arguments = form.layers[-1]
    outputs = arguments.shape[0]
    last = form.stages[-1]
    bare = replace(
        form,
        layers=form.layers[:-1],
        output=arguments,
        stages=form.stages[:-1],
        end=last.stage,
    )
    rows: dict[bytes, npt.NDArray[np.float64]] = {}
    for pair in pairs:
        assert pair is not None
        above, below, scale = pair
        positive = _unit(above, outputs)
        for row in (scale * (positive - _unit(below, outputs)), scale * positive):
            rows[row.tobytes()] = row
    return bare, tuple(Halfspaces(row, np.zeros(1)) for row in rows.values())


def _compared(polyhedron: Halfspaces) -> tuple[int, int, float] | None:
    """(a, b, c) if the polyhedron is c y_a <= c y_b."""
    row = polyhedron.matrix[0]
    above, below = np.flatnonzero(row > 0), np.flatnonzero(row < 0)
    is_pair = len(polyhedron.matrix) == 1 and len(above) == len(below) == 1
    if not is_pair or polyhedron.offset[0] != 0 or row[above[0]] != -row[below[0]]:
        return None
    return int(above[0]), int(below[0]), float(row[above[0]])


def _ends_in_relu(form: ReluForm) -> bool:
    """Every output is exactly one unit of the last layer, in order."""
    if not form.layers or form.layers[-1].shape[0] != form.output.shape[0]:
        return False
    between = (form.fusion.graph.nodes[node].operator for node in form.end.between)
    if form.fusion.behind is not None or not all(isinstance(each, EXACT) for each in between):
        return False  # what is rounded behind the ReLU has no place in front of it
    if not isinstance(form.stages[-1].stage.operator, Relu):
        return False
    count = form.output.shape[0]
    first = form.output.shape[1] - count
    units = csr_array(
        (np.ones(count), (np.arange(count), first + np.arange(count))), shape=form.output.shape
    )
    return bool((form.output != units).nnz == 0)


def _unit(index: int, size: int) -> npt.NDArray[np.float64]:
    row = np.zeros(size)
    row[index] = 1.0
    return row
