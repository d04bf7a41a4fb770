"""The same study with radii's own brackets: proven below, witnessed above, of its images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from radii.distributions import Distribution
from radii.errors import InputError
from radii.plots import draw_ecdf
from radii.training.papers._steps import (
    ClaimVerdict,
    Paragraph,
    Part,
    StudyClaim,
    StudyFigure,
    StudyScale,
    StudySettings,
)
from radii.training.papers._tables import Cell, StudyTable, interval_text, share_text
from radii.training.papers.distributions._audit import write_cifar_images
from radii.training.papers.distributions._measuring import (
    MNIST_GRID,
    PIXEL_GRID,
    at_hand,
    file_of,
    measured,
    mnist_images,
    of_scale,
)
from radii.training.papers.distributions._public import (
    GRID_STEPS,
    PublicResults,
    PublishedNetwork,
    networks_of,
)

MNIST_SCALES = {
    StudyScale.SMALL: (1, 1.0),
    StudyScale.MACHINE: (8, 4.0),
    StudyScale.FULL: (100, 60.0),
}
GRID_END = 0.4
"""Nothing is asked from here on."""

CIFAR_SCALES = {StudyScale.MACHINE: (3, 12.0), StudyScale.FULL: (100, 60.0)}
"""Training images, and seconds of one core for each of them."""

PGD_RESNET = PublishedNetwork(
    "resnet_4b", "PGD", "CIFAR-10", "resnet_4b_pgd", "resnet_4b_pgd", True
)
"""Published as a file, but not in the paper's tables of brackets."""


def sound_brackets(results: PublicResults, settings: StudySettings) -> list[Part]:
    """Native brackets of every network at hand, and what they say of the published ones."""
    settings = of_scale(settings)
    images, seconds = MNIST_SCALES[settings.scale]
    mnist = at_hand(results, networks_of("conventional", "MNIST"))
    if not mnist:
        return [Paragraph("Not made: none of its networks is at hand.")]
    found = _measured_mnist(results, settings, mnist)
    shown = dict(found)
    text = f"{len(mnist)} MNIST networks on training images 0 to {images - 1}, {seconds:g} s each"
    if settings.scale in CIFAR_SCALES:
        cifar = at_hand(results, [*networks_of("CIFAR-10"), PGD_RESNET])
        count, budget = CIFAR_SCALES[settings.scale]
        if cifar:
            found |= _measured_cifar(results, settings, cifar)
            text += (
                f"; {len(cifar)} CIFAR-10 networks on the first {count} of the paper's training "
                f"images, {budget:g} s each"
            )
    joined = Distribution.union([part.labelled(network=n.title) for n, part in shown.items()])
    return [
        Paragraph(
            f"{text}, of one core, search `native`, arithmetic `float`: lower sides are proofs of "
            "radii's verifier, upper sides are replayed witnesses. Images that a network "
            "misclassifies are left out, as in the paper. A bracket is closed where no value of "
            "the grid is left between its sides. The last columns hold the published rows of the "
            "same images against them: a published lower side above our witness is wrong."
        ),
        _brackets_table(results, found),
        StudyFigure(
            "sound-brackets",
            "Radii of MNIST networks at hand: what is proven, and what is witnessed",
            lambda: draw_ecdf(joined),
        ),
        Paragraph(_short(results, found), is_finding=True),
        _claim(results, found),
    ]


def _measured_mnist(
    results: PublicResults, settings: StudySettings, networks: Mapping[str, PublishedNetwork]
) -> dict[PublishedNetwork, Distribution]:
    images, seconds = MNIST_SCALES[settings.scale]
    data = mnist_images(results, images)
    return _measured_each(results, settings, networks, data, MNIST_GRID, seconds)


def _measured_cifar(
    results: PublicResults, settings: StudySettings, networks: Mapping[str, PublishedNetwork]
) -> dict[PublishedNetwork, Distribution]:
    images, seconds = CIFAR_SCALES[settings.scale]
    path = settings.folder / "cifar10-train.npz"
    try:
        write_cifar_images("train", path)
    except InputError:
        return {}  # without the data set or scikit-learn: MNIST alone, and the text says so
    data = f"{path}[0:{images}]"
    return _measured_each(results, settings, networks, data, PIXEL_GRID, seconds)


def _measured_each(
    results: PublicResults,
    settings: StudySettings,
    networks: Mapping[str, PublishedNetwork],
    data: str,
    grid: str,
    seconds: float,
) -> dict[PublishedNetwork, Distribution]:
    """One store for all: an experiment that is cut off goes on where it was."""
    measured_all = measured(
        settings.folder / f"brackets-{Path(data.partition('[')[0]).stem.split(':')[0]}",
        settings,
        networks=[str(file_of(results, network)) for network in networks.values()],
        data=data,
        grid=grid,
        search="native",
        verifier="native",
        budget_per_input=seconds,
    )
    parts = {name.removesuffix(".onnx"): p for name, p in measured_all.by_network().items()}
    return {network: parts[file] for file, network in networks.items() if file in parts}


