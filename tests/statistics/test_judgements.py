"""Several requirements at once: what they state holds together with the confidence asked for."""

from __future__ import annotations

import numpy as np
import pytest

from radii.errors import SpecificationError
from radii.statistics import Distribution, check_all, clopper_pearson, parse_requirement

NETWORKS = 8
INPUTS = 120
EPS = 0.1


def sampled(rng: np.random.Generator, share: float) -> Distribution:
    """Several networks, of whose inputs this share is robust at EPS in truth."""
    is_robust = rng.random(NETWORKS * INPUTS) < share
    radii = np.where(is_robust, 2 * EPS, EPS / 2)
    return Distribution.from_arrays(
        radii,
        radii,
        network=np.repeat([f"net{place}" for place in range(NETWORKS)], INPUTS),
        input=np.tile(np.arange(INPUTS), NETWORKS),
    )


def test_false_statements_are_as_rare_as_asked_for_all_together() -> None:
    """The truth is just below what is required: every `met` is false."""
    rng = np.random.default_rng(0)
    required = [parse_requirement(f"robust_accuracy({EPS}) >= 0.8 @ 90%")]
    samples = [sampled(rng, 0.7999) for _ in range(200)]

    def wrong(is_corrected: bool) -> float:
        found = [check_all(required, one, is_corrected=is_corrected).outcomes for one in samples]
        return float(np.mean([any(outcome.is_met for outcome in each) for each in found]))

    assert wrong(is_corrected=True) <= 0.1 + 2 * np.sqrt(0.09 / 200)
    assert wrong(is_corrected=False) > 0.3  # 1 - 0.9^8 is 0.57; limits on counts are cautious


def test_each_statement_is_tested_with_its_part_of_the_error() -> None:
    dist = Distribution.union(
        Distribution.from_arrays([2 * EPS] * 95 + [0.0] * 5, 3 * EPS, network=name)
        for name in ("a", "b")
    )
    texts = (f"robust_accuracy({EPS}) >= 0.8 @ 95%", "accuracy >= 0.9 @ 99%", "min >= 0")
    found = check_all([parse_requirement(text) for text in texts], dist)
    assert found.statements == 4  # 'min' has no confidence
    assert found.together == pytest.approx(1 - (0.05 + 0.05 + 0.01 + 0.01) / 4)
    first = found.outcomes[0]
    assert first.level == 0.95 and first.tested_at == pytest.approx(1 - 0.05 / 4)
    assert first.figure == clopper_pearson(95, 100, 1 - 0.05 / 4, tail="lower")[0]
    assert "with 95 % confidence, together with 3 other statements, it is" in first.reason
    assert found.outcomes[-1].tested_at is None
    assert str(found) == (
        "4 statements have a confidence, and share the error that it permits (Bonferroni, 1/4 "
        "each): all that are met hold together with 97 % confidence."
    )
    alone = check_all([parse_requirement(text) for text in texts], dist, is_corrected=False)
    assert alone.outcomes[0].figure == clopper_pearson(95, 100, 0.95, tail="lower")[0]
    assert "with 95 % confidence it is" in alone.outcomes[0].reason
    assert alone.together == pytest.approx(0.88)
    assert "each its own (uncorrected)" in str(alone) and "at least 88 %" in str(alone)


def test_networks_that_are_asked_one_after_the_other_share_the_error() -> None:
    """The k-th gets 1 / (k (k + 1)) of it: all together no more than the whole."""
    dist = Distribution.from_arrays([2 * EPS] * 50, 3 * EPS)
    required = parse_requirement(f"robust_accuracy({EPS}) >= 0.8 @ 95%")
    for look in (1, 2, 7):
        (found,) = check_all([required], dist, look=look).outcomes
        assert found.tested_at == pytest.approx(1 - 0.05 / (look * (look + 1)))
    assert ", at look 7 on the same inputs, it is at least" in found.reason
    assert sum(1 / (look * (look + 1)) for look in range(1, 1000)) == pytest.approx(1, abs=2e-3)
    with pytest.raises(SpecificationError, match="look 0 must be 1 or more"):
        check_all([required], dist, look=0)


def test_inputs_in_the_order_of_their_file_are_named() -> None:
    dist = Distribution.from_arrays([2 * EPS] * 50, 3 * EPS, network="net", draw="in order")
    confident = parse_requirement(f"robust_accuracy({EPS}) >= 0.8 @ 95%")
    assert "inputs of net were taken in the order of their file" in str(
        check_all([confident], dist)
    )
    certain = parse_requirement(f"robust_accuracy({EPS}) >= 0.8")
    assert str(check_all([certain], dist)) == ""


def test_one_statement_needs_no_correction() -> None:
    dist = Distribution.from_arrays([2 * EPS] * 50, 3 * EPS)
    required = parse_requirement(f"robust_accuracy({EPS}) >= 0.8 @ 95%")
    for several in ([required], [required, required]):  # named twice, it is the same statement
        found = check_all(several, dist)
        assert (found.statements, found.together, str(found)) == (1, 0.95, "")
        assert found.outcomes == tuple(required.check(dist))
    without = check_all([parse_requirement("accuracy >= 0.9")] * 2, dist)
    assert (without.together, str(without), without.is_met) == (None, "", True)
