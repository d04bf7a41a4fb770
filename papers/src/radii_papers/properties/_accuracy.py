"""The networks: how they were trained, their accuracy (Table 3), and which learned nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from radii_papers._evidence import ClaimCase, StudyClaim
from radii_papers._steps import Paragraph, Part, StudySettings
from radii_papers._tables import Beside, Cell, StudyTable
from radii_papers.properties._data import (
    FASHION,
    GTSRB,
    TITLES,
    BallRegion,
    StudyImages,
)
from radii_papers.properties._measures import Measures, Spread
from radii_papers.properties._networks import (
    ADVERSARIAL,
    ALL_TRAININGS,
    CONFIDENCE,
    OF_TABLE_1,
    PAPER_TRAININGS,
    TIMES_CONSTANT,
    NetworkKind,
    PaperTraining,
    attempts_of,
    deep_kind,
    training_images,
)
from radii_papers.properties._numbers import ACCURACIES, EPS
from radii_papers.properties._sizes import (
    HIDDEN_OF_ATTACKS,
    HIDDEN_OF_PROOFS,
    StudySizes,
    seeds_text,
)
from radii_papers.properties._verdicts import basis_of, least_favourable, percent, seeds_case

Accuracies = Mapping[tuple[str, str], Spread]
"""By data set and training."""


def table_3(images: StudyImages, settings: StudySettings) -> list[Part]:
    measures = Measures(images, settings)
    accuracies: dict[tuple[str, str], Spread] = {}
    for data in TITLES:
        kind = NetworkKind(data, HIDDEN_OF_ATTACKS)
        for how in ALL_TRAININGS:
            found = [measures.network(kind, how, seed) for seed in measures.seeds]
            shares = [each.accuracy if each.has_learned else np.nan for each in found]
            accuracies[data, how.name] = Spread.of(shares)
    return [
        Paragraph(_how_trained(images, measures)),
        _table(accuracies),
        Paragraph(
            f"Why numbers differ: fewer epochs at a larger rate than the paper's on Fashion-MNIST, "
            f"and of traffic signs {len(images.sets[GTSRB].train):,} images of 32x32 pixels, "
            "enlarged, where the paper has 12,660. The paper does not say when it makes the points "
            "of augmentation; its public scripts make them once, before training: so its numbers "
            "stand beside networks whose points are made once, which they fit."
        ),
        StudyClaim(
            "Of all trainings, adversarial training costs the most accuracy",
            "Appendix B, Table 3",
            "accuracy of each of the paper's other trainings less that of adversarial training, on "
            "all test images; Student's interval over seeds, Bonferroni over all comparisons",
            tuple(_costliest(images, settings, accuracies, data) for data in TITLES),
        ),
    ]


def _how_trained(images: StudyImages, measures: Measures) -> str:
    sizes, parts = measures.sizes, []
    for data, paper in ((FASHION, "60,000"), (GTSRB, "12,660")):
        own = images.sets[data]
        used = len(training_images(own, NetworkKind(data, HIDDEN_OF_ATTACKS), sizes))
        parts.append(
            f"{own.title}: {used:,} images to train on (the paper: {paper}) and "
            f"{len(own.test):,} to test on, {sizes.epochs[data]} epochs (100) of batches of "
            f"{sizes.batch[data]} (128) by Adam at a rate of {sizes.rate[data]:g} (0.0001)"
        )
    return (
        f"{'; '.join(parts)}; {seeds_text(sizes.seeds)}. Adversarial training and constraint "
        f"losses have an attack of {sizes.steps} steps inside. All train at the paper's eps = "
        f"{EPS:g}, with alpha = 1, beta = 0.2, delta = 10, L = 10, eta = 0.52 and outputs clamped "
        "to [-100, 100]; balls are clipped to valid images unless a table says otherwise. "
        "Augmentation adds two points to each image: anew for each batch, against the network as "
        "it is then, or once, before training. FGSM points that are made once are made against "
        "the trained baseline, which then goes on learning from the larger set."
    )


def _table(accuracies: Accuracies) -> StudyTable:
    rows: list[tuple[Cell, ...]] = []
    for how in ALL_TRAININGS:
        row: list[Cell] = [how.title]
        paper = ACCURACIES.get((how.name,), ("", ""))
        for data, printed in zip(TITLES, paper, strict=True):
            spread = accuracies[data, how.name]
            # Without a number of the paper, its one decimal is kept.
            cell = Beside(spread.percent, printed) if printed else spread.percent_text
            row += [cell, spread.percent_range]
        rows.append(tuple(row))
    columns = [f"{title}{text}" for title in TITLES.values() for text in (", mean", ", range")]
    title = (
        f"Table 3: accuracy on all test images in %, networks of {HIDDEN_OF_ATTACKS} units that "
        "learned something"
    )
    return StudyTable("table-3", title, ("training", *columns), tuple(rows))


def _costliest(
    images: StudyImages, settings: StudySettings, accuracies: Accuracies, data: str
) -> ClaimCase:
    """Against each other training; networks that learned nothing are left out."""
    own = accuracies[data, ADVERSARIAL.name].values
    basis, count = basis_of(settings, data), len(images.sets[data].test)
    others = [how for how in PAPER_TRAININGS if how is not ADVERSARIAL]
    cases = []
    for how in others:
        other = accuracies[data, how.name].values
        shows = f"{percent(other)} for {percent(own)}"
        case = seeds_case(
            TITLES[data], basis, count, other - own, len(TITLES) * len(others), above=0, shows=shows
        )
        known = (other - own)[np.isfinite(other - own)]
        cases.append((float(known.mean()) if len(known) else 0.0, how.title, case))
    return least_favourable(cases)


# --- which networks learned nothing


def learning(images: StudyImages, settings: StudySettings) -> list[Part]:
    """The rule by which networks are left out, and what was tried before."""
    sizes = Measures(images, settings).sizes
    rows: list[tuple[Cell, ...]] = []
    trained = left_out = 0
    for title, kind, how, seed in _trained(sizes):
        tried = []
        for each in attempts_of(images, settings, kind, how, seed):
            tried.append(each)
            if each.has_learned:
                break
        trained += 1
        left_out += not tried[-1].has_learned
        if len(tried) > 1 or not tried[-1].has_learned:
            # Attempts that were not needed have no accuracy.
            shares = [f"{100 * each.accuracy:.1f}" for each in tried]
            missing = len(sizes.attempts) - len(tried)
            answer = "yes" if tried[-1].has_learned else "no, left out"
            rows.append((title, how.title, seed, *shares, *[None] * missing, answer))
    columns = ("networks", "training", "seed", *(each.title for each in sizes.attempts), "learned")
    table = StudyTable(
        "learning", "Trainings that were tried again: accuracy in %", columns, tuple(rows)
    )
    counted = (
        f"Of {trained} networks {len(rows)} were tried again and {left_out} learned nothing in the "
        "end."
    )
    return [Paragraph(f"{_learning_rule(sizes)} {counted}"), table]


def _learning_rule(sizes: StudySizes) -> str:
    tried = "; then with ".join(each.title for each in sizes.attempts[1:])
    return (
        "A network that gives one answer everywhere keeps SR and LR, and says nothing about a "
        "training. A network counts as having learned something if its accuracy on the test images "
        f"is above {TIMES_CONSTANT:g} times that of always answering the most frequent class, by "
        f"the exact lower limit of {100 * CONFIDENCE:g} % confidence. One that has not is trained "
        f"again{f' with {tried}' if tried else ''}: the first attempt that learns is taken. If "
        "none does, the network is left out: it is not measured, has a dash in tables, no line in "
        "figures, and no part in verdicts."
    )


def _trained(sizes: StudySizes) -> Iterator[tuple[str, NetworkKind, PaperTraining, int]]:
    """Every network of the study, with what its kind is called."""
    for data, title in TITLES.items():
        for region in BallRegion:
            kind = NetworkKind(data, HIDDEN_OF_PROOFS, region)
            name = f"{title}, {HIDDEN_OF_PROOFS} units, {region} balls"
            for how in OF_TABLE_1 if region is BallRegion.CLIPPED else OF_TABLE_1[1:]:
                yield from ((name, kind, how, seed) for seed in range(sizes.seeds))
        kind = NetworkKind(data, HIDDEN_OF_ATTACKS)
        for how in ALL_TRAININGS:
            name = f"{title}, {HIDDEN_OF_ATTACKS} units"
            yield from ((name, kind, how, seed) for seed in range(sizes.seeds))
    for how in ALL_TRAININGS:
        yield f"{TITLES[FASHION]}, 18 layers", deep_kind(), how, 0
