"""Operators that only move entries, and may insert constants.

They are not read by their definitions: onnx's reference implementation is run on the numbers of the
entries, and the result says where each entry went.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx

from radii_check._builder import Builder, Value, is_node, run_reference
from radii_check._errors import require_known
from radii_check._linear_maps import gather

MOVES: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(("DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements"), (0,)),
    **dict.fromkeys(("GatherND", "Reshape", "Slice", "SpaceToDepth", "Split"), (0,)),
    **dict.fromkeys(("Squeeze", "Tile", "Transpose", "Trilu", "Unsqueeze"), (0,)),
    **dict.fromkeys(("Pad", "ScatterElements", "ScatterND"), (0, 2)),
    "Concat": None,
    "Where": (1, 2),
}
"""Which inputs may depend on the network's; None for all."""


def move(builder: Builder, node: onnx.NodeProto, inputs: Mapping[str, Value]) -> list[int]:
    """The nodes of all outputs; `inputs` are the operator's by name, constants and nodes.

    With all node inputs 0 the result shows the constants that are inserted. With 1, 2, 3, ... in
    one of them, an entry that differs from that result is the number of the entry that went there.
    """
    allowed = MOVES[node.op_type]
    places = [i for i, name in enumerate(node.input) if name and is_node(inputs[name])]
    require_known(allowed is None or set(places) <= set(allowed), f"{node.op_type} of such values")
    is_plain = all(a.name != "reduction" or a.s == b"none" for a in node.attribute)
    require_known(is_plain, f"{node.op_type} with a reduction")
    constants = {name: _wide(value) for name, value in inputs.items() if not is_node(value)}
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


def _wide(value: Value) -> Value:
    """Floats as float64, in which the numbers of entries are."""
    array = np.asarray(value)
    return array.astype(np.float64) if array.dtype.kind == "f" else array
