"""Operators that only move entries, and may insert constants.

They are not read by their definitions: onnx's reference implementation is run on the numbers of the
entries, and the result says where each entry went.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx

from radii_check._builder import Builder, Value, run_reference
from radii_check._errors import require_known
from radii_check._linear_maps import gather

MOVES = (
    *("Concat", "Expand", "Flatten", "Gather", "Pad", "Reshape", "Slice", "Split"),
    *("Squeeze", "Transpose", "Unsqueeze"),
)


def move(builder: Builder, node: onnx.NodeProto, inputs: Mapping[str, Value]) -> list[int]:
    """The nodes of all outputs; `inputs` are the operator's by name, constants and nodes.

    With all node inputs 0 the result shows the constants that are inserted. With 1, 2, 3, ... in
    one of them, an entry that differs from that result is the number of the entry that went there.
    """
    constants = {name: value for name, value in inputs.items() if not isinstance(value, int)}
    nodes = {name: value for name, value in inputs.items() if isinstance(value, int)}
    zeros = {name: np.zeros(builder.shape(value)) for name, value in nodes.items()}
    runs = []
    for name, zero in zeros.items():
        numbered = {name: 1.0 + np.arange(zero.size).reshape(zero.shape)}
        runs.append(run_reference(node, constants | zeros | numbered, builder.opset))
    results = []
    for place, inserted in enumerate(run_reference(node, constants | zeros, builder.opset)):
        is_finite = np.isfinite(inserted)
        require_known(is_finite, f"{node.op_type} of constants that are NaN or infinite")
        maps = []
        for run, zero in zip(runs, zeros.values(), strict=True):
            number = np.where(run[place] == inserted, 0, run[place])
            maps.append(gather(number.astype(int) - 1, zero.size))
        results.append(builder.affine(list(nodes.values()), maps, inserted.shape, inserted))
    return results
