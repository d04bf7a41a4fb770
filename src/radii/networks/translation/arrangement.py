"""Operators that move, copy or drop entries. Shapes are static, so most are a Reshape."""

from __future__ import annotations

import math

from radii.errors import NetworkError
from radii.networks.operators import Reshape, Transpose
from radii.networks.translation._base import Call

__all__ = ["flatten", "reshape", "transpose"]


def flatten(call: Call) -> int:
    shape = call.shape(0)
    axis = call.int("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    return call.emit(Reshape((math.prod(shape[:axis]), math.prod(shape[axis:]))), call.node(0))


def reshape(call: Call) -> int:
    """Zeros copy the input's axis unless `allowzero`; one -1 takes what is left."""
    shape = call.shape(0)
    wanted = call.integers(1)
    if not call.int("allowzero", 0):
        wanted = [
            shape[i] if size == 0 and i < len(shape) else size for i, size in enumerate(wanted)
        ]
    known = math.prod(size for size in wanted if size != -1)
    if wanted.count(-1) == 1 and known > 0:
        wanted[wanted.index(-1)] = math.prod(shape) // known
    if math.prod(wanted) != math.prod(shape) or min(wanted, default=0) < 0:
        raise NetworkError(
            f"{call.translation.network}: node '{call.name}' reshapes {shape} "
            f"to {tuple(call.integers(1))}, which holds another number of entries"
        )
    return call.emit(Reshape(tuple(wanted)), call.node(0))


def transpose(call: Call) -> int:
    order = call.ints("perm") or list(reversed(range(call.rank(0))))
    return call.emit(Transpose(order), call.node(0))
