"""Norms of a value: its deviations from means, divided by their root mean square.

They are made of what they compute: means, differences, squares, an inverse root and a product. So
each of these has bounds of its own, and so have networks whose exporter wrote a norm in pieces.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from radii.networks.operators._arithmetic import AddConstant, Scale, Subtract
from radii.networks.operators._arrangement import Reshape
from radii.networks.operators._base import OnnxNode, OperatorKind, translates
from radii.networks.operators._bilinear import multiplied
from radii.networks.operators._pooling import ReduceMean
from radii.networks.operators._powers import InverseRoot, squared

CHANNELS_GROUPED_OPSET = 21
"""From this opset on, GroupNormalization scales channels; before, groups."""


def _normalised(call: OnnxNode, node: int, axes: Sequence[int], *, centred: bool = True) -> int:
    """A value over its root mean square along some axes, after its mean was taken off."""
    if centred:
        mean = call.emit(ReduceMean(axes, keep=True), node)
        node = call.emit(Subtract(), node, mean)
    square = call.emit(ReduceMean(axes, keep=True), squared(call, node))
    epsilon = torch.tensor(call.float_attribute("epsilon", 1e-5), dtype=torch.float64)
    root = call.emit(InverseRoot(), call.emit(AddConstant(epsilon), square))
    return multiplied(call, node, root)


def _affine(call: OnnxNode, node: int, scale: Tensor, shift: Tensor | None) -> int:
    scaled = call.emit(Scale(scale), node)
    return scaled if shift is None else call.emit(AddConstant(shift), scaled)


@translates("LayerNormalization", "RMSNormalization", kind=OperatorKind.SMOOTH)
def _layer_norm(call: OnnxNode) -> int:
    axis = call.axis(call.int_attribute("axis", -1), call.rank(0))
    axes = range(axis, call.rank(0))
    centred = call.proto.op_type == "LayerNormalization"
    norm = _normalised(call, call.node(0), axes, centred=centred)
    return _affine(call, norm, call.weight(1), call.optional_weight(2) if centred else None)


@translates("InstanceNormalization", kind=OperatorKind.SMOOTH)
def _instance_norm(call: OnnxNode) -> int:
    rank = call.rank(0)
    norm = _normalised(call, call.node(0), range(2, rank))
    along = (-1, *(1,) * (rank - 2))
    return _affine(call, norm, call.weight(1).reshape(along), call.weight(2).reshape(along))


@translates("GroupNormalization", kind=OperatorKind.SMOOTH)
def _group_norm(call: OnnxNode) -> int:
    shape = call.shape(0)
    groups = call.int_attribute("num_groups", 1)
    if groups < 1 or shape[1] % groups:
        raise call.unsupported(f"of {shape[1]} channels in {groups} groups")
    grouped = Reshape((shape[0], groups, math.prod(shape[1:]) // groups))
    norm = _normalised(call, call.emit(grouped, call.node(0)), (2,))
    scale, shift = call.weight(1), call.weight(2)
    if call.opset < CHANNELS_GROUPED_OPSET:
        each = shape[1] // groups
        scale, shift = scale.repeat_interleave(each), shift.repeat_interleave(each)
    along = (-1, *(1,) * (len(shape) - 2))
    whole = call.emit(Reshape(shape), norm)
    return _affine(call, whole, scale.reshape(along), shift.reshape(along))
