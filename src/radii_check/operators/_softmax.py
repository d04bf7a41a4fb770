"""Softmax and log-softmax at the end of a network: see `_violations` and `_log_softmax`."""

from __future__ import annotations

import math

from radii_check._builder import Builder, Call, Reader

FIRST_OPSET_OF_ONE_AXIS = 13
"""Before, a softmax normalises all axes from the stated one on."""
SOFTMAX_ERROR = 3.5
"""Relative, of ONNX Runtime's kernel over all numbers of float32, in units of 2^-24."""


def softmax(builder: Builder, call: Call, kind: str) -> int:
    shape, is_old = builder.shape(call.first), builder.opset < FIRST_OPSET_OF_ONE_AXIS
    axis = call.attributes.get("axis", 1 if is_old else -1) % len(shape)
    behind = 1 if is_old else math.prod(shape[axis + 1 :])
    is_whole = math.prod(shape[:axis]) * behind == 1
    return builder.unit(kind, call.first, is_whole=is_whole)


READERS: dict[str, Reader] = {
    "LogSoftmax": lambda builder, call: softmax(builder, call, "LogSoftmax"),
    "Softmax": lambda builder, call: softmax(builder, call, "Softmax"),
}
