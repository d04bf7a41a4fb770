"""Robust recall of classes, their ranking, and how unfair a network is: the announced measure.

The measure is the spread of robust recall between classes (`radii.statistics.fairness`), at an
eps and at its worst over all eps; beside it, ratios and an entropy of the classes' mean radii.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from radii.statistics import Distribution, class_curves, fairness
from radii.views import draw_classes, draw_closest_targets, draw_fairness
from radii_papers._evidence import (
    ClaimBasis,
    ClaimCase,
    ClaimInterval,
    StudyClaim,
    unclear,
    within,
)
from radii_papers._intervals import share_interval
from radii_papers._steps import (
    Paragraph,
    Part,
    StudyFigure,
    StudySettings,
)
from radii_papers._tables import Cell, StudyTable, interval_text
from radii_papers.classes._brackets import given_to_verifier, one_to_any
from radii_papers.classes._differences import kruskal_p_value
from radii_papers.classes._leads import class_leads, leads_table
from radii_papers.classes._numbers import CLASSES, MARKED_EPS, TABLE_1
from radii_papers.classes._one_to_any import WITNESSED
from radii_papers.classes._source import ClassSource

RECALL_EPS = (0.012, 0.02, 0.03, 0.04)

PERMUTATIONS = 999

OTHER_CAUSES = 3.0
"""A spread of robust recall so many times that of recall is not explained by recall."""


@dataclass(frozen=True, slots=True)
class Unfairness:
    """Of one network: numbers of which 0, or 1 for ratios, says that all classes are alike.

    `spread` is the largest over all eps of witnessed robust recall, best less worst class, at
    `at`. `ratio` is the worst class's mean witnessed distance by the best's. `entropy` is the
    generalised entropy (alpha = 2) of the classes' means: half their squared relative deviation.
    """

    spread: float
    at: float
    ratio: float
    entropy: float
    worst: int
    best: int


def unfairness(distribution: Distribution) -> Unfairness:
    """From the witnessed sides of one network, misclassified images counted as 0."""
    grid = np.unique(distribution.upper[np.isfinite(distribution.upper)])
    shares = class_curves(distribution, grid).not_refuted
    spreads = shares.max(axis=0) - shares.min(axis=0)
    groups = distribution.group_by("class")
    means = {label: float(part.upper.mean()) for label, part in groups.items()}
    values = np.array(list(means.values()))
    return Unfairness(
        spread=float(spreads.max()),
        at=float(grid[spreads.argmax()]),
        ratio=float(values.min() / values.max()),
        entropy=float(0.5 * np.var(values) / np.mean(values) ** 2),
        worst=min(means, key=means.__getitem__),
        best=max(means, key=means.__getitem__),
    )


def _p_value(part: Distribution) -> float:
    """Kruskal and Wallis on witnessed distances: most images have no proof to rank them by."""
    return kruskal_p_value([own.upper for own in part.group_by("class").values()])


def unequal_case(name: str, part: Distribution, of: int) -> ClaimCase:
    """Best and worst class, and the eps, are chosen on training images; their robust recall is
    compared on testing images, so that choosing the largest difference does not make it large."""
    splits = part.group_by("split")
    plain = _recall_spread(name)
    if {"train", "test"} - set(splits):
        return unclear(name, ClaimBasis.THEIRS, 0, "–", "one split only")
    chosen = unfairness(splits["train"])
    classes = splits["train"].group_by("class")
    stands = {label: float((own.upper > chosen.at).mean()) for label, own in classes.items()}
    best, worst = (end(stands, key=stands.__getitem__) for end in (max, min))
    ends = []
    for label in (best, worst):
        own = splits["test"].select(splits["test"].label == label)
        ends.append(share_interval(int((own.upper > chosen.at).sum()), len(own), 2 * of))
    gap = ClaimInterval(
        ends[0].value - ends[1].value, ends[0].low - ends[1].high, ends[0].high - ends[1].low,
        "+.1f",
    )  # fmt: skip
    images = min(len(own) for own in splits["test"].group_by("class").values())
    return within(
        name, ClaimBasis.THEIRS, images, gap, above=100 * OTHER_CAUSES * plain, unit=" points",
        before=f"class {best} less {worst} at {chosen.at:.3f}: ",
    )  # fmt: skip


def _recall_spread(name: str) -> float:
    """By the paper's own Table 1."""
    recalls = [float(TABLE_1[str(label), name][1]) for label in CLASSES]
    return max(recalls) - min(recalls)


def recall_table(source: ClassSource, settings: StudySettings) -> list[Part]:
    """Robust recall of each class at several eps, both splits: not refuted, and proven."""
    found = one_to_any(source, settings)
    proven = given_to_verifier(found)
    rows: list[tuple[Cell, ...]] = []
    for name in found.networks:
        for label in CLASSES:
            cells: list[Cell] = [name, label]
            for eps in RECALL_EPS:
                cells.append(_recall_text(found, proven, name, label, eps))
            rows.append(tuple(cells))
    columns = ("network", "class", *(f"at {eps:g}" for eps in RECALL_EPS))
    title = (
        "Robust recall, both splits: the share of all images that no attack refutes; then how many "
        "of the images that were given to the verifier are proven"
    )
    at = MARKED_EPS[1]
    return [
        StudyTable("robust-recall", title, columns, tuple(rows)),
        StudyFigure(
            "classes",
            "Classes by network: proven median radius, the lower of the middle two where their "
            "number is even (the table of Figure 2 has their mean)",
            lambda: draw_classes(proven),
        ),
        StudyFigure(
            "closest",
            "Towards which class the images of each class break first",
            lambda: draw_closest_targets(found),
        ),
        *_ranking(found),
        Paragraph(f"By the {len(proven)} brackets with proofs alone: {_sentences(proven, at)}"),
    ]


