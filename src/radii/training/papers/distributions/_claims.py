"""The paper's claims about its own tables, and the rule by which each gets its verdict.

Each function is given the numbers of a step and gives one claim. Claims about search, brackets of
our own and networks trained again stand with their steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from radii.results import Float64
from radii.training.papers._steps import ClaimVerdict, StudyClaim
from radii.training.papers._tables import share_text
from radii.training.papers.distributions._numbers import SIGNIFICANCE
from radii.training.papers.distributions._public import PublicResults, PublishedNetwork
from radii.training.papers.distributions._quality import two_sample_p_value

if TYPE_CHECKING:
    from radii.distributions import Correlations

MOSTLY = 0.9
"""A claim about all of many holds mostly, and depends, from this share on."""


GAINING = "convMedG PGDK_w_0.3"
"""The convolutional network that the paper finds to gain by its training."""

UNCHANGED = "convSmall DiffAI"
"""The one of which the paper says that its mean is not changed."""


BY_WHICH_TEST = "by Kolmogorov and Smirnov's test on training images"


def graded(count: int, total: int) -> ClaimVerdict:
    """Of a claim about all of `total`: CONFIRMED by all, REFUTED by none, else it DEPENDS."""
    if not total:
        return ClaimVerdict.OPEN
    if count == total:
        return ClaimVerdict.CONFIRMED
    return ClaimVerdict.REFUTED if count == 0 else ClaimVerdict.DEPENDS


def order_claim(proven: Sequence[tuple[float, float]]) -> StudyClaim:
    """`proven`: of two networks the robust accuracy at either eps."""
    verdict = ClaimVerdict.OPEN
    text = "the files do not hold both networks"
    if len(proven) == 2:
        (low_first, high_first), (low_second, high_second) = proven
        turns = (low_first - low_second) * (high_first - high_second) < 0
        verdict = ClaimVerdict.CONFIRMED if turns else ClaimVerdict.REFUTED
        text = (
            f"relu_4_1024 {low_first:.0f} % and net {low_second:.0f} % at 0.012, but "
            f"{high_first:.0f} % and {high_second:.0f} % at 0.04, by the published lower sides"
        )
    return StudyClaim(
        "Which of two networks is more robust depends on the eps that is asked for",
        "Section 4.3, Figure 2",
        verdict,
        text,
    )


def split_claim(rows: int, significant: int, larger: int) -> StudyClaim:
    """REFUTED by one network after Holm's correction; DEPENDS where all together lean one way."""
    from scipy.stats import binomtest

    verdict, p_value = ClaimVerdict.OPEN, 1.0
    if rows:
        p_value = float(binomtest(larger, rows).pvalue)
        verdict = ClaimVerdict.CONFIRMED
        if significant:
            verdict = ClaimVerdict.REFUTED
        elif p_value < SIGNIFICANCE:
            verdict = ClaimVerdict.DEPENDS
    return StudyClaim(
        "Radii of training and of testing images do not differ",
        "Sections 4.4, 5.3 and 6.3",
        verdict,
        f"after Holm's correction {significant} of {rows} networks differ; the mean is larger on "
        f"training images for {share_text(larger, rows, 'networks')} (sign test p = {p_value:.3f}, "
        "as if networks were independent)",
    )


def correlation_claims(train: Correlations | None, test: Correlations | None) -> list[StudyClaim]:
    """Between networks: above 0 for every pair; smaller on testing images for all pairs but one."""
    first, second = "open", "open"
    positive = pairs = smaller = 0
    if train is not None:
        values = _pairs(train)
        positive, pairs = int((values > 0).sum()), values.size
        first = f"{share_text(positive, pairs, 'pairs')} above 0 on training images, mean " + (
            f"{float(np.nanmean(values)):.2f}"
        )
    if train is not None and test is not None and train.networks == test.networks:
        smaller = int((_pairs(test) < _pairs(train)).sum())
        second = f"smaller on testing images for {share_text(smaller, pairs, 'pairs')}"
    verdict = ClaimVerdict.OPEN
    if second != "open":
        is_nearly = smaller >= MOSTLY * pairs
        verdict = ClaimVerdict.DEPENDS if is_nearly else ClaimVerdict.REFUTED
        verdict = ClaimVerdict.CONFIRMED if smaller >= pairs - 1 else verdict
    return [
        StudyClaim(
            "Images that are hard for one network are hard for others",
            "Section 4.5, Figure 6",
            graded(positive, pairs),
            first,
        ),
        StudyClaim(
            "Correlations are smaller on testing images for every pair of networks but one",
            "Section 4.5, Figure 6",
            verdict,
            second,
        ),
    ]


def _pairs(found: Correlations) -> Float64:
    values: Float64 = found.coefficients[np.triu_indices(len(found.networks), 1)]
    return values


def size_claim(p_values: Sequence[float], answered: int, listed: int) -> StudyClaim:
    """DEPENDS where many rows of the larger sample were dropped for want of an answer."""
    accepted = sum(p >= SIGNIFICANCE for p in p_values)
    verdict = graded(accepted, len(p_values))
    if verdict is ClaimVerdict.CONFIRMED and answered < MOSTLY * listed:
        verdict = ClaimVerdict.DEPENDS
    return StudyClaim(
        "100 images give the same distribution as 400",
        "Appendix C, Table 6",
        verdict,
        f"not rejected for {accepted} of {len(p_values)} networks; but of {listed} rows of the "
        f"larger samples only {answered} have an answer, and the others are left out",
    )


