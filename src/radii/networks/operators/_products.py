"""Matrix products."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from radii.networks.operators._base import Operator, OperatorKind, Shape, broadcast, with_rank


class Dense(Operator):
    """x @ weight + bias along the last axis: weight is (n, m), bias (m,) or None."""

    weight: Tensor
    bias: Tensor | None

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        # Kept with its columns contiguous: the layout in which torch multiplies fastest.
        self._constant("weight", weight.T.contiguous().T)
        self._constant("bias", bias)

    def result_shape(self, *shapes: Shape) -> Shape:
        return _product_shape(shapes[0], tuple(self.weight.shape))

    def forward(self, x: Tensor) -> Tensor:
        # One matrix product however many axes lead: (B, 1, n) costs as little as (B, n).
        return F.linear(x, self.weight.T, self.bias)


class ProductFromRight(Operator):
    """x @ weight for a weight that is a vector or a stack of matrices."""

    weight: Tensor

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self._constant("weight", weight)

    def result_shape(self, *shapes: Shape) -> Shape:
        return _product_shape(shapes[0], tuple(self.weight.shape))

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() > 2 or self.weight.dim() == 1:
            return with_rank(x, self.weight.dim()) @ self.weight
        row = with_rank(x.unsqueeze(1), self.weight.dim())  # values are vectors, not a matrix
        return (row @ self.weight).squeeze(-2)


class ProductFromLeft(Operator):
    """weight @ x for a weight of any rank."""

    weight: Tensor

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self._constant("weight", weight)

    def result_shape(self, *shapes: Shape) -> Shape:
        return _product_shape(tuple(self.weight.shape), shapes[0])

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() == 2:
            column = with_rank(x.unsqueeze(-1), self.weight.dim())
            return (self.weight @ column).squeeze(-1)
        return self.weight @ with_rank(x, self.weight.dim())


class MatMul(Operator):
    """x @ y of two values that both depend on the input, each of at least two axes."""

    kind = OperatorKind.SMOOTH

    def result_shape(self, *shapes: Shape) -> Shape:
        return _product_shape(*shapes)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return with_rank(x, y.dim() - 1) @ with_rank(y, x.dim() - 1)


def _product_shape(left: Shape, right: Shape) -> Shape:
    """The shape of left @ right; a vector counts as a row on the left, as a column on the right."""
    rows = left if len(left) > 1 else (1, *left)
    columns = right if len(right) > 1 else (*right, 1)
    if not left or not right or rows[-1] != columns[-2]:
        raise ValueError(f"shapes {left} and {right} cannot be multiplied")
    stack = broadcast(rows[:-2], columns[:-2])
    return stack + (rows[-2],) * (len(left) > 1) + (columns[-1],) * (len(right) > 1)
