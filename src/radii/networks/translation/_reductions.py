"""Sums and means over axes."""

from __future__ import annotations

from radii.networks.operators._reductions import ReduceMean, ReduceSum
from radii.networks.translation._base import OnnxNode


def reduce_axes(call: OnnxNode) -> int:
    """No axes at all mean every axis, or none with `noop_with_empty_axes`."""
    axes = call.axes(1, rank=call.rank(0))
    if not axes:
        if call.int_attribute("noop_with_empty_axes", 0):
            return call.node(0)
        axes = list(range(call.rank(0)))
    make = ReduceMean if call.proto.op_type == "ReduceMean" else ReduceSum
    return call.emit(make(axes, keep=bool(call.int_attribute("keepdims", 1))), call.node(0))
