"""Claims about images under several networks: which of two is more robust, whether splits differ,
and whether the same images are hard.

Networks share their images, so an image is the instance: tests have one number an image, pairs of
one image, or a bootstrap over images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from radii.statistics import Distribution, Float64, holm
from radii_papers._evidence import (
    CLAIM_LEVEL,
    CaseOutcome,
    ClaimCase,
    ClaimInterval,
    ClaimScope,
    StudyClaim,
    alike,
    p_value_text,
    within,
)
from radii_papers._intervals import tail_of
from radii_papers.distributions._claims import (
    CLAIMED,
    LOWER_SIDES,
    THEIRS,
    paired_radii,
    radii_by_image,
)
from radii_papers.distributions._public import (
    NETWORKS_OF_SECTION_4,
    SPLIT_NAMES,
    SPLITS,
    PublicResults,
    PublishedNetwork,
    Split,
)


def order_claim(results: PublicResults, eps: tuple[float, float]) -> StudyClaim:
    """Do two networks change their order between two eps, on the images that both have?"""
    parts = {n.title: results.part(n, "train") for n in NETWORKS_OF_SECTION_4}
    known = [name for name, part in parts.items() if part is not None]
    radii = {pair: paired_radii(parts[pair[0]], parts[pair[1]]) for pair in combinations(known, 2)}
    p_values = {pair: order_p_value(*both, eps) for pair, both in radii.items()}
    corrected = dict(zip(p_values, holm(list(p_values.values())).tolist(), strict=True))
    crossing = [" and ".join(pair) for pair, p in corrected.items() if p < CLAIM_LEVEL]
    shows = f"{len(crossing)} of {len(radii)} pairs change their order"
    if p_values:
        least = min(p_values, key=p_values.__getitem__)
        shows += f"; the smallest {p_value_text(p_values[least], corrected[least])}"
    case = ClaimCase(
        name="pairs of networks",
        basis=THEIRS,
        n=min((len(first) for first, _ in radii.values()), default=0),
        shows=shows,
        rule=f"a pair with p < {CLAIM_LEVEL:g} after Holm",
        outcome=CaseOutcome.HOLDS if crossing else CaseOutcome.UNCLEAR,
    )
    named = _named_order(parts, eps)
    return StudyClaim(
        f"Which of two networks is more robust depends on the eps, such as {eps[0]:g} or "
        f"{eps[1]:g}",
        "Section 4.3, Figure 2",
        "exact test at either eps of the images of both that are robust under one network alone "
        "(McNemar's), the larger p of the two where the order changes, else 1; Holm over pairs",
        (case,),
        ClaimScope.SOME,
        " ".join(filter(None, (named, ", ".join(crossing[:3]), CLAIMED))),
    )


def order_p_value(first: Float64, second: Float64, eps: tuple[float, float]) -> float:
    """That two networks do not change their order between two eps: both tests have to reject, so
    the larger p-value is of the right level."""
    leads, p_values = zip(*(_lead_at(first, second, e) for e in eps), strict=True)
    return max(p_values) if leads[0] * leads[1] < 0 else 1.0


def _lead_at(first: Float64, second: Float64, eps: float) -> tuple[int, float]:
    """Images that are robust at `eps` under the first network alone, less those under the second
    alone; and the p-value that either is as likely."""
    from scipy.stats import binomtest

    one = int(np.count_nonzero((first >= eps) & (second < eps)))
    two = int(np.count_nonzero((first < eps) & (second >= eps)))
    return one - two, float(binomtest(one, one + two).pvalue) if one + two else 1.0


def _named_order(parts: Mapping[str, Distribution | None], eps: tuple[float, float]) -> str:
    """The paper's own example."""
    one, two = "relu_4_1024", "net"
    first, second = paired_radii(parts.get(one), parts.get(two))
    if not len(first):
        return ""
    counts = [
        f"{np.count_nonzero(first >= e)} and {np.count_nonzero(second >= e)} are robust at {e:g} "
        f"(p = {_lead_at(first, second, e)[1]:.2g})"
        for e in eps
    ]
    return (
        f"The paper's example, {one} and {two}: of {len(first)} images of both "
        f"{' and '.join(counts)}."
    )


def relative_radii(
    results: PublicResults, networks: Sequence[PublishedNetwork], split: Split
) -> Float64:
    """One number an image: its radius by the network's mean over both splits, mean over networks.

    Networks with and without a row of an image thus do not shift its number.
    """
    by_image: dict[int, list[float]] = {}
    for network in networks:
        parts = {name: results.part(network, name) for name in SPLITS}
        if any(part is None for part in parts.values()) or network.title in results.relabelled:
            continue
        level = np.mean([part.lower.mean() for part in parts.values() if part is not None])
        if level > 0:
            for image, radius in radii_by_image(parts[split]).items():
                by_image.setdefault(image, []).append(radius / level)
    return np.array([np.mean(values) for values in by_image.values()])


def split_claim(
    results: PublicResults,
    groups: Mapping[str, Sequence[PublishedNetwork]],
    own_test: str = "",
) -> StudyClaim:
    """Welch's test on one number an image, since the networks of a group share their images.
    `own_test` is what the paper's test says of each network."""
    from scipy.stats import ttest_ind

    sizes, p_values = {}, []
    for name, networks in groups.items():
        train, test = (relative_radii(results, networks, split) for split in SPLITS)
        if min(len(train), len(test)) > 1:
            sizes[name] = min(len(train), len(test))
            p_values.append(float(ttest_ind(train, test, equal_var=False).pvalue))
    cases = [
        alike(name, THEIRS, sizes[name], p_value, corrected)
        for name, p_value, corrected in zip(sizes, p_values, holm(p_values).tolist(), strict=True)
    ]
    return StudyClaim(
        f"Between the {LOWER_SIDES} of training and of testing images no significant difference is "
        "found",
        "Sections 4.4, 5.3 and 6.3",
        "Welch's t-test on per-image means over networks, each by itself; to fail, after Holm",
        tuple(cases),
        note=" ".join(filter(None, (own_test, CLAIMED))),
    )


