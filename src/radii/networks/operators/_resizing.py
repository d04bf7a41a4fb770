"""Resize and Upsample: for fixed shapes, entries at other places or weighted sums of neighbours.

Nearest entries are moves. Linear and cubic interpolation is one matrix for each axis, as ONNX's
reference implementation computes it for the unit vectors. Runtimes compute the weights in floats:
these are the same for all of them only where they are multiples of a power of two, as for factors
of 2 and their like. Others are refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from radii.networks.operators._arrangement import picked
from radii.networks.operators._base import OnnxNode, Shape, WeightedSum, translates
from radii.networks.operators._maps import LinearMap, MatrixMap

WEIGHT_BITS = 16
"""Weights with more bits behind the point are rounded by runtimes."""

RESIZE_OPSET = 13
"""Of the nodes that stand for Upsample."""


class AlongAxis(WeightedSum):
    """Along one axis the product with a matrix (results, entries)."""

    def __init__(self, weight: Tensor, axis: int) -> None:
        super().__init__()
        self._constant("weight", weight)
        self.axis = axis

    def result_shape(self, *shapes: Shape) -> Shape:
        shape, (results, entries) = shapes[0], self.weight.shape
        if shape[self.axis] != entries:
            raise ValueError(f"axis {self.axis} of {shape} has not {entries} entries")
        return (*shape[: self.axis], results, *shape[self.axis + 1 :])

    def forward(self, x: Tensor) -> Tensor:
        return (x.movedim(self.axis + 1, -1) @ self.weight.T).movedim(-1, self.axis + 1)

    def linear_maps(self, *shapes: Shape) -> tuple[LinearMap, ...]:
        before, behind = shapes[0][: self.axis], shapes[0][self.axis + 1 :]
        return (MatrixMap(self.weight, outer=math.prod(before), inner=math.prod(behind)),)

    def _counts(self) -> Tensor:
        return self.weight.ne(0).sum(1)


@translates("Resize")
def _resize(call: OnnxNode) -> int:
    """Scales are the second input before opset 11, the third since; sizes the fourth."""
    shape = call.shape(0)
    if call.text_attribute("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise call.unsupported("that keeps an aspect ratio")
    axes = call.ints_attribute("axes")
    axes = list(range(len(shape))) if axes is None else [call.axis(a, len(shape)) for a in axes]
    place = 1 if call.opset < 11 else 2
    if call.has(3) and call.constant(3).size:
        given: dict[str, Any] = {"sizes": dict(zip(axes, call.integers(3), strict=True))}
    else:
        scales = [float(s) for s in np.ravel(call.constant(place))]
        given = {"scales": dict(zip(axes, scales, strict=True))}
    names = ("coordinate_transformation_mode", "nearest_mode")
    texts = {name: call.text_attribute(name, "") for name in names}
    attributes: dict[str, Any] = {name: text for name, text in texts.items() if text}
    mode = call.text_attribute("mode", "nearest")
    if mode == "cubic":
        attributes["cubic_coeff_a"] = call.float_attribute("cubic_coeff_a", -0.75)
        attributes["exclude_outside"] = call.int_attribute("exclude_outside", 0)
    if call.opset < 11:
        attributes |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    if texts["coordinate_transformation_mode"] == "tf_crop_and_resize":
        raise call.unsupported("with a region of interest")
    if call.int_attribute("antialias", 0):
        raise call.unsupported("with antialias")
    return _resized(call, mode, attributes, **given)


@translates("Upsample")
def _upsample(call: OnnxNode) -> int:
    """As Resize of opset 10; the scales are an attribute before opset 9."""
    scales = call.weight(1).tolist() if call.has(1) else call.floats_attribute("scales")
    attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    mode = call.text_attribute("mode", "nearest")
    return _resized(call, mode, attributes, scales=dict(enumerate(scales)))


def _resized(
    call: OnnxNode,
    mode: str,
    attributes: dict[str, Any],
    *,
    scales: dict[int, float] | None = None,
    sizes: dict[int, int] | None = None,
) -> int:
    result = call.node(0)
    for axis in sorted(scales or sizes or {}):
        length = call.shape_of(result)[axis]
        scale = None if scales is None else scales[axis]
        size = math.floor(length * scale) if scale is not None else (sizes or {})[axis]
        if scale != 1.0 and not (scale is None and size == length):
            matrix = _matrix(call, mode, attributes, length, scale, size)
            result = _along(call, result, axis, matrix, is_move=mode == "nearest")
    return result


def _along(
    call: OnnxNode, node: int, axis: int, matrix: npt.NDArray[np.float64], *, is_move: bool
) -> int:
    if not is_move:
        scaled = matrix * 2.0**WEIGHT_BITS
        if not np.array_equal(scaled, np.round(scaled)):
            raise call.unsupported(
                "by a factor whose weights are rounded (2, 4 or 1/2 would do; or nearest entries)"
            )
        return call.emit(AlongAxis(torch.from_numpy(matrix), axis), node)
    shape = call.shape_of(node)
    numbers = np.arange(math.prod(shape)).reshape(shape)
    return picked(call, node, np.take(numbers, matrix.argmax(1), axis))


def _matrix(
    call: OnnxNode,
    mode: str,
    attributes: dict[str, Any],
    length: int,
    scale: float | None,
    size: int,
) -> npt.NDArray[np.float64]:
    """What becomes of the unit vectors of an axis, (results, entries)."""
    from onnx import helper

    from radii.networks._building import constant_outputs

    known: dict[str, npt.NDArray[Any]] = {"x": np.eye(length, dtype=np.float32)}
    if scale is not None:
        known["scales"] = np.array([1.0, scale], np.float32)
        inputs: Sequence[str] = ["x", "", "scales"]
    else:
        known["sizes"] = np.array([length, size], np.int64)
        inputs = ["x", "", "", "sizes"]
    node = helper.make_node("Resize", list(inputs), ["y"], name=call.name, mode=mode, **attributes)
    opset = max(call.opset, RESIZE_OPSET)
    (found,) = constant_outputs(node, known, opset, call.translation.network)
    if found.shape != (length, size):
        raise call.unsupported(f"that gives {found.shape[1]} of {size} entries")
    return np.asarray(found.T, np.float64)
