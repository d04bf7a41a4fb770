"""The networks of the study: which there are, how they are trained and kept, and what has learned.

All lie in the folder `networks` of the study, whichever step asks for them first. A training that
learns nothing is tried again in other ways, each in a folder of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from radii.statistics import clopper_pearson
from radii_papers._steps import StudySettings, digest_of
from radii_papers.properties._data import (
    FASHION,
    BallRegion,
    ImageSet,
    StudyImages,
)
from radii_papers.properties._numbers import EPS
from radii_papers.properties._sizes import DEEP, StudySizes, TrainingAttempt, sizes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from radii.datasets import Dataset
    from radii.networks import Network


@dataclass(frozen=True, slots=True)
class PaperTraining:
    """One way to train: its title in tables, and the regime, with `{eps}` and its `{steps}`.

    `from_baseline`: it begins with the weights of the baseline, against which FGSM points are made
    where they are made once.
    """

    name: str
    title: str
    regime: str
    from_baseline: bool = False


BASELINE = PaperTraining("baseline", "baseline", "standard")
UNIFORM = PaperTraining("uniform", "augmentation (RU)", "augmentation-uniform:eps={eps}")
FGSM = PaperTraining("fgsm", "augmentation (FGSM)", "augmentation-fgsm:eps={eps}")
UNIFORM_ONCE = PaperTraining(
    "uniform-once", "augmentation (RU), once", "augmentation-uniform:eps={eps},made=once"
)
FGSM_ONCE = PaperTraining(
    "fgsm-once",
    "augmentation (FGSM), once",
    "augmentation-fgsm:eps={eps},made=once",
    from_baseline=True,
)
ADVERSARIAL = PaperTraining("adversarial", "adversarial", "pgd:eps={eps},steps={steps}")
SR = PaperTraining("sr", "SR", "sr:delta=10,eps={eps},steps={steps}")
SCR = PaperTraining("scr", "SCR", "scr:eta=0.52,eps={eps},steps={steps}")
LR = PaperTraining("lr", "LR", "lr:L=10,eps={eps},steps={steps}")

OF_TABLE_1 = (BASELINE, SCR, SR, LR)
AUGMENTATIONS = (UNIFORM, FGSM, UNIFORM_ONCE, FGSM_ONCE)
CONSTRAINTS = (SR, SCR, LR)
ALL_TRAININGS = (BASELINE, *AUGMENTATIONS, ADVERSARIAL, *CONSTRAINTS)

PAPER_AUGMENTATIONS = (UNIFORM_ONCE, FGSM_ONCE)
PAPER_TRAININGS = (BASELINE, *PAPER_AUGMENTATIONS, ADVERSARIAL, *CONSTRAINTS)
"""Those that claims are about: the paper's public scripts make the points of augmentation once."""


@dataclass(frozen=True, slots=True)
class NetworkKind:
    """Networks that differ in their training and seed alone.

    `hidden` units, or the deep network where it is 0; trained on balls of this region.
    """

    data: str
    hidden: int
    region: BallRegion = BallRegion.CLIPPED

    @property
    def is_deep(self) -> bool:
        return self.hidden == DEEP

    @property
    def name(self) -> str:
        return f"{self.data}-{self.hidden or 'deep'}-{self.region}"


def deep_kind() -> NetworkKind:
    return NetworkKind(FASHION, DEEP)


def kept_folder(images: StudyImages, settings: StudySettings, what: str) -> Path:
    """The folder of the study that keeps `what`, of these files and this scale."""
    digest = digest_of(images.files)[:8]
    return settings.folder.parent / what / f"{settings.scale}-{digest}"


@dataclass(frozen=True, slots=True)
class KeptNetwork:
    """A network in its folder: the attempt that made it, its accuracy, and has it learned?"""

    folder: Path
    attempt: TrainingAttempt
    accuracy: float
    has_learned: bool


CONFIDENCE = 0.99
TIMES_CONSTANT = 2.0
"""A network has learned if its accuracy is, with this confidence, above so many times that of
always answering the most frequent class."""