# --- correlations


def correlation_claims(results: PublicResults, pairs: str) -> list[StudyClaim]:
    """Between networks: above 0 on average; and smaller on testing images, for `pairs` of them."""
    found = {split: mean_correlation(results, split) for split in SPLITS}
    train, test = found["train"], found["test"]
    first = [
        within(
            f"{SPLIT_NAMES[split]} images", THEIRS, own.images, own.interval(len(found)), above=0
        )
        for split, own in found.items()
        if own is not None
    ]
    second: list[ClaimCase] = []
    if train is not None and test is not None:
        low, high = np.quantile(test.draws - train.draws, [tail_of(1), 1 - tail_of(1)])
        gap = ClaimInterval(test.value - train.value, float(low), float(high), "+.2f")
        fewest = min(train.images, test.images)
        second = [within("testing less training images", THEIRS, fewest, gap, below=0)]
    how = "mean over pairs of networks of the rank correlation, bootstrap over images"
    return [
        StudyClaim(
            f"The {LOWER_SIDES} of the same images under two networks are positively correlated, "
            "on average over pairs of networks",
            "Section 4.5, Figure 6",
            f"{how}, Bonferroni",
            tuple(first),
            note="The paper calls the correlation strong on training images and less pronounced on "
            f"testing images. {CLAIMED}",
        ),
        StudyClaim(
            "This correlation is smaller on testing images than on training images, on average",
            "Section 4.5, Figure 6",
            f"{how} of either split",
            tuple(second),
            note=f"Smaller for {pairs}; the paper: for all but one. {CLAIMED}" if pairs else "",
        ),
    ]


CORRELATION_DRAWS = 40_000
"""Drawn samples of images: with 2,000 the limit of one claim lay on either side of 0, depending on
the seed."""

DRAWN_AT_ONCE = 1000


class MeanCorrelation:
    """The mean rank correlation of all pairs of networks, and what it is in drawn images."""

    def __init__(self, radii: Float64, seed: int = 0) -> None:
        """`radii` has a row an image and a column a network, NaN where there is no row. Samples
        of other images need another seed, or they would be drawn as if in pairs."""
        self.images = len(radii)
        self.value = float(mean_correlations(radii, np.ones((1, self.images)))[0])
        rng = np.random.default_rng(seed)
        alike = np.full(self.images, 1 / self.images)
        self.draws = np.concatenate(
            [
                mean_correlations(radii, rng.multinomial(self.images, alike, DRAWN_AT_ONCE))
                for _ in range(CORRELATION_DRAWS // DRAWN_AT_ONCE)
            ]
        )

    def interval(self, of: int = 1) -> ClaimInterval:
        """One of `of` simultaneous intervals."""
        low, high = np.quantile(self.draws, [tail_of(of), 1 - tail_of(of)])
        return ClaimInterval(self.value, float(low), float(high), "+.2f")


def mean_correlations(radii: Float64, counts: npt.ArrayLike) -> Float64:
    """Of each sample, in which each image is drawn so many times (a row of `counts`): Pearson's
    coefficient of networks' ranks over images that both have, mean over pairs of networks."""
    drawn = np.asarray(counts, np.float64)
    has = np.isfinite(radii).astype(np.float64)
    ranks = np.stack([_drawn_ranks(column, drawn) for column in radii.T], axis=1)
    weighted = ranks * drawn[:, None, :]  # samples, networks, images
    images = np.maximum((has.T * drawn[:, None, :]) @ has, 1)
    sums = weighted @ has
    cross = weighted @ ranks.transpose(0, 2, 1) - sums * sums.transpose(0, 2, 1) / images
    squares = (weighted * ranks) @ has - sums**2 / images
    scale = np.sqrt(np.maximum(squares * squares.transpose(0, 2, 1), 0.0))
    varies = np.triu(scale > 0, 1)  # pairs of networks that both vary over the images of both
    coefficients = np.where(varies, cross / np.where(varies, scale, 1.0), 0.0)
    return np.asarray(coefficients.sum(axis=(1, 2)) / np.maximum(varies.sum(axis=(1, 2)), 1))


def _drawn_ranks(column: Float64, counts: Float64) -> Float64:
    """Of one network in each sample: the mean rank of equal radii; 0 where there is no row."""
    ranks, known = np.zeros(counts.shape), np.isfinite(column)
    _, places = np.unique(column[known], return_inverse=True)
    if len(places):
        of_value = counts[:, known] @ np.eye(places.max() + 1)[places]
        ranks[:, known] = (np.cumsum(of_value, axis=1) - of_value / 2 + 0.5)[:, places]
    return ranks


def mean_correlation(results: PublicResults, split: Split) -> MeanCorrelation | None:
    by_network = [radii_by_image(results.part(n, split)) for n in NETWORKS_OF_SECTION_4]
    by_network = [radii for radii in by_network if radii]
    images = sorted(set().union(*by_network)) if by_network else []
    if len(by_network) < 2 or len(images) < 3:
        return None
    return MeanCorrelation(
        np.array([[radii.get(image, np.nan) for radii in by_network] for image in images]),
        seed=SPLITS.index(split),
    )
