"""The paper's CIFAR-10 and GTSRB architectures trained again, and the brackets of what came out.

Trained with the paper's learning rates and eps, on far fewer images and epochs than there: what a
machine without a GPU does in minutes. The page says how many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from radii.errors import InputError
from radii.statistics import Distribution
from radii_papers._evidence import ClaimBasis
from radii_papers._steps import (
    Paragraph,
    Part,
    StudyFigure,
    StudyScale,
    StudySettings,
)
from radii_papers._tables import Cell, StudyTable, interval_text
from radii_papers.distributions._brackets import closed_brackets
from radii_papers.distributions._gains import CertainPairs, certain_pairs, gain_claim
from radii_papers.distributions._measuring import (
    PIXEL_GRID,
    cpu_minutes,
    measured,
    native_limits,
    of_scale,
)
from radii_papers.distributions._numbers import (
    ACCURACIES,
    STATISTICS,
    TRAINING_EPS,
    TRAINING_SETTINGS,
)
from radii_papers.distributions._public import (
    GRID_STEPS,
    TRAINED_NETWORKS,
    PublicResults,
    Split,
)
from radii_papers.figures import draw_ecdf_panels

if TYPE_CHECKING:
    from radii.datasets import Dataset
    from radii.training import TrainedNetwork

GTSRB_FILE = "gtsrb_small.npz"
"""80 training and 25 testing images of each of 43 signs, in the folder of the data or above it."""

CLASSES = {"CIFAR-10": 10, "GTSRB": 43}

STANDARD = "Standard"
TRAININGS = {
    STANDARD: "standard",
    "FGSM": f"fgsm:eps={TRAINING_EPS}",
    "PGD": f"pgd:eps={TRAINING_EPS},steps={{steps}}",
}
PGD_STEPS, OTHER_STEPS = 7, {"gtsrb_6_256": 10}
"""Of the attack in PGD training, by the paper's scripts; of gtsrb_cnn_vnncomp23 there is none."""


@dataclass(frozen=True, slots=True)
class TrainingSize:
    """How much an architecture is trained: images and epochs under each training, and the images of
    a batch."""

    images: tuple[int, int, int]
    epochs: tuple[int, int, int]
    batch: int = 64


TRAINING_SIZES = {
    "gtsrb_6_256": ("GTSRB", TrainingSize((3440, 3440, 3440), (30, 20, 10))),
    "gtsrb_7_1024": ("GTSRB", TrainingSize((3440, 3440, 1720), (8, 2, 1))),
    "gtsrb_cnn_deep_game": ("GTSRB", TrainingSize((3440, 860, 430), (4, 1, 1), 32)),
    "gtsrb_cnn_vnncomp23": ("GTSRB", TrainingSize((3440, 3440, 3440), (10, 3, 1))),
    "cifar_7_1024": ("CIFAR-10", TrainingSize((10_000, 6000, 3000), (3, 1, 1))),
    "conv_big": ("CIFAR-10", TrainingSize((10_000, 5000, 2000), (3, 1, 1))),
    "resnet_4b": ("CIFAR-10", TrainingSize((20_000, 10_000, 6000), (4, 2, 1))),
}
"""About a minute of one core for the three trainings of each, three for gtsrb_cnn_deep_game: the
gradients of 1,000 images take 0.1 s (gtsrb_6_256) to 10 s (gtsrb_cnn_deep_game)."""

FULLY_CONNECTED = ("gtsrb_6_256", "gtsrb_7_1024", "cifar_7_1024")
"""Of which the paper says that adversarial training raises radii."""

SMALL_SIZE = TrainingSize((860, 860, 430), (8, 4, 2), 32)
ALL_IMAGES, PAPER_BATCH = 50_000, 128
"""As many images as any of the sets has, or more."""

TESTED = {StudyScale.SMALL: 100, StudyScale.MACHINE: 500, StudyScale.FULL: 1000}
ATTACKED = 20
"""Testing images for the card of a training run, which attacks them."""

BRACKETS = {
    StudyScale.SMALL: (1, 0.5),
    StudyScale.MACHINE: (8, 4.0),
    StudyScale.FULL: (100, 60.0),
}
"""Testing images, and CPU seconds for the proofs of each."""

ATTACKED_ALONE = ("gtsrb_7_1024", "gtsrb_cnn_deep_game", "cifar_7_1024")
ATTACK_SECONDS = 3.0
"""Architectures whose bounds take 10 s or more for one eps, so that MACHINE proves nothing there:
upper sides alone, by an attack of so many wall seconds an image."""

