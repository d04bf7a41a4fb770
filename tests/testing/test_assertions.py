"""`assert_robust` on a classifier whose radii are known by hand, and as a pytest plugin."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import beta
from torch import nn

from radii.datasets import Dataset, from_arrays
from radii.errors import DataError, ExperimentError, InputError, NetworkError
from radii.networks import Network, load_network
from radii.problem import REAL, Arithmetic
from radii.statistics import Distribution, parse_requirement
from radii.testing import Check, Decision, RobustnessFailure, assert_robust, check_robustness
from radii.testing import _assertions as checks


@pytest.fixture
def network(linear_file: Path) -> Network:
    """y0 - y1 = x0 - x1: the radius of (x0, x1), label 0, is (x0 - x1) / 2."""
    return load_network(linear_file, domain=(0, 1))


def with_radii(*radii: float) -> Dataset:
    """One point of label 0 for each radius; a negative one is misclassified."""
    images = np.array([[0.5 + radius, 0.5 - radius] for radius in radii], np.float32)
    return from_arrays(images, [0] * len(radii), name="points")


def test_the_proven_side_decides(network: Network) -> None:
    check = assert_robust(network, with_radii(0.1, 0.2, 0.3, 0.05), eps=0.08, at_least=0.75)
    assert check.decision is Decision.ROBUST
    assert "3 of 4 inputs are proven" in check.statement
    assert check.statement.endswith(" Proofs hold for floating point.")


def test_the_witnessed_side_refutes_and_names_inputs_and_radii(network: Network) -> None:
    with pytest.raises(RobustnessFailure) as failure:
        assert_robust(network, with_radii(0.1, 0.05, -0.1, 0.3), eps=0.08, at_least=0.75)
    text = str(failure.value)
    assert failure.value.check.decision is Decision.NOT_ROBUST
    assert text.startswith("linear.onnx on points is not robust at eps 0.08\n")
    assert "required  robust_accuracy(0.08) >= 0.75" in text
    assert "input 2, label 0: radius 0, is taken for 1 as it stands" in text
    assert "input 1, label 0: radius below 0.05" in text
    assert "taken for 1" in text
    assert "2 refuted" in text
    assert "\n  proofs    hold for floating point\n" in text


@pytest.mark.parametrize("arithmetic", ["real", REAL])
def test_the_arithmetic_asked_for(network: Network, arithmetic: str | Arithmetic) -> None:
    check = assert_robust(network, with_radii(0.1, 0.2), eps=0.08, arithmetic=arithmetic)
    assert {m.arithmetic for m in check.brackets} == {REAL}
    assert check.statement.endswith(" Proofs hold in real arithmetic.")
    with pytest.raises(InputError, match="arithmetic 'octal' is not one of"):
        assert_robust(network, with_radii(0.1), eps=0.08, arithmetic="octal")


def test_every_input_by_default(network: Network) -> None:
    assert_robust(network, with_radii(0.1, 0.2), eps=0.09)
    with pytest.raises(RobustnessFailure, match="1 of 2 inputs are not refuted"):
        assert_robust(network, with_radii(0.1, 0.05), eps=0.09)


def test_what_is_not_decided_fails_and_says_so(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No search at all leaves everything open: neither side may claim anything."""
    monkeypatch.setattr("radii.runs.Plan.run", leave_open)
    with pytest.raises(RobustnessFailure) as failure:
        assert_robust(network, with_radii(0.3, 0.4), eps=0.1, timeout=7)
    assert failure.value.check.decision is Decision.UNDECIDED
    assert "neither shown nor refuted" in str(failure.value)
    assert "0 proven, 0 refuted" in str(failure.value)


def leave_open(plan: object, store: object, **_: object) -> None:
    plan.begin(store)  # type: ignore[attr-defined]


def test_it_ends_when_the_rest_cannot_change_the_answer(network: Network) -> None:
    check = check_robustness(network, with_radii(*[0.3] * 40), eps=0.1, at_least=0.5)
    assert check.decision is Decision.ROBUST
    assert int((check.brackets.lower > 0).sum()) == 20
    assert check.reason == (
        "linear.onnx: at least 20 of 40 inputs are proven at eps 0.1 (0.5); required is >= 0.5; "
        "stopped, the requirement is met."
    )
    with pytest.raises(RobustnessFailure) as failure:
        assert_robust(network, with_radii(*[-0.1] * 5, *[0.3] * 15), eps=0.1, at_least=0.8)
    assert "not needed" in str(failure.value)
    assert failure.value.check.reason == (
        "linear.onnx: at most 15 of 20 inputs are not refuted at eps 0.1 (0.75); "
        "required is >= 0.8; stopped, the requirement is not met."
    )


def test_a_failure_says_what_was_required_and_not_its_opposite(network: Network) -> None:
    with pytest.raises(RobustnessFailure) as failure:
        assert_robust(network, with_radii(-0.1, -0.2, -0.3), eps=0.1, at_least=0.9)
    assert "required is >= 0.9" in str(failure.value)
    assert "required is <" not in str(failure.value)


