"""Retraining for balanced class robustness: what it does to the worst class, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from radii.statistics import Distribution, class_gains
from radii_papers._steps import (
    Paragraph,
    Part,
    StudyFigure,
    StudyScale,
    StudySettings,
)
from radii_papers._tables import Cell, StudyTable, interval_text
from radii_papers.classes._source import SEED, ClassSource

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from radii.datasets import Dataset

ARCHITECTURE = "dense:50-50"
EPS = 0.1
REGIME = f"pgd:eps={EPS:g}"
TRAININGS = {"plain": "", "balanced": "balanced-robustness"}
"""By name: the class weights of `radii train`."""

ATTACK_STEPS = 20
PERMUTATIONS = 999


@dataclass(frozen=True, slots=True)
class TrainingSizes:
    """Images and epochs of a training, trainings of each kind, images tested and given to proofs.

    `proven` are images of each class; `seconds` are for each of them.
    """

    images: int
    epochs: int
    seeds: int
    tested: int
    proven: int
    seconds: float


SIZES = {
    StudyScale.SMALL: TrainingSizes(2000, 3, 1, 500, 2, 1.0),
    StudyScale.MACHINE: TrainingSizes(10_000, 8, 2, 10_000, 10, 1.0),
    StudyScale.FULL: TrainingSizes(60_000, 50, 5, 10_000, 100, 60.0),
}


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """One network: accuracy, and by class the share that PGD does not break at `EPS`."""

    name: str
    seed: int
    accuracy: float
    recalls: dict[int, float]
    path: Path

    @property
    def worst(self) -> int:
        return min(self.recalls, key=self.recalls.__getitem__)

    @property
    def least(self) -> float:
        return min(self.recalls.values())

    @property
    def spread(self) -> float:
        return max(self.recalls.values()) - self.least


def retraining(source: ClassSource, settings: StudySettings) -> list[Part]:
    """Networks trained by PGD alone, and with weights that follow the classes' robust errors."""
    sizes = SIZES[settings.scale]
    data = source.images("train")
    if data is None:
        return [Paragraph("No training images are at hand: radii data get mnist.")]
    test = source.images("test") or data
    data, test = data.first(min(sizes.images, len(data))), test.first(min(sizes.tested, len(test)))
    trained = [
        _train(name, seed, data, test, settings, sizes)
        for seed in range(sizes.seeds)
        for name in TRAININGS
    ]
    found = _brackets(trained, source, settings, sizes)
    text = (
        f"`radii train --arch {ARCHITECTURE} --regime {REGIME}` on the first {len(data)} training "
        f"images, {sizes.epochs} epochs, {sizes.seeds} seeds; beside it the same with "
        "`--class-weights balanced-robustness`, by which a class counts more, the more of its "
        f"images PGD breaks. Recall under PGD ({ATTACK_STEPS} steps, eps {EPS:g}) is of "
        f"{len(test)} images, and can only be too large; brackets are of the first seed's networks."
    )
    return [
        Paragraph(text),
        _summary(trained),
        _by_class(trained),
        _proven_table(found),
        StudyFigure(
            "retraining-gains",
            f"Gain of robust recall at {EPS:g} by balanced training, by class",
            lambda: _draw(found),
        ),
    ]


def _train(
    name: str,
    seed: int,
    data: Dataset,
    test: Dataset,
    settings: StudySettings,
    sizes: TrainingSizes,
) -> Trained:
    """From the step's folder where it is done already."""
    import torch

    from radii.training import NETWORK_FILE, Holdout, train

    torch.set_num_threads(1)
    folder = settings.folder / f"{settings.scale.value}-{name}-{seed}"
    made = train(
        ARCHITECTURE,
        data,
        regime=REGIME,
        test=test,
        out=folder,
        epochs=sizes.epochs,
        seed=seed,
        class_weights=TRAININGS[name],
        name=name,
    )
    images, labels = torch.from_numpy(test.images), torch.from_numpy(test.labels)
    low, high = torch.zeros_like(images[0]), torch.ones_like(images[0])
    broken = Holdout(images, labels, low, high).broken(
        made.module, eps=EPS, count=len(test), steps=ATTACK_STEPS, seed=seed
    )
    stands = 1.0 - broken.double().numpy()
    recalls = {
        int(label): float(stands[test.labels == label].mean()) for label in np.unique(test.labels)
    }
    return Trained(name, seed, made.card.accuracy, recalls, folder / NETWORK_FILE)


def _brackets(
    trained: list[Trained], source: ClassSource, settings: StudySettings, sizes: TrainingSizes
) -> Distribution:
    """One question an image: is its class proven within `EPS`, or is there a counterexample?"""
    from radii.networks import load_network
    from radii.runs import Settings, plan
    from radii.store import Store

    images = source.drawn("test", sizes.proven) or source.drawn("train", sizes.proven)
    assert images is not None, "networks were trained on images"
    networks = [
        load_network(each.path, domain=(0.0, 1.0), name=each.name)
        for each in trained
        if each.seed == 0
    ]
    how = Settings.from_options({"eps": EPS, "budget_per_input": sizes.seconds, "seed": SEED})
    with Store.create_or_open(settings.folder / f"{settings.scale.value}-brackets") as store:
        plan(networks, images, how).run(
            store, jobs=settings.jobs, observer=settings.progress.inside()
        )
        return Distribution.from_store(store)


def _summary(trained: list[Trained]) -> StudyTable:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (each.name, each.seed, each.accuracy, float(np.mean(list(each.recalls.values()))),
         each.least, each.worst, each.spread)
        for each in sorted(trained, key=lambda each: each.name, reverse=True)
    )  # fmt: skip
    columns = (
        *("training", "seed", "accuracy", "mean recall under PGD", "worst class's"),
        *("worst class", "spread"),
    )
    title = "Before and after: recall of classes under PGD"
    forms = ("", "", ".4f", ".3f", ".3f", "", ".3f")
    return StudyTable("retraining", title, columns, rows, forms)


def _by_class(trained: list[Trained]) -> StudyTable:
    labels = sorted(trained[0].recalls)
    rows: list[tuple[Cell, ...]] = []
    for label in labels:
        means = [
            float(np.mean([each.recalls[label] for each in trained if each.name == name]))
            for name in TRAININGS
        ]
        rows.append((label, *means, means[1] - means[0]))
    columns = ("class", *TRAININGS, "gain")
    title = "Recall under PGD by class, mean over seeds"
    return StudyTable("retraining-classes", title, columns, tuple(rows), ("", *([".3f"] * 3)))


def _proven_table(found: Distribution) -> StudyTable:
    """Bounds on robust recall at the eps of training, and which classes gain."""
    plain, balanced = (found.only(network=name) for name in TRAININGS)
    gains = {gain.label: gain for gain in class_gains(plain, balanced, EPS)}
    rows: list[tuple[Cell, ...]] = []
    for label in plain.labels:
        before, after = (part.robust_recall(label, EPS) for part in (plain, balanced))
        gain = gains[label]
        rows.append(
            (
                label,
                gain.inputs,
                interval_text(before.proven, before.not_refuted, 2),
                interval_text(after.proven, after.not_refuted, 2),
                interval_text(gain.least, gain.most, 2),
                gain.verdict(),
            )
        )
    columns = ("class", "images", "plain", "balanced", "gain", "after Holm")
    title = f"Robust recall at {EPS:g} by brackets: from proven to not refuted"
    return StudyTable("retraining-brackets", title, columns, tuple(rows))


def _draw(found: Distribution) -> Figure:
    from radii.views import draw_class_gains

    first, second = TRAININGS
    return draw_class_gains(found, first, second, EPS)
