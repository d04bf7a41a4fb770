"""Constraint accuracy: how often a random point of the ball keeps the property (Section 3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from radii.plots import SeedCurve, draw_seed_curves
from radii.results import Float64
from radii.training.papers._steps import Paragraph, Part, StudyFigure, StudySettings
from radii.training.papers._tables import Beside, Cell, StudyTable
from radii.training.papers.properties._data import TITLES, BallRegion, StudyImages
from radii.training.papers.properties._measures import Measures, Spread
from radii.training.papers.properties._networks import ALL_TRAININGS, NetworkKind
from radii.training.papers.properties._numbers import EPS, SAMPLED
from radii.training.papers.properties._sizes import HIDDEN_OF_ATTACKS, seeds_text
from radii.training.papers.properties._verdicts import CaseFinding, finding, judged, percent

SAMPLED_PROPERTIES = ("SR", "SCR", "LR")

ALL_BUT_ROUNDING = 0.995
"""What is printed as 100 %."""

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
        judged(
            "Random points find nearly no violation: constraint accuracy is 100 % for SR and "
            "above 98 % for SCR",
            "Section 3",
            _cases(found, place),
        ),
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


def _cases(found: Found, place: int) -> dict[str, CaseFinding]:
    """The least over trainings must reach what the paper says, to its last printed digit."""
    cases = {}
    for data in TITLES:
        for which, text in enumerate(("all images", "images that hold")):
            least = {
                name: _least([found[data, name, how.name][which] for how in ALL_TRAININGS], place)
                for name in SAMPLED
            }
            told = ", ".join(f"{name} {percent(shares)}" for name, shares in least.items())
            holds = (least["SR"] >= ALL_BUT_ROUNDING) & (least["SCR"] > 0.98)
            cases[f"{TITLES[data]}, {text}"] = finding(holds, told, *least.values())
    return cases


def _least(spreads: Sequence[Spread], place: int) -> Float64:
    """By seed, of all trainings whose share is known; NaN where none is."""
    shares = np.array([spread.values[:, place] for spread in spreads])
    least = np.where(np.isnan(shares), np.inf, shares).min(axis=0)
    return np.where(np.isinf(least), np.nan, least)
