"""The same study with radii's own brackets: proven below, witnessed above, of its images."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from radii.errors import InputError
from radii.statistics import Distribution
from radii.views import draw_boxes
from radii_papers._evidence import ClaimBasis
from radii_papers._steps import (
    Paragraph,
    Part,
    StudyFigure,
    StudyScale,
    StudySettings,
)
from radii_papers._tables import Cell, StudyTable, interval_text, share_text
from radii_papers.distributions._audit import write_drawn_images
from radii_papers.distributions._claims import USUAL
from radii_papers.distributions._gains import certain_pairs, gain_claim
from radii_papers.distributions._measuring import (
    MNIST_GRID,
    PIXEL_GRID,
    at_hand,
    cpu_minutes,
    file_of,
    measured,
    mnist_images,
    native_limits,
    of_scale,
)
from radii_papers.distributions._numbers import STATISTICS
from radii_papers.distributions._public import (
    GRID_STEPS,
    PublicResults,
    PublishedNetwork,
    networks_of,
)

MNIST_SCALES = {
    StudyScale.SMALL: (1, 1.0),
    StudyScale.MACHINE: (12, 3.0),
    StudyScale.FULL: (100, 60.0),
}
GAINING_IMAGES = {StudyScale.SMALL: 1, StudyScale.MACHINE: 45, StudyScale.FULL: 100}
"""Training images of `GAINING_ARCHITECTURES` on MNIST: a claim about them needs 30 that networks of
both trainings classify correctly."""

GRID_END = 0.4
"""Nothing is asked from here on."""

CIFAR_SCALES = {StudyScale.MACHINE: (5, 8.0), StudyScale.FULL: (100, 60.0)}
"""Training images, and CPU seconds for the proofs of each."""

PGD_RESNET = PublishedNetwork(
    "resnet_4b", "PGD", "CIFAR-10", "resnet_4b_pgd", "resnet_4b_pgd", True
)
"""Published as a file, but not in the paper's tables of brackets."""

GAINING_ARCHITECTURES = {"mnist_nn": "Section 5.3"}
"""Of which the paper says that adversarial training raises radii, with networks at hand. It says
nothing of resnet_4b: Section 6.2 leaves out the convolutional CIFAR-10 networks."""

Brackets = Mapping[PublishedNetwork, Distribution]
"""Of our own, of images that are classified correctly."""


def sound_brackets(results: PublicResults, settings: StudySettings) -> list[Part]:
    """Native brackets of every network at hand, and what they say of the published ones."""
    settings = of_scale(settings)
    images, seconds = MNIST_SCALES[settings.scale]
    mnist = at_hand(results, networks_of("conventional", "MNIST"))
    if not mnist:
        return [Paragraph("Not made: none of its networks is at hand.")]
    found = _measured_mnist(results, settings, mnist)
    text = (
        f"{len(mnist)} MNIST networks on training images 0 to {images - 1} (those of mnist_nn on 0 "
        f"to {GAINING_IMAGES[settings.scale] - 1}), {seconds:g} s of the CPU for the proofs of each"
    )
    if settings.scale in CIFAR_SCALES:
        cifar = at_hand(results, [*networks_of("CIFAR-10"), PGD_RESNET])
        count, budget = CIFAR_SCALES[settings.scale]
        more = _measured_cifar(results, settings, cifar) if cifar else {}
        if more:
            found |= more
            text += (
                f"; {len(more)} CIFAR-10 networks on the first {count} of the paper's training "
                f"images, {budget:g} s each"
            )
    spent = cpu_minutes(found.values())
    right = {n: part.select(part.correct) for n, part in found.items() if part.correct.any()}
    absent = [network.title for network in found if network not in right]
    return [
        Paragraph(
            f"{text}; search `native`, arithmetic `float`. Lower sides are proofs of radii's "
            "verifier, upper sides are replayed witnesses. Images that a network misclassifies are "
            "left out, as in the paper. A bracket is closed where no "
            "value of the grid is left between its sides. Means and medians of radii are over the "
            "images that have a published row, and stand between what is proven and what is "
            "witnessed; beside them are those of the published lower sides. A published lower side "
            f"above our witness is wrong. All of it took {spent} of one core."
            + (f" Without a correct image: {', '.join(absent)}." if absent else "")
        ),
        _brackets_table(results, right),
        StudyFigure(
            "sound-brackets",
            "Radii of the networks at hand, by radii and as published, of the same images; boxes "
            "are paler between what is proven and what is witnessed, and black where the median "
            "can lie",
            lambda: draw_boxes(_beside(results, right), by=("network", "training")),
        ),
        Paragraph(_short(results, right), is_finding=True),
        *_trainings(right),
    ]


