"""The language of requirements: what it reads, what it says, and what it refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from simulated_brackets import lognormal_brackets

from radii.errors import DataError, SpecificationError
from radii.statistics import Distribution, clopper_pearson, parse_requirement


def hundred() -> Distribution:
    """93 inputs proven at 0.02, 4 more not refuted, 3 misclassified; classes 0 and 1."""
    lower = np.repeat([0.03, 0.01, 0.0], [93, 4, 3])
    upper = np.repeat([0.04, 0.05, 0.0], [93, 4, 3])
    return Distribution.from_arrays(lower, upper, network="net", label=np.arange(100) % 2)


def outcome(text: str, dist: Distribution | None = None) -> Any:
    (found,) = parse_requirement(text).check(dist or hundred())
    return found


@pytest.mark.parametrize(
    ("text", "is_met", "figure"),
    [
        ("robust_accuracy(0.02) >= 0.93", True, 0.93),
        ("robust_accuracy(0.02) > 0.93", False, 0.93),
        ("robust_accuracy( eps = 0.02 )>=93%", True, 0.93),
        ("proven robust_accuracy(0.02) >= 0.95", False, 0.93),
        ("not_refuted robust_accuracy(0.02) >= 0.95", True, 0.97),
        ("robust_accuracy(0.02) <= 0.95", False, 0.97),
        ("robust_accuracy(1/50) >= 0.9", True, 0.93),
        ("accuracy >= 0.97", True, 0.97),
        ("robust_recall(class=0, 0.02) >= 0.9", True, 0.94),
        ("robust_recall(0.02, class=1) >= 0.9", True, 0.92),
        ("robust_recall(1, 0.02) >= 0.93", False, 0.92),
        ("worst_recall(0.02) >= 0.92", True, 0.92),
        ("recall_spread(0.02) <= 0.1", True, 0.06),
        ("median >= 0.03", True, 0.03),
        ("median() <= 0.04", True, 0.04),
        ("quantile(0.02) >= 0.02", False, 0.01),
        ("mean >= 0.029", True, 2.83 / 97),
        ("min > 0.01", False, 0.01),
        ("mean_gap <= 0.02", True, (93 * 0.01 + 4 * 0.04) / 97),
    ],
)
def test_these_inputs(text: str, is_met: bool, figure: float) -> None:
    found = outcome(text)
    assert found.is_met is is_met
    assert found.figure == pytest.approx(figure)
    assert found.network == "net"


def test_confidence_is_one_sided_clopper_pearson() -> None:
    found = outcome("robust_accuracy(0.02) >= 0.90 @ 95%")
    assert found.figure == clopper_pearson(93, 100, 0.95, tail="lower")[0]
    assert not found.is_met
    assert outcome("robust_accuracy(0.02) >= 0.87 @ 0.95").is_met
    above = outcome("robust_accuracy(0.02) <= 0.99 @ 90%")
    assert above.figure == clopper_pearson(97, 100, 0.9, tail="upper")[1]
    worst = outcome("worst_recall(0.02, classes=2) >= 0.8 @ 90%")
    assert worst.figure == clopper_pearson(46, 50, 0.9, tail="lower")[0]
    best = outcome("worst_recall(0.02) <= 1 @ 90%")
    assert best.figure == clopper_pearson(48, 50, 0.95, tail="upper")[1]
    spread = outcome("recall_spread(0.02, classes=2) <= 0.3 @ 90%")
    assert 0.06 < spread.figure < 0.3


def test_reasons_are_sentences() -> None:
    assert outcome("robust_accuracy(0.02) >= 0.90 @ 95%").reason == (
        "net: 93 of 100 inputs are proven at eps 0.02 (0.93), so with 95 % confidence it is at "
        "least 0.8725 for all inputs; required is >= 0.9. But 97 of 100 inputs are not refuted at "
        "eps 0.02: longer proofs may still show it."
    )
    assert outcome("min > 0").reason == (
        "net: the smallest of the proven radii of 97 inputs is 0.01; required is > 0."
    )
    assert "the worst of 2 classes is 1, of whose 50 inputs 46 are proven" in (
        outcome("worst_recall(0.02) >= 0.5").reason
    )


def test_a_limit_says_whom_it_is_about() -> None:
    assert "for all correctly classified inputs" in outcome("median >= 0.01 @ 95%").reason
    assert "for all correctly classified inputs" in outcome("mean >= 0.01 @ 95%").reason
    assert "for all inputs of class 1" in outcome("robust_recall(1, 0.02) >= 0.5 @ 95%").reason


def test_a_class_without_inputs_is_unknown() -> None:
    """Ten outputs, two classes among the inputs: of the other eight nothing is known."""
    dist = hundred().labelled(classes=10)
    worst = outcome("worst_recall(0.02) >= 0.1 @ 95%", dist)
    assert (worst.is_met, worst.figure) == (False, 0)
    assert "classes 2, 3, 4, 5, 6, 7, 8, 9 have no input, so that nothing is known" in worst.reason
    assert not outcome("recall_spread(0.02) <= 0.9 @ 95%", dist).is_met
    assert outcome("worst_recall(0.02, classes=2) >= 0.8 @ 95%", dist).is_met
    assert outcome("recall_spread(0.02, classes=2) <= 0.3 @ 95%", dist).is_met
    assert outcome("worst_recall(0.02) >= 0.9", dist).is_met  # of these inputs
    # One class that is bad is enough to refute, whatever the others are.
    assert outcome("worst_recall(0.02) <= 0.996 @ 95%", dist).is_met
    for text in ("worst_recall(0.02) >= 0.1 @ 95%", "recall_spread(0.02) <= 0.9 @ 95%"):
        with pytest.raises(DataError, match="do not tell how many classes there are"):
            outcome(text)
    with pytest.raises(DataError, match="input of class 1, which is not one of 1 classes"):
        outcome("worst_recall(0.02, classes=1) >= 0.1 @ 95%")


def test_inputs_that_were_drawn_class_by_class_bound_shares_by_their_classes() -> None:
    """46 of 50 of class 1 are the worst; nobody knows how frequent the classes are."""
    dist = hundred().labelled(draw="per class", classes=2)
    low = clopper_pearson(46, 50, 0.95, tail="lower")[0]
    assert outcome("robust_accuracy(0.02) >= 0 @ 95%", dist).figure == low
    kept = hundred().labelled(draw="stratified", classes=2)  # proportions, up to rounding
    exact = clopper_pearson(93, 100, 0.95, tail="lower")[0]
    assert outcome("robust_accuracy(0.02) >= 0 @ 95%", kept).figure == pytest.approx(exact - 0.005)
    by_class = outcome("median >= 0 @ 95%", dist).figure
    assert by_class == min(
        outcome("median >= 0 @ 95%", dist.only(label=label)).figure for label in (0, 1)
    )
    missing = kept.labelled(classes=3)
    assert outcome("median >= 0 @ 95%", missing).figure == 0
    with pytest.raises(DataError, match="draw 'at will' is not one of random"):
        hundred().labelled(draw="at will")


def test_every_network_is_asked() -> None:
    both = Distribution.union([hundred(), lognormal_brackets(20, 0, network="other")])
    assert [o.network for o in parse_requirement("accuracy >= 0.98").check(both)] == [
        "net",
        "other",
    ]
    assert [o.is_met for o in parse_requirement("accuracy >= 0.98").check(both)] == [False, True]


def test_targets_are_combined_first() -> None:
    dist = Distribution.from_arrays(
        [0.1, 0.3], [0.2, 0.4], input=[0, 0], label=0, target=[1, 2], classes=3
    )
    assert outcome("robust_accuracy(0.25) <= 0", dist).is_met
    assert outcome("min >= 0.1", dist).figure == 0.1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("robust accuracy above 0.9", "is not of the form"),
        ("robust_accuracy(0.02) = 0.9", "is not of the form"),
        ("robust_acuracy(0.02) >= 0.9", "'robust_acuracy' is not one of accuracy"),
        ("robust_accuracy >= 0.9", "needs eps"),
        ("robust_accuracy(0.02, 0.03) >= 0.9", "needs eps"),
        ("accuracy(0.02) >= 0.9", "needs no arguments"),
        ("robust_accuracy(class=3) >= 0.9", "has no use for 'class=3'"),
        ("robust_accuracy(-1) >= 0.9", "numbers >= 0"),
        ("robust_accuracy(x) >= 0.9", "'x' is not a number"),
        ("robust_accuracy(1/0) >= 0.9", "'1/0' is not a number"),
        ("robust_accuracy(0.02) >= inf", "not a finite number"),
        ("robust_accuracy(0.02) >= 0.9 @ 100%", "below 100%"),
        ("robust_accuracy(0.02) >= 0.9 @ 95", "at least 50% and below 100%"),
        ("robust_recall(class=1.5, 0.02) >= 0.9", "'class' is a whole number"),
        ("robust_accuracy(0.1) >= 70", "share between 0 and 1, not 70: write 0.7 or 70%"),
        ("accuracy >= -1", "share between 0 and 1, not -1"),
        ("recall_spread(0.1) <= 400%", "share between 0 and 1, not 400%"),
        ("proven recall_spread(0.02) <= 0.1", "has no side 'proven'"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        parse_requirement(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("min > 0 @ 95%", "no sample bounds the smallest radius"),
        ("mean <= 1 @ 95%", "no sample bounds the mean radius"),
        ("mean_gap <= 1 @ 95%", "about these inputs"),
        ("quantile(1.5) > 0", "between 0 and 1"),
    ],
)
def test_what_cannot_be_said_is_refused(text: str, message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        outcome(text)


def test_a_class_without_inputs_and_a_missing_witness() -> None:
    with pytest.raises(DataError, match="no bracket has label 7"):
        outcome("robust_recall(class=7, 0.02) >= 0.9")
    open_ended = Distribution.from_arrays([0.1], [math.inf])
    assert not outcome("mean_gap <= 1", open_ended).is_met
    assert not outcome("median <= 1", open_ended).is_met
