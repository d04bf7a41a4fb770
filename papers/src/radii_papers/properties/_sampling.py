"""Constraint accuracy: how often a random point of the ball keeps the property (Section 3)."""

from __future__ import annotations

import numpy as np

from radii_papers._evidence import ClaimBasis, ClaimCase, StudyClaim, unclear
from radii_papers._steps import (
    Paragraph,
    Part,
    StudyFigure,
    StudySettings,
)
from radii_papers._tables import Beside, Cell, StudyTable
from radii_papers.figures import SeedCurve, draw_seed_curves
from radii_papers.properties._data import TITLES, BallRegion, StudyImages
from radii_papers.properties._measures import Measures, SampledShares, Spread
from radii_papers.properties._networks import ALL_TRAININGS, PAPER_TRAININGS, NetworkKind
from radii_papers.properties._numbers import EPS, SAMPLED
from radii_papers.properties._sizes import HIDDEN_OF_ATTACKS, seeds_text
from radii_papers.properties._verdicts import HOW, basis_of, share_case

SAMPLED_PROPERTIES = ("SR", "SCR", "LR")

LEAST_SR = 99.5
"""Per cent: what the paper prints as 100."""

Found = dict[tuple[str, str, str], SampledShares]
"""By data set, property and training."""


def constraint_accuracy(images: StudyImages, settings: StudySettings) -> list[Part]:
    measures = Measures(images, settings)
    found: Found = {}
    for data in TITLES:
        kind = NetworkKind(data, HIDDEN_OF_ATTACKS)
        for name in SAMPLED_PROPERTIES:
            measured = measures.accuracy(kind, name, BallRegion.WHOLE, ALL_TRAININGS)
            for training, shares in measured.items():
                found[data, name, training] = shares
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
        _claim(found, place, settings),
    ]


def _table(found: Found, place: int) -> StudyTable:
    rows: list[tuple[Cell, ...]] = []
    for data in TITLES:
        for how in ALL_TRAININGS:
            row: list[Cell] = [TITLES[data], how.title]
            for name in SAMPLED_PROPERTIES:
                shares = found[data, name, how.name]
                for spread in (shares.everywhere, shares.where_held):
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
            for spread in [found[data, name, how.name].everywhere]
            if len(spread.known)
        ]
        for data in TITLES
        for name in SAMPLED_PROPERTIES
    }


def _claim(found: Found, place: int, settings: StudySettings) -> StudyClaim:
    """Of images at which the property holds to begin with: a network that keeps SCR at few of them
    is nearly constant, and no counterexample."""
    of = 2 * len(TITLES) * len(PAPER_TRAININGS)
    cases = []
    for data in TITLES:
        for name, least in (("SR", LEAST_SR), ("SCR", float(SAMPLED["SCR"]))):
            for how in PAPER_TRAININGS:
                title = f"{TITLES[data]}, {name}, {how.title}"
                measured = found[data, name, how.name]
                cases.append(_case(title, basis_of(settings, data), measured, place, least, of))
    return StudyClaim(
        "Random points find nearly no violation: constraint accuracy is 100 % for SR and above "
        "98 % for SCR",
        "Section 3",
        f"test images at which the property holds with every seed; {HOW}",
        tuple(cases),
        note="The paper's definition has all images of the training set.",
    )


def _case(
    title: str, basis: ClaimBasis, measured: SampledShares, place: int, least: float, of: int
) -> ClaimCase:
    shares = measured.shares[:, :, place]
    is_held = measured.holds.all(axis=0) & np.isfinite(shares).all(axis=0)
    if not is_held.any():
        why = "nearly constant: the property holds at no image with every seed"
        return unclear(title, basis, 0, "–", why, len(shares))
    return share_case(title, basis, shares[:, is_held], of, above=least)
