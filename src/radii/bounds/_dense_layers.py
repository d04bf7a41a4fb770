"""Layers of ReLU units as matrices over the open units and the input.

    z_k = E_k (1, v_1, ..., v_k-1) + S_k d + e,   |e| <= slack

for the units that a region leaves open, where d is the step from the region's centre. What other
units do, which always are 0 or their argument, is part of E and S (`verifiers/native/_reduction`).
Going back, rows on (1, v_1, ..., v_k) lose the columns of layer k and gain m E_k on those before.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from radii.bounds._duals import DualBackward, Layers, PointsForward, RelaxedRows
from radii.bounds._supports import Support


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Affine functions of what lies before them, one a row.

    `earlier` (K, 1 + units before) is on the constant 1 and the outputs of earlier units; `steps`
    (K, inputs) is on the input's step from its centre, None where the input is not read.
    `slack` (K) is how far each function may be from what the network computes: its own rounding in
    float64, and the network's.
    """

    earlier: Tensor
    steps: Tensor | None
    slack: Tensor

    def __len__(self) -> int:
        return len(self.earlier)

    def to(self, dtype: torch.dtype, device: torch.device | str) -> Block:
        steps = None if self.steps is None else self.steps.to(device, dtype)
        return Block(self.earlier.to(device, dtype), steps, self.slack.to(device, dtype))


@dataclass(frozen=True, slots=True, eq=False)
class DenseLayers(Layers):
    """Layers as matrices over the kept units and the input; `specs` has all specifications."""

    blocks: tuple[Block, ...]
    specs: Block
    parts: int
    support: Support

    @property
    def sizes(self) -> list[int]:
        return [len(block) for block in self.blocks]

    @property
    def spec_rows(self) -> int:
        return len(self.specs)

    @property
    def entries(self) -> int:
        parts = [part for b in self.blocks for part in (b.earlier, b.steps) if part is not None]
        return sum(part.numel() for part in parts)

    def to(self, dtype: torch.dtype, device: torch.device | str) -> DenseLayers:
        return DenseLayers(
            tuple(block.to(dtype, device) for block in self.blocks),
            self.specs.to(dtype, device),
            self.parts,
            self.support.to(dtype, device),
        )

    def rows_backward(self, relaxed: RelaxedRows, weights: Tensor, *, proven: bool) -> DualBackward:
        return _DenseBackward(self, relaxed, weights, proven=proven)

    def points(self, steps: Tensor) -> PointsForward:
        return _DensePoints(self, steps)

    def functions_of_steps(self, is_active: Tensor) -> tuple[Tensor, Tensor]:
        one = torch.zeros(1, self.inputs + 1, dtype=torch.float64)
        one[0, self.inputs] = 1.0
        columns, arguments = one, one[:0]
        for block in self.blocks:
            found = _composed(block, columns)
            units = is_active[len(arguments) : len(arguments) + len(block), None]
            columns = torch.cat([columns, torch.where(units, found, 0.0)])
            arguments = torch.cat([arguments, found])
        return arguments, _composed(self.specs, columns)


def _composed(block: Block, columns: Tensor) -> Tensor:
    found = block.earlier @ columns
    if block.steps is not None:
        found[:, :-1] += block.steps
    return found


class _DenseBackward(DualBackward):
    """`objective` is on the constant 1 and the units before the next layer, `on_steps` on steps."""

    def __init__(
        self, layers: DenseLayers, relaxed: RelaxedRows, weights: Tensor, *, proven: bool
    ) -> None:
        specs = layers.specs
        self.layers = layers
        self.objective = weights @ specs.earlier
        self.on_steps = None if specs.steps is None else weights @ specs.steps
        lost = weights @ specs.slack if proven else None
        super().__init__(layers.slices, relaxed, torch.zeros_like(self.objective[:, 0]), lost)

    def on_values(self, number: int) -> Tensor:
        units = self.slices[number]
        return self.objective[:, 1 + units.start : 1 + units.stop]

    def pull(self, number: int, rows: Tensor) -> None:
        block, first = self.layers.blocks[number], 1 + self.slices[number].start
        if self.lost is not None:
            self.lost = self.lost + rows.abs() @ block.slack
        self.objective = torch.addmm(self.objective[:, :first], rows, block.earlier)
        if block.steps is not None:
            known = self.on_steps
            self.on_steps = (
                rows @ block.steps if known is None else torch.addmm(known, rows, block.steps)
            )

    def least(self) -> tuple[Tensor, Tensor, Tensor | None]:
        if self.on_steps is None:
            self.on_steps = self.objective.new_zeros(len(self.objective), self.layers.inputs)
        least, steps = self.layers.support.least(self.on_steps)
        return self.constants + self.objective[:, 0] + least, steps, self.lost


class _DensePoints(PointsForward):
    """`columns` are the constant 1 and the values of all units so far."""

    def __init__(self, layers: DenseLayers, steps: Tensor) -> None:
        self.layers, self.steps, self.slices = layers, steps, layers.slices
        self.columns = steps.new_empty(len(steps), 1 + layers.units)
        self.columns[:, 0] = 1

    def arguments(self, number: int) -> Tensor:
        return self._read(self.layers.blocks[number], 1 + self.slices[number].start)

    def put(self, number: int, values: Tensor) -> None:
        units = self.slices[number]
        self.columns[:, 1 + units.start : 1 + units.stop] = values

    def specifications(self) -> Tensor:
        return self._read(self.layers.specs, self.columns.shape[1])

    def _read(self, block: Block, columns: int) -> Tensor:
        found = self.columns[:, :columns] @ block.earlier.T
        return found if block.steps is None else found.addmm_(self.steps, block.steps.T)
