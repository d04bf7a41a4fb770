"""A network of one output decides by a threshold: two classes, with the file's own numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from radii import attacks, verifiers
from radii.cli import main
from radii.errors import NetworkError
from radii.networks import Network, as_classifier
from radii.problem import Domain, Query, Verdict
from radii.testing import Sketch, instance_at

pytestmark = pytest.mark.usefixtures("without_workers")

WEIGHTS = np.array([[2.0], [-1.0]], np.float32)
DOMAIN = Domain(-4.0, 4.0)


def one_output(*, sigmoid: bool = False, shape: list[int] | None = None) -> Network:
    sketch = Sketch([1, 2])
    value = sketch.apply(
        "Gemm", "x", sketch.constant(WEIGHTS), sketch.constant(np.full(1, 0.5, np.float32))
    )
    if sigmoid:
        value = sketch.apply("Sigmoid", value)
    if shape is not None:
        value = sketch.apply("Reshape", value, sketch.constant(np.array(shape, np.int64)))
    return sketch.network(value, domain=DOMAIN)


@pytest.mark.parametrize("sigmoid", [False, True])
@pytest.mark.parametrize("shape", [None, [1]])
def test_the_class_is_what_the_files_own_output_says(
    sigmoid: bool, shape: list[int] | None
) -> None:
    network = one_output(sigmoid=sigmoid, shape=shape)
    classes = as_classifier(network)
    inputs = np.random.default_rng(0).uniform(-4, 4, (50, 2)).astype(np.float32)
    threshold = np.float32(0.5 if sigmoid else 0.0)
    own = network.replay(inputs)[:, 0]
    outputs = classes.replay(inputs)
    assert classes.output_size == 2
    assert np.array_equal(outputs[:, 1], own)
    assert np.all(outputs[:, 0] == threshold)
    assert np.array_equal(outputs.argmax(axis=1) == 1, own > threshold)


def test_a_tie_is_of_no_class() -> None:
    classes = as_classifier(one_output())
    tied = np.array([-0.25, 0.0], np.float32)
    for label in (0, 1):
        assert not instance_at(classes, tied, label=label).correct


def test_others_stay_as_they_are_and_take_no_threshold() -> None:
    classes = as_classifier(one_output())
    assert as_classifier(classes) is classes
    with pytest.raises(NetworkError, match="2 outputs; a threshold is for one"):
        as_classifier(classes, 0.5)


@pytest.mark.parametrize("name", ["native", "milp", "enumeration"])
def test_the_radius_is_that_of_the_threshold(name: str) -> None:
    classes = as_classifier(one_output(), threshold=1.0)
    x = np.array([1.0, 0.5], np.float32)  # 2 - 0.5 + 0.5 = 2: 1 above the threshold
    instance, radius = instance_at(classes, x), 1 / 3
    verifier = verifiers.get(name)
    assert instance.label == 1
    assert verifier.verify(classes, Query(instance, 0.99 * radius)).verdict is Verdict.ROBUST
    assert verifier.verify(classes, Query(instance, 1.01 * radius)).verdict is Verdict.NOT_ROBUST
    (found,) = attacks.get("minimum-norm").attack(classes, [Query(instance, 0.5)])
    assert found.witness is not None
    assert found.witness.distance == pytest.approx(radius, rel=1e-4)


def test_a_sigmoid_is_decided_as_it_runs() -> None:
    classes = as_classifier(one_output(sigmoid=True))
    instance, radius = instance_at(classes, np.array([1.0, 0.5], np.float32)), 2 / 3
    verifier = verifiers.get("native")
    assert verifier.verify(classes, Query(instance, 0.98 * radius)).verdict is Verdict.ROBUST
    broken = verifier.verify(classes, Query(instance, 1.02 * radius))
    assert broken.verdict is Verdict.NOT_ROBUST


def test_radii_run_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("score.onnx").write_bytes(one_output().onnx_bytes)
    Path("t.csv").write_text("a,b,label\n1,0.5,1\n-1,0,0\n")
    asked = ["run", "--network", "score.onnx", "--data", "t.csv", "--domain", "-4:4"]
    assert main([*asked, "--grid", "0.1:1:0.1", "--out", "r", "--jobs", "1", "--json"]) == 0
    assert '"lower": 0.6' in capsys.readouterr().out
