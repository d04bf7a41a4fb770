"""The paper's claims about its own tables, and the evidence for each.

Each function is given the rows or numbers of a step and gives one claim. All rows are the paper's:
radii in them are the lower sides that it published. Claims about search, brackets of our own and
networks trained again stand with their steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from radii.statistics import Distribution, Float64, holm
from radii_papers._evidence import (
    CLAIM_LEVEL,
    CaseOutcome,
    ClaimBasis,
    ClaimCase,
    ClaimInterval,
    ClaimScope,
    StudyClaim,
    alike,
    contradicted,
    differing,
    fact,
    p_value_text,
    unclear,
    within,
)
from radii_papers._intervals import mean_interval, paired_p_value
from radii_papers._tables import share_text
from radii_papers.distributions._numbers import CRITICAL_TERMINATIONS, NOT_LOG_NORMAL
from radii_papers.distributions._public import (
    PublicResults,
    PublishedNetwork,
    Split,
)

THEIRS = ClaimBasis.THEIRS

MOSTLY = 0.9
"""A sample of which fewer rows have an answer is no random part of all images."""

GAINING = "convMedG PGDK_w_0.3"
"""The convolutional network that the paper finds to gain by its training."""

UNCHANGED = "convSmall DiffAI"
"""The one of which the paper says that its mean is not changed."""

USUAL = ("Standard", "Point")
"""Trainings that are not adversarial."""

PAIRED = "bootstrap of the mean difference over images that both networks classify correctly"
CLAIMED = "These are the published lower sides, of which the audit refutes many."
LOWER_SIDES = "lower sides (the paper's ε̃*)"


CRITICAL_SHARE = 2.6
"""Per cent, as the paper prints it: it cuts off, for its own 61 of 2301 are 2.65 %."""


def critical_claim(count: int, total: int, same_count: str = "") -> StudyClaim:
    """`count` of `total` published brackets are wider than a step of the grid; `same_count` says
    where else the paper has this count.

    Counted where the files hold the paper's own number of rows; it fails above what is still
    printed as the paper's share.
    """
    critical, instances = CRITICAL_TERMINATIONS
    share = 100 * count / total if total else 0.0
    is_true: bool | None = None
    if total == int(instances):
        cut_off = int(10 * share + 1e-9) / 10
        is_true = False if cut_off > CRITICAL_SHARE else cut_off == CRITICAL_SHARE or None
    return StudyClaim(
        f"All but {critical} of {instances} instances of the twelve conventionally trained "
        f"networks ({CRITICAL_SHARE} %) have a bracket as tight as the grid",
        "Section 3.2",
        "count of the published brackets that are wider than a step of the grid",
        (
            fact(
                "both splits",
                is_true,
                f"{count} of {total} are wider, {share:.1f} % (the paper: {critical} of "
                f"{instances}, {CRITICAL_SHARE} %)",
                total,
                f"{CRITICAL_SHARE} %; fails where more, rounded or cut off",
            ),
        ),
        note=" ".join(
            filter(
                None,
                (
                    f"The paper writes of {critical} critical terminations, {CRITICAL_SHARE} % of "
                    f"the queries, and of tight brackets in all other cases; {critical} of "
                    f"{instances} are instances.",
                    same_count,
                ),
            )
        ),
    )


def radii_by_image(part: Distribution | None) -> dict[int, float]:
    """The lower side of each image; where an image stands twice, the last."""
    if part is None:
        return {}
    return dict(zip(part.column("input").tolist(), part.lower.tolist(), strict=True))


def paired_radii(one: Distribution | None, two: Distribution | None) -> tuple[Float64, Float64]:
    """The lower sides of the images that both have, in one order."""
    first, second = radii_by_image(one), radii_by_image(two)
    shared = sorted(first.keys() & second.keys())
    return (
        np.array([first[image] for image in shared]),
        np.array([second[image] for image in shared]),
    )


# --- samples and families


def size_claim(samples: Mapping[str, tuple[float, int, int, int]]) -> StudyClaim:
    """By network: p, images of the smaller sample, and of the larger one rows with an answer and
    all rows. Dropped rows are no random part: a sample that lacks many of them says nothing.

    The paper says no more than that its test cannot reject."""
    p_values = holm([p for p, *_ in samples.values()]).tolist()
    cases = []
    for (name, row), corrected in zip(samples.items(), p_values, strict=True):
        p, n, answered, listed = row
        if answered >= MOSTLY * listed:
            cases.append(alike(name, THEIRS, n, p, corrected))
            continue
        why = f"{listed - answered} of {listed} rows have no answer and are dropped"
        cases.append(unclear(name, THEIRS, n, p_value_text(p, corrected), why))
    return StudyClaim(
        "Between 100 and 400 other training images no significant difference is found",
        "Appendix C, Table 6",
        "Kolmogorov and Smirnov's test between samples of different images, each by itself, as in "
        "the paper; to fail, after Holm",
        tuple(cases),
        note=CLAIMED,
    )


FamilyTest = tuple[str, int, float]
"""Network and split, rows, and the p-value of a log-normal distribution."""


def family_claims(
    conventional: Sequence[FamilyTest], trained: Sequence[FamilyTest], own_check: str = ""
) -> list[StudyClaim]:
    """Of log-normal distributions: a test can contradict them, and can show that there is none.
    `own_check` is what the paper's check says of those that the paper calls log-normal."""
    how = (
        "parametric bootstrap of the largest distance, of the right level for lower sides on the "
        "grid; after Holm's correction for the cases of this claim"
    )
    exceptions = tuple(f"{name}, " for name in NOT_LOG_NORMAL)
    others = [each for each in conventional if not each[0].startswith(exceptions)]
    excepted = [each for each in conventional if each[0].startswith(exceptions)]
    names = ", ".join(NOT_LOG_NORMAL)
    return [
        StudyClaim(
            f"The {LOWER_SIDES} of conventionally trained MNIST networks other than {names} are "
            "log-normal",
            "Section 4.4",
            f"{how}; that it does not reject supports nothing",
            tuple(contradicted(*case) for case in _with_holm(others)),
            note=" ".join(filter(None, (own_check, CLAIMED))),
        ),
        StudyClaim(
            f"Those of {names} are not log-normal",
            "Section 4.4",
            how,
            tuple(differing(*case) for case in _with_holm(excepted)),
            note=CLAIMED,
        ),
        StudyClaim(
            f"The {LOWER_SIDES} of most adversarially trained MNIST networks are not log-normal",
            "Sections 5.3 and 7",
            how,
            tuple(differing(*case) for case in _with_holm(trained)),
            ClaimScope.MOST,
            CLAIMED,
        ),
    ]