def _recall_text(
    found: Distribution, proven: Distribution, name: str, label: int, eps: float
) -> str:
    own = (found.network == name) & (found.label == label)
    some = (proven.network == name) & (proven.label == label)
    if not own.any():
        return ""
    stands = float((found.upper[own] > eps).mean())
    holds = int(np.count_nonzero(proven.lower[some] >= eps))
    return f"{stands:.2f}; {holds} of {int(some.sum())}"


def _sentences(found: Distribution, eps: float) -> str:
    return " ".join(
        f"{name}: {fairness(part, eps, permutations=PERMUTATIONS)}"
        for name, part in found.by_network().items()
        if len(part.labels) > 1
    )


def _ranking(found: Distribution) -> list[Part]:
    """Classes from the weakest to the strongest, and whether networks lead in different ones."""
    orders = {}
    for name, part in found.by_network().items():
        medians = {
            label: float(np.median(own.upper)) for label, own in part.group_by("class").items()
        }
        orders[name] = sorted(medians, key=medians.__getitem__)
    rows = tuple((name, ", ".join(map(str, order))) for name, order in orders.items())
    table = StudyTable(
        "ranking", "Classes by median witnessed distance, the weakest first",
        ("network", "classes"), rows,
    )  # fmt: skip
    if len(orders) < 2:
        return [table]
    one, two = found.networks[:2]
    pairs = {(one, two): class_leads(found.only(network=one), found.only(network=two))}
    title = "Which network is more robust, class by class (witnessed distances)"
    return [table, leads_table("leads", title, pairs)]


def fairness_step(source: ClassSource, settings: StudySettings) -> list[Part]:
    """How unfair each network is, beside how unequal its plain recall is."""
    found = one_to_any(source, settings)
    proven = given_to_verifier(found)
    rows: list[tuple[Cell, ...]] = []
    several = {name: part for name, part in found.by_network().items() if len(part.labels) > 1}
    for name, part in several.items():
        measure = unfairness(part)
        # Of images that were only attacked nothing is proven: they would widen every interval.
        at = fairness(proven.only(network=name), MARKED_EPS[1], permutations=PERMUTATIONS)
        plain, p_value = _recall_spread(name), _p_value(part)
        rows.append(
            (
                name, plain, measure.spread, measure.at, interval_text(*at.spread, 2),
                measure.ratio, measure.entropy, measure.worst, measure.best, p_value,
            )
        )  # fmt: skip
    columns = (
        *("network", "spread of recall (paper's Table 1)", "largest spread of robust recall"),
        *("at eps", f"spread at {MARKED_EPS[1]:g}, by proofs", "worst mean by best", "entropy"),
        *("worst class", "best class", "p that classes are alike (Kruskal-Wallis)"),
    )
    forms = ("", ".3f", ".2f", ".3f", "", ".2f", ".4f", "", "", ".3g")
    title = "How unfair networks are"
    text = (
        "The measure that the paper announces: how far the robust recalls of the best and of the "
        "worst class are apart, at its largest over all eps (witnessed side) and as an interval at "
        "one. 0 is fair. Beside it the worst class's mean distance by the best's (1 is fair), and "
        "the generalised entropy of the classes' mean distances (0 is fair). `radii compare --by "
        'class --eps`, `radii gate --require "recall_spread(0.04) <= 0.2"` and the figure '
        "`fairness` use the same spread; `radii compare --by COLUMN --groups FILE.csv` takes "
        "another column of the data, such as a sensitive attribute, in place of the class."
    )
    shown = "; ".join(f"{row[0]}: {row[1]:.3f} and {row[2]:.2f}" for row in rows)
    weakest = "; ".join(f"{row[0]} {row[7]} and {row[8]}" for row in rows)
    finding = (
        "Networks that recognise all classes about equally well are unfair once inputs are "
        f"perturbed: spread of recall, and the largest of robust recall, {shown}. Classes with the "
        f"smallest and the largest mean distance: {weakest}."
    )
    return [
        Paragraph(text),
        StudyTable("fairness", title, columns, tuple(rows), forms),
        StudyFigure(
            "fairness",
            "Spread of robust recall between classes, images with proofs",
            lambda: draw_fairness(proven, eps=MARKED_EPS),
        ),
        *([Paragraph(finding, is_finding=True)] if rows else []),
        StudyClaim(
            "Even where classes are recognised equally well, their robustness can vary strongly "
            f"(by more than {OTHER_CAUSES:g} times the spread of recall)",
            "Abstract",
            "robust recall of the best less that of the worst class on testing images, both chosen "
            "on training images; exact limits, Bonferroni",
            tuple(unequal_case(name, part, len(several)) for name, part in several.items()),
            note=WITNESSED,
        ),
    ]
