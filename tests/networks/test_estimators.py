"""Classifiers of scikit-learn as networks: the same classes, radii known by hand, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import radii
from radii.errors import DataError, NetworkError

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC

DOMAIN = (-3.0, 3.0)


def samples(classes: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(classes)
    labels = np.arange(60) % classes
    return rng.normal(size=(60, 4)) + rng.normal(size=(classes, 4))[labels], labels


def mlp(**options: Any) -> Any:
    return MLPClassifier((7, 5), max_iter=30, tol=1.0, random_state=0, **options)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "classifier",
    [
        LogisticRegression(),
        RidgeClassifier(),
        SGDClassifier(random_state=0),
        LinearSVC(fit_intercept=False),
        mlp(),
        mlp(activation="tanh"),
        mlp(activation="logistic"),
        make_pipeline(StandardScaler(), mlp()),
        make_pipeline(MinMaxScaler(), "passthrough", LogisticRegression()),
        make_pipeline(RobustScaler(), MaxAbsScaler(), LogisticRegression()),
        make_pipeline(make_pipeline(StandardScaler(with_mean=False), PCA(3)), mlp()),
    ],
    ids=lambda each: "-".join(type(s).__name__ for _, s in getattr(each, "steps", [("", each)])),
)
def test_a_network_chooses_the_same_classes(classifier: Any, classes: int) -> None:
    inputs, labels = samples(classes)
    fitted = classifier.fit(inputs, labels)
    network = radii.from_sklearn(fitted, domain=DOMAIN)
    points = np.random.default_rng(9).uniform(*DOMAIN, (500, 4)).astype(np.float32)
    outputs = network.replay(points)
    is_clear = np.abs(np.diff(np.sort(outputs, axis=1)[:, -2:])).ravel() > 1e-4
    assert outputs.shape == (500, classes)
    assert is_clear.sum() > 450
    np.testing.assert_array_equal(
        outputs.argmax(axis=1)[is_clear], fitted.predict(points)[is_clear]
    )


def test_the_radius_of_two_classes_is_the_distance_to_the_plane() -> None:
    """Of w x + b in Linf it is |w x + b| / sum |w|; labels may be words."""
    inputs, labels = samples(2)
    words = np.array(["refused", "granted"])[labels]
    fitted = LogisticRegression().fit(inputs, words)
    chosen = inputs[:6].astype(np.float32), words[:6]
    found = radii.robustness_distribution(
        fitted, chosen, domain=(-9, 9), grid="0:2:0.05", jobs=0, progress=False
    )
    score = chosen[0] @ fitted.coef_[0] + fitted.intercept_[0]
    radius = np.abs(score) / np.abs(fitted.coef_).sum()
    is_right = fitted.predict(chosen[0]) == chosen[1]
    assert found.correct.tolist() == is_right.tolist()
    assert found.networks == ("LogisticRegression",)
    assert np.all((found.lower <= radius + 1e-6)[is_right])
    assert np.all((found.upper >= radius - 1e-6)[is_right])
    assert np.all((found.upper - found.lower)[is_right] <= 0.05 + 1e-4)


def test_what_is_no_network_is_told_in_a_sentence() -> None:
    inputs, labels = samples(3)
    with pytest.raises(NetworkError, match="GaussianNB: is no network that radii knows"):
        radii.from_sklearn(GaussianNB().fit(inputs, labels), domain=DOMAIN)
    with pytest.raises(NetworkError, match="no fitted classifier"):
        radii.from_sklearn(LogisticRegression(), domain=DOMAIN)
    unknown = make_pipeline(Normalizer(), LogisticRegression()).fit(inputs, labels)
    with pytest.raises(NetworkError, match="the step Normalizer of the pipeline"):
        radii.from_sklearn(unknown, domain=DOMAIN)
    fitted = LogisticRegression().fit(inputs, labels + 5)
    with pytest.raises(NetworkError, match="say which inputs are valid"):
        radii.robustness_distribution(fitted, (inputs, labels + 5))
    with pytest.raises(NetworkError, match="put a StandardScaler before it"):
        radii.robustness_distribution(fitted, (inputs, labels + 5), domain=DOMAIN, mean=0)
    with pytest.raises(DataError, match=r"label .*4.* is not one of the classes"):
        radii.robustness_distribution(fitted, (inputs, labels + 4), domain=DOMAIN)


def test_a_forest_in_a_pipeline_is_attacked_through_skl2onnx() -> None:
    """It is broken where one of its thresholds is: at 0.5 of the first feature."""
    pytest.importorskip("skl2onnx")
    from sklearn.ensemble import RandomForestClassifier

    inputs = np.random.default_rng(0).uniform(size=(300, 3)).astype(np.float32)
    words = np.where(inputs[:, 0] > 0.5, "yes", "no")
    forest = make_pipeline(MinMaxScaler(), RandomForestClassifier(8, max_depth=2, random_state=0))
    forest.fit(inputs, words)
    points = np.array([[0.8, 0.5, 0.5], [0.3, 0.2, 0.5]], np.float32)
    given = (points, forest.predict(points))
    found = radii.robustness_distribution(
        forest, given, domain=(0, 1), search="attack-only", grid="0.05:0.6:0.05", jobs=0
    )
    assert found.correct.all() and np.all(found.lower == 0)
    assert found.upper == pytest.approx([0.3, 0.2], abs=0.05)
    with pytest.raises(NetworkError, match="search='attack-only' attacks others"):
        radii.robustness_distribution(forest, given, domain=(0, 1), jobs=0)