def test_confidence_is_clopper_and_pearsons(network: Network) -> None:
    """28 of 28 show a share of 0.9 with 94.8 %, 29 of 29 with 95.3 %."""
    check = check_robustness(
        network, with_radii(*[0.3] * 29), eps=0.1, at_least=0.9, confidence=0.95
    )
    assert check.decision is Decision.ROBUST
    assert "for all inputs" in check.reason
    with pytest.raises(DataError, match="give at least 29"):
        check_robustness(network, with_radii(*[0.3] * 28), eps=0.1, at_least=0.9, confidence=0.95)


@pytest.mark.parametrize(
    ("robust", "decision"),
    [(60, Decision.ROBUST), (55, Decision.UNDECIDED), (46, Decision.NOT_ROBUST)],
)
def test_three_answers_about_the_population(
    network: Network, robust: int, decision: Decision
) -> None:
    data = with_radii(*[0.3] * robust, *[0.02] * (60 - robust))
    check = check_robustness(network, data, eps=0.1, at_least=0.9, confidence=0.95)
    assert check.decision is decision
    low = beta.ppf(0.05, robust, 61 - robust) if robust else 0.0
    high = beta.ppf(0.95, robust + 1, 60 - robust) if robust < 60 else 1.0
    assert (low >= 0.9) == (decision is Decision.ROBUST)
    assert (high < 0.9) == (decision is Decision.NOT_ROBUST)


def test_many_inputs_are_looked_at_one_after_the_other(network: Network) -> None:
    check = check_robustness(
        network, with_radii(*[0.3] * 400), eps=0.1, at_least=0.9, confidence=0.95
    )
    assert check.decision is Decision.ROBUST
    looked_at = int((check.brackets.lower > 0).sum())
    assert looked_at < 100
    assert "one after the other" in check.reason
    broken = check_robustness(
        network, with_radii(*[0.02, 0.3] * 200), eps=0.1, at_least=0.9, confidence=0.95
    )
    assert broken.decision is Decision.NOT_ROBUST


@pytest.mark.slow
def test_the_last_look_decides_what_betting_leaves_open(network: Network) -> None:
    """96 % of 200: too close to 0.9 for the betting limit, not for all of them together."""
    radii = np.where(np.arange(200) % 25 == 0, 0.02, 0.3)
    check = check_robustness(network, with_radii(*radii), eps=0.1, at_least=0.9, confidence=0.95)
    assert check.decision is Decision.ROBUST


def test_inputs_that_are_just_enough_are_not_looked_at_one_after_the_other(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """29 of 29 show 0.9 only if their look has the whole miss: nothing is left for betting."""
    monkeypatch.setattr(checks, "SEQUENTIAL_FROM", 29)
    data = with_radii(*[0.3] * 29)
    check = check_robustness(network, data, eps=0.1, at_least=0.9, confidence=0.95)
    assert check.decision is Decision.ROBUST
    assert "with 95 % confidence" in check.reason


def test_eps_and_confidence_are_taken_as_they_are(network: Network) -> None:
    """0.1 in float32 is not 0.1, and 99.99999 % is not 100 %, however they are written."""
    data = with_radii(*[0.3] * 24)
    eps: Any = np.float32(0.1)
    check = check_robustness(network, data, eps=eps, at_least=0.5, confidence=0.9999999)
    assert check.decision is Decision.ROBUST


def test_checks_that_are_to_hold_together_share_the_error(network: Network) -> None:
    data = with_radii(*[0.1] * 40)
    options: dict[str, Any] = {"eps": 0.08, "at_least": 0.9, "confidence": 0.95}
    assert assert_robust(network, data, **options).miss == pytest.approx(0.05)
    check = assert_robust(network, with_radii(*[0.1] * 50), among=4, **options)
    assert check.miss == pytest.approx(0.0125)
    assert f"at least {np.floor(1e4 * beta.ppf(0.0125, 50, 1)) / 1e4:g}" in check.reason
    assert "95 % confidence, together with 3 other statements," in check.reason
    assert check.requirement.endswith("@ 95%, one of 4 checks")
    with pytest.raises(DataError, match=r"together with 3 other checks, .* give at least 42"):
        assert_robust(network, data, among=4, **options)


def test_many_inputs_share_the_error_among_checks_and_looks(network: Network) -> None:
    """The betting limit needs more inputs for a quarter of the error."""
    data = with_radii(*[0.1] * 300)
    options: dict[str, Any] = {"eps": 0.08, "at_least": 0.9, "confidence": 0.95}
    first = assert_robust(network, data, **options)
    second = assert_robust(network, data, among=4, **options)
    counts = [int((each.brackets.lower > 0).sum()) for each in (first, second)]
    assert counts[0] < counts[1] < 300
    assert "together with 3 other checks, the share is" in second.reason


def test_models_and_data_in_other_forms(linear_file: Path) -> None:
    module = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        module.weight.copy_(torch.eye(2))
    images = np.array([[0.7, 0.3], [0.8, 0.2]], np.float32)
    for model in (linear_file, str(linear_file), module):
        check = assert_robust(model, (images, [0, 0]), eps="1/10", domain=(0, 1))
        assert isinstance(check, Check)
    with pytest.raises(NetworkError, match="say which inputs are valid"):
        assert_robust(module, (images, [0, 0]), eps=0.1)


@pytest.mark.parametrize(
    "options",
    [
        {"eps": 0},
        {"eps": "much"},
        {"eps": 0.1, "at_least": 1.5},
        {"eps": 0.1, "at_least": 0.9, "confidence": 0.3},
        {"eps": 0.1, "confidence": 0.95},
        {"eps": 0.1, "verifier": "nobody"},
        {"eps": 0.1, "colour": "red"},
        {"eps": 0.1, "jobs": -1},
        {"eps": 0.1, "at_least": 0.9, "among": 2},
        {"eps": 0.1, "at_least": 0.9, "confidence": 0.5, "among": 0},
    ],
)
def test_bad_questions_are_refused(network: Network, options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        assert_robust(network, with_radii(0.3, 0.3), **options)  # type: ignore[arg-type]


def test_results_are_kept_and_used_again(network: Network, tmp_path: Path) -> None:
    data = with_radii(0.3, 0.2)
    for _ in range(2):
        assert_robust(network, data, eps=0.1, out=tmp_path / "kept")
    with pytest.raises(ExperimentError):
        assert_robust(network, data, eps=0.15, out=tmp_path / "kept")


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("robust_accuracy(0.1) >= 0.5", "robust_accuracy(0.1) < 0.5"),
        ("not_refuted robust_accuracy(0.1) > 0.5 @ 95%", "robust_accuracy(0.1) <= 0.5 @ 95%"),
        ("median <= 0.2", "median > 0.2"),
    ],
)
def test_a_requirement_and_its_opposite_are_never_both_met(text: str, other: str) -> None:
    requirement = parse_requirement(text)
    opposite = requirement.opposite()
    assert opposite.text == other
    assert opposite.is_proven is not requirement.is_proven
    rng = np.random.default_rng(0)
    for _ in range(50):
        lower = rng.uniform(0, 0.3, 9)
        upper = np.where(rng.random(9) < 0.5, lower + rng.uniform(0.001, 0.1, 9), np.inf)
        brackets = Distribution.from_arrays(lower, upper, input=np.arange(9))
        if requirement.is_proven is (requirement.relation in (">=", ">")):
            assert not (
                requirement.check(brackets)[0].is_met and opposite.check(brackets)[0].is_met
            )


