"""Table 1: what is proven of networks trained for one property or another, on both kinds of balls.

The paper's balls are whole: Definition 5 takes every point within eps, pixels below 0 and above 1
included. Clipped balls hold valid images alone, and are a part of the whole ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from radii.training.papers._steps import Paragraph, Part, StudyClaim, StudySettings
from radii.training.papers._tables import Beside, Cell, StudyTable
from radii.training.papers.properties._data import FASHION, GTSRB, TITLES, BallRegion, StudyImages
from radii.training.papers.properties._measures import Measures, Satisfaction, Spread
from radii.training.papers.properties._networks import (
    BASELINE,
    HIDDEN_OF_PROOFS,
    LR,
    OF_TABLE_1,
    SCR,
    SR,
    NetworkKind,
    PaperTraining,
    training_images,
)
from radii.training.papers.properties._numbers import EPS, LARGEST_OF_BASELINE, SATISFACTION
from radii.training.papers.properties._verdicts import MARGIN, CaseFinding, judged, percent

PROVEN_PROPERTIES = ("CR", "SR", "LR")

NEARLY_ALL = 0.9
FAR = 0.1
LITTLE = 0.05
TENTH = 0.1
"""Shares by which claims are judged: "nearly all", "far above", "hardly", "an order smaller"."""


@dataclass(frozen=True, slots=True)
class TableVariant:
    """Table 1 once: on which balls networks are trained, and on which they are proven."""

    name: str
    trained: BallRegion
    proven: BallRegion
    title: str


CLIPPED = TableVariant(
    "clipped",
    BallRegion.CLIPPED,
    BallRegion.CLIPPED,
    "trained and proven on clipped balls; the paper's numbers, in parentheses, are of whole balls",
)
WHOLE = TableVariant(
    "whole",
    BallRegion.WHOLE,
    BallRegion.WHOLE,
    "trained and proven on whole balls, as the paper's definitions have them",
)
CROSSED = TableVariant(
    "crossed",
    BallRegion.CLIPPED,
    BallRegion.WHOLE,
    "the networks that were trained on clipped balls, proven on whole ones",
)
VARIANTS = (CLIPPED, WHOLE, CROSSED)

Shares = Mapping[tuple[str, str, str, str], Spread]
"""Proven shares by the names of the variant, the data set, the property and the training."""


def table_1(images: StudyImages, settings: StudySettings) -> list[Part]:
    measures = Measures(images, settings)
    shares: dict[tuple[str, str, str, str], Spread] = {}
    undecided = decided = 0
    for variant in VARIANTS:
        for data in TITLES:
            for name in PROVEN_PROPERTIES:
                found = _satisfaction(measures, variant, data, name)
                for training, seeds in found.items():
                    key = (variant.name, data, name, training)
                    shares[key] = Spread.of([each.proven for each in seeds])
                    undecided += sum(each.not_refuted > each.proven for each in seeds)
                    decided += sum(each.not_refuted == each.proven for each in seeds)
    return [
        _setting(measures),
        *(_table(variant, shares) for variant in VARIANTS),
        Paragraph(
            f"Every image is decided, proven or refuted with a replayed counterexample, in "
            f"{decided} of {decided + undecided} cells (of a table, network and seed); where it is "
            "not, the cell has what is proven."
        ),
        Paragraph(_reasons(measures)),
        Paragraph(_finding(shares), is_finding=True),
        *_claims(shares),
    ]


def _satisfaction(
    measures: Measures, variant: TableVariant, data: str, name: str
) -> dict[str, list[Satisfaction]]:
    kind = NetworkKind(data, HIDDEN_OF_PROOFS, variant.trained)
    return measures.satisfaction(kind, name, variant.proven, OF_TABLE_1)


def _setting(measures: Measures) -> Paragraph:
    sizes = measures.sizes
    return Paragraph(
        f"Per cent of the first {sizes.proven} test images (the paper: 200) at eps = {EPS:g}, mean "
        f"and range over {sizes.seeds} {'seed' if sizes.seeds == 1 else 'seeds'}, for networks of "
        f"{HIDDEN_OF_PROOFS} hidden units; at most {sizes.proof_seconds:g} s an image. There are "
        "three tables, since the paper does not say where balls end: its Definition 5 has whole "
        "balls, with pixels below 0 and above 1, while valid images have none. A network can keep "
        "a property on the clipped ball and lose it on the whole one, never the other way round."
    )


def _table(variant: TableVariant, shares: Shares) -> StudyTable:
    heads = [(data, how) for data in TITLES for how in OF_TABLE_1]
    rows: list[tuple[Cell, ...]] = []
    for name in PROVEN_PROPERTIES:
        spreads = [shares[variant.name, data, name, how.name] for data, how in heads]
        cells: list[Cell] = []
        for (data, how), spread in zip(heads, spreads, strict=True):
            paper = SATISFACTION[data, name][OF_TABLE_1.index(how)]
            cells.append(Beside(spread.percent, paper))
        rows.append((f"{name} satisfaction", "mean", *cells))
        rows.append(("", "range", *(spread.percent_range for spread in spreads)))
    columns = ("%", "of seeds", *(f"{TITLES[data]}: {how.title}" for data, how in heads))
    return StudyTable(f"table-1-{variant.name}", f"Table 1, {variant.title}", columns, tuple(rows))


def _reasons(measures: Measures) -> str:
    sizes = measures.sizes
    kind = NetworkKind(FASHION, HIDDEN_OF_PROOFS)
    used = len(training_images(measures.images.sets[FASHION], kind, sizes))
    return (
        f"Why numbers differ: networks are others (here {sizes.epochs[FASHION]} epochs on "
        f"{used:,} images of Fashion-MNIST and {sizes.epochs[GTSRB]} on GTSRB at a rate of "
        f"{sizes.rate:g}, there 100 at 0.0001, on all 60,000); there is one network a cell in the "
        "paper, whose seed is not told; it has 12,660 traffic signs to train on, and does not say "
        "of which ten classes; and the steps of its attack in training, and whether that leaves "
        "valid images, are not told."
    )


def _finding(shares: Shares) -> str:
    def of(variant: TableVariant, data: str) -> str:
        return percent(float(shares[variant.name, data, "SR", SR.name].mean))

    parts = [
        f"{TITLES[data]} {of(CLIPPED, data)} on clipped balls, {of(WHOLE, data)} on whole ones, "
        f"{of(CROSSED, data)} where training saw clipped balls and proofs whole ones"
        for data in TITLES
    ]
    return f"Table 1 by where a ball ends, SR of SR-trained networks: {'; '.join(parts)}."


# --- claims


@dataclass(frozen=True, slots=True, eq=False)
class TableCase:
    """A variant of the table and a data set, in which a claim holds or does not."""

    shares: Shares
    variant: TableVariant
    data: str

    def share(self, name: str, how: PaperTraining) -> float:
        """The proven share of a property, mean over seeds."""
        return float(self.shares[self.variant.name, self.data, name, how.name].mean)

    def gain(self, name: str, how: PaperTraining) -> float:
        """By how much more is proven than of the baseline."""
        return self.share(name, how) - self.share(name, BASELINE)

    def against_baseline(self, name: str, how: PaperTraining) -> str:
        return f"{percent(self.share(name, how))} for {percent(self.share(name, BASELINE))}"


def _baseline_has_little(case: TableCase) -> CaseFinding:
    most = max(case.share(name, BASELINE) for name in PROVEN_PROPERTIES)
    return CaseFinding(100 * most <= LARGEST_OF_BASELINE, f"at most {percent(most)}")


def _lr_is_nowhere(case: TableCase) -> CaseFinding:
    most = max(case.share("LR", how) for how in OF_TABLE_1)
    return CaseFinding(most == 0, f"at most {percent(most)}")


def _lr_gives_sr(case: TableCase) -> CaseFinding:
    found = case.share("SR", LR)
    return CaseFinding(found >= NEARLY_ALL, percent(found))


def _sr_gives_sr(case: TableCase) -> CaseFinding:
    return CaseFinding(case.gain("SR", SR) >= FAR, case.against_baseline("SR", SR))


def _scr_gives_little_cr(case: TableCase) -> CaseFinding:
    is_little = 0 < case.gain("CR", SCR) <= TENTH * case.gain("SR", LR)
    return CaseFinding(is_little, case.against_baseline("CR", SCR))


def _lr_gives_most_cr(case: TableCase) -> CaseFinding:
    found = {how: case.share("CR", how) for how in OF_TABLE_1}
    others = max(share for how, share in found.items() if how is not LR)
    told = ", ".join(f"{how.title} {percent(share)}" for how, share in found.items())
    return CaseFinding(found[LR] >= others + MARGIN, told)


def _neither_gives_the_other(case: TableCase) -> CaseFinding:
    gains = {"SR by SCR": case.gain("SR", SCR), "CR by SR": case.gain("CR", SR)}
    told = ", ".join(f"{name} {100 * gain:+.1f} points" for name, gain in gains.items())
    return CaseFinding(all(gain < LITTLE for gain in gains.values()), told.replace("-", "−"))


CLAIMS: tuple[tuple[str, str, Callable[[TableCase], CaseFinding]], ...] = (
    (
        "A baseline network keeps its properties around 0 to 1.5 % of images",
        "Section 1, Table 1",
        _baseline_has_little,
    ),
    ("LR is proven for no image of any network", "Section 4.1, Table 1", _lr_is_nowhere),
    (
        "Training for LR gives SR, which is weaker, for nearly all images",
        "Section 4.1, Table 1",
        _lr_gives_sr,
    ),
    ("Training for SR gives SR far above the baseline", "Section 4.1, Table 1", _sr_gives_sr),
    (
        "Training for SCR gives a little more CR, an order less than what LR gives of SR",
        "Section 4.2, Table 1",
        _scr_gives_little_cr,
    ),
    ("Training for LR gives the most CR", "Section 4.2, Table 1", _lr_gives_most_cr),
    (
        "Training for SCR does not give SR, nor training for SR CR",
        "Section 4.3, Table 1",
        _neither_gives_the_other,
    ),
)


def _claims(shares: Shares) -> list[StudyClaim]:
    cases = {
        f"{TITLES[data]}, {variant.name}": TableCase(shares, variant, data)
        for data in TITLES
        for variant in (CLIPPED, WHOLE)
    }
    return [
        judged(claim, place, {name: rule(case) for name, case in cases.items()})
        for claim, place, rule in CLAIMS
    ]
