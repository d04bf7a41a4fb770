"""A whole model as one operator: it runs, and nothing is known of it.

What ONNX Runtime runs and radii has no rules for is attacked like any other network. Every rule of
a proof is missing, so that a verifier that asks for one raises.
"""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from radii.networks.operators._base import Operator, OperatorKind, Shape

BATCH_TOLERANCE = 1e-5
"""Relative to the largest output: up to here a batch gives what its rows give alone."""


class Opaque(Operator):
    """`session` is one of ONNX Runtime; `reason` says what of the model is not known.

    Where the torch module is at hand that the model was exported from, it gives the gradients.
    """

    kind: ClassVar[OperatorKind] = OperatorKind.OPAQUE

    def __init__(
        self,
        session: Any,
        dtype: np.dtype[np.floating],
        shape: Shape,
        reason: str,
        module: nn.Module | None = None,
    ) -> None:
        """`shape` is that of an input, with the batch axis of the model if it has one."""
        super().__init__()
        self.reason = reason
        self._session, self._dtype, self._shape = session, dtype, shape
        self._name = session.get_inputs()[0].name
        self._module = [] if module is None else [module]  # in a list: it is no part of this one
        self.takes_batches = False
        middle = np.full(shape, 0.5, dtype)
        first = self._run(middle)
        self._result = first.shape
        self.takes_batches = self._agrees_in_batches(middle)

    @property
    def module(self) -> nn.Module | None:
        return next(iter(self._module), None)

    @property
    def has_gradient(self) -> bool:
        return bool(self._module)

    def result_shape(self, *shapes: Shape) -> Shape:
        return tuple(self._result)

    def forward(self, x: Tensor) -> Tensor:
        if self._module:
            rows = x.reshape(len(x), *self._shape[1:])
            outputs: Tensor = self._module[0](rows)
            return outputs.reshape(len(x), *self._result)
        points = x.detach().cpu().numpy().astype(self._dtype).reshape(len(x), *self._shape)
        if self.takes_batches:
            found = self._run(points.reshape(len(x), *self._shape[1:]))
        else:
            found = np.stack([self._run(point) for point in points])
        return torch.from_numpy(found.reshape(len(x), *self._result)).to(x)

    def __deepcopy__(self, _: dict[int, Any]) -> Opaque:
        """A session is not copied, and computes in its own type whatever is asked."""
        return copy.copy(self)

    def _run(self, points: np.ndarray) -> np.ndarray:
        (outputs,) = self._session.run(None, {self._name: points})
        return np.asarray(outputs)

    def _agrees_in_batches(self, middle: np.ndarray) -> bool:
        """Whether several inputs at once are allowed, and give what each gives alone."""
        if len(self._shape) < 2 or self._shape[0] != 1:
            return False
        noise = np.random.default_rng(0).uniform(size=(3, *self._shape[1:])).astype(self._dtype)
        try:
            together = self._run(noise)
            alone = np.concatenate([self._run(row[None]) for row in noise])
        except Exception:
            return False
        if together.shape != alone.shape:
            return False
        size = 1.0 + float(np.abs(alone).max(initial=0.0))
        return bool(np.abs(together - alone).max(initial=0.0) <= BATCH_TOLERANCE * size)
