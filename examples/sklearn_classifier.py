"""Classifiers of scikit-learn, with their scalers; eps stays in the units of the data.

python examples/sklearn_classifier.py
"""

from __future__ import annotations

import importlib.util

import radii


def main() -> None:
    if importlib.util.find_spec("sklearn") is None:
        print("skipped: the package sklearn is not installed")
        return
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    train = radii.datasets.load("digits", split="train")
    images = train.images.reshape(len(train), -1)
    classifiers = [
        make_pipeline(StandardScaler(), MLPClassifier((16,), tol=1e-2, random_state=0)),
        LogisticRegression(tol=1e-2),
    ]
    fitted = [each.fit(images, train.labels) for each in classifiers]
    test = radii.datasets.load("digits", split="test").first(10)
    found = radii.robustness_distribution(
        fitted, (test.images.reshape(10, -1), test.labels), domain=(0, 1), grid="0.01:0.6:0.01"
    )
    print(found)
    print(found.fragile(3))


if __name__ == "__main__":
    main()
