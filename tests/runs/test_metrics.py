"""Constraint satisfaction, security and accuracy: closed forms, order, confidence, the command."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

from radii.cli import main
from radii.datasets import Dataset, from_arrays
from radii.errors import InputError
from radii.problem import Norm
from radii.problem import parse_property as parse
from radii.runs import measure, metrics_of, sampled_shares
from radii.statistics import Distribution, mean_estimate, share_estimate
from radii.testing import LinearClassifier, NetworkFamily, Sketch, instance_at, random_network
from radii.views import metrics_parts

pytestmark = pytest.mark.usefixtures("without_workers")

EPS = (0.05, 0.2)
ASKED = ("cr", "sr:delta=0.3", "scr:eta=0.4", "lr:L=1.5", "cr:of=prediction")


def points_for(seed: int, count: int = 6) -> Dataset:
    rng = np.random.default_rng(seed)
    images = rng.uniform(0, 1, (count, 2)).astype(np.float32)
    return from_arrays(images, rng.integers(0, 3, count))


@pytest.mark.parametrize("spec", ASKED)
def test_proven_is_at_most_not_refuted_and_at_most_what_samples_keep(spec: str) -> None:
    network = random_network(NetworkFamily.DENSE, 3, units=8, inputs=2)
    rows = measure(
        network, points_for(1), eps=EPS, property=spec, samples=200, attack="pgd", timeout=20
    )
    assert [row.eps for row in rows] == list(EPS)
    for row in rows:
        assert row.inputs == 6
        assert row.proven + row.undecided + row.refuted == 6
        assert row.security is not None
        assert row.satisfaction.value <= row.security.value
        assert row.accuracy is not None
        assert row.satisfaction.value <= row.accuracy.value
        for estimate in (row.satisfaction, row.security, row.accuracy):
            assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
    assert rows[0].refuted <= rows[1].refuted


def test_linear_classifiers_have_closed_forms() -> None:
    """The radius of each input is known, so both sides of the distribution are."""
    classifier = LinearClassifier.random(5, inputs=2, outputs=3, dtype=np.float32)
    images = np.random.default_rng(5).uniform(-1, 1, (40, 2)).astype(np.float32)
    labels = np.argmax(images @ classifier.weights.T + classifier.bias, axis=1)
    radii = np.array(
        [classifier.radius(x, label, Norm.LINF) for x, label in zip(images, labels, strict=True)]
    )
    eps = (0.1, 0.3)
    assert np.abs(radii[:, None] - eps).min() > 1e-4
    data = from_arrays(images, labels)
    for row in measure(classifier.network, data, eps=eps, samples=0):
        assert row.proven == np.sum(radii > row.eps)
        assert row.refuted == np.sum(radii < row.eps)
        assert row.accuracy is None


@pytest.mark.parametrize(
    ("norm", "share"),
    [(Norm.LINF, 0.75), (Norm.L1, 0.875), (Norm.L2, 1 - (1 / 3 - math.sqrt(3) / (4 * math.pi)))],
)
def test_accuracy_is_the_volume_that_keeps_the_property(norm: Norm, share: float) -> None:
    """y0 - y1 = x0, broken where x0 <= 0: half a radius from the centre, in two dimensions."""
    sketch = Sketch([1, 2], dtype=np.float32)
    weights = sketch.constant(np.array([[1.0, 0.0], [0.0, 0.0]]))
    network = sketch.network(sketch.apply("Gemm", "x", weights), domain=(-5.0, 5.0))
    eps, count = 0.5, 20_000
    instance = instance_at(network, np.array([0.25, 0.0]), norm=norm)
    (found,) = sampled_shares(network, [instance], eps, count)
    assert found == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / count))
    assert sampled_shares(network, [instance], eps, count)[0] == found
    assert sampled_shares(network, [instance], eps, count, seed=1)[0] != found
    assert sampled_shares(network, [instance], 0.2499, 100)[0] == 1.0


def test_samples_on_the_boundary_are_replayed() -> None:
    """Everywhere a tie, which is a violation: torch alone could not tell it from a margin."""
    sketch = Sketch([1, 2], dtype=np.float32)
    weights = sketch.constant(np.ones((2, 2)))
    network = sketch.network(sketch.apply("Gemm", "x", weights), domain=(-5.0, 5.0))
    tied = instance_at(network, np.zeros(2))
    assert sampled_shares(network, [tied], 0.1, 50)[0] == 0.0
    moves = instance_at(network, np.zeros(2), property=parse("sr:delta=1"))
    assert sampled_shares(network, [moves], 0.1, 50)[0] == 1.0


def test_misclassified_inputs_count_for_properties_without_a_label() -> None:
    network = random_network(NetworkFamily.DENSE, 3, units=8, inputs=2)
    data = points_for(2, count=4)
    outputs = network.replay(data.images)
    wrong = from_arrays(data.images, (outputs.argmax(axis=1) + 1) % 3)
    found = {
        spec: measure(network, wrong, eps=(0.001,), property=spec, samples=50)[0]
        for spec in ("cr", "sr:delta=5")
    }
    assert (found["cr"].proven, found["cr"].refuted) == (0, 4)
    assert (found["sr:delta=5"].proven, found["sr:delta=5"].refuted) == (4, 0)


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("spread", [0.0, 0.2, 1.0])
def test_the_mean_lies_between_its_limits_often_enough(level: float, spread: float) -> None:
    """A share of each input, spread between inputs, itself estimated from ten samples."""
    rng, truth, misses = np.random.default_rng(7), 0.6, 0
    for _ in range(300):
        own = truth + spread * rng.uniform(-0.4, 0.4, 30)
        found = mean_estimate(rng.binomial(10, own) / 10, level)
        misses += not found.low <= truth <= found.high
    assert misses <= 300 * (1 - level)


def test_limits_narrow_with_more_inputs() -> None:
    """By hand: a mean of 1 is as rare as 2.5 % where true ** inputs = 0.025."""
    widths = [1 - mean_estimate(np.ones(n)).low for n in (10, 100, 1000)]
    assert widths == pytest.approx([1 - 0.025 ** (1 / n) for n in (10, 100, 1000)])
    half = mean_estimate(np.full(50, 0.5))
    assert half.high - 0.5 == pytest.approx(0.5 - half.low)
    assert half.high - 0.5 < math.sqrt(math.log(2 / 0.05) / 100)  # Hoeffding's limits
    one = share_estimate(0, 20)
    assert one.high == pytest.approx(1 - 0.025 ** (1 / 20))  # by hand: (1 - p)^20 = 2.5 %


def test_sides_of_a_distribution_are_curves_over_eps() -> None:
    distribution = Distribution.from_arrays(
        [0.1, 0.2, 0.0, 0.3], [0.15, math.inf, 0.0, 0.3], correct=[True, True, False, True]
    )
    rows = metrics_of(distribution, (0.0, 0.1, 0.2, 0.3))
    assert [row.proven for row in rows] == [3, 3, 2, 0]
    assert [row.refuted for row in rows] == [1, 1, 2, 3]


def test_limits_know_that_inputs_were_drawn_class_by_class() -> None:
    """All of class 0 are robust, half of class 1: the share of all is between the two."""
    lower = np.repeat([0.2, 0.2, 0.0], [20, 10, 10])
    made = Distribution.from_arrays(lower, lower + 0.05, label=np.repeat([0, 1], 20), correct=True)
    (random,) = metrics_of(made, (0.1,), shares={("network", 0.1): lower / 0.2}, samples=10)
    by_class = made.labelled(draw="per class", classes=2)
    (row,) = metrics_of(by_class, (0.1,), shares={("network", 0.1): lower / 0.2}, samples=10)
    (worst,) = metrics_of(made.only(label=1), (0.1,))
    assert row.satisfaction.low == worst.satisfaction.low < random.satisfaction.low
    assert row.security is not None and row.security.high == 1
    assert row.accuracy is not None and random.accuracy is not None
    assert row.accuracy.low < random.accuracy.low < row.accuracy.value


@pytest.mark.parametrize("numbers", [[], [1.5], [-0.1], [math.nan]])
def test_means_of_anything_else_are_refused(numbers: list[float]) -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        mean_estimate(numbers)


def run_command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(["metrics", *arguments])
    return code, *capsys.readouterr()


def test_the_command_measures_and_reads_a_run(
    linear_file: Path, points_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Radii 0.1, 0.25, 0 (misclassified) and 0 (a tie)."""
    out, table = tmp_path / "run", tmp_path / "rows.csv"
    flags = ["--network", str(linear_file), "--data", str(points_file), "--domain", "0:1"]
    flags += ["--eps", "0.05,0.2", "--samples", "100", "--jobs", "1", "--out", str(out)]
    code, told, _ = run_command(capsys, *flags, "--json", "--csv", str(table))
    assert code == 0
    near, far = json.loads(told)["metrics"]
    assert (near["proven"], near["undecided"], near["refuted"]) == (2, 0, 2)
    assert (far["proven"], far["refuted"]) == (1, 3)
    assert near["satisfaction"] == near["security"] == 0.5
    assert near["arithmetic"] == far["arithmetic"] == "float"
    assert near["satisfaction_low"] < 0.5 < near["satisfaction_high"]
    assert 0.5 <= near["accuracy"] < 1
    assert [float(row["eps"]) for row in csv.DictReader(table.read_text().splitlines())] == [
        0.05,
        0.2,
    ]
    code, again, _ = run_command(
        capsys, str(out), "--eps", "0.05,0.2", "--samples", "100", "--json"
    )
    assert code == 0
    assert json.loads(again)["metrics"] == [near, far]
    code, shown, _ = run_command(capsys, str(out), "--eps", "0.05:0.25:0.1", "--samples", "0")
    assert code == 0
    assert "CSat" in shown
    assert "Proofs hold for floating point." in shown
    assert "CAcc" not in shown


