"""Real networks, from the data beside the project."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from radii.networks import load_network

DATA = Path(__file__).parents[2] / "../shared/data/jair"
NETWORKS = [
    path
    for path in sorted((DATA / "networks").glob("*.onnx"))
    if not path.name.startswith("resnet")
]
"""Those of MNIST."""

pytestmark = pytest.mark.skipif(not NETWORKS, reason=f"{DATA} is absent")


@pytest.mark.parametrize("path", NETWORKS, ids=lambda path: path.stem)
def test_equals_onnx_runtime(path: Path) -> None:
    with np.load(DATA / "mnist_train_0_49.npz") as data:
        images = data["images"].astype(np.float32) / 255
        labels = data["labels"]
    network = load_network(path, domain=(0, 1))
    inputs = images.reshape(len(images), *network.input_shape)
    expected = network.replay(inputs)
    for dtype in (torch.float32, torch.float64):
        outputs = network(torch.from_numpy(inputs).to(dtype))
        assert np.abs(outputs.numpy() - expected).max() <= 1e-4
    assert (expected.argmax(1) == labels).mean() > 0.7
