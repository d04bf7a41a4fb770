"""Linear classifiers of two classes in a small space, whose games are known in closed form."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from radii.ensembles import Point
from radii.networks import Network
from radii.testing import Sketch


def half_plane(
    normal: Sequence[float],
    offset: float,
    *,
    domain: tuple[float, float] = (-4.0, 4.0),
    head: str | None = None,
) -> Network:
    """Class 0 where `normal @ x < offset`, else class 1 (on the line: a tie)."""
    weight = np.array([np.zeros(len(normal)), normal]).T
    sketch = Sketch([1, len(normal)])
    bias = sketch.constant(np.array([float(offset), 0.0]))
    value = sketch.apply("Gemm", "x", sketch.constant(weight), bias)
    if head is not None:
        value = sketch.apply(head, value)
    return sketch.network(value, domain=domain)


def point(values: npt.ArrayLike, label: int = 0, index: int = 0) -> Point:
    return Point(index, label, np.asarray(values, np.float32))