def _with_holm(tests: Sequence[FamilyTest]) -> list[tuple[str, ClaimBasis, int, float, float]]:
    corrected = holm([p for *_, p in tests]).tolist()
    return [(name, THEIRS, n, p, q) for (name, n, p), q in zip(tests, corrected, strict=True)]


# --- trainings


def training_pairs(
    results: PublicResults, networks: Sequence[PublishedNetwork], split: Split
) -> dict[str, tuple[Float64, Float64]]:
    """Of each adversarial training: the radii of the standard one of its architecture, and its
    own, of the images that both have."""
    bases = {n.architecture: results.part(n, split) for n in networks if n.training in USUAL}
    pairs = {}
    for network in networks:
        own, base = results.part(network, split), bases.get(network.architecture)
        if network.training not in USUAL and own is not None and base is not None:
            pairs[network.title] = paired_radii(base, own)
    return {name: pair for name, pair in pairs.items() if len(pair[0]) > 1}


def gain_intervals(
    pairs: Mapping[str, tuple[Float64, Float64]],
) -> dict[str, tuple[int, ClaimInterval]]:
    """Of each network: images of both, and its mean gain over the standard training."""
    return {
        name: (len(base), mean_interval(own - base, len(pairs)))
        for name, (base, own) in pairs.items()
    }


def dense_claim(pairs: Mapping[str, tuple[Float64, Float64]]) -> StudyClaim:
    gains = gain_intervals(pairs)
    return StudyClaim(
        "The paper's adversarially trained fully connected MNIST and GTSRB networks have larger "
        f"{LOWER_SIDES} than its standard ones",
        "Section 5.3, Figures 8 and 9",
        f"{PAIRED}, training images",
        tuple(within(name, THEIRS, n, gain, above=0) for name, (n, gain) in gains.items()),
        note=f"One network a training, so nothing is said of other trainings. {CLAIMED}",
    )


def convolutional_claims(pairs: Mapping[str, tuple[Float64, Float64]]) -> list[StudyClaim]:
    """That one network gains can be shown. Of the others the paper says that no improvement was
    observed, by no test that it names, and that better brackets might show one: nothing here can
    tell."""
    gaining, others = [], []
    for (name, (n, gain)), (base, own) in zip(
        gain_intervals(pairs).items(), pairs.values(), strict=True
    ):
        if name == GAINING:
            gaining.append(within(name, THEIRS, n, gain, above=0))
            continue
        shows = (
            f"{gain.text}; in pairs p = {paired_p_value(own, base):.2g}, by Kolmogorov and "
            f"Smirnov's test p = {_unpaired_ks(base, own):.2g}"
        )
        others.append(unclear(name, THEIRS, n, shows, "the paper names no test"))
    return [
        StudyClaim(
            f"The paper's convolutional MNIST network {GAINING} has significantly larger "
            f"{LOWER_SIDES} than the standard one",
            "Section 6.3, Figure 11",
            f"{PAIRED}, training images",
            tuple(gaining),
            note=f"One network a training, so nothing is said of other trainings. {CLAIMED}",
        ),
        StudyClaim(
            "For its other convolutional MNIST networks no significant improvement by adversarial "
            "training is observed",
            "Section 6.3, Figure 11",
            f"{PAIRED}, Wilcoxon's signed ranks and the paper's usual test, each by itself; "
            "training images",
            tuple(others),
            note="The paper names no test, and says that better brackets might show that they "
            f"gain; its Table 8 tests the means, with another answer. {CLAIMED}",
        ),
    ]


