"""Classifiers of scikit-learn, through ONNX.

python examples/sklearn_classifier.py

skl2onnx writes more than a network: the chosen label, and operators for classical models that
radii does not know. So cut the graph at its probabilities; give a StandardScaler to radii as mean
and std, which also keeps eps in the units of the data; write linear models as the layer they are.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import radii


def network_of_mlp(classifier: Any, scaler: Any, example: Any) -> radii.Network:
    import onnx
    from skl2onnx import to_onnx

    model = to_onnx(classifier, example, options={id(classifier): {"zipmap": False}})
    onnx.save(model, "whole.onnx")
    inputs = [value.name for value in model.graph.input]
    onnx.utils.extract_model("whole.onnx", "mlp.onnx", inputs, ["probabilities"])
    return radii.load_network(Path("mlp.onnx"), domain=(0, 1), mean=scaler.mean_, std=scaler.scale_)


def network_of_linear(classifier: Any) -> radii.Network:
    """The scores of LogisticRegression, LinearSVC or RidgeClassifier with three or more classes."""
    weights = torch.tensor(classifier.coef_, dtype=torch.float32)
    layer = nn.Linear(weights.shape[1], weights.shape[0])
    with torch.no_grad():
        layer.weight.copy_(weights)
        layer.bias.copy_(torch.tensor(classifier.intercept_))
    return radii.from_torch(layer, input_shape=(weights.shape[1],), domain=(0, 1), name="linear")


def main() -> None:
    for package in ("sklearn", "skl2onnx"):
        if importlib.util.find_spec(package) is None:
            print(f"skipped: the package {package} is not installed")
            return
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler

    train = radii.datasets.load("digits", split="train")
    images = train.images.reshape(len(train), -1)
    scaler = StandardScaler().fit(images)
    mlp = MLPClassifier((16,), tol=1e-2, random_state=0).fit(scaler.transform(images), train.labels)
    linear = LogisticRegression(tol=1e-2).fit(images, train.labels)
    networks = [
        network_of_mlp(mlp, scaler, scaler.transform(images[:1]).astype(np.float32)),
        network_of_linear(linear),
    ]
    test = radii.datasets.load("digits", split="test").first(10)
    found = radii.robustness_distribution(networks, test, grid="0.01:0.6:0.01")
    for name, part in found.by_network().items():
        print(f"{name}: median radius between {part.median()[0]:.2f} and {part.median()[1]:.4f}")


if __name__ == "__main__":
    main()