def _brackets_table(
    results: PublicResults, found: Mapping[PublishedNetwork, Distribution]
) -> StudyTable:
    rows: list[tuple[Cell, ...]] = []
    for network, everything in found.items():
        part = everything.select(everything.correct) if everything.correct.any() else None
        if part is None:
            rows.append((network.title, 0, *(None,) * 8))
            continue
        published = _published(results, network, part)
        claims = [lower for lower, _ in published.values()]
        rows.append(
            (
                network.title,
                len(part),
                closed_brackets(part, GRID_STEPS[network.dataset]),
                interval_text(*part.mean(), 4),
                interval_text(*part.median(), 4),
                float(part.column("cpu_seconds").mean()),
                len(claims),
                sum(claims) / len(claims) if claims else None,
                len(_refuted(part, published)),
                len(_beaten(part, published)),
            )
        )
    columns = (
        *("network", "images", "closed", "mean radius", "median radius", "CPU s an image"),
        *("published rows", "their mean", "refuted by a witness", "our proof above theirs"),
    )
    forms = ("", "", "", "", "", ".1f", "", ".4f", "", "")
    title = "Brackets by radii beside the published ones of the same images"
    return StudyTable("sound-brackets", title, columns, tuple(rows), forms)


def closed_brackets(part: Distribution, step: float) -> int:
    """Brackets with no value of the grid strictly between their sides, or none above."""
    is_closed = part.upper - part.lower <= step * (1 + 1e-6)
    return int(np.count_nonzero(is_closed | (part.lower >= GRID_END - step)))


Sides = dict[int, tuple[float, float]]
"""Lower and upper sides by image."""


def _published(results: PublicResults, network: PublishedNetwork, part: Distribution) -> Sides:
    """The published brackets of the images of a part; those that prove nothing are left out."""
    rows = results.part(network, "train", images=range(int(part.column("input").max()) + 1))
    if rows is None:
        return {}
    mine = set(part.column("input").tolist())
    columns = (rows.column("input").tolist(), rows.lower.tolist(), rows.upper.tolist())
    return {image: (low, high) for image, low, high in zip(*columns, strict=True) if image in mine}


def _refuted(part: Distribution, published: Sides) -> list[int]:
    """Images whose published lower side lies above a witness of ours."""
    ours = dict(zip(part.column("input").tolist(), part.upper.tolist(), strict=True))
    return [image for image, (lower, _) in published.items() if lower > ours[image]]


def _beaten(part: Distribution, published: Sides) -> list[int]:
    """Images of which we prove more than the paper claims."""
    ours = dict(zip(part.column("input").tolist(), part.lower.tolist(), strict=True))
    return [image for image, (lower, _) in published.items() if ours[image] > lower + 1e-9]


def _counts(
    results: PublicResults, found: Mapping[PublishedNetwork, Distribution]
) -> tuple[int, int, int, int]:
    """Brackets, closed ones, published rows of the same images, and those that are refuted."""
    total = closed = rows = refuted = 0
    for network, everything in found.items():
        part = everything.select(everything.correct) if everything.correct.any() else None
        if part is None:
            continue
        published = _published(results, network, part)
        total += len(part)
        closed += closed_brackets(part, GRID_STEPS[network.dataset])
        rows += len(published)
        refuted += len(_refuted(part, published))
    return total, closed, rows, refuted


def _short(results: PublicResults, found: Mapping[PublishedNetwork, Distribution]) -> str:
    total, closed, rows, refuted = _counts(results, found)
    return (
        f"radii's own brackets close {share_text(closed, total)}; of "
        f"{rows} published lower sides of the same images {refuted} lie above a witness."
    )


def _claim(results: PublicResults, found: Mapping[PublishedNetwork, Distribution]) -> StudyClaim:
    """CONFIRMED where every bracket of a conventionally trained network closes but 5 % of them."""
    first = {network: part for network, part in found.items() if network.table == "conventional"}
    total, closed, _, _ = _counts(results, first)
    share = closed / total if total else 0.0
    verdict = ClaimVerdict.OPEN
    if total:
        verdict = ClaimVerdict.CONFIRMED if share >= 0.95 else ClaimVerdict.DEPENDS
    return StudyClaim(
        "Radii of conventionally trained MNIST networks can be found to within a step of the grid "
        "but for a few per cent",
        "Section 3.2",
        verdict,
        f"with proofs of radii's own {share_text(closed, total, 'brackets')} close within their "
        "budget",
    )


def adversarial_shift(parts: Sequence[tuple[str, Distribution | None]]) -> list[str]:
    """Names of the trainings whose mean radius is certainly above that of the first of all parts:
    the mean of what is proven above the mean of what is witnessed."""
    (_, first), *others = parts
    if first is None:
        return []
    limit = first.mean()[1]
    return [name for name, part in others if part is not None and part.mean()[0] > limit]