MEMORY = "6G"
"""Of a worker: bounds of the largest architectures would take all that there is."""

LEAST_FACTOR = 2.0
MOST_OF_ONE_CLASS = 0.5
"""A network has learned something if its testing accuracy is this many times chance at least, and
no class is its answer for more than this share of the images."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainingOutcome:
    """A trained network on testing images: which are classified correctly, and which share of all
    gets the commonest answer."""

    is_correct: np.ndarray
    commonest: float
    classes: int

    @property
    def accuracy(self) -> float:
        return float(self.is_correct.mean())

    @property
    def has_learned(self) -> bool:
        is_above = self.accuracy >= LEAST_FACTOR / self.classes
        return is_above and self.commonest <= MOST_OF_ONE_CLASS


@dataclass(frozen=True, slots=True, eq=False)
class TrainedArchitecture:
    """What became of an architecture: tests of all its trainings, brackets of those that learned
    something, of images that all these classify correctly."""

    name: str
    dataset: str
    size: TrainingSize
    tested: Mapping[str, TrainingOutcome]
    parts: Mapping[str, Distribution]
    is_proven: bool

    def pairs(self) -> dict[str, CertainPairs]:
        """Adversarial trainings against the standard one; none if that learned nothing."""
        if STANDARD not in self.parts:
            return {}
        others = [training for training in self.parts if training != STANDARD]
        base = self.parts[STANDARD]
        return {f"{self.name} {t}": certain_pairs(base, self.parts[t]) for t in others}


def trained_networks(results: PublicResults, settings: StudySettings) -> list[Part]:
    """Every architecture under three trainings; SMALL: the first one alone."""
    settings, is_small = of_scale(settings), settings.scale is StudyScale.SMALL
    made, absent = [], []
    for name in list(TRAINING_SIZES)[: 1 if is_small else None]:
        try:
            made.append(_architecture(results, settings, name))
        except InputError as error:
            absent.append(f"{name}: {error}")
    pairs = {
        name: pair
        for each in made
        if each.name in FULLY_CONNECTED
        for name, pair in each.pairs().items()
    }
    panels = {each.name: _joined(each) for each in made if each.parts}
    figure = StudyFigure(
        "trained",
        "Radii of the architectures trained again, testing images; bands reach from what is "
        "witnessed to what is proven",
        lambda: draw_ecdf_panels(panels, by="training"),
    )
    return [
        Paragraph(_text(made, settings) + (f" Not made: {'; '.join(absent)}." if absent else "")),
        _table(results, made),
        *([figure] if panels else []),
        Paragraph(_finding(made), is_finding=True),
        gain_claim(
            "Adversarial training raises the radii of fully connected networks on CIFAR-10 and "
            "GTSRB as well",
            "Sections 1 and 5.3",
            pairs,
            ClaimBasis.OURS,
            "The paper leaves out the convolutional networks of both sets (Section 6.2) and claims "
            "nothing of them.",
        ),
    ]


def _text(made: Sequence[TrainedArchitecture], settings: StudySettings) -> str:
    images, seconds = BRACKETS[settings.scale]
    spent = cpu_minutes(part for each in made for part in each.parts.values())
    is_full = settings.scale is StudyScale.FULL
    unproven = [each.name for each in made if each.parts and not each.is_proven]
    alone = (
        f" Of {', '.join(unproven)} upper sides alone are measured: bounds for one eps take 10 s "
        "or more."
        if unproven
        else ""
    )
    scaled = (
        "" if is_full else ", and adversarial training begins with the weights of the standard one"
    )
    return (
        "The paper's rates, schedules, eps and three trainings (Adam; PGD with seven steps, with "
        "ten for gtsrb_6_256, as in the paper's scripts); but "
        "images and epochs as the table says, in place of whole data sets and 15 to 50 epochs"
        f"{scaled}. So these networks are not the paper's: its numbers stand beside them to show "
        f"how far training at this scale goes. Accuracy is over {TESTED[settings.scale]} testing "
        f"images drawn at random. A network counts as one that learned something if it is right "
        f"at least {LEAST_FACTOR:g} times as often as chance, and gives no class for more than "
        f"{100 * MOST_OF_ONE_CLASS:g} % of them; others are left out of all that follows. Brackets "
        f"are of the first {images} images that the networks of an architecture all classify "
        f"correctly, {seconds:g} s of the CPU for the proofs of each, in all {spent}; lower sides "
        f"are proofs, upper sides are replayed witnesses.{alone} The paper's "
        "statistics are of its lower sides on testing images (Tables 9 and 10; medians from its "
        "files; 0 where it says x: nothing is proven)."
    )


def _finding(made: Sequence[TrainedArchitecture]) -> str:
    tested = [test for each in made for test in each.tested.values()]
    learned = sum(test.has_learned for test in tested)
    parts = [part for each in made if each.is_proven for part in each.parts.values()]
    closed = sum(closed_brackets(part, GRID_STEPS["GTSRB"]) for part in parts)
    proven = sum(int((part.lower > 0).sum()) for part in parts)
    tried = sum(len(part) for part in parts)
    return (
        f"Of {len(tested)} networks trained again {learned} learned something. Proofs were tried "
        f"for {tried} of their brackets: {proven} have a proven radius above 0, and {closed} close."
    )


_SPLITS: tuple[Split, Split] = ("train", "test")
Data = Mapping[Split, "tuple[Path, Dataset]"]


def _architecture(
    results: PublicResults, settings: StudySettings, name: str
) -> TrainedArchitecture:
    dataset, _ = TRAINING_SIZES[name]
    data = {split: _images(results, settings, dataset, split) for split in _SPLITS}
    size = _size(name, settings.scale)
    made = {training: _train(name, training, data, size, settings) for training in TRAININGS}
    tested = {t: _tested(each, data["test"][1], dataset, settings) for t, each in made.items()}
    learned = [training for training, test in tested.items() if test.has_learned]
    parts: dict[str, Distribution] = {}
    if learned:
        is_shared = np.all([tested[training].is_correct for training in learned], axis=0)
        parts = _measured(name, learned, data["test"][1], is_shared, settings)
    is_proven = _is_proven(name, settings.scale)
    return TrainedArchitecture(name, dataset, size, tested, parts, is_proven)


def _is_proven(name: str, scale: StudyScale) -> bool:
    return scale is not StudyScale.MACHINE or name not in ATTACKED_ALONE


def _size(name: str, scale: StudyScale) -> TrainingSize:
    """FULL: all images, and the paper's epochs."""
    if scale is StudyScale.SMALL:
        return SMALL_SIZE
    if scale is StudyScale.MACHINE:
        return TRAINING_SIZES[name][1]
    first, second, third = (int(TRAINING_SETTINGS[name, training][3]) for training in TRAININGS)
    return TrainingSize((ALL_IMAGES,) * 3, (first, second, third), PAPER_BATCH)


