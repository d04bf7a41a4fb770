"""Beyond the paper: larger networks, more classifiers, and what the defender should play."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from radii import datasets
from radii.ensembles import Defence, EnsembleStudy, GameValue, Point
from radii.networks import load_network
from radii_papers._evidence import (
    CaseOutcome,
    ClaimBasis,
    ClaimCase,
    ClaimScope,
    StudyClaim,
    fact,
)
from radii_papers._running import write_whole
from radii_papers._steps import (
    Paragraph,
    Part,
    StudyFigure,
    StudySettings,
)
from radii_papers._tables import Cell, StudyTable
from radii_papers.classifier_ensembles._networks import (
    EnsembleData,
    dense,
    kept_network,
    kept_networks,
    trained,
)
from radii_papers.figures import ValueAtEps, draw_game_values

if TYPE_CHECKING:
    from radii.networks import Network

FIVE = (
    "mnist-net_256x2",
    "mnist-net_256x4",
    "mnist_nn",
    "mnist_nn_fgsm_02",
    "convSmallRELU__Point",
)
EPS_OF_FIVE = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25)
"""From where the strongest of the five is nearly never fooled to where nearly all are."""

TWELVE = tuple((8 + 2 * number,) if number % 2 else (6 + number, 8) for number in range(12))
"""Widths of the hidden layers of twelve different classifiers."""
EPS_OF_TWELVE = (0.02, 0.05, 0.1, 0.15)

SECONDS_OF_QUESTION = 10.0
IMAGE_DOMAIN = (0.0, 1.0)
SPENT_FILE = "spent.json"

FIVE_FOLDER, TWELVE_FOLDER = "five", "twelve"


@dataclass(frozen=True, slots=True)
class Sweep:
    """Which points, which eps, and wall seconds an eps."""

    points: int
    eps: tuple[float, ...]
    seconds: float


SWEEPS = {
    FIVE_FOLDER: (
        Sweep(4, EPS_OF_FIVE[1::2], 5.0),
        Sweep(30, EPS_OF_FIVE, 30.0),
        Sweep(50, EPS_OF_FIVE, 1200.0),
    ),
    TWELVE_FOLDER: (
        Sweep(4, EPS_OF_TWELVE[1:3], 5.0),
        Sweep(20, EPS_OF_TWELVE, 60.0),
        Sweep(20, EPS_OF_TWELVE, 600.0),
    ),
}
"""By scale: small, machine, full."""


def sweep_of(name: str, settings: StudySettings) -> Sweep:
    found: Sweep = settings.pick(*SWEEPS[name])
    return found


def five_networks(data: EnsembleData) -> list[Network] | None:
    """Published networks on whole MNIST images; None where they are not at hand."""
    if data.larger is None or data.larger_images is None:
        return None
    paths = [data.larger / f"{name}.onnx" for name in FIVE]
    if not all(path.exists() for path in paths):
        return None
    return [load_network(path, domain=IMAGE_DOMAIN) for path in paths]


def five_points(data: EnsembleData, network: Network, count: int) -> list[Point]:
    assert data.larger_images is not None
    with np.load(data.larger_images) as held:
        images = held["images"][:count].astype(np.float32) / np.float32(255)
        labels = held["labels"][:count]
    inputs = images.reshape(-1, *network.input_shape)
    return [Point(i, int(labels[i]), inputs[i]) for i in range(len(inputs))]


def twelve_networks(settings: StudySettings) -> list[Network]:
    """Dense classifiers of 8x8 digits with different widths."""
    data = datasets.load("digits", "train")
    images, labels = data.images.astype(np.float32), data.labels.astype(np.int64)
    found = []
    for number, widths in enumerate(TWELVE):
        path = kept_networks(settings) / f"digits_{number}.onnx"
        make = partial(trained, dense(*widths)(8, 10), images, labels, seed=number)
        found.append(kept_network(path, make, images.shape[1:], IMAGE_DOMAIN))
    return found


def twelve_points(count: int) -> list[Point]:
    data = datasets.load("digits", "test").first(count)
    pairs = zip(data.images, data.labels, strict=True)
    return [Point(i, int(y), image.astype(np.float32)) for i, (image, y) in enumerate(pairs)]


@contextmanager
def swept(
    name: str, networks: Sequence[Network], points: Sequence[Point], settings: StudySettings
) -> Iterator[tuple[EnsembleStudy, list[GameValue], dict[str, tuple[float, int]]]]:
    """The brackets over eps, from facts that the study keeps; seconds and questions by eps.

    An eps that has had its time before is not worked on again.
    """
    sweep = sweep_of(name, settings)
    folder = settings.folder.parent / f"{name}-{len(points)}"
    file = folder / SPENT_FILE
    spent: dict[str, tuple[float, int]] = {}
    if file.exists():
        spent = {eps: (float(s), int(q)) for eps, (s, q) in json.loads(file.read_text()).items()}
    with EnsembleStudy.open(
        networks, points, timeout=SECONDS_OF_QUESTION, jobs=0, out=folder
    ) as study:
        for eps in sweep.eps:
            if f"{eps:g}" not in spent:
                game = study.value(eps, budget=sweep.seconds)
                spent[f"{eps:g}"] = game.seconds, game.questions
                write_whole(file, json.dumps(spent))
        yield study, study.curve(sweep.eps, budget=0.0), spent


def _curve_table(
    name: str,
    title: str,
    study: EnsembleStudy,
    curve: Sequence[GameValue],
    spent: dict[str, tuple[float, int]],
) -> StudyTable:
    lines: list[tuple[Cell, ...]] = []
    for game in curve:
        seconds, questions = spent[f"{game.eps:g}"]
        lines.append(
            (
                f"{game.eps:g}",
                float(game.lower),
                float(game.upper),
                "yes" if game.is_exact else "no",
                len(study.attack(game).probabilities),
                questions,
                seconds,
            )
        )
    columns = ("eps", "attained", "proven at most", "exact", "attacks", "questions", "s")
    return StudyTable(name, title, columns, tuple(lines), ("", ".3f", ".3f", "", "", "", ".1f"))


def _values(curve: Sequence[GameValue]) -> list[ValueAtEps]:
    return [ValueAtEps(game.eps, float(game.lower), float(game.upper)) for game in curve]


def five_step(data: EnsembleData, settings: StudySettings) -> list[Part]:
    networks = five_networks(data)
    if networks is None:
        return [Paragraph("Not made: the published MNIST networks and images are not at hand.")]
    sweep = sweep_of(FIVE_FOLDER, settings)
    points = five_points(data, networks[0], sweep.points)
    with swept(FIVE_FOLDER, networks, points, settings) as (study, curve, spent):
        title = f"Five networks, {len(points)} points, Linf, {sweep.seconds:g} s an eps"
        table = _curve_table("five", title, study, curve, spent)
    values = _values(curve)
    return [
        Paragraph(
            f"{', '.join(FIVE)}: ten classes, whole 28x28 images between 0 and 1, so questions are "
            "about hundreds to thousands of ReLUs at once. What is attained is attained by "
            "replayed attacks, the upper side is proven; more time narrows them."
        ),
        table,
        StudyFigure(
            "five",
            "The value of five MNIST networks over eps (Linf); shaded: between attack and proof",
            lambda: draw_game_values({"five networks on MNIST": {"value": values}}),
        ),
    ]


def twelve_step(_: EnsembleData, settings: StudySettings) -> list[Part]:
    networks = twelve_networks(settings)
    sweep = sweep_of(TWELVE_FOLDER, settings)
    points = twelve_points(sweep.points)
    with swept(TWELVE_FOLDER, networks, points, settings) as (study, curve, spent):
        title = f"Twelve classifiers, {len(points)} points, Linf, {sweep.seconds:g} s an eps"
        table = _curve_table("twelve", title, study, curve, spent)
    return [
        Paragraph(
            "Dense classifiers of different widths on 8x8 digits, by column generation: none of "
            "the 4,095 sets of classifiers is listed in advance. The paper has four classifiers at "
            "most."
        ),
        table,
    ]


# The defender's side.


def defence_step(data: EnsembleData, settings: StudySettings) -> list[Part]:
    """Which mix to play, what it guarantees, and what other mixes lose."""
    lines: list[tuple[Cell, ...]] = []
    wins = ties = games = 0
    for name, title, networks, points in _ensembles(data, settings):
        with swept(name, networks, points, settings) as (study, curve, _):
            for game in curve:
                best, uniform, *alone = study.defences(game)
                single = min(alone, key=lambda each: (each.upper, each.lower))
                games += 1
                wins += best.upper < min(each.lower for each in alone)
                ties += single.upper <= game.lower
                lines.append(
                    (
                        title,
                        f"{game.eps:g}",
                        _mix_text(best, study.ensemble.names),
                        float(best.upper),
                        _bracket(uniform),
                        _bracket(single),
                        single.name.removesuffix(" alone").removesuffix(".onnx"),
                    )
                )
    columns = (
        *("ensemble", "eps", "best mix", "it loses at most", "uniform mix loses"),
        *("best single network loses", "which"),
    )
    return [
        Paragraph(
            "The other side of the game is advice: draw a classifier for each input with these "
            "probabilities, and no attacker within eps makes more than the guaranteed share of the "
            "answers wrong, whatever he knows but the draw. `radii ensemble verify` prints the "
            "same for any ensemble."
        ),
        StudyTable(
            "defence",
            "What to play",
            columns,
            tuple(lines),
            ("", "", "", ".3f", "", "", ""),
        ),
        ensembles_claim(wins, ties, games),
    ]


def ensembles_claim(wins: int, ties: int, games: int) -> StudyClaim:
    """The paper calls ensembles a standard way and has an example: it says nothing of all games."""
    ours = ClaimCase(
        name="games of trained networks",
        basis=ClaimBasis.OURS,
        n=games,
        shows=f"in {wins} of {games} the best mix is proven to lose less than each network, in "
        f"{ties} one network is proven to be as good as any mix",
        rule="in some game the mix loses less",
        outcome=CaseOutcome.HOLDS if wins else CaseOutcome.UNCLEAR,
    )
    return StudyClaim(
        "A set of classifiers, one of which is chosen after the attack, can be more robust than "
        "each of them",
        "Section 1, Figure 1",
        "each classifier alone against the best mix: by hand, and by exact values that are proven "
        "on either side",
        (fact("Figure 1", True, "each classifier alone loses 1, the mix 1/2"), ours),
        ClaimScope.SOME,
        "No mix is needed where one network is as good as the best of them.",
    )


def _ensembles(
    data: EnsembleData, settings: StudySettings
) -> Iterator[tuple[str, str, list[Network], list[Point]]]:
    networks = five_networks(data)
    if networks is not None:
        points = five_points(data, networks[0], sweep_of(FIVE_FOLDER, settings).points)
        yield FIVE_FOLDER, "five networks on MNIST", networks, points
    count = sweep_of(TWELVE_FOLDER, settings).points
    yield TWELVE_FOLDER, "twelve on digits", twelve_networks(settings), twelve_points(count)


def _bracket(defence: Defence) -> str:
    lower, upper = float(defence.lower), float(defence.upper)
    return f"{lower:.3f}" if lower == upper else f"{lower:.3f} to {upper:.3f}"


def _mix_text(defence: Defence, names: Sequence[str]) -> str:
    parts = [
        f"{float(weight):.3g} {Path(name).stem}"
        for weight, name in sorted(zip(defence.weights, names, strict=True), reverse=True)
        if weight
    ]
    return ", ".join(parts)
