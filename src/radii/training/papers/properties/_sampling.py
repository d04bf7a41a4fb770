"""Constraint accuracy: how often a random point of the ball keeps the property (Section 3)."""

from __future__ import annotations

import numpy as np

from radii.plots import SeedCurve, draw_seed_curves
from radii.training.papers._steps import (
    ClaimVerdict,
    Paragraph,
    Part,
    StudyClaim,
    StudyFigure,
    StudySettings,
)
from radii.training.papers._tables import Beside, Cell, StudyTable, share_text
from radii.training.papers.properties._data import TITLES, BallRegion, StudyImages
from radii.training.papers.properties._measures import Measures, Spread
from radii.training.papers.properties._networks import ALL_TRAININGS, NetworkKind
from radii.training.papers.properties._numbers import EPS, SAMPLED
from radii.training.papers.properties._sizes import HIDDEN_OF_ATTACKS, seeds_text

SAMPLED_PROPERTIES = ("SR", "SCR", "LR")

LEAST_SR = 99.5
"""Per cent: what the paper prints as 100."""

Found = dict[tuple[str, str, str], tuple[Spread, Spread]]
"""By data set, property and training: of all images, and of those where the property holds."""


def constraint_accuracy(images: StudyImages, settings: StudySettings) -> list[Part]:
    measures = Measures(images, settings)
    found: Found = {}
    for data in TITLES:
        kind = NetworkKind(data, HIDDEN_OF_ATTACKS)
        for name in SAMPLED_PROPERTIES:
            measured = measures.accuracy(kind, name, BallRegion.WHOLE, ALL_TRAININGS)
            for training, spreads in measured.items():
                found[data, name, training] = spreads
    sizes = measures.sizes
    place = sizes.sampled_eps.index(EPS)
    return [
        Paragraph(
            f"{sizes.samples} uniform points of the whole ball around each of {sizes.sampled} test "
            "images, as in Definition 7. At an image that is misclassified, or whose label has a "
            "probability of 0.52 or less, SCR does not hold to begin with, and nearly no point "
            "keeps it: so the table has both, all images and those at which the property holds. "
            f"Means over {seeds_text(sizes.seeds)}."
        ),
        _table(found, place),
        StudyFigure(
            "constraint-accuracy",
            "Constraint accuracy over eps on whole balls, all images; mean and range over seeds",
            lambda: draw_seed_curves(_panels(found, sizes.sampled_eps), measure="CAcc", eps=EPS),
        ),
        _claim(found, place),
    ]


def _table(found: Found, place: int) -> StudyTable:
    rows: list[tuple[Cell, ...]] = []
    for data in TITLES:
        for how in ALL_TRAININGS:
            row: list[Cell] = [TITLES[data], how.title]
            for name in SAMPLED_PROPERTIES:
                for spread in found[data, name, how.name]:
                    at = Spread(spread.values[:, place])
                    # "> 98 %" is no number to be held against, and is said in the claim.
                    paper = SAMPLED[name] if name == "SR" else ""
                    row.append(Beside(at.percent, paper) if paper else at.percent_text)
            rows.append(tuple(row))
    columns = [f"{name}, {who}" for name in SAMPLED_PROPERTIES for who in ("all", "that hold")]
    title = f"Constraint accuracy (Section 3): % of uniform points of whole balls, eps = {EPS:g}"
    return StudyTable("constraint-accuracy", title, ("data", "training", *columns), tuple(rows))


def _panels(found: Found, eps: tuple[float, ...]) -> dict[str, list[SeedCurve]]:
    at = np.array(eps)
    return {
        f"{TITLES[data]}, {name}": [
            SeedCurve(how.title, at, spread.mean, spread.low, spread.high)
            for how in ALL_TRAININGS
            for spread in found[data, name, how.name][:1]
            if len(spread.known)
        ]
        for data in TITLES
        for name in SAMPLED_PROPERTIES
    }


def _claim(found: Found, place: int) -> StudyClaim:
    """By training, its mean over seeds as it is printed: the paper does not say of which networks
    it speaks. Confirmed where all trainings have what it says, refuted where none has."""
    told, held = [], []
    least = 100.0
    for data in TITLES:
        for which, text in enumerate(("all images", "images that hold")):
            pairs = _percents(found, data, which, place)
            holds = [sr >= LEAST_SR and scr >= float(SAMPLED["SCR"]) for sr, scr in pairs]
            held += holds
            ends = [scr for _, scr in pairs]
            least = min([least, *(sr for sr, _ in pairs)])
            if pairs:
                told.append(
                    f"{TITLES[data]}, {text}: by {share_text(sum(holds), len(holds), 'trainings')},"
                    f" SCR {min(ends):.1f} to {max(ends):.1f} %"
                )
    verdict = ClaimVerdict.DEPENDS if any(held) else ClaimVerdict.REFUTED
    verdict = ClaimVerdict.CONFIRMED if all(held) else verdict
    return StudyClaim(
        "Random points find nearly no violation: constraint accuracy is 100 % for SR and above "
        "98 % for SCR",
        "Section 3",
        verdict if held else ClaimVerdict.OPEN,
        "; ".join([*told, f"SR at least {least:.1f} %"]) if told else "nothing was learned",
    )


def _percents(found: Found, data: str, which: int, place: int) -> list[tuple[float, float]]:
    """SR and SCR of each training of which both are known, to one decimal."""
    pairs = []
    for how in ALL_TRAININGS:
        spreads = [found[data, name, how.name][which] for name in ("SR", "SCR")]
        sr, scr = (Spread(spread.values[:, place]).percent for spread in spreads)
        if sr is not None and scr is not None:
            pairs.append((round(sr, 1), round(scr, 1)))
    return pairs
