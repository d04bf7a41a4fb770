"""Reading the sliding window that a node's attributes describe."""

from __future__ import annotations

from collections.abc import Sequence

from radii.errors import NetworkError
from radii.networks.operators._windows import Window
from radii.networks.translation._base import OnnxNode

MAX_SPATIAL_AXES = 3
"""What torch convolves and pools."""

MAX_EXTENT = 2**20
"""No kernel, dilation or padding is larger than this along one axis, unless a file is damaged."""


def spatial_window(call: OnnxNode, kernel: Sequence[int] | None) -> Window:
    """The window over the node's first input, with `auto_pad` resolved as for a convolution."""
    sizes = call.shape(0)[2:]
    if not 1 <= len(sizes) <= MAX_SPATIAL_AXES:
        raise call.unsupported(f"of a value of shape {call.shape(0)}")
    axes = len(sizes)
    sides = tuple(kernel or ())
    strides = tuple(call.ints_attribute("strides") or (1,) * axes)
    dilations = tuple(call.ints_attribute("dilations") or (1,) * axes)
    pads = call.ints_attribute("pads") or [0] * (2 * axes)
    lengths = {len(sides), len(strides), len(dilations), len(pads) // 2}
    smallest, largest = min((*sides, *strides, *dilations)), max((*sides, *dilations, *pads))
    if lengths != {axes} or smallest < 1 or largest > MAX_EXTENT:
        raise NetworkError(
            f"{call.translation.network}: node '{call.name}' ({call.proto.op_type}) has a kernel, "
            f"strides, dilations or pads that do not fit a value of shape {call.shape(0)}"
        )
    window = Window(sides, strides, dilations, tuple(zip(pads[:axes], pads[axes:], strict=True)))
    match call.text_attribute("auto_pad", "NOTSET"):
        case "NOTSET":
            return window
        case "VALID":
            totals = [0] * axes
        case "SAME_UPPER" | "SAME_LOWER":
            rows = zip(sizes, window.reach, strides, strict=True)
            totals = [(-(-n // s) - 1) * s + reach - n for n, reach, s in rows]
            if min(totals) < -1:  # runtimes do not agree on what to crop
                raise call.unsupported("with auto_pad SAME and a stride far above its kernel")
            totals = [max(0, total) for total in totals]
        case other:
            raise call.unsupported(f"with auto_pad {other}")
    return Window(sides, strides, dilations, halved_padding(call, totals))


def halved_padding(call: OnnxNode, totals: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Each total padding in two halves; the odd one goes where `auto_pad` says."""
    halves = [(total // 2, total - total // 2) for total in totals]
    if call.text_attribute("auto_pad", "NOTSET") == "SAME_UPPER":
        return tuple(halves)
    return tuple((large, small) for small, large in halves)
