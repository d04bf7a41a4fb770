"""Builders of random models: what they ask hypothesis for, and which operator they are for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st

from radii.testing._graphs import Sketch

NEWEST_OPSET = 26
"""The newest opset that ONNX Runtime 1.31 reads."""


class Draw:
    """What the builder of a model of one ONNX operator asks hypothesis for."""

    def __init__(self, draw: st.DrawFn, operator: str) -> None:
        self._draw = draw
        self.operator = operator
        self.rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def flag(self) -> bool:
        return self._draw(st.booleans())

    def choice(self, *choices: Any) -> Any:
        return self._draw(st.sampled_from(choices))

    def order(self, count: int) -> list[int]:
        return self._draw(st.permutations(range(count)))

    def axes(self, rank: int, *, least: int = 1) -> list[int]:
        """Different axes, some of them counted from the end."""
        chosen = self._draw(st.lists(st.integers(0, rank - 1), min_size=least, unique=True))
        return [axis - rank if self.flag() else axis for axis in chosen]

    def shape(self, low: int = 1, high: int = 4) -> list[int]:
        """The shape of a value, with a batch axis of 1 ahead."""
        return [1, *(self.integer(1, 4) for _ in range(self.integer(low - 1, high - 1)))]

    def normal(self, *shape: int) -> np.ndarray[Any, Any]:
        return self.rng.normal(0, 1, shape)

    def sketch(
        self,
        shape: list[int],
        *,
        oldest: int = 8,
        newest: int = NEWEST_OPSET,
        double: bool = True,
    ) -> Sketch:
        """A model whose batch may be symbolic, fixed or, by an earlier reshape, elsewhere."""
        opset = self.integer(oldest, newest)
        dtype = np.float64 if double and self.integer(0, 4) == 0 else np.float32
        batch: Any = "batch" if len(shape) > 1 and self.flag() else shape[0]
        return Sketch([batch, *shape[1:]], opset=opset, dtype=dtype, inline=self.flag())

    def rearranged(self, sketch: Sketch, shape: list[int]) -> str:
        """The input in the given shape, which may have another size than 1 in front."""
        return sketch.apply("Reshape", "x", sketch.constant(np.array(shape, dtype=np.int64)))


def values(draw: Draw, shape: list[int], **options: Any) -> tuple[Sketch, str]:
    """A value of any shape that depends on the input, whose batch axis need not come first."""
    sketch = draw.sketch([1, int(np.prod(shape))], **options)
    return sketch, draw.rearranged(sketch, shape)


def any_shape(draw: Draw, low: int = 1, high: int = 4) -> list[int]:
    return [draw.integer(1, 4) for _ in range(draw.integer(low, high))]


def broadcastable(draw: Draw, shape: list[int]) -> list[int]:
    """A shape that broadcasts with `shape`, shorter or longer than it."""
    kept = shape[draw.integer(0, len(shape)) :]
    sizes = [size if draw.flag() else 1 for size in kept]
    longer = len(kept) == len(shape) and draw.flag()
    return [draw.integer(1, 3), *sizes] if longer else sizes


def with_axes(
    sketch: Sketch, operator: str, value: str, axes: list[int] | None, since: int, **attributes: Any
) -> onnx.ModelProto:
    """Apply an operator whose axes are an attribute before the opset `since`, then an input."""
    if axes is None:
        return sketch.model(sketch.apply(operator, value, **attributes))
    if sketch.opset < since:
        return sketch.model(sketch.apply(operator, value, axes=axes, **attributes))
    given = sketch.constant(np.array(axes, dtype=np.int64))
    return sketch.model(sketch.apply(operator, value, given, **attributes))


Builder = Callable[[Draw], onnx.ModelProto]
"""Draws a model that applies the operator."""

OPERATOR_MODELS: dict[str, Builder] = {}
"""For every operator that networks may use, what draws models of it."""


def models_of(*operators: str) -> Callable[[Builder], Builder]:
    """Makes a function the builder of models of these ONNX operators."""

    def register(builder: Builder) -> Builder:
        OPERATOR_MODELS.update(dict.fromkeys(operators, builder))
        return builder

    return register


@st.composite
def operator_models(draw: st.DrawFn, operator: str) -> onnx.ModelProto:
    """Models that use the operator on a value which depends on the input."""
    return OPERATOR_MODELS[operator](Draw(draw, operator))