def _unpaired_ks(one: Float64, two: Float64) -> float:
    from scipy.stats import ks_2samp

    return float(ks_2samp(one, two).pvalue)


@dataclass(frozen=True, slots=True)
class MeanTest:
    """Of one network and split, whether its mean is that of the standard one: images of both, and
    p-values of the paper's unpaired t-test of all rows and of the differences of images."""

    title: str
    network: str
    n: int
    unpaired: float
    paired: float


def mean_tests(
    results: PublicResults, networks: Sequence[PublishedNetwork], split: Split
) -> list[MeanTest]:
    """Of each adversarial training; the unpaired test is Welch's."""
    from scipy.stats import ttest_ind, ttest_rel

    bases = {n.architecture: results.part(n, split) for n in networks if n.training in USUAL}
    found = []
    for network in networks:
        own, base = results.part(network, split), bases.get(network.architecture)
        if network.training in USUAL or own is None or base is None:
            continue
        before, after = paired_radii(base, own)
        if len(before) > 1:
            unpaired = float(ttest_ind(base.lower, own.lower, equal_var=False).pvalue)
            paired = float(ttest_rel(after, before).pvalue)
            title = f"{network.title}, {split}"
            found.append(MeanTest(title, network.title, len(before), unpaired, paired))
    return found


def means_claim(tests: Sequence[MeanTest]) -> StudyClaim:
    """A case counts where the paper's unpaired test and the one in pairs give the same answer."""
    unpaired = holm([each.unpaired for each in tests]).tolist()
    paired = holm([each.paired for each in tests]).tolist()
    return StudyClaim(
        f"Adversarial training changes the mean of the {LOWER_SIDES} of every convolutional MNIST "
        f"network of the paper but {UNCHANGED}",
        "Section 6.3, Table 8",
        "the paper's t-test, which takes both networks' images for others, beside the t-test on "
        "the differences of images that both classify correctly; each with Holm",
        tuple(_mean_case(*row) for row in zip(tests, unpaired, paired, strict=True)),
        note=f"Table 8 is of the unpaired test. {CLAIMED}",
    )


def _mean_case(test: MeanTest, unpaired: float, paired: float) -> ClaimCase:
    """That a mean is unchanged can fail and cannot hold."""
    both_differ = max(unpaired, paired) < CLAIM_LEVEL
    is_exception = test.network == UNCHANGED
    outcome = CaseOutcome.UNCLEAR
    if both_differ:
        outcome = CaseOutcome.FAILS if is_exception else CaseOutcome.HOLDS
    verb = "fails" if is_exception else "holds"
    return ClaimCase(
        name=test.title, basis=THEIRS, n=test.n,
        shows=f"unpaired {p_value_text(test.unpaired, unpaired)}; "
        f"in pairs {p_value_text(test.paired, paired)}",
        rule=f"{verb} where both p < {CLAIM_LEVEL:g} after Holm", outcome=outcome,
    )  # fmt: skip


def cost_claim(times: Mapping[str, Float64]) -> StudyClaim:
    """`times`: of each network the logarithms of published seconds, less those of the standard
    training, of the images that both have."""
    return StudyClaim(
        "The paper's adversarially trained fully connected networks generally take longer to "
        "verify than its standard ones",
        "Sections 1 and 5.3, Tables 11 to 13",
        "bootstrap over images of both of the mean ratio of published seconds (a logarithm)",
        tuple(
            within(name, THEIRS, len(ratios), mean_interval(ratios, len(times)), above=0)
            for name, ratios in times.items()
        ),
        ClaimScope.MOST,
    )


def proof_claim(by_network: Mapping[str, tuple[int, int]], how_far: str = "") -> StudyClaim:
    """By network: refuted radii, and attacked ones. That the others stand proves nothing.
    `how_far` says that the witnesses are more than rounding."""
    refuted, attacked = (sum(pair[place] for pair in by_network.values()) for place in (0, 1))
    return StudyClaim(
        "A published lower side is a radius within which no counterexample exists, proven by a "
        "complete verifier",
        "Sections 3.1 and 3.3",
        "counterexamples within the published radius, replayed on ONNX Runtime",
        tuple(
            fact(
                name,
                False if refuted else None,
                f"{refuted} of {attacked} claimed radii refuted",
                attacked,
                "proven",
            )
            for name, (refuted, attacked) in by_network.items()
        ),
        note=f"In all {share_text(refuted, attacked)}, where a radius that two tables give for the "
        "same image of the same network counts once. That the others stand proves nothing."
        f"{' ' if how_far else ''}{how_far}",
    )