def _measured_mnist(
    results: PublicResults, settings: StudySettings, networks: Mapping[str, PublishedNetwork]
) -> dict[PublishedNetwork, Distribution]:
    images, seconds = MNIST_SCALES[settings.scale]
    found: dict[PublishedNetwork, Distribution] = {}
    for is_gaining, count in ((False, images), (True, GAINING_IMAGES[settings.scale])):
        own = {
            file: network
            for file, network in networks.items()
            if (_architecture(network) in GAINING_ARCHITECTURES) is is_gaining
        }
        if own:
            data = mnist_images(results, count)
            name = "mnist-gaining" if is_gaining else "mnist"
            found |= _measured_each(results, settings, name, own, data, MNIST_GRID, seconds)
    return {network: found[network] for network in networks.values() if network in found}


def _measured_cifar(
    results: PublicResults, settings: StudySettings, networks: Mapping[str, PublishedNetwork]
) -> dict[PublishedNetwork, Distribution]:
    images, seconds = CIFAR_SCALES[settings.scale]
    path = settings.folder / "cifar10-train.npz"
    try:
        write_drawn_images("cifar10", "train", path)
    except InputError:
        return {}  # without the data set or scikit-learn: MNIST alone
    data = f"{path}[0:{images}]"
    return _measured_each(results, settings, "cifar10", networks, data, PIXEL_GRID, seconds)


def _measured_each(
    results: PublicResults,
    settings: StudySettings,
    name: str,
    networks: Mapping[str, PublishedNetwork],
    data: str,
    grid: str,
    seconds: float,
) -> dict[PublishedNetwork, Distribution]:
    """One store for all, called `name`: an experiment that is cut off goes on where it was."""
    measured_all = measured(
        settings.folder / f"brackets-{name}",
        settings,
        networks=[str(file_of(results, network)) for network in networks.values()],
        data=data,
        grid=grid,
        **native_limits(seconds),
    )
    parts = {name.removesuffix(".onnx"): p for name, p in measured_all.by_network().items()}
    return {network: parts[file] for file, network in networks.items() if file in parts}


def _brackets_table(results: PublicResults, found: Brackets) -> StudyTable:
    rows: list[tuple[Cell, ...]] = []
    for network, part in found.items():
        published = _published(results, network, part)
        shared = part if published is None else _shared(part, published)
        rows.append(
            (
                network.title,
                len(part),
                closed_brackets(part, GRID_STEPS[network.dataset]),
                0 if published is None else len(published),
                interval_text(*shared.mean(), 4),
                None if published is None else float(published.lower.mean()),
                interval_text(*shared.median(), 4),
                None if published is None else published.median()[0],
                len(_refuted(part, published)),
                len(_beaten(part, published)),
                float(part.column("cpu_seconds").mean()),
                None if published is None else float(published.column("seconds").mean()),
            )
        )
    columns = (
        *("network", "images", "closed", "published rows", "mean radius", "mean, published"),
        *("median radius", "median, published", "refuted by a witness", "our proof above theirs"),
        *("CPU s an image", "s an image, published"),
    )
    forms = ("", "", "", "", "", ".4f", "", ".4f", "", "", ".1f", ",.0f")
    title = "Brackets by radii beside the published ones of the same images"
    return StudyTable("sound-brackets", title, columns, tuple(rows), forms)


def closed_brackets(part: Distribution, step: float) -> int:
    """Brackets with no value of the grid strictly between their sides, or none above."""
    is_closed = part.upper - part.lower <= step * (1 + 1e-6)
    return int(np.count_nonzero(is_closed | (part.lower >= GRID_END - step)))


def _published(
    results: PublicResults, network: PublishedNetwork, part: Distribution
) -> Distribution | None:
    """The published rows of the images of a part; those that prove nothing are left out."""
    rows = results.part(network, "train", images=range(int(part.column("input").max()) + 1))
    if rows is None:
        return None
    keep = np.isin(rows.column("input"), part.column("input"))
    _, first = np.unique(rows.column("input"), return_index=True)  # a few stand there twice
    keep &= np.isin(np.arange(len(rows)), first)
    return rows.select(keep) if keep.any() else None


