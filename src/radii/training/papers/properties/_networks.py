"""The networks of the study: which there are, at which sizes, and how they are trained and kept.

All lie in the folder `networks` of the study, whichever step asks for them first.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from radii.training.papers._steps import StudyScale, StudySettings, digest_of
from radii.training.papers.properties._data import (
    FASHION,
    GTSRB,
    BallRegion,
    ImageSet,
    StudyImages,
)
from radii.training.papers.properties._numbers import EPS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from radii.datasets import Dataset
    from radii.networks import Network
    from radii.training import Card


@dataclass(frozen=True, slots=True)
class PaperTraining:
    """One way to train: its name in tables, and the regime, with `{steps}` of its attack.

    `from_baseline`: it begins with the weights of the baseline, against which FGSM points are made
    where they are made once.
    """

    name: str
    title: str
    regime: str
    from_baseline: bool = False


BASELINE = PaperTraining("baseline", "baseline", "standard")
UNIFORM = PaperTraining("uniform", "augmentation (RU)", f"augmentation-uniform:eps={EPS}")
FGSM = PaperTraining("fgsm", "augmentation (FGSM)", f"augmentation-fgsm:eps={EPS}")
UNIFORM_ONCE = PaperTraining(
    "uniform-once", "augmentation (RU), once", f"augmentation-uniform:eps={EPS},made=once"
)
FGSM_ONCE = PaperTraining(
    "fgsm-once",
    "augmentation (FGSM), once",
    f"augmentation-fgsm:eps={EPS},made=once",
    from_baseline=True,
)
ADVERSARIAL = PaperTraining("adversarial", "adversarial", f"pgd:eps={EPS},steps={{steps}}")
SR = PaperTraining("sr", "SR", f"sr:delta=10,eps={EPS},steps={{steps}}")
SCR = PaperTraining("scr", "SCR", f"scr:eta=0.52,eps={EPS},steps={{steps}}")
LR = PaperTraining("lr", "LR", f"lr:L=10,eps={EPS},steps={{steps}}")

OF_TABLE_1 = (BASELINE, SCR, SR, LR)
AUGMENTATIONS = (UNIFORM, FGSM, UNIFORM_ONCE, FGSM_ONCE)
CONSTRAINTS = (SR, SCR, LR)
ALL_TRAININGS = (BASELINE, *AUGMENTATIONS, ADVERSARIAL, *CONSTRAINTS)


HIDDEN_OF_PROOFS, HIDDEN_OF_ATTACKS, DEEP = 30, 100, 0
"""Hidden units of the paper's networks for Table 1, and of all others; the deep network has none of
its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySizes:
    """How much of the paper a scale does.

    `fashion_images` are those that networks of so many hidden units are trained on, None all;
    `steps` are those of the attack inside of training, `proof_seconds` those of the verifier an
    image, `attack_eps` the radii of PGD; `deep_*` are of the network of 18 layers.
    """

    seeds: int
    fashion_images: dict[int, int | None]
    epochs: dict[str, int]
    batch: dict[str, int]
    rate: float
    steps: int
    proven: int
    proof_seconds: float
    attacked: int
    attack_eps: tuple[float, ...]
    sampled: int
    samples: int
    sampled_eps: tuple[float, ...]
    deep: str
    deep_epochs: int
    deep_batch: int
    deep_rate: float
    deep_attacked: int


SMALL = StudySizes(
    seeds=1,
    fashion_images={HIDDEN_OF_PROOFS: 3000, HIDDEN_OF_ATTACKS: 3000, DEEP: 1000},
    epochs={FASHION: 4, GTSRB: 10},
    batch={FASHION: 64, GTSRB: 32},
    rate=1e-3,
    steps=5,
    proven=12,
    proof_seconds=10.0,
    attacked=16,
    attack_eps=(0.1, 0.3),
    sampled=16,
    samples=50,
    sampled_eps=(0.05, 0.1, 0.3),
    deep="resnet:4/2-4/2-4-8/2-8-8-8-8-8",
    deep_epochs=3,
    deep_batch=32,
    deep_rate=2e-3,
    deep_attacked=16,
)
MACHINE = StudySizes(
    seeds=1,
    fashion_images={HIDDEN_OF_PROOFS: 20_000, HIDDEN_OF_ATTACKS: None, DEEP: 4000},
    epochs={FASHION: 5, GTSRB: 40},
    batch={FASHION: 128, GTSRB: 32},
    rate=1e-3,
    steps=5,
    proven=24,
    proof_seconds=10.0,
    attacked=32,
    attack_eps=(0.1, 0.3),
    sampled=16,
    samples=100,
    sampled_eps=(0.05, 0.1, 0.2, 0.3),
    deep="resnet:8/2-8/2-8-16/2-16-32/2-32-32-32",
    deep_epochs=4,
    deep_batch=64,
    deep_rate=2e-3,
    deep_attacked=16,
)
FULL = StudySizes(
    seeds=5,
    fashion_images={HIDDEN_OF_PROOFS: None, HIDDEN_OF_ATTACKS: None, DEEP: None},
    epochs={FASHION: 100, GTSRB: 100},
    batch={FASHION: 128, GTSRB: 128},
    rate=1e-4,
    steps=10,
    proven=200,
    proof_seconds=30.0,
    attacked=200,
    attack_eps=(0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3),
    sampled=200,
    samples=1000,
    sampled_eps=(0.02, 0.05, 0.1, 0.2, 0.3),
    deep="resnet:64-64-64-128/2-128-256/2-256-512/2-512",
    deep_epochs=100,
    deep_batch=128,
    deep_rate=1e-4,
    deep_attacked=200,
)
SIZES = {StudyScale.SMALL: SMALL, StudyScale.MACHINE: MACHINE, StudyScale.FULL: FULL}


def sizes_of(settings: StudySettings) -> StudySizes:
    return SIZES[settings.scale]


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


def trained_folder(
    images: StudyImages, settings: StudySettings, kind: NetworkKind, how: PaperTraining, seed: int
) -> Path:
    """Where a network is kept, once it is trained; now, if it is not yet."""
    if how is BASELINE:  # is trained on no ball, so all regions share it
        kind = NetworkKind(kind.data, kind.hidden)
    folder = kept_folder(images, settings, "networks") / f"{kind.name}-{how.name}-{seed}"
    if not (folder / "card.json").exists():
        _train(images, settings, kind, how, seed, folder)
    return folder


def card_of(
    images: StudyImages, settings: StudySettings, kind: NetworkKind, how: PaperTraining, seed: int
) -> Card:
    from radii.training import Card

    return Card.read(trained_folder(images, settings, kind, how, seed))


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
            trained_folder(images, settings, kind, how, seed) / "network.onnx",
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
    folder: Path,
) -> None:
    from radii.training import saved_weights, train

    sizes = sizes_of(settings)
    start = None
    if how.from_baseline:
        start = saved_weights(trained_folder(images, settings, kind, BASELINE, seed))
    own = images.sets[kind.data]
    with one_thread():
        train(
            sizes.deep if kind.is_deep else f"dense:{kind.hidden}-clamp",
            training_images(own, kind, sizes),
            test=own.test,
            regime=how.regime.format(steps=sizes.steps),
            domain=kind.region.domain(EPS),
            epochs=sizes.deep_epochs if kind.is_deep else sizes.epochs[kind.data],
            batch=sizes.deep_batch if kind.is_deep else sizes.batch[kind.data],
            rate=sizes.deep_rate if kind.is_deep else sizes.rate,
            eps=EPS,
            seed=seed,
            start=start,
            out=folder,
        )


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