def test_metrics_of_two_arithmetics(capsys: pytest.CaptureFixture[str]) -> None:
    brackets = Distribution.from_arrays(
        [0.1] * 3, [0.2] * 3, network=["a", "b", "b"], arithmetic=["float", "float", "real"]
    )
    rows = metrics_of(brackets, [0.05])
    assert [row.arithmetic for row in rows] == ["float", "real"]
    shown = list(metrics_parts(rows))
    assert "Proofs of a hold for floating point." in shown
    assert "Proofs of b hold in real arithmetic." in shown


def test_security_is_not_known_beyond_the_search(
    linear_file: Path, points_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "run")
    flags = ["--network", str(linear_file), "--data", str(points_file), "--domain", "0:1"]
    flags += ["--grid", "0.01:0.03:0.01", "--search", "attack-only", "--jobs", "1", "--out", out]
    assert main(["run", *flags]) == 0
    code, told, _ = run_command(capsys, out, "--eps", "0.02,0.3", "--samples", "0", "--json")
    assert code == 0
    near, far = json.loads(told)["metrics"]
    assert (near["security"], near["unsearched"]) == (0.5, "")
    assert far["security"] is None
    assert far["unsearched"] == "the search for counterexamples ended at 0.02"
    assert (far["proven"], far["undecided"], far["refuted"]) == (0, 2, 2)
    _, shown, _ = run_command(capsys, out, "--eps", "0.3", "--samples", "0")
    assert "ended at 0.02; CSec is not known" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--eps", "x"], "not a number"),
        (["--eps", ","], "names no radius"),
        (["--eps", "-1"], "must be a finite number"),
        (["--eps", "0.1", "--samples", "-1"], "--samples -1"),
        (["--eps", "0.1", "--level", "2"], "--level 2"),
        (["--eps", "0.1", "--property", "sr:delta=-1"], "delta must be above 0"),
        (["--eps", "0.1", "--property", "lr"], "needs L"),
        (["--eps", "0.1", "--arithmetic", "octal"], "arithmetic 'octal' is not one of"),
        (["--eps", "0.1", "--attack", "foolbox:LinfPGD", "--property", "lr:L=1"], "linear"),
        (["no-such-run", "--eps", "0.1"], "no radii experiment"),
    ],
)
def test_bad_input_gets_a_sentence(
    arguments: list[str],
    sentence: str,
    linear_file: Path,
    points_file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    flags = ["--network", str(linear_file), "--data", str(points_file), "--domain", "0:1"]
    is_run = arguments[0] == "no-such-run"
    code, _, told = run_command(capsys, *arguments, *([] if is_run else flags))
    assert code == 2
    assert sentence in told
    assert len(told.strip().splitlines()) == 1
