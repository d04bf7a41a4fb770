"""Claims about images under several networks: which of two is more robust, whether splits differ,
and whether the same images are hard.

Networks share their images, so an image is the instance: tests have one number an image, pairs of
one image, or a bootstrap over images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from radii.distributions import Distribution, holm
from radii.results import Float64
from radii_papers._evidence import (
    CaseOutcome,
    ClaimCase,
    ClaimInterval,
    ClaimScope,
    StudyClaim,
    alike,
    within,
)
from radii_papers._intervals import BOOTSTRAPS, mean_interval, tail_of
from radii_papers.distributions._claims import (
    CLAIMED,
    PAIRED,
    THEIRS,
    paired_radii,
    radii_by_image,
)
from radii_papers.distributions._public import (
    NETWORKS_OF_SECTION_4,
    SPLITS,
    PublicResults,
    PublishedNetwork,
    Split,
)


def order_claim(results: PublicResults, eps: tuple[float, float]) -> StudyClaim:
    """Do two networks change their order between two eps, on the images that both have?"""
    parts = {n.title: results.part(n, "train") for n in NETWORKS_OF_SECTION_4}
    known = [name for name, part in parts.items() if part is not None]
    pairs = list(combinations(known, 2))
    crossing, sizes = [], [0]
    for one, two in pairs:
        first, second = paired_radii(parts[one], parts[two])
        if len(first) > 1:
            low, high = (
                mean_interval((first >= e).astype(float) - (second >= e), 2 * len(pairs))
                for e in eps
            )
            sizes.append(len(first))
            if low.low > 0 > high.high or low.high < 0 < high.low:
                crossing.append(f"{one} and {two}")
    case = ClaimCase(
        name="pairs of networks",
        basis=THEIRS,
        n=min(sizes[1:], default=0),
        shows=f"{len(crossing)} of {len(pairs)} pairs change their order",
        rule="a pair with intervals on either side of 0",
        outcome=CaseOutcome.HOLDS if crossing else CaseOutcome.UNCLEAR,
    )
    named = _named_order(parts, eps)
    return StudyClaim(
        f"Which of two networks is more robust depends on the eps, such as {eps[0]:g} or "
        f"{eps[1]:g}",
        "Section 4.3, Figure 2",
        f"{PAIRED}, of the share that is robust at either eps; Bonferroni over pairs",
        (case,),
        ClaimScope.SOME,
        " ".join(filter(None, (named, ", ".join(crossing[:3]), CLAIMED))),
    )


def _named_order(parts: Mapping[str, Distribution | None], eps: tuple[float, float]) -> str:
    """The paper's own example."""
    one, two = "relu_4_1024", "net"
    first, second = paired_radii(parts.get(one), parts.get(two))
    if not len(first):
        return ""
    told = [
        f"{mean_interval((first >= e).astype(float) - (second >= e), 2).percent('+.0f').text} "
        f"points at {e:g}"
        for e in eps
    ]
    return f"The paper's example, {one} less {two}: {' and '.join(told)}."


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
    results: PublicResults, groups: Mapping[str, Sequence[PublishedNetwork]]
) -> StudyClaim:
    """Welch's test on one number an image, since the networks of a group share their images."""
    from scipy.stats import ttest_ind

    sizes, p_values = {}, []
    for name, networks in groups.items():
        train, test = (relative_radii(results, networks, split) for split in SPLITS)
        if min(len(train), len(test)) > 1:
            sizes[name] = min(len(train), len(test))
            p_values.append(float(ttest_ind(train, test, equal_var=False).pvalue))
    cases = [
        alike(name, THEIRS, sizes[name], p)
        for name, p in zip(sizes, holm(p_values).tolist(), strict=True)
    ]
    return StudyClaim(
        "Radii of training and of testing images do not differ significantly",
        "Sections 4.4, 5.3 and 6.3",
        "Welch's t-test on per-image means over networks, Holm",
        tuple(cases),
        note=CLAIMED,
    )


# --- correlations


def correlation_claims(results: PublicResults, pairs: str) -> list[StudyClaim]:
    """Between networks: above 0 on average; and smaller on testing images, for `pairs` of them."""
    found = {split: mean_correlation(results, split) for split in SPLITS}
    train, test = found["train"], found["test"]
    first: list[ClaimCase] = []
    second: list[ClaimCase] = []
    if train is not None:
        first = [within("training images", THEIRS, train.images, train.interval(), above=0)]
    if train is not None and test is not None:
        low, high = np.quantile(test.draws - train.draws, [tail_of(1), 1 - tail_of(1)])
        gap = ClaimInterval(test.value - train.value, float(low), float(high), "+.2f")
        fewest = min(train.images, test.images)
        second = [within("testing less training images", THEIRS, fewest, gap, below=0)]
    how = "mean over pairs of networks of the rank correlation, bootstrap over images"
    return [
        StudyClaim(
            "Images that are hard for one network are hard for others",
            "Section 4.5, Figure 6",
            how,
            tuple(first),
            note=CLAIMED,
        ),
        StudyClaim(
            "Networks agree less about testing images than about training images",
            "Section 4.5, Figure 6",
            how,
            tuple(second),
            note=f"Smaller for {pairs}; the paper: for all but one. {CLAIMED}" if pairs else "",
        ),
    ]


class MeanCorrelation:
    """The mean rank correlation of all pairs of networks, and what it is in drawn images."""

    def __init__(self, radii: Float64) -> None:
        """`radii` has a row an image and a column a network, NaN where there is no row."""
        self.images = len(radii)
        self.value = _mean_correlation(radii)
        rng = np.random.default_rng(0)
        self.draws = np.array(
            [_mean_correlation(radii[rng.integers(0, len(radii), len(radii))])
             for _ in range(BOOTSTRAPS // 4)]
        )  # fmt: skip

    def interval(self) -> ClaimInterval:
        low, high = np.quantile(self.draws, [tail_of(1), 1 - tail_of(1)])
        return ClaimInterval(self.value, float(low), float(high), "+.2f")


def _mean_correlation(radii: Float64) -> float:
    """Pearson's coefficient of each network's ranks, over images that both networks have."""
    from scipy.stats import rankdata

    ranks = rankdata(radii, axis=0, nan_policy="omit")
    known = np.isfinite(ranks)
    x, has = np.where(known, ranks, 0.0), known.astype(float)
    counts, sums = np.maximum(has.T @ has, 1), x.T @ has
    cross = x.T @ x - sums * sums.T / counts
    squares = (x * x).T @ has - sums**2 / counts
    scale = np.sqrt(np.maximum(squares * squares.T, 0.0))
    varies = np.triu(scale > 0, 1)  # pairs of networks that both vary over the images of both
    return float((cross[varies] / scale[varies]).mean()) if varies.any() else 0.0


def mean_correlation(results: PublicResults, split: Split) -> MeanCorrelation | None:
    by_network = [radii_by_image(results.part(n, split)) for n in NETWORKS_OF_SECTION_4]
    by_network = [radii for radii in by_network if radii]
    images = sorted(set().union(*by_network)) if by_network else []
    if len(by_network) < 2 or len(images) < 3:
        return None
    return MeanCorrelation(
        np.array([[radii.get(image, np.nan) for radii in by_network] for image in images])
    )
