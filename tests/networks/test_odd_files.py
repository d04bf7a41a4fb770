"""Files that runtimes read in different ways are refused; the others are read as ONNX Runtime does.

A network that is read in another way than it is run would be proven about another function.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from radii.errors import NetworkError, UnsupportedOperator
from radii.networks import Network, load_network
from radii.testing import Sketch

IMAGE, VECTOR = [1, 1, 3, 3], [1, 3]
LARGEST = float(np.finfo(np.float32).max)


def added(sketch: Sketch, operator: str, *inputs: Any, **attributes: Any) -> str:
    """The input plus a small multiple of a constant that a node computes."""
    held = sketch.apply(operator, *(sketch.constant(x) for x in inputs), **attributes)
    small = sketch.apply("Mul", sketch.apply("Cast", held, to=1), sketch.constant(1e-6))
    return sketch.apply("Add", "x", small)


REFUSED: dict[str, tuple[list[int], int, Callable[[Sketch], str], str]] = {
    "Clip from infinity on": (
        *(VECTOR, 17, lambda s: s.apply("Clip", "x", s.constant(np.inf))),
        "Clip that gives nothing finite",
    ),
    "Clip up to minus infinity": (
        *(VECTOR, 17, lambda s: s.apply("Clip", "x", "", s.constant(-np.inf))),
        "Clip that gives nothing finite",
    ),
    "Clip from infinity on, as an attribute": (
        *(VECTOR, 10, lambda s: s.apply("Clip", "x", min=np.inf)),
        "Clip that gives nothing finite",
    ),
    "Cast of constants to float16": (
        *(VECTOR, 17, lambda s: added(s, "Cast", np.array([1 + 2**-11 + 2**-40]), to=10)),
        "Cast of constants to floats of few bits",
    ),
    "Constant of two values": (
        *(VECTOR, 17, lambda s: added(s, "Constant", value_float=1.0, value_int=2)),
        "Constant of several values",
    ),
    "Slice backwards without an end": (
        VECTOR,
        17,
        lambda s: s.apply(
            "Slice", "x", *(s.constant(np.array([v])) for v in (2, 2**31 - 1, 1, -1))
        ),
        "Slice with a negative step",
    ),
    "ConvTranspose, stride above its kernel": (
        IMAGE,
        17,
        lambda s: s.apply(
            *("ConvTranspose", "x", s.constant(np.ones((1, 1, 2, 2)))),
            strides=[3, 3],
            auto_pad="SAME_UPPER",
        ),
        "ConvTranspose with auto_pad SAME and a stride above its kernel",
    ),
    "a quantised constant": (
        VECTOR,
        17,
        lambda s: added(s, "QuantizeLinear", -3e9, 0.1, np.int8(-2)),
        "QuantizeLinear of constants, on which runtimes do not agree",
    ),
    "unique entries": (
        VECTOR,
        17,
        lambda s: added(s, "Unique", np.array([-1.0, 4.0, 2.0]), sorted=0),
        "Unique of constants, on which runtimes do not agree",
    ),
    "a constant that is cut backwards": (
        VECTOR,
        17,
        lambda s: added(
            s, "Slice", np.ones((2, 3)), *(np.array([v]) for v in (0, 2**63 - 1, 0, -1))
        ),
        "Slice of constants, on which runtimes do not agree",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_files_that_runtimes_read_in_different_ways(what: str) -> None:
    shape, opset, build, said = REFUSED[what]
    sketch = Sketch(shape, opset=opset)
    content = sketch.model(build(sketch)).SerializeToString()
    with pytest.raises(UnsupportedOperator, match=said):
        Network.from_bytes(content, domain=(0, 1), name="odd")


@pytest.mark.parametrize(("dtype", "factor"), [(np.float64, 1e39), (np.float32, 1e37)])
def test_a_clip_is_open_only_at_the_largest_number_of_its_type(dtype: Any, factor: float) -> None:
    """In float64 there are numbers beyond the largest float32, which such a Clip does not keep."""
    sketch = Sketch(VECTOR, dtype=dtype)
    bounds = [sketch.constant(side * LARGEST) for side in (-1, 1)]
    clipped = sketch.apply("Clip", sketch.apply("Mul", "x", sketch.constant(factor)), *bounds)
    network = sketch.network(sketch.apply("Div", clipped, sketch.constant(factor)), domain=(-2, 2))
    x = np.array([[-1.5, 0.1, 1.5]], dtype)
    np.testing.assert_allclose(network(torch.from_numpy(x)).numpy(), network.replay(x), rtol=1e-6)


def test_a_network_without_outputs(tmp_path: Path) -> None:
    sketch = Sketch(VECTOR)
    ends = [sketch.constant(np.array([v])) for v in (2, 2, 1)]
    path = tmp_path / "net.onnx"
    path.write_bytes(sketch.model(sketch.apply("Slice", "x", *ends)).SerializeToString())
    with pytest.raises(NetworkError, match="gives no outputs"):
        load_network(path, domain=(0, 1))
