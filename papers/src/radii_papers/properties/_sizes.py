"""How much of the paper each scale does: seeds, images, epochs, proofs, attacks and samples."""

from __future__ import annotations

from dataclasses import dataclass

from radii_papers._steps import StudyScale, StudySettings
from radii_papers.properties._data import FASHION, GTSRB

HIDDEN_OF_PROOFS, HIDDEN_OF_ATTACKS, DEEP = 30, 100, 0
"""Hidden units of the paper's networks for Table 1, and of all others; the deep network has none of
its own."""


@dataclass(frozen=True, slots=True)
class TrainingAttempt:
    """A way to try a training again that learned nothing before.

    Its eps goes through `stages`, shares of the paper's, each of which takes `epochs` times the
    epochs of the scale, at `rate` times its rate. `suffix` is that of the network's folder.
    """

    suffix: str
    title: str
    stages: tuple[float, ...] = (1.0,)
    epochs: int = 1
    rate: float = 1.0


AS_PLANNED = TrainingAttempt("", "as planned")
IN_STAGES = TrainingAttempt(
    "-stages", "eps in four stages, four times the epochs", (0.25, 0.5, 0.75, 1.0)
)
SLOWLY = TrainingAttempt(
    "-slowly",
    "eps in four stages, eight times the epochs, a third of the rate",
    (0.25, 0.5, 0.75, 1.0),
    epochs=2,
    rate=1 / 3,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySizes:
    """How much of the paper a scale does.

    `fashion_images` are those that networks of so many hidden units are trained on, None all;
    `steps` are those of the attack inside of training, `proof_seconds` those of the verifier an
    image, `attack_eps` the radii of PGD; `deep_*` are of the network of 18 layers. `attempts` at a
    training are made in their order, until one learns something.
    """

    seeds: int
    fashion_images: dict[int, int | None]
    epochs: dict[str, int]
    batch: dict[str, int]
    rate: dict[str, float]
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
    attempts: tuple[TrainingAttempt, ...] = (AS_PLANNED, IN_STAGES, SLOWLY)


SMALL = StudySizes(
    seeds=1,
    fashion_images={HIDDEN_OF_PROOFS: 3000, HIDDEN_OF_ATTACKS: 3000, DEEP: 1000},
    epochs={FASHION: 4, GTSRB: 10},
    batch={FASHION: 64, GTSRB: 32},
    rate={FASHION: 1e-3, GTSRB: 1e-3},
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
    seeds=3,
    fashion_images={HIDDEN_OF_PROOFS: 10_000, HIDDEN_OF_ATTACKS: 10_000, DEEP: 1000},
    epochs={FASHION: 8, GTSRB: 30},
    batch={FASHION: 64, GTSRB: 32},
    rate={FASHION: 2e-3, GTSRB: 1e-3},
    steps=5,
    proven=40,
    proof_seconds=10.0,
    attacked=60,
    attack_eps=(0.1, 0.3),
    sampled=40,
    samples=100,
    sampled_eps=(0.05, 0.1, 0.2, 0.3),
    deep="resnet:8/2-8/2-8-16/2-16-32/2-32-32-32",
    deep_epochs=4,
    deep_batch=64,
    deep_rate=2e-3,
    deep_attacked=40,
)
FULL = StudySizes(
    seeds=5,
    fashion_images={HIDDEN_OF_PROOFS: None, HIDDEN_OF_ATTACKS: None, DEEP: None},
    epochs={FASHION: 100, GTSRB: 100},
    batch={FASHION: 128, GTSRB: 128},
    rate={FASHION: 1e-4, GTSRB: 1e-4},
    steps=50,
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


def seeds_text(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"