def _images(
    results: PublicResults, settings: StudySettings, dataset: str, split: Split
) -> tuple[Path, Dataset]:
    """Images of a set in an order drawn at random, kept as a file of the step."""
    from radii.datasets import load_spec

    folder = settings.folder / "data"
    path = folder / f"{dataset.lower()}-{split}.npz"
    if not path.exists():
        spec = f"cifar10:{split}"
        if dataset == "GTSRB":
            places = [results.folder / GTSRB_FILE, results.folder.parent / GTSRB_FILE]
            file = next((place for place in places if place.exists()), places[0])
            spec = f"{file}:{split}"
        images = load_spec(spec)
        most = max(max(_size(name, settings.scale).images) for name in TRAINING_SIZES)
        order = np.random.default_rng(0).permutation(len(images))[:most]
        drawn = images.take(order.tolist())
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(path, images=drawn.images, labels=drawn.labels)
    return path, load_spec(str(path))


def _train(
    name: str,
    training: str,
    data: Data,
    size: TrainingSize,
    settings: StudySettings,
) -> TrainedNetwork:
    """A run that is cut off continues; one that has ended is read.

    The standard training comes first: below FULL the others begin with its weights.
    """
    from radii.training import saved_weights, train

    rate, step, factor, _ = TRAINING_SETTINGS[name, training]
    place = list(TRAININGS).index(training)
    images, tested = data["train"][1], data["test"][1]
    is_warm = training != STANDARD and settings.scale is not StudyScale.FULL
    return train(
        name,
        images.take(list(range(min(size.images[place], len(images))))),
        regime=TRAININGS[training].format(steps=OTHER_STEPS.get(name, PGD_STEPS)),
        test=tested.take(list(range(min(ATTACKED, len(tested))))),
        out=_folder(settings, name, training),
        epochs=size.epochs[place],
        batch=size.batch,
        rate=float(rate),
        rate_step=int(step),
        rate_factor=float(factor),
        start=saved_weights(_folder(settings, name, STANDARD)) if is_warm else None,
        name=f"{name}_{training.lower()}",
    )


