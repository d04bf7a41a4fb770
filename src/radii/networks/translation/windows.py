"""The sliding window of convolutions and poolings: kernel, strides, dilations and padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from radii.errors import NetworkError
from radii.networks.translation._base import Call

__all__ = ["MAX_SPATIAL_AXES", "Window"]

MAX_SPATIAL_AXES = 3


@dataclass(frozen=True, slots=True)
class Window:
    """One entry for each spatial axis; `pads` holds (before, after)."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, call: Call, kernel: tuple[int, ...]) -> Window:
        """The window that the node's attributes describe, with `auto_pad` resolved."""
        spatial = call.shape(0)[2:]
        axes = len(kernel)
        if not 1 <= axes == len(spatial) <= MAX_SPATIAL_AXES:
            raise call.unsupported(f"of a value of shape {call.shape(0)}")
        strides = tuple(call.ints("strides") or (1,) * axes)
        dilations = tuple(call.ints("dilations") or (1,) * axes)
        flat = call.ints("pads") or [0] * (2 * axes)
        if not (len(strides) == len(dilations) == axes and len(flat) == 2 * axes):
            raise _malformed(call)
        if min((*kernel, *strides, *dilations)) < 1:
            raise _malformed(call)
        pads = tuple(zip(flat[:axes], flat[axes:], strict=True))
        reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
        match call.text("auto_pad", "NOTSET"):
            case "NOTSET":
                pass
            case "VALID":
                pads = ((0, 0),) * axes
            case "SAME_UPPER":
                pads = _same(spatial, reach, strides, upper=True)
            case "SAME_LOWER":
                pads = _same(spatial, reach, strides, upper=False)
            case other:
                raise call.unsupported(f"with auto_pad {other}")
        return cls(kernel, strides, dilations, pads)


def _same(
    spatial: Sequence[int], reach: Sequence[int], strides: Sequence[int], *, upper: bool
) -> tuple[tuple[int, int], ...]:
    """Padding with which the output has ceil(size / stride) entries along each axis."""
    pads = []
    for size, width, stride in zip(spatial, reach, strides, strict=True):
        total = max(0, (-(-size // stride) - 1) * stride + width - size)
        small, large = total // 2, total - total // 2
        pads.append((small, large) if upper else (large, small))
    return tuple(pads)


def _malformed(call: Call) -> NetworkError:
    return NetworkError(
        f"{call.translation.network}: node '{call.name}' ({call.proto.op_type}) has strides, "
        "dilations or pads that do not fit its kernel"
    )
