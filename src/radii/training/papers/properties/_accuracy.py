"""The networks: how they were trained, and their accuracy (Table 3)."""

from __future__ import annotations

from radii.training.papers._steps import Paragraph, Part, StudySettings
from radii.training.papers._tables import Beside, Cell, StudyTable
from radii.training.papers.properties._data import FASHION, GTSRB, TITLES, StudyImages
from radii.training.papers.properties._measures import Measures, Spread
from radii.training.papers.properties._networks import (
    ADVERSARIAL,
    ALL_TRAININGS,
    HIDDEN_OF_ATTACKS,
    NetworkKind,
    card_of,
    training_images,
)
from radii.training.papers.properties._numbers import ACCURACIES, EPS
from radii.training.papers.properties._verdicts import CaseFinding, judged, percent


def table_3(images: StudyImages, settings: StudySettings) -> list[Part]:
    measures = Measures(images, settings)
    accuracies: dict[tuple[str, str], Spread] = {}
    for data in TITLES:
        kind = NetworkKind(data, HIDDEN_OF_ATTACKS)
        for how in ALL_TRAININGS:
            cards = [card_of(images, settings, kind, how, seed) for seed in measures.seeds]
            accuracies[data, how.name] = Spread.of([card.accuracy for card in cards])
    return [
        Paragraph(_how_trained(images, measures)),
        _table(accuracies),
        Paragraph(
            "Why numbers differ: fewer epochs at a larger rate than the paper's on Fashion-MNIST, "
            "and of traffic signs a fifteenth of its images. Augmentation made once and FGSM made "
            "in each batch have no numbers of the paper's own where it does not say which it did: "
            "its numbers stand beside points that are made in each batch."
        ),
        judged(
            "Of all trainings, adversarial training costs the most accuracy",
            "Appendix B, Table 3",
            {TITLES[data]: _costliest(accuracies, data) for data in TITLES},
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
            f"{sizes.batch[data]} (128)"
        )
    return (
        f"{'; '.join(parts)}; Adam at a rate of {sizes.rate:g} (0.0001), {sizes.seeds} "
        f"{'seed' if sizes.seeds == 1 else 'seeds'}. Adversarial training and constraint losses "
        f"have an attack of {sizes.steps} steps inside. All train at the paper's eps = {EPS:g}, "
        "with alpha = 1, beta = 0.2, delta = 10, L = 10, eta = 0.52 and outputs clamped to "
        "[-100, 100]; balls are clipped to valid images unless a table says otherwise. "
        "Augmentation adds two points to each image: anew for each batch, against the network as "
        "it is then, or once, before training. FGSM points that are made once are made against "
        "the trained baseline, which then goes on learning from the larger set."
    )


def _table(accuracies: dict[tuple[str, str], Spread]) -> StudyTable:
    rows: list[tuple[Cell, ...]] = []
    for how in ALL_TRAININGS:
        row: list[Cell] = [how.title]
        paper = ACCURACIES.get((how.name,), ("", ""))
        for data, printed in zip(TITLES, paper, strict=True):
            spread = accuracies[data, how.name]
            # Without a number of the paper, its one decimal is kept.
            cell = Beside(spread.percent, printed) if printed else f"{spread.percent:.1f}"
            row += [cell, spread.percent_range]
        rows.append(tuple(row))
    columns = [f"{title}{text}" for title in TITLES.values() for text in (", mean", ", range")]
    title = f"Table 3: accuracy on all test images in %, networks of {HIDDEN_OF_ATTACKS} units"
    return StudyTable("table-3", title, ("training", *columns), tuple(rows))


def _costliest(accuracies: dict[tuple[str, str], Spread], data: str) -> CaseFinding:
    means = {how: float(accuracies[data, how.name].mean) for how in ALL_TRAININGS}
    least = min(means, key=lambda how: means[how])
    told = f"adversarial {percent(means[ADVERSARIAL])}"
    if least is not ADVERSARIAL:
        told += f", {least.title} {percent(means[least])}"
    return CaseFinding(least is ADVERSARIAL, told)