def test_turning_points_are_the_first_counts_that_decide() -> None:
    requirement = parse_requirement("robust_accuracy(0.1) >= 0.9")
    assert checks._fewest(50, lambda count: checks._is_met(requirement, count, 50, 0.1)) == 45
    opposite = requirement.opposite()
    assert checks._fewest(50, lambda count: checks._is_met(opposite, count, 50, 0.1)) == 6
    assert checks._fewest(50, lambda count: False) == 51


INNER = """
import numpy as np
import sys

OWN = {"radii.testing", "radii.testing._pytest_plugin"}
assert not {m for m in sys.modules if m.startswith("radii.")} - OWN
assert "torch" not in sys.modules

IMAGES = np.float32([[0.7, 0.3], [0.6, 0.4], [0.52, 0.48]])

def test_nothing():
    assert "numpy.random" is not None

def test_robust(assert_robust):
    assert assert_robust("linear.onnx", (IMAGES, [0, 0, 0]), eps=0.08, at_least=0.6, domain=(0, 1))

def test_broken(assert_robust):
    assert_robust("linear.onnx", (IMAGES, [0, 0, 0]), eps=0.15, at_least=0.6, domain=(0, 1))

def test_sampled(assert_robust):
    many = (np.repeat(IMAGES[:1], 9, axis=0), [0] * 9)
    for _ in range(2):
        assert_robust("linear.onnx", many, eps=0.1, at_least=0.6, confidence=0.95, domain=(0, 1))
"""


def test_the_plugin_of_pytest(linear_file: Path) -> None:
    """Loaded by itself, importing nothing of radii until it is used, with warnings as errors."""
    folder = linear_file.parent
    (folder / "test_inner.py").write_text(INNER)
    options = ("-W", "error", "-p", "no:cacheprovider", "--junitxml=report.xml")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_inner.py"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    out = done.stdout
    assert "1 failed, 3 passed" in out, out + done.stderr
    assert "linear.onnx on arrays is not robust at eps 0.15" in out
    assert "= robustness =" in out
    assert "test_inner.py::test_robust: robust: linear.onnx: at least 2 of 3 inputs" in out
    assert re.search(r"test_broken: not robust: linear.onnx: .*1 of 3 inputs", out)
    assert "Proofs hold for floating point." in out
    assert (
        "2 checks have a confidence: that all of them are right together has at least 90 %" in out
    )
    assert "checks.py" not in out  # the traceback ends at the user's line
    assert 'name="radii"' in (folder / "report.xml").read_text()
