"""Products with constant matrices: MatMul and Gemm."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from radii_check._builder import (
    Builder,
    Call,
    Reader,
    Value,
    is_node,
    rounding_of_products,
    weight_of,
)
from radii_check._errors import require_known
from radii_check._linear_maps import Scale, Window, gather
from radii_check._network import Affine
from radii_check.operators._arithmetic import add, multiply


def product(
    builder: Builder, x: Value, weight: Value, gain: float = 1.0, scale: float = 1.0
) -> int:
    """x @ weight times a number, where one of the two is a constant matrix."""
    if not is_node(x) and np.ndim(x) == 2:  # W @ x is the transpose of x^T @ W^T
        is_matrix = is_node(weight) and len(builder.shape(weight)) == 2
        require_known(is_matrix, "MatMul of such values")
        result = product(builder, transpose(builder, weight), np.transpose(x), gain, scale)
        return int(transpose(builder, result))
    is_known = is_node(x) and np.ndim(weight) == 2
    require_known(is_known, "MatMul or Gemm but of a value and a constant matrix")
    matrix = weight_of(weight)
    *rows, _ = builder.shape(x)
    one_place = np.zeros((1, 1), int)
    window = Window(matrix.T[:, :, None], one_place, 1, math.prod(rows))
    shape = (*rows, matrix.shape[1])
    scales = (Scale(np.full(math.prod(shape), scale)),) if scale != 1 else ()
    rounding = rounding_of_products(matrix * scale, 0) | {"gain": gain, "joins": "product"}
    return builder.affine([x], [(window, *scales)], shape, **rounding)


def transpose(builder: Builder, x: Value) -> Value:
    """The transposed matrix, of a constant or of a node."""
    if not is_node(x):
        return np.transpose(x)
    (rows, columns), size = builder.shape(x), builder.size(x)
    entries = np.arange(size).reshape(rows, columns).T
    return builder.affine([x], [gather(entries, size)], (columns, rows))


def gemm(builder: Builder, call: Call) -> int:
    """alpha A B + beta C, where A and B may be transposed."""
    attributes = call.attributes
    alpha, beta = (float(np.float32(attributes.get(name, 1.0))) for name in ("alpha", "beta"))
    gain = max(max(abs(f), 1 / abs(f) if f else math.inf) for f in (alpha, beta))
    a, b = (
        transpose(builder, call.inputs[place]) if attributes.get(name) else call.inputs[place]
        for place, name in enumerate(("transA", "transB"))
    )
    result = product(builder, a, b, gain, alpha)
    bias = call.optional(2)
    if bias is None:
        return result
    if is_node(bias):
        return add(builder, result, multiply(builder, bias, beta) if beta != 1 else bias)
    node, row = builder.nodes[result], builder.num.array(weight_of(bias)) * beta
    assert isinstance(node, Affine)
    is_row = row.shape[:-1] in ((), (1,)) and is_node(call.inputs[0])
    if not is_row:
        shape = np.broadcast_shapes(node.shape, row.shape)
        return builder.affine([result], [()], shape, row, terms=2)
    # The bias of a dense layer, which is part of the same sum.
    offset = np.broadcast_to(row, node.shape).ravel()
    builder.nodes[result] = replace(node, offset=offset, joins="")
    return result


READERS: dict[str, Reader] = {
    "Gemm": gemm,
    "MatMul": lambda builder, call: product(builder, call.inputs[0], call.inputs[1]),
}
