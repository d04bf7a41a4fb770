"""AutoAttack beside radii's own attack: the upper sides that each gives, and what they cost.

AutoAttack answers for one eps, so eps is bisected with it: a witness lowers the upper end, a
failure raises the lower one, which proves nothing and only says where to ask next.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii_papers._steps import (
    Paragraph,
    Part,
    StudyScale,
    StudySettings,
)
from radii_papers._tables import Cell, StudyTable, share_text
from radii_papers.distributions._measuring import (
    at_hand,
    file_of,
    mnist_images,
    of_scale,
)
from radii_papers.distributions._public import (
    NETWORKS_OF_SECTION_4,
    PublicResults,
    networks_of,
)

if TYPE_CHECKING:
    from radii.attacks import Attack
    from radii.networks import Network
    from radii.problem import Instance

RESOLUTION, CLOSER = 0.01, 0.02
"""Bisection ends with this part of the upper side left; a side is closer than another if it is
lower by more than the second, larger part."""

ROUNDS = 8
"""Questions to AutoAttack about one image, at most: the first, and seven halves."""

SMALL_ATTACK = (20, 100)
"""Steps, and evaluations of Square, of AutoAttack in a small study."""

IMAGES = {StudyScale.SMALL: 2, StudyScale.MACHINE: 5, StudyScale.FULL: 50}

OTHER_CIFAR = {
    "resnet_2b": ((0.4914, 0.4822, 0.4465), (0.2471, 0.2435, 0.2616)),
    "cifar_base_kw": ((0.485, 0.456, 0.406), (0.225, 0.225, 0.225)),
    "cifar_deep_kw": ((0.485, 0.456, 0.406), (0.225, 0.225, 0.225)),
}
"""Networks of VNN-COMP 2021 beside the paper's, in a folder `cifar10` beside its data, and how they
are fed."""


@dataclass(frozen=True, slots=True)
class AttackedNetwork:
    """A network to attack: its file, mean and deviation (none: pixels as they are), the images, and
    the largest eps."""

    title: str
    path: Path
    images: str
    top: float
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class UpperSides:
    """What an attack found on some images (inf: nothing), and its CPU seconds for all of them."""

    upper: list[float]
    cpu_seconds: float


def autoattack_table(results: PublicResults, settings: StudySettings) -> list[Part]:
    """Both attacks on the same images in one run."""
    settings = of_scale(settings)
    chosen = _networks(results, settings)
    if not chosen:
        return [Paragraph("Not made: none of its networks is at hand.")]
    rows, pairs = [], []
    for network in chosen:
        ours, theirs = _kept(network, settings)
        rows.append(_row(network.title, ours, theirs))
        pairs += list(zip(ours.upper, theirs.upper, strict=True))
    columns = (
        *("network", "images", "mean upper, minimum-norm", "mean upper, AutoAttack"),
        *("AutoAttack over minimum-norm", "minimum-norm closer", "AutoAttack closer"),
        *("CPU s an image, minimum-norm", "CPU s an image, AutoAttack"),
    )
    forms = ("", "", ".5f", ".5f", ".3f", "", "", ".1f", ".1f")
    title = "Upper sides by minimum-norm and by AutoAttack, on the same images in one run"
    is_mnist = settings.scale is StudyScale.SMALL
    where = "MNIST training" if is_mnist else "CIFAR-10 testing"
    return [
        Paragraph(
            f"In Linf, on the first {where} images that a network classifies correctly. "
            f"AutoAttack is radii's own, {_parameters(is_mnist)}, asked at eps after eps: "
            f"first the largest, then by bisection until {ROUNDS} questions are asked or "
            f"{100 * RESOLUTION:g} % are left; the largest is the same for both. A witness counts "
            f"as closer if its distance is smaller by more than {100 * CLOSER:g} %."
        ),
        StudyTable("autoattack", title, columns, tuple(rows), forms),
        Paragraph(_short(pairs), is_finding=True),
    ]


def _parameters(is_small: bool) -> str:
    steps, evaluations = SMALL_ATTACK
    if is_small:
        return f"with {steps} steps and {evaluations} evaluations of Square"
    return "with the published parameters (100 steps, nine targets, 5,000 evaluations of Square)"


def _networks(results: PublicResults, settings: StudySettings) -> list[AttackedNetwork]:
    """SMALL: the first MNIST network at hand. Else CIFAR-10's."""
    count = 4 * IMAGES[settings.scale]
    if settings.scale is StudyScale.SMALL:
        known = at_hand(results, NETWORKS_OF_SECTION_4[::-1])
        return [
            AttackedNetwork(
                each.title, file_of(results, each), mnist_images(results, min(count, 5)), 0.6
            )
            for each in list(known.values())[:1]
        ]
    images = f"cifar10:test[0:{count}]"
    found = [
        AttackedNetwork(network.title, file_of(results, network), images, 0.1)
        for network in at_hand(results, networks_of("CIFAR-10")).values()
    ]
    pgd = results.networks.get("resnet_4b_pgd")  # not in the paper's tables
    if pgd is not None:
        found.append(AttackedNetwork("resnet_4b PGD", pgd, images, 0.1))
    for name, (mean, std) in OTHER_CIFAR.items():
        path = results.folder.parent / "cifar10" / f"{name}.onnx"
        if path.exists():
            found.append(AttackedNetwork(name, path, images, 0.1, mean, std))
    return found


