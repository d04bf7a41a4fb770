"""The paper's claims about its own tables, and the evidence for each.

Each function is given the rows or numbers of a step and gives one claim. All rows are the paper's:
radii in them are the lower sides that it published. Claims about search, brackets of our own and
networks trained again stand with their steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from radii.distributions import Distribution, holm
from radii.results import Float64
from radii.training.papers._evidence import (
    ClaimBasis,
    ClaimInterval,
    ClaimScope,
    StudyClaim,
    alike,
    differing,
    fact,
    unclear,
    within,
)
from radii.training.papers._intervals import mean_interval, paired_p_value
from radii.training.papers.distributions._numbers import CRITICAL_TERMINATIONS, NOT_LOG_NORMAL
from radii.training.papers.distributions._public import (
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
CLAIMED = "Radii are the published lower sides, of which the audit refutes many."


def critical_claim(count: int, total: int) -> StudyClaim:
    """Counted where the files hold the paper's own number of rows."""
    critical, instances = CRITICAL_TERMINATIONS
    is_whole = total == int(instances)
    return StudyClaim(
        "Of the twelve conventionally trained networks 2.6 % of the instances have a query without "
        "an answer between both sides; all other brackets are as tight as the grid",
        "Section 3.2",
        "count of the published brackets that are wider than a step of the grid",
        (
            fact(
                "both splits",
                count == int(critical) if is_whole else None,
                f"{count} of {total} (the paper: {critical} of {instances})",
                total,
                f"{critical} of {instances}",
            ),
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
    all rows. Dropped rows are no random part: a sample that lacks many of them says nothing."""
    p_values = holm([p for p, *_ in samples.values()]).tolist()
    cases = []
    for (name, (_, n, answered, listed)), p in zip(samples.items(), p_values, strict=True):
        if answered >= MOSTLY * listed:
            cases.append(alike(name, THEIRS, n, p))
            continue
        why = f"{listed - answered} of {listed} rows have no answer and are dropped"
        cases.append(unclear(name, THEIRS, n, f"p = {p:.2g}", why))
    return StudyClaim(
        "100 images give the same distribution as 400",
        "Appendix C, Table 6",
        "Kolmogorov and Smirnov's test between samples of different images, Holm",
        tuple(cases),
        note=CLAIMED,
    )


def family_claims(
    conventional: Sequence[tuple[str, int, float]], trained: Sequence[tuple[str, int, float]]
) -> list[StudyClaim]:
    """Of each network and split: its name, rows, and the p-value of a log-normal distribution."""
    how = "parametric bootstrap of the largest distance, of the right level on the grid; Holm"
    first = zip(conventional, holm([p for *_, p in conventional]).tolist(), strict=True)
    second = zip(trained, holm([p for *_, p in trained]).tolist(), strict=True)
    exceptions = tuple(f"{name}, " for name in NOT_LOG_NORMAL)
    return [
        StudyClaim(
            f"Radii of conventionally trained MNIST networks are log-normal, but for "
            f"{', '.join(NOT_LOG_NORMAL)}",
            "Section 4.4",
            how,
            tuple(
                (differing if name.startswith(exceptions) else alike)(name, THEIRS, n, p)
                for (name, n, _), p in first
            ),
            note=f"Not rejected is all that 'holds' means of a log-normal distribution. {CLAIMED}",
        ),
        StudyClaim(
            "Radii of most adversarially trained MNIST networks are not log-normal",
            "Section 7",
            how,
            tuple(differing(name, THEIRS, n, p) for (name, n, _), p in second),
            ClaimScope.MOST,
            CLAIMED,
        ),
    ]


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
        "radii than its standard ones",
        "Section 5.3, Figures 8 and 9",
        f"{PAIRED}, training images",
        tuple(within(name, THEIRS, n, gain, above=0) for name, (n, gain) in gains.items()),
        note=f"One network a training, so nothing is said of other trainings. {CLAIMED}",
    )


def convolutional_claim(pairs: Mapping[str, tuple[Float64, Float64]]) -> StudyClaim:
    """The others do not gain significantly: `alike`, unless they lose."""
    gains = gain_intervals(pairs)
    p_values = holm([paired_p_value(own, base) for base, own in pairs.values()]).tolist()
    cases = []
    for (name, (n, gain)), p in zip(gains.items(), p_values, strict=True):
        if name == GAINING:
            cases.append(within(name, THEIRS, n, gain, above=0))
        else:
            cases.append(alike(name, THEIRS, n, p if gain.value > 0 else 1.0))
    return StudyClaim(
        f"Of the paper's convolutional MNIST networks, {GAINING} alone has significantly larger "
        "radii than the standard one",
        "Section 6.3, Figure 11",
        f"{PAIRED}; of the others Wilcoxon's signed ranks, Holm; training images",
        tuple(cases),
        note=f"Table 8 of the paper has a test of the means, with another answer. {CLAIMED}",
    )


def means_claim(
    by_split: Mapping[Split, Mapping[str, tuple[Float64, Float64]]],
) -> StudyClaim:
    """`UNCHANGED` is alike on both splits, and all others differ."""
    from scipy.stats import ttest_rel

    tested = [
        (f"{name}, {split}", name, len(base), float(ttest_rel(own, base).pvalue))
        for split, pairs in by_split.items()
        for name, (base, own) in pairs.items()
    ]
    p_values = holm([p for *_, p in tested]).tolist()
    return StudyClaim(
        "Adversarial training changes the mean radius of every convolutional MNIST network of the "
        f"paper but {UNCHANGED}",
        "Section 6.3, Table 8",
        "t-test on the differences of images that both networks classify correctly, Holm",
        tuple(
            (alike if name == UNCHANGED else differing)(title, THEIRS, n, p)
            for (title, name, n, _), p in zip(tested, p_values, strict=True)
        ),
        note=CLAIMED,
    )


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


def proof_claim(by_network: Mapping[str, tuple[int, int]]) -> StudyClaim:
    """By network: refuted rows, and attacked ones. That the others stand proves nothing."""
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
        note=f"In all {sum(r for r, _ in by_network.values())} of "
        f"{sum(a for _, a in by_network.values())}. That the others stand proves nothing.",
    )