def family_claims(
    rejected: int, total: int, trained_rejected: int, trained: int
) -> list[StudyClaim]:
    """By a test of the right level. REFUTED if it rejects more than half of the distributions."""
    first, second = ClaimVerdict.OPEN, ClaimVerdict.OPEN
    if total:
        first = ClaimVerdict.REFUTED if rejected > total / 2 else ClaimVerdict.DEPENDS
        first = ClaimVerdict.CONFIRMED if rejected <= SIGNIFICANCE * total + 1 else first
    if trained:
        second = ClaimVerdict.CONFIRMED if trained_rejected > trained / 2 else ClaimVerdict.DEPENDS
        second = ClaimVerdict.REFUTED if not trained_rejected else second
    return [
        StudyClaim(
            "Radii of conventionally trained MNIST networks are log-normal, but for net_256x4",
            "Section 4.4",
            first,
            f"a test of the right level rejects {rejected} of {total} distributions",
        ),
        StudyClaim(
            "Radii of adversarially trained MNIST networks are not log-normal",
            "Section 7",
            second,
            f"a test of the right level rejects {trained_rejected} of {trained} distributions",
        ),
    ]


def gaining_networks(
    results: PublicResults, networks: Sequence[PublishedNetwork]
) -> tuple[list[str], list[str]]:
    """Each adversarial training against the standard one of its architecture, on training images:
    titles of networks with a larger mean and Kolmogorov and Smirnov's p below its level; of others.
    """
    usual = ("Standard", "Point")
    bases = {n.architecture: results.part(n, "train") for n in networks if n.training in usual}
    gaining: list[str] = []
    others: list[str] = []
    for network in networks:
        part, base = results.part(network, "train"), bases.get(network.architecture)
        if network.training in usual or part is None or base is None:
            continue
        p_value = two_sample_p_value(base.lower, part.lower)
        is_larger = part.lower.mean() > base.lower.mean() and p_value < SIGNIFICANCE
        (gaining if is_larger else others).append(network.title)
    return gaining, others


def dense_claim(gaining: Sequence[str], others: Sequence[str]) -> StudyClaim:
    total = len(gaining) + len(others)
    text = f"claimed radii are larger for {len(gaining)} of {total} networks, {BY_WHICH_TEST}"
    return StudyClaim(
        "Adversarial training raises the radii of fully connected MNIST and GTSRB networks",
        "Section 5.3, Figures 8 and 9",
        graded(len(gaining), total),
        text + (f"; not for {', '.join(others)}" if others else ""),
    )


def convolutional_claim(gaining: Sequence[str], others: Sequence[str]) -> StudyClaim:
    """DEPENDS where the paper's network gains and is not the only one."""
    verdict = ClaimVerdict.OPEN
    if gaining or others:
        verdict = ClaimVerdict.DEPENDS if GAINING in gaining else ClaimVerdict.REFUTED
        verdict = ClaimVerdict.CONFIRMED if list(gaining) == [GAINING] else verdict
    return StudyClaim(
        f"Of the convolutional MNIST networks, {GAINING} alone gains significantly by adversarial "
        "training",
        "Section 6.3, Figure 11",
        verdict,
        f"claimed radii are larger for {', '.join(gaining) or 'none'}, and not for "
        f"{', '.join(others) or 'none'}, {BY_WHICH_TEST}; Table 8 has a test of the means, which "
        "answers another question",
    )


def means_claim(p_values: Mapping[str, tuple[float, float]]) -> StudyClaim:
    """`p_values`: of convolutional networks, between the means under theirs and under standard
    training, on either split. A mean is changed if both are below the level."""
    agreeing = [
        (max(pair) < SIGNIFICANCE) == (name != UNCHANGED) for name, pair in p_values.items()
    ]
    told = ", ".join(f"{name} {a:.3f} and {b:.3f}" for name, (a, b) in p_values.items())
    return StudyClaim(
        "Adversarial training changes the mean radius of every convolutional MNIST network but "
        f"{UNCHANGED}",
        "Section 6.3, Table 8",
        graded(sum(agreeing), len(agreeing)),
        f"p of Welch's t-test on training and on testing images: {told or 'not in the files'}",
    )


def cost_claim(ratios: Mapping[str, float]) -> StudyClaim:
    """`ratios`: published seconds of a row under a training by those under the standard one."""
    larger = sum(ratio > 1 for ratio in ratios.values())
    told = ""
    if ratios:
        told = f", {min(ratios.values()):.1f} to {max(ratios.values()):.1f} times as long"
    return StudyClaim(
        "Adversarial training raises what verification costs, of fully connected networks",
        "Sections 1 and 5.3, Tables 11 to 13",
        graded(larger, len(ratios)),
        f"the mean published row takes longer for {larger} of {len(ratios)} networks{told}",
    )


def proof_claim(refuted: int, attacked: int) -> StudyClaim:
    """REFUTED by one witness within a claimed radius: it claims a proof of each."""
    verdict = ClaimVerdict.OPEN if not refuted else ClaimVerdict.REFUTED
    return StudyClaim(
        "A published lower side is a radius within which no counterexample exists, proven by a "
        "complete verifier",
        "Sections 3.1 and 3.3",
        verdict,
        f"counterexamples within {share_text(refuted, attacked, 'claimed radii')} that were "
        "attacked; that the others stand proves nothing",
    )
