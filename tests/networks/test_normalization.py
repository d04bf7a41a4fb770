"""Normalisation: part of the graph, so that inputs and eps are in the data's own units."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from radii.errors import NetworkError
from radii.networks import Network
from radii.testing import Sketch


def flattened(*shape: int, dtype: type = np.float32) -> bytes:
    sketch = Sketch(["b", *shape], dtype=dtype)
    content: bytes = sketch.model(sketch.apply("Flatten", "x")).SerializeToString()
    return content


@pytest.mark.parametrize(
    ("shape", "mean", "std"),
    [
        ((3, 2, 2), (0.1, 0.2, 0.3), (0.5, 0.25, 2.0)),
        ((3, 2, 2), 0.5, None),
        ((3, 2, 2), None, [0.5]),
        ((3, 2, 2), np.array([0.1, 0.2, 0.3]).reshape(3, 1, 1), 0.5),
        ((2, 2, 3), (0.1, 0.2, 0.3), (0.5, 0.25, 2.0)),
        ((4,), (0.1, 0.2, 0.3, 0.4), 1),
        ((4,), 0.1307, 0.3081),
    ],
)
def test_same_as_by_hand(
    shape: tuple[int, ...], mean: npt.ArrayLike | None, std: npt.ArrayLike | None
) -> None:
    network = Network.from_bytes(
        flattened(*shape),
        domain=(0, 1),
        name="n",
        mean=mean,
        std=std,
    )
    x = np.random.default_rng(0).random((3, *shape))
    last = shape == (2, 2, 3)
    along = (-1,) if last or len(shape) == 1 else (-1, 1, 1)
    shift = np.reshape(0.0 if mean is None else mean, along)
    scale = np.reshape(1.0 if std is None else std, along)
    expected = ((x - shift) / scale).reshape(3, -1)
    replayed = network.replay(x.astype(np.float32))
    np.testing.assert_allclose(replayed, expected, rtol=1e-5, atol=1e-6)
    outputs = network(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(outputs, expected, rtol=1e-6, atol=1e-7)
    again = Network.from_bytes(network.onnx_bytes, domain=(0, 1), name="n")
    assert again.fingerprint == network.fingerprint


def test_names_of_the_model_are_not_overwritten() -> None:
    sketch = Sketch(["b", 2])
    model = sketch.model(sketch.apply("Add", "x", sketch.constant(1.0)))
    model.graph.initializer[0].name = "mean"
    model.graph.node[0].input[1] = "mean"
    content = model.SerializeToString()
    network = Network.from_bytes(content, domain=(0, 1), name="n", mean=0.5, std=0.5)
    assert network(torch.tensor([[0.5, 1.0]])).tolist() == [[1.0, 2.0]]
    assert network.replay(np.array([[0.5, 1.0]], np.float32)).tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mean": (0.1, 0.2)}, "mean .* does not fit"),
        ({"std": (0.1, 0.0, 1.0)}, "must be positive"),
        ({"std": -1}, "must be positive"),
        ({"mean": float("nan")}, "mean .* does not fit"),
        ({"mean": np.zeros((5, 1, 1, 1))}, "mean .* does not fit"),
        ({"std": "one"}, "std one does not fit"),
    ],
)
def test_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(NetworkError, match=said):
        Network.from_bytes(
            flattened(3, 2, 4),
            domain=(0, 1),
            name="n",
            **options,
        )
