"""The study's own measurements: rules of verdicts, bisection with an attack, closed brackets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from radii.attacks import Apgd
from radii.distributions import Distribution
from radii.results import theoretical_maximum
from radii.testing import LinearClassifier, instance_at
from radii.training.papers._steps import ClaimVerdict
from radii.training.papers.distributions import _claims, _numbers
from radii.training.papers.distributions._attacks import bisected
from radii.training.papers.distributions._brackets import adversarial_shift, closed_brackets
from radii.training.papers.distributions._ksearch import GRID_VALUES
from radii.training.papers.distributions._trained import TRAINING_SIZES, TRAININGS

CONFIRMED, REFUTED = ClaimVerdict.CONFIRMED, ClaimVerdict.REFUTED
DEPENDS, OPEN = ClaimVerdict.DEPENDS, ClaimVerdict.OPEN


def brackets(lower: list[float], upper: list[float]) -> Distribution:
    return Distribution.from_arrays(lower, upper, network="any")


def test_a_claim_about_all() -> None:
    found = [_claims.graded(count, 4) for count in (0, 1, 4)]
    assert found == [REFUTED, DEPENDS, CONFIRMED]
    assert _claims.graded(0, 0) is OPEN


def test_no_single_network_differs_but_all_lean_one_way() -> None:
    assert _claims.split_claim(40, 0, 20).verdict is CONFIRMED
    assert _claims.split_claim(40, 0, 32).verdict is DEPENDS
    assert _claims.split_claim(40, 1, 20).verdict is REFUTED
    assert _claims.split_claim(0, 0, 0).verdict is OPEN


def test_the_better_network_depends_on_eps() -> None:
    assert _claims.order_claim([(93.0, 66.0), (100.0, 49.0)]).verdict is CONFIRMED
    assert _claims.order_claim([(93.0, 49.0), (100.0, 66.0)]).verdict is REFUTED
    assert _claims.order_claim([]).verdict is OPEN


def test_one_witness_refutes_a_claim_of_proofs_and_none_proves_it() -> None:
    assert _claims.proof_claim(1, 1000).verdict is REFUTED
    assert _claims.proof_claim(0, 1000).verdict is OPEN


def test_families() -> None:
    assert [c.verdict for c in _claims.family_claims(18, 24, 9, 10)] == [REFUTED, CONFIRMED]
    assert [c.verdict for c in _claims.family_claims(1, 24, 2, 10)] == [CONFIRMED, DEPENDS]
    assert [c.verdict for c in _claims.family_claims(9, 24, 0, 10)] == [DEPENDS, REFUTED]
    assert [c.verdict for c in _claims.family_claims(0, 0, 0, 0)] == [OPEN, OPEN]


def test_dropped_rows_spoil_a_comparison_of_samples() -> None:
    assert _claims.size_claim([0.3, 0.8], 390, 400).verdict is CONFIRMED
    assert _claims.size_claim([0.3, 0.8], 150, 400).verdict is DEPENDS
    assert _claims.size_claim([0.01, 0.001], 390, 400).verdict is REFUTED


def test_the_one_convolutional_network_that_gains() -> None:
    one = _claims.GAINING
    assert _claims.convolutional_claim([one], ["a"]).verdict is CONFIRMED
    assert _claims.convolutional_claim([one, "a"], []).verdict is DEPENDS
    assert _claims.convolutional_claim(["a"], [one]).verdict is REFUTED
    assert _claims.convolutional_claim([], []).verdict is OPEN


def test_bisection_with_an_attack_of_one_eps_finds_the_radius() -> None:
    classifier = LinearClassifier.random(3, dtype=np.float32)
    points = np.random.default_rng(3).normal(size=(2, 5))
    instances = [instance_at(classifier.network, point) for point in points]
    radii = [classifier.radius(i.input, i.label, i.norm) for i in instances]
    found = bisected(Apgd(), classifier.network, instances, 4 * max(radii))
    assert found.upper == pytest.approx(radii, rel=0.02)
    assert all(high >= (1 - 1e-5) * r for high, r in zip(found.upper, radii, strict=True))
    nothing = bisected(Apgd(), classifier.network, instances, 0.5 * min(radii))
    assert nothing.upper == [math.inf, math.inf]


def test_closed_brackets() -> None:
    part = brackets([0.001, 0.001, 0.399, 0.0], [0.003, 0.0051, math.inf, math.inf])
    assert closed_brackets(part, 0.002) == 2


def test_a_shift_is_certain_only_if_proofs_lie_above_witnesses() -> None:
    standard = brackets([0.01, 0.01], [0.02, 0.02])
    proven, open_ = brackets([0.03, 0.03], [0.1, 0.1]), brackets([0.0, 0.03], [0.1, math.inf])
    assert adversarial_shift([("s", standard), ("a", proven), ("b", open_)]) == ["a"]
    assert adversarial_shift([("s", None), ("a", proven)]) == []


def test_numbers_of_the_paper_fit_together() -> None:
    """Its theoretical maxima are ours; its shares are those of its counts, but for one slip."""
    for (k,), row in _numbers.SEARCHES.items():
        assert row[0] == str(theoretical_maximum(GRID_VALUES, int(k)) or "")
    for row in _numbers.SEARCH_QUERIES.values():
        queries, cancelled, share = int(row[0]), int(row[3]), float(row[4])
        assert cancelled / queries == pytest.approx(share, abs=0.06)


def test_every_trained_architecture_has_the_papers_settings() -> None:
    for name in TRAINING_SIZES:
        for training in TRAININGS:
            assert (name, training) in _numbers.TRAINING_SETTINGS
            assert (name, training) in _numbers.ACCURACIES
