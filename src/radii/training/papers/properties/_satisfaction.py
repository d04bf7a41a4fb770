"""Table 1: what is proven of networks trained for one property or another, on both kinds of balls.

The paper's balls are whole: Definition 5 takes every point within eps, pixels below 0 and above 1
included. Clipped balls hold valid images alone, and are a part of the whole ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from radii.results import Float64
from radii.training.papers._steps import Paragraph, Part, StudyClaim, StudySettings
from radii.training.papers._tables import Beside, Cell, StudyTable
from radii.training.papers.properties._data import FASHION, GTSRB, TITLES, BallRegion, StudyImages
from radii.training.papers.properties._measures import UNLEARNED, Measures, Satisfaction, Spread
from radii.training.papers.properties._networks import (
    BASELINE,
    LR,
    OF_TABLE_1,
    SCR,
    SR,
    NetworkKind,
    PaperTraining,
    training_images,
)
from radii.training.papers.properties._numbers import EPS, LARGEST_OF_BASELINE, SATISFACTION
from radii.training.papers.properties._sizes import HIDDEN_OF_PROOFS, seeds_text
from radii.training.papers.properties._verdicts import (
    MARGIN,
    CaseFinding,
    finding,
    judged,
    percent,
    points,
)

PROVEN_PROPERTIES = ("CR", "SR", "LR")

NEARLY_ALL = 0.9
FAR = 0.1
LITTLE = 0.05
TENTH = 0.1
"""Shares by which claims are judged: "nearly all", "far above", "hardly", "an order smaller"."""

NO_ROOM = "the baseline has SR nearly everywhere already"


@dataclass(frozen=True, slots=True)
class TableVariant:
    """Table 1 once: on which balls networks are trained, and on which they are proven."""

    name: str
    trained: BallRegion
    proven: BallRegion
    title: str


WHOLE = TableVariant(
    "whole",
    BallRegion.WHOLE,
    BallRegion.WHOLE,
    "trained and proven on whole balls, as the paper's definitions have them",
)
CLIPPED = TableVariant(
    "clipped",
    BallRegion.CLIPPED,
    BallRegion.CLIPPED,
    "trained and proven on clipped balls; the paper's numbers, in parentheses, are of whole balls",
)
CROSSED = TableVariant(
    "crossed",
    BallRegion.CLIPPED,
    BallRegion.WHOLE,
    "trained on clipped balls, proven on whole ones",
)
VARIANTS = (WHOLE, CLIPPED, CROSSED)

Shares = Mapping[tuple[str, str, str, str], Spread]
"""Proven shares by the names of the variant, the data set, the property and the training."""


def table_1(images: StudyImages, settings: StudySettings) -> list[Part]:
    measures = Measures(images, settings)
    shares: dict[tuple[str, str, str, str], Spread] = {}
    decided: list[bool] = []
    for variant in VARIANTS:
        for data in TITLES:
            for name in PROVEN_PROPERTIES:
                found = _satisfaction(measures, variant, data, name)
                for training, seeds in found.items():
                    key = (variant.name, data, name, training)
                    shares[key] = Spread.of([each.proven for each in seeds])
                    learned = [each for each in seeds if each is not UNLEARNED]
                    decided += [each.not_refuted == each.proven for each in learned]
    return [
        _setting(measures),
        *(_table(variant, shares) for variant in (WHOLE, CLIPPED)),
        _side_by_side(shares),
        Paragraph(
            f"Every image is decided, proven or refuted with a replayed counterexample, in "
            f"{sum(decided)} of {len(decided)} cells (of a variant, property, network and seed); "
            "where it is not, the cell has what is proven."
        ),
        Paragraph(_reasons(measures)),
        *(Paragraph(text, is_finding=True) for text in _findings(shares)),
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
        f"Per cent of the first {sizes.proven} test images (the paper: 200) at eps = {EPS:g}, for "
        f"networks of {HIDDEN_OF_PROOFS} hidden units, mean over {seeds_text(sizes.seeds)}; at "
        f"most {sizes.proof_seconds:g} s an image. Table 1 is here twice, since the paper does not "
        "say where balls end: its Definition 5 has whole balls, with pixels below 0 and above 1, "
        "while valid images have none. A network can keep a property on the clipped ball and lose "
        "it on the whole one, never the other way round. The third table has both side by side "
        "with the range over seeds, and the networks that were trained on clipped balls and proven "
        "on whole ones."
    )


def _table(variant: TableVariant, shares: Shares) -> StudyTable:
    """Laid out as in the paper."""
    heads = [(data, how) for data in TITLES for how in OF_TABLE_1]
    rows: list[tuple[Cell, ...]] = []
    for name in PROVEN_PROPERTIES:
        cells = [
            Beside(shares[variant.name, data, name, how.name].percent, _printed(data, name, how))
            for data, how in heads
        ]
        rows.append((f"{name} satisfaction", *cells))
    columns = ("%", *(f"{TITLES[data]}: {how.title}" for data, how in heads))
    return StudyTable(f"table-1-{variant.name}", f"Table 1, {variant.title}", columns, tuple(rows))


def _printed(data: str, name: str, how: PaperTraining) -> str:
    return SATISFACTION[data, name][OF_TABLE_1.index(how)]


def _side_by_side(shares: Shares) -> StudyTable:
    """A row for each data set, property and training."""
    rows: list[tuple[Cell, ...]] = []
    for data in TITLES:
        for name in PROVEN_PROPERTIES:
            for how in OF_TABLE_1:
                row: list[Cell] = [TITLES[data], name, how.title, _printed(data, name, how)]
                for variant in VARIANTS:
                    spread = shares[variant.name, data, name, how.name]
                    row += [spread.percent_text, spread.percent_range]
                rows.append(tuple(row))
    columns = [f"{text}{end}" for text in SIDES.values() for end in ("", ", range")]
    title = "Table 1 by where a ball ends, in %, with the range over seeds"
    heads = ("data", "property", "trained for", "the paper", *columns)
    return StudyTable("table-1-sides", title, heads, tuple(rows))


SIDES = {"whole": "whole", "clipped": "clipped", "crossed": "trained clipped, proven whole"}
"""Columns of the table side by side, in the order of `VARIANTS`."""


def _reasons(measures: Measures) -> str:
    sizes = measures.sizes
    kind = NetworkKind(FASHION, HIDDEN_OF_PROOFS)
    used = len(training_images(measures.images.sets[FASHION], kind, sizes))
    return (
        f"Why numbers differ: networks are others (here {sizes.epochs[FASHION]} epochs on "
        f"{used:,} images of Fashion-MNIST at a rate of {sizes.rate[FASHION]:g} and "
        f"{sizes.epochs[GTSRB]} on GTSRB at {sizes.rate[GTSRB]:g}, there 100 at 0.0001, on all "
        "60,000); there is one network a cell in the "
        "paper, whose seed is not told; it has 12,660 traffic signs to train on, and does not say "
        "of which ten classes; and the steps of its attack in training, and whether that leaves "
        "valid images, are not told."
    )


def _findings(shares: Shares) -> list[str]:
    """What the end of a ball changes, and what training for one property gives of another."""

    def of(variant: TableVariant, data: str, name: str, how: PaperTraining) -> str:
        return percent(shares[variant.name, data, name, how.name].values)

    ends = [
        f"{TITLES[data]} {of(WHOLE, data, 'SR', SR)} on whole balls, "
        f"{of(CLIPPED, data, 'SR', SR)} on clipped ones, {of(CROSSED, data, 'SR', SR)} where "
        "training saw clipped balls and proofs whole ones"
        for data in TITLES
    ]
    given = [
        f"{TITLES[data]} {of(WHOLE, data, 'SR', LR)} of SR and {of(WHOLE, data, 'CR', LR)} of CR, "
        f"for the baseline's {of(WHOLE, data, 'SR', BASELINE)} and "
        f"{of(WHOLE, data, 'CR', BASELINE)}"
        for data in TITLES
    ]
    return [
        f"Proven SR of SR-trained networks, by where a ball ends: {'; '.join(ends)}.",
        f"Training for LR, on whole balls: {'; '.join(given)}.",
    ]


# --- claims


@dataclass(frozen=True, slots=True, eq=False)
class TableCase:
    """A variant of the table and a data set, in which a claim holds or does not."""

    shares: Shares
    variant: TableVariant
    data: str

    def share(self, name: str, how: PaperTraining) -> Float64:
        """The proven share of a property, by seed."""
        return self.shares[self.variant.name, self.data, name, how.name].values

    def gain(self, name: str, how: PaperTraining) -> Float64:
        """By how much more is proven than of the baseline, by seed."""
        return self.share(name, how) - self.share(name, BASELINE)

    def against_baseline(self, name: str, how: PaperTraining) -> str:
        return f"{percent(self.share(name, how))} for {percent(self.share(name, BASELINE))}"


def _baseline_has_little(case: TableCase) -> CaseFinding:
    most = np.max([case.share(name, BASELINE) for name in PROVEN_PROPERTIES], axis=0)
    return finding(100 * most <= LARGEST_OF_BASELINE, f"at most {percent(most)}", most)


def _lr_is_nowhere(case: TableCase) -> CaseFinding:
    most = np.max([case.share("LR", how) for how in OF_TABLE_1], axis=0)
    return finding(most == 0, f"at most {percent(most)}", most)


def _lr_gives_sr(case: TableCase) -> CaseFinding:
    found = case.share("SR", LR)
    return finding(found >= NEARLY_ALL, percent(found), found)


def _sr_gives_sr(case: TableCase) -> CaseFinding:
    """Not judged where the baseline leaves no room for a gain."""
    gain, told = case.gain("SR", SR), case.against_baseline("SR", SR)
    if np.all(case.share("SR", BASELINE) > 1 - FAR):
        return CaseFinding((), told, NO_ROOM)
    return finding(gain >= FAR, told, gain)


def _scr_gives_little_cr(case: TableCase) -> CaseFinding:
    gain, of_sr = case.gain("CR", SCR), case.gain("SR", LR)
    is_little, told = (gain > 0) & (gain <= TENTH * of_sr), case.against_baseline("CR", SCR)
    if np.all(case.share("SR", BASELINE) == 1):
        return CaseFinding((), told, NO_ROOM)
    return finding(is_little, told, gain, of_sr)


def _lr_gives_most_cr(case: TableCase) -> CaseFinding:
    found = {how: case.share("CR", how) for how in OF_TABLE_1}
    others = np.max([share for how, share in found.items() if how is not LR], axis=0)
    told = ", ".join(f"{how.title} {percent(share)}" for how, share in found.items())
    if np.all(found[LR] == 0) and np.all(others == 0):
        return CaseFinding((), told, "nothing is proven of any")
    return finding(found[LR] >= others + MARGIN, told, found[LR], others)


def _neither_gives_the_other(case: TableCase) -> CaseFinding:
    gains = {"SR by SCR": case.gain("SR", SCR), "CR by SR": case.gain("CR", SR)}
    told = ", ".join(f"{name} {points(gain)}" for name, gain in gains.items())
    if np.all(case.share("SR", BASELINE) == 1):
        return CaseFinding((), told, NO_ROOM)
    return finding(np.max(list(gains.values()), axis=0) < LITTLE, told, *gains.values())


CLAIMS: tuple[tuple[str, str, Callable[[TableCase], CaseFinding]], ...] = (
    (
        "A baseline network has its properties proven around 0 to 1.5 % of the images",
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
