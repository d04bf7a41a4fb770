"""A Keras classifier, through ONNX.

python examples/keras_classifier.py

Keras exports ONNX with each of its backends: with TensorFlow through tf2onnx, with torch, as here,
through torch. Its images have their channel last; radii turns those of a data set by itself.
"""

from __future__ import annotations

import importlib.util
import os
import warnings
from typing import Any

import radii


def trained_model(images: Any, labels: Any) -> Any:
    import keras

    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            keras.layers.Conv2D(4, 3, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss=loss)
    model.fit(images, labels, epochs=3, batch_size=128, verbose=0)
    return model


def main() -> None:
    if importlib.util.find_spec("keras") is None:
        print("skipped: the package keras is not installed")
        return
    os.environ.setdefault("KERAS_BACKEND", "torch")
    train = radii.datasets.load("digits", split="train")
    with warnings.catch_warnings():  # of Keras and its exporter, about themselves
        warnings.simplefilter("ignore")
        model = trained_model(train.images.transpose(0, 2, 3, 1), train.labels)
        model.export("keras.onnx", format="onnx", verbose=False)
    network = radii.load_network("keras.onnx", domain=(0, 1))
    test = radii.datasets.load("digits", split="test").first(5)
    found = radii.robustness_distribution(network, test, grid="0.01:0.6:0.01", timeout=10)
    print(found.to_pandas()[["input", "label", "correct", "lower", "upper"]])


if __name__ == "__main__":
    main()
