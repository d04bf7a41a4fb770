"""Classifiers of scikit-learn as networks: the sums and activations that they are.

Linear classifiers and perceptrons with several layers are layers of a network, and scalers are
affine maps before them. They are written as a torch module, so nothing but scikit-learn itself is
needed; the outputs are the scores before a softmax, in the order of `classes_`.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from radii.errors import NetworkError
from radii.networks._exchange import from_torch
from radii.networks._network import DomainLike, Network

AGREEMENT_INPUTS = 64
"""On how many random inputs of the domain the network is compared with the estimator."""

AGREEMENT_MARGIN = 1e-3
"""Relative to the largest score: classes closer than this may be rounded to either."""

CONVERTED_OPSET = 15
"""Of what skl2onnx writes: known to every ONNX Runtime of the last years."""

ACTIVATIONS = {
    "identity": nn.Identity,
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "logistic": nn.Sigmoid,
}

Array = npt.NDArray[Any]


def is_estimator(model: Any) -> bool:
    """Told by its class, so that scikit-learn need not be there."""
    return any(kind.__module__.split(".")[0] == "sklearn" for kind in type(model).__mro__)


def from_sklearn(
    estimator: Any, *, domain: DomainLike, name: str = "", opaque: bool = False
) -> Network:
    """The network of a fitted classifier of scikit-learn, or of a pipeline that ends in one.

    Classifiers are MLPClassifier and those with one layer of weights, such as LogisticRegression,
    LinearSVC, RidgeClassifier and SGDClassifier; before them scalers (standard, min-max, max-abs,
    robust) and PCA. `domain` are the valid inputs, as they are before the scalers: one pair of
    numbers, or of lists with one number for each feature. Class i of the network is
    `estimator.classes_[i]`. Others, such as forests, are converted by skl2onnx where it is
    installed, if `opaque`: then they can be attacked, and nothing can be proven.
    """
    title = name or type(_steps(estimator)[-1]).__name__
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        raise NetworkError(f"{title}: is no fitted classifier; call its fit with labels first")
    try:
        module = _module(estimator, title)
    except NetworkError:
        if not opaque:
            raise
        network = _converted(estimator, domain, title)
    else:
        features = int(estimator.n_features_in_)
        network = from_torch(module, input_shape=(features,), domain=domain, name=title)
    _compare(network, estimator, np.asarray(classes), title)
    are_words = np.asarray(classes).dtype.kind in "UO"
    return network.with_class_names(list(map(str, classes))) if are_words else network


def _module(estimator: Any, title: str) -> nn.Module:
    """Scalers and classifier as layers; a NetworkError names what is none."""
    layers: list[nn.Module] = []
    for step in _steps(estimator)[:-1]:
        layers += _scaling(step, title)
    layers += _scores(_steps(estimator)[-1], title)
    return nn.Sequential(*layers).eval()


def _converted(estimator: Any, domain: DomainLike, title: str) -> Network:
    """As skl2onnx writes it: a graph that runs, of which no bounds are known."""
    try:
        from skl2onnx import to_onnx
    except ImportError:
        raise NetworkError(
            f"{title}: can be attacked once skl2onnx is installed, which converts it to ONNX"
        ) from None
    sample = np.zeros((1, int(estimator.n_features_in_)), dtype=np.float32)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            without_maps = {id(_steps(estimator)[-1]): {"zipmap": False}}
            model = to_onnx(estimator, sample, options=without_maps, target_opset=CONVERTED_OPSET)
    except Exception as error:  # it has no error of its own
        reason = " ".join(str(error).split())
        raise NetworkError(f"{title}: skl2onnx cannot convert it: {reason}") from None
    return Network.from_bytes(model.SerializeToString(), domain=domain, name=title, opaque=True)


def _steps(estimator: Any) -> list[Any]:
    steps = [step for _, step in getattr(estimator, "steps", [("", estimator)])]
    return [part for step in steps if step is not None for part in _inner(step)]


def _inner(step: Any) -> list[Any]:
    return _steps(step) if hasattr(step, "steps") else [] if step == "passthrough" else [step]


class _Shifted(nn.Module):
    """x times a factor plus a shift, for each feature."""

    factor: Tensor
    shift: Tensor

    def __init__(self, factor: Array, shift: Array) -> None:
        super().__init__()
        self.register_buffer("factor", _tensor(factor))
        self.register_buffer("shift", _tensor(shift))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor + self.shift


def _scaling(step: Any, title: str) -> list[nn.Module]:
    """What a step before the classifier does to inputs."""
    kind = type(step).__name__
    size = int(getattr(step, "n_features_in_", 0))
    match kind:
        case "StandardScaler" | "RobustScaler" | "MaxAbsScaler":
            centre = getattr(step, "mean_" if kind == "StandardScaler" else "center_", None)
            centre = np.zeros(size) if centre is None else centre
            scale = np.ones(size) if step.scale_ is None else step.scale_
            return [_Shifted(1 / scale, -centre / scale)]
        case "MinMaxScaler" if not step.clip:
            return [_Shifted(step.scale_, step.min_)]
        case "PCA" if not step.whiten:
            return [_linear(step.components_, -step.components_ @ step.mean_)]
    raise NetworkError(
        f"{title}: the step {kind} of the pipeline is not known as part of a network; "
        "apply it to the data first, or export the pipeline to ONNX"
    )


def _scores(classifier: Any, title: str) -> list[nn.Module]:
    """The layers of the classifier, up to its scores: one for each class."""
    if type(classifier).__name__ == "MLPClassifier":
        pairs = list(zip(classifier.coefs_, classifier.intercepts_, strict=True))
        layers: list[nn.Module] = []
        for weights, bias in pairs[:-1]:
            layers += [_linear(weights.T, bias), ACTIVATIONS[classifier.activation]()]
        return [*layers, _both_classes(pairs[-1][0].T, pairs[-1][1])]
    if hasattr(classifier, "coef_") and hasattr(classifier, "intercept_"):
        weights, bias = np.atleast_2d(classifier.coef_), np.atleast_1d(classifier.intercept_)
        return [_both_classes(weights, bias)]
    raise NetworkError(
        f"{title}: is no network that radii knows: take MLPClassifier or a linear classifier such "
        "as LogisticRegression; search='attack-only' attacks others, where skl2onnx is installed"
    )


def _both_classes(weights: Array, bias: Array) -> nn.Module:
    """One score is that of the second of two classes; that of the first is 0 then."""
    if len(weights) == 1:
        weights = np.concatenate([np.zeros_like(weights), weights])
        bias = np.concatenate([np.zeros(1), np.ravel(bias)])
    return _linear(weights, np.broadcast_to(bias, len(weights)))


def _linear(weights: Array, bias: Array) -> nn.Module:
    layer = nn.Linear(weights.shape[1], weights.shape[0])
    with torch.no_grad():
        layer.weight.copy_(_tensor(weights))
        layer.bias.copy_(_tensor(bias))
    return layer


def _tensor(values: Array) -> Tensor:
    return torch.tensor(np.asarray(values), dtype=torch.float32)


def _compare(network: Network, estimator: Any, classes: Array, title: str) -> None:
    """A NetworkError unless both choose the same class wherever two are not about equal."""
    if len(classes) != network.output_size:
        raise NetworkError(f"{title}: has {len(classes)} classes, {network.output_size} scores")
    low, high = (np.clip(side, -1e6, 1e6) for side in network.domain.box(network.input_shape))
    points = np.random.default_rng(0).uniform(low, high, (AGREEMENT_INPUTS, *network.input_shape))
    inputs = points.astype(network.input_dtype)
    scores = network.replay(inputs)
    ordered = np.sort(scores, axis=1)
    limit = AGREEMENT_MARGIN * max(1.0, float(np.abs(scores).max()))
    is_clear = ordered[:, -1] - ordered[:, -2] > limit
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it may have been fitted on a table with names
        expected = np.asarray(estimator.predict(inputs))
    if expected.ndim != 1 or (classes[scores.argmax(axis=1)] != expected)[is_clear].any():
        raise NetworkError(
            f"{title}: the network does not choose the classes that the estimator does; "
            "export it to ONNX by hand and load the file"
        )
