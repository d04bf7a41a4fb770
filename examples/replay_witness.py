"""Check stored counterexamples without radii: plain ONNX Runtime on the plain file.

python examples/replay_witness.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnxruntime

import radii
from radii import demo
from radii.store import Store


def main() -> None:
    path = demo.network_path("mlp-adversarial")
    network = radii.load_network(path, domain=(0, 1))
    data = radii.datasets.load("digits", split="test").first(3)
    with tempfile.TemporaryDirectory() as directory:
        radii.robustness_distribution(network, data, grid="0.01:0.6:0.01", out=directory)
        with Store.open(Path(directory)) as store:
            keys, results = store.instance_keys(), store.results()

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for image, label, key in zip(data.images, data.labels, keys, strict=True):
        found = [result.witness for _, result in results[key] if result.witness is not None]
        witness = min(found, key=lambda candidate: candidate.distance)
        scores = session.run(None, {"image": witness.input[None]})[0][0]
        change = np.abs(witness.input.astype(np.float64) - image).max()
        print(
            f"digit {label}: no pixel changed by more than {change:.4f}, scores {scores.round(2)}"
        )
        assert change == witness.distance
        assert np.delete(scores, label).max() >= scores[label]  # a tie counts as misclassified


if __name__ == "__main__":
    main()
