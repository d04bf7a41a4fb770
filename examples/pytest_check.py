"""A robustness check among your tests. The fixture comes with radii, as a plugin of pytest.

pytest examples/pytest_check.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import radii
from radii import demo
from radii.testing import RobustnessFailure

AssertRobust = Callable[..., Any]


@pytest.fixture(scope="module")
def digits() -> radii.Dataset:
    return radii.datasets.load("digits", split="test")


def test_these_digits_stay_right(assert_robust: AssertRobust, digits: radii.Dataset) -> None:
    """Proven for at least nine of these ten images."""
    path = demo.network_path("mlp-adversarial")
    assert_robust(path, digits.first(10), eps=0.03, at_least=0.9, domain=(0, 1))


def test_nearly_all_digits_stay_right(assert_robust: AssertRobust, digits: radii.Dataset) -> None:
    """With 95 % confidence, for at least 80 % of all digits, of which 40 were drawn."""
    network = demo.load_network("mlp-adversarial")
    assert_robust(network, digits.random(40), eps=0.03, at_least=0.8, confidence=0.95)


def test_a_network_that_is_not(assert_robust: AssertRobust, digits: radii.Dataset) -> None:
    """What a failure says: the counts, and the images with their radii."""
    with pytest.raises(RobustnessFailure, match="is not robust"):
        assert_robust(demo.load_network("mlp-standard"), digits.first(10), eps=0.2, at_least=0.9)


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__, "-q", "-p", "no:cacheprovider"]))
