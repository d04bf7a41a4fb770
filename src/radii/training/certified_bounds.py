"""Differentiable bounds of a torch module's margins over boxes around the inputs of a batch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from radii.training.certified_steps import Known, Shape
from radii.training.certified_tracing import traced

__all__ = ["Enclosure", "ModuleBounds"]


class ModuleBounds:
    """Bounds on what a module computes, by its parameters of the moment."""

    def __init__(self, module: nn.Module, input_shape: Shape) -> None:
        self.input_shape = input_shape
        self._steps = traced(module, input_shape)

    def enclosed(self, inputs: Tensor, low: Tensor, high: Tensor) -> Enclosure:
        """Intervals of every value over boxes (B, *input shape), and the values at `inputs`."""
        values = [Known(inputs, low, high)]
        for step in self._steps[1:]:
            values.append(step.known(*(values[source] for source in step.sources)))
        return Enclosure(self, values)

    def lower(self, values: list[Known], rows: Tensor, *, through_bends: bool) -> Tensor:
        """Lower bounds (B, rows) of rows (B, rows, outputs) of coefficients on the outputs.

        The rows are pulled back to the input with CROWN's lines or, unless `through_bends`, to
        the last values that are not affine functions of others; there the intervals bound them.
        """
        held = {len(self._steps) - 1: rows}
        total = rows.new_zeros(rows.shape[:2])
        for number in range(len(self._steps) - 1, -1, -1):
            coefficients, step = held.pop(number, None), self._steps[number]
            if coefficients is None:
                continue
            if number == 0 or not (through_bends or step.is_affine):
                total = total + _least(coefficients, values[number])
                continue
            pulled, constants = step.pulled(coefficients, *(values[s] for s in step.sources))
            total = total + constants
            for source, added in zip(step.sources, pulled, strict=True):
                held[source] = held[source] + added if source in held else added
        return total


class Enclosure:
    """What is known of a module over the boxes of one batch."""

    def __init__(self, bounds: ModuleBounds, values: list[Known]) -> None:
        self._bounds, self._values = bounds, values

    @property
    def outputs(self) -> Known:
        return self._values[-1]

    def interval_margins(self, labels: Tensor) -> Tensor:
        """Lower bounds (B, outputs) of the label's output minus each output, by intervals."""
        return self._margins(labels, through_bends=False)

    def crown_margins(self, labels: Tensor) -> Tensor:
        """The same by one backward pass of linear bounds: CROWN on intervals, or CROWN-IBP."""
        return self._margins(labels, through_bends=True)

    def _margins(self, labels: Tensor, *, through_bends: bool) -> Tensor:
        outputs = self.outputs.value
        eye = torch.eye(outputs.shape[1], dtype=outputs.dtype, device=outputs.device)
        rows = eye[labels][:, None] - eye[None]
        return self._bounds.lower(self._values, rows, through_bends=through_bends)


def _least(rows: Tensor, known: Known) -> Tensor:
    """The least value of rows (B, rows, *shape) over each interval."""
    flat = rows.flatten(2)
    centre, radius = (part.flatten(1)[..., None] for part in known.centred())
    return (flat @ centre - flat.abs() @ radius).squeeze(2)