def is_learned(accuracy: float, labels: Sequence[int]) -> bool:
    """Whether an accuracy on these labels is clearly above that of a constant."""
    count = len(labels)
    constant = float(np.bincount(np.asarray(labels)).max()) / count
    low, _ = clopper_pearson(round(accuracy * count), count, CONFIDENCE, tail="lower")
    return low > TIMES_CONSTANT * constant


def kept_network(
    images: StudyImages, settings: StudySettings, kind: NetworkKind, how: PaperTraining, seed: int
) -> KeptNetwork:
    """The network of the first attempt that learned; if none did, that of the best accuracy."""
    tried = []
    for attempt in attempts_of(images, settings, kind, how, seed):
        if attempt.has_learned:
            return attempt
        tried.append(attempt)
    return max(tried, key=lambda network: network.accuracy)


def attempts_of(
    images: StudyImages, settings: StudySettings, kind: NetworkKind, how: PaperTraining, seed: int
) -> Iterator[KeptNetwork]:
    """The attempts at a training one by one; each is trained when it is asked for, unless kept."""
    from radii.training import Card

    if how is BASELINE:  # is trained on no ball, so all regions share it
        kind = NetworkKind(kind.data, kind.hidden)
    kept = kept_folder(images, settings, "networks")
    labels = images.sets[kind.data].test.labels.tolist()
    for attempt in sizes_of(settings).attempts:
        folder = kept / f"{kind.name}-{how.name}-{seed}{attempt.suffix}"
        if not (folder / "card.json").exists():
            _train(images, settings, kind, how, seed, attempt, folder)
        accuracy = Card.read(folder).accuracy
        yield KeptNetwork(folder, attempt, accuracy, is_learned(accuracy, labels))


def load_trained(
    images: StudyImages,
    settings: StudySettings,
    kind: NetworkKind,
    trainings: Sequence[PaperTraining],
    seed: int,
    region: BallRegion,
) -> list[Network]:
    """Networks by the names of their trainings, whose balls are those of `region`."""
    from radii.networks import load_network

    eps = max(EPS, *sizes_of(settings).attack_eps, *sizes_of(settings).sampled_eps)
    domain = region.domain(eps)
    return [
        load_network(
            kept_network(images, settings, kind, how, seed).folder / "network.onnx",
            domain=domain,
            name=how.name,
        )
        for how in trainings
    ]


def _train(
    images: StudyImages,
    settings: StudySettings,
    kind: NetworkKind,
    how: PaperTraining,
    seed: int,
    attempt: TrainingAttempt,
    folder: Path,
) -> None:
    """One stage after the other, each from the weights of the one before it."""
    from radii.training import saved_weights, train

    sizes = sizes_of(settings)
    start = None
    if how.from_baseline:
        start = saved_weights(kept_network(images, settings, kind, BASELINE, seed).folder)
    own = images.sets[kind.data]
    for place, share in enumerate(attempt.stages, 1):
        out = folder if place == len(attempt.stages) else folder / f"stage-{place}"
        with one_thread():
            train(
                sizes.deep if kind.is_deep else f"dense:{kind.hidden}-clamp",
                training_images(own, kind, sizes),
                test=own.test,
                regime=how.regime.format(eps=f"{share * EPS:g}", steps=sizes.steps),
                domain=kind.region.domain(EPS),
                epochs=attempt.epochs
                * (sizes.deep_epochs if kind.is_deep else sizes.epochs[kind.data]),
                batch=sizes.deep_batch if kind.is_deep else sizes.batch[kind.data],
                rate=attempt.rate * (sizes.deep_rate if kind.is_deep else sizes.rate[kind.data]),
                eps=EPS,
                seed=seed,
                start=start,
                out=out,
            )
        start = saved_weights(out)


def training_images(own: ImageSet, kind: NetworkKind, sizes: StudySizes) -> Dataset:
    count = sizes.fashion_images.get(kind.hidden) if kind.data == FASHION else None
    return own.train if count is None else own.train.first(min(count, len(own.train)))


@contextmanager
def one_thread() -> Iterator[None]:
    """More threads round differently: the networks would depend on the machine's cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