def _kept(network: AttackedNetwork, settings: StudySettings) -> tuple[UpperSides, UpperSides]:
    """Of the step's folder, where an earlier run left it; else both attacks are run."""
    path = settings.folder / f"{network.path.stem}.json"
    if path.exists():
        saved = json.loads(path.read_text())
        ours, theirs = (
            UpperSides([float(value) for value in each["upper"]], each["cpu_seconds"])
            for each in saved
        )
        return ours, theirs
    both = _attacked(network, IMAGES[settings.scale], settings.scale is StudyScale.SMALL)
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = [{**asdict(each), "upper": [str(value) for value in each.upper]} for each in both]
    path.write_text(json.dumps(kept))
    return both


def _attacked(
    network: AttackedNetwork, images: int, is_small: bool
) -> tuple[UpperSides, UpperSides]:
    from radii.attacks import AutoAttack, MinimumNorm
    from radii.datasets import load_spec
    from radii.networks import load_network
    from radii.problem import Norm
    from radii.runs import select

    normal: dict[str, Any] = {"mean": network.mean, "std": network.std}
    net = load_network(network.path, domain=(0.0, 1.0), **normal)
    everything = select(
        net, load_spec(network.images), property="one-to-any", norm=Norm.LINF, layout=None
    )
    instances = [each for each in everything if each.holds][:images]
    steps, evaluations = SMALL_ATTACK
    theirs = AutoAttack(steps=steps, evaluations=evaluations) if is_small else AutoAttack()
    return (
        _once(MinimumNorm(), net, instances, network.top),
        bisected(theirs, net, instances, network.top),
    )


def _once(attack: Attack, net: Network, instances: Sequence[Instance], top: float) -> UpperSides:
    began = time.process_time()
    upper = _distances(attack, net, instances, [top] * len(instances))
    return UpperSides(upper, time.process_time() - began)


def bisected(attack: Attack, net: Network, instances: Sequence[Instance], top: float) -> UpperSides:
    """The closest witnesses that an attack of one eps finds when it is asked again and again."""
    began = time.process_time()
    failed, upper = [0.0] * len(instances), [math.inf] * len(instances)
    for turn in range(ROUNDS):
        going = [
            place
            for place in range(len(instances))
            if turn == 0 or upper[place] - failed[place] > RESOLUTION * upper[place]
        ]
        going = [place for place in going if turn == 0 or upper[place] < math.inf]
        if not going:
            break
        asked = [top if turn == 0 else (failed[p] + upper[p]) / 2 for p in going]
        found = _distances(attack, net, [instances[place] for place in going], asked)
        for place, eps, distance in zip(going, asked, found, strict=True):
            if distance < math.inf:
                upper[place] = min(upper[place], distance)
            else:
                failed[place] = eps
    return UpperSides(upper, time.process_time() - began)


def _distances(
    attack: Attack, net: Network, instances: Sequence[Instance], eps: Sequence[float]
) -> list[float]:
    from radii.problem import Query

    queries = [Query(each, value) for each, value in zip(instances, eps, strict=True)]
    results = attack.attack(net, queries, seed=0)
    return [math.inf if r.witness is None else r.witness.distance for r in results]


def _closer(first: float, second: float) -> bool:
    return first < second if math.isinf(second) else first < (1 - CLOSER) * second


def _row(title: str, ours: UpperSides, theirs: UpperSides) -> tuple[Cell, ...]:
    count = len(ours.upper)
    both = list(zip(ours.upper, theirs.upper, strict=True))
    return (
        title,
        count,
        sum(ours.upper) / count if count else None,
        sum(theirs.upper) / count if count else None,
        _mean_ratio(both),
        sum(_closer(a, b) for a, b in both),
        sum(_closer(b, a) for a, b in both),
        ours.cpu_seconds / count if count else None,
        theirs.cpu_seconds / count if count else None,
    )


def _mean_ratio(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Of the second distance to the first, over images of which both are known."""
    known = [b / a for a, b in pairs if 0 < a < math.inf and b < math.inf]
    return sum(known) / len(known) if known else None


def _short(pairs: Sequence[tuple[float, float]]) -> str:
    ours = sum(_closer(a, b) for a, b in pairs)
    theirs = sum(_closer(b, a) for a, b in pairs)
    return (
        f"By more than {100 * CLOSER:g} %, `minimum-norm` gives the closer witness for "
        f"{share_text(ours, len(pairs), 'images')} and bisected AutoAttack for {theirs}."
    )