def _shared(part: Distribution, published: Distribution) -> Distribution:
    """Our brackets of the images that have a published row."""
    return part.select(np.isin(part.column("input"), published.column("input")))


def _beside(results: PublicResults, found: Brackets) -> Distribution:
    """Our brackets and the published ones, told apart by the column `training`."""
    parts = []
    for network, part in found.items():
        published = _published(results, network, part)
        parts.append(part.labelled(network=network.title, training="radii"))
        if published is not None:
            parts.append(published.labelled(network=network.title, training="published"))
    return Distribution.union(parts)


def _refuted(part: Distribution, published: Distribution | None) -> list[int]:
    """Images whose published lower side lies above a witness of ours."""
    ours = dict(zip(part.column("input").tolist(), part.upper.tolist(), strict=True))
    return [image for image, lower in _lower_sides(published) if lower > ours[image]]


def _beaten(part: Distribution, published: Distribution | None) -> list[int]:
    """Images of which we prove more than the paper claims."""
    ours = dict(zip(part.column("input").tolist(), part.lower.tolist(), strict=True))
    return [image for image, lower in _lower_sides(published) if ours[image] > lower + 1e-9]


def _lower_sides(published: Distribution | None) -> list[tuple[int, float]]:
    if published is None:
        return []
    columns = published.column("input").tolist(), published.lower.tolist()
    return list(zip(*columns, strict=True))


def _short(results: PublicResults, found: Brackets) -> str:
    """Over all networks: closed brackets, refuted rows, and means that are certainly too large."""
    rows = refuted = compared = too_large = 0
    for network, part in found.items():
        published = _published(results, network, part)
        if published is None:
            continue
        rows, compared = rows + len(published), compared + 1
        refuted += len(_refuted(part, published))
        too_large += float(published.lower.mean()) > _shared(part, published).mean()[1]
    total, closed = _closed(found)
    return (
        f"radii's own brackets close {share_text(closed, total)}; of "
        f"{rows} published lower sides of the same images {refuted} lie above a witness, and for "
        f"{too_large} of {compared} networks their mean lies above the mean of our witnesses."
    )


def _closed(found: Brackets) -> tuple[int, int]:
    """All brackets, and those that are closed."""
    closed = [closed_brackets(part, GRID_STEPS[n.dataset]) for n, part in found.items()]
    return sum(len(part) for part in found.values()), sum(closed)


# --- trainings


def _trainings(found: Brackets) -> list[Part]:
    """Each training against the standard one of its architecture."""
    pairs = {}
    for network, part in found.items():
        name = _architecture(network)
        usual = [n for n in found if _architecture(n) == name and n.training in USUAL]
        if usual and network.training not in USUAL:
            pairs[network] = certain_pairs(found[usual[0]], part)
    rows = [
        (network.title, each.shared, each.larger, each.smaller, each.change.value, *_means(network))
        for network, each in pairs.items()
    ]
    columns = (
        *("network", "images of both", "certainly larger", "certainly smaller", "so training is"),
        *("mean, paper", "mean of the standard one, paper"),
    )
    title = "Radii under a training against those of the standard one, image by image"
    return [
        StudyTable("sound-trainings", title, columns, tuple(rows)),
        *(
            gain_claim(
                f"Adversarial training raises the radii of the paper's own {name} networks",
                place,
                {n.title: p for n, p in pairs.items() if _architecture(n) == name},
                ClaimBasis.THEIRS,
            )
            for name, place in GAINING_ARCHITECTURES.items()
        ),
    ]


def _architecture(network: PublishedNetwork) -> str:
    """Under the name that its adversarially trained versions have."""
    is_first = network.table == "conventional"
    return f"mnist_{network.architecture}" if is_first else network.architecture


def _means(network: PublishedNetwork) -> tuple[str | None, str | None]:
    """On training images, of a network and of the standard one of its architecture."""
    own = STATISTICS.get((network.architecture, network.training))
    usual = [STATISTICS.get((network.architecture, training)) for training in USUAL]
    base = next((row for row in usual if row is not None), None)
    return (None if own is None else own[2]), (None if base is None else base[2])