def _folder(settings: StudySettings, name: str, training: str) -> Path:
    return settings.folder / f"{name}-{training.lower()}"


def _tested(
    made: TrainedNetwork, images: Dataset, dataset: str, settings: StudySettings
) -> TrainingOutcome:
    """On the first testing images, on ONNX Runtime."""
    some = images.take(list(range(min(TESTED[settings.scale], len(images)))))
    answers = made.network.replay(some.images.astype(np.float32)).argmax(axis=1)
    commonest = int(np.bincount(answers).max()) / len(answers)
    return TrainingOutcome(answers == some.labels, commonest, CLASSES[dataset])


def _measured(
    name: str,
    learned: Sequence[str],
    images: Dataset,
    is_shared: np.ndarray,
    settings: StudySettings,
) -> dict[str, Distribution]:
    """Brackets of the first images that all networks classify correctly."""
    count, seconds = BRACKETS[settings.scale]
    chosen = np.flatnonzero(is_shared)[:count]
    if not len(chosen):
        return {}
    path = settings.folder / "data" / f"{name}-chosen.npz"
    some = images.take(chosen.tolist())
    np.savez(path, images=some.images, labels=some.labels)
    found = {}
    limits = native_limits(seconds)
    if not _is_proven(name, settings.scale):
        limits = {"search": "attack-only", "budget_per_input": ATTACK_SECONDS}
    for training in learned:
        folder = _folder(settings, name, training)
        found[training] = measured(
            folder.with_name(f"{folder.name}-brackets"),
            settings,
            networks=[str(folder / "network.onnx")],
            data=str(path),
            grid=PIXEL_GRID,
            memory=MEMORY,
            **limits,
        )
    return found


def _joined(each: TrainedArchitecture) -> Distribution:
    return Distribution.union(
        [part.labelled(network=each.name, training=t) for t, part in each.parts.items()]
    )


# --- the table


def _table(results: PublicResults, made: Sequence[TrainedArchitecture]) -> StudyTable:
    rows = [_row(results, each, training) for each in made for training in TRAININGS]
    columns = (
        *("network", "training images", "epochs", "accuracy %", "accuracy %, paper", "images"),
        *("closed", "lowest", "lowest, paper", "mean radius", "mean, paper"),
        *("median radius", "median, published", "certainly above standard", "CPU s an image"),
    )
    forms = ("", "", "", ".1f", "", "", "", "", "", "", "", "", ".4f", "", ".1f")
    title = "The paper's CIFAR-10 and GTSRB architectures, trained again"
    return StudyTable("trained", title, columns, tuple(rows), forms)


def _row(results: PublicResults, each: TrainedArchitecture, training: str) -> tuple[Cell, ...]:
    place, test = list(TRAININGS).index(training), each.tested[training]
    lowest, mean, median = _paper_statistics(results, each.name, training)
    part = each.parts.get(training)
    ours: tuple[Cell, ...] = (None,) * 4
    if part is not None:
        sides = [part.minimum(), part.mean(), part.median()]
        closed = closed_brackets(part, GRID_STEPS[each.dataset])
        ours = (
            closed if each.is_proven else None,
            *(interval_text(*s, 4) if each.is_proven else f"at most {s[1]:.4f}" for s in sides),
        )
    pair = each.pairs().get(f"{each.name} {training}")
    return (
        f"{each.name} {training}",
        each.size.images[place],
        each.size.epochs[place],
        100 * test.accuracy,
        ACCURACIES[each.name, training][1],
        ("learned nothing" if not test.has_learned else 0) if part is None else len(part),
        ours[0],
        ours[1],
        lowest,
        ours[2],
        mean,
        ours[3],
        median,
        None if pair is None else f"{pair.larger} of {pair.shared}",
        None if part is None else float(part.column("cpu_seconds").mean()),
    )


def _paper_statistics(
    results: PublicResults, name: str, training: str
) -> tuple[str | None, str | None, float | None]:
    """Lowest and mean as printed, and the median of the published rows, on testing images."""
    known = [n for n in TRAINED_NETWORKS if (n.architecture, n.training) == (name, training)]
    paper = STATISTICS.get((name, training))
    part = results.part(known[0], "test") if known else None
    median = None if part is None else part.median()[0]
    if paper is None:
        return None, None, median
    return paper[1].replace("x", "0"), paper[3].replace("x", "0"), median
