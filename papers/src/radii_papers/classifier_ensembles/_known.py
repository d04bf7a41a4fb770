"""Ensembles whose value is known by hand: the paper's first figure, and others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from radii.ensembles import (
    Ensemble,
    EnsembleStudy,
    ListedSets,
    Point,
    solve,
)
from radii.networks import from_torch
from radii.problem import Norm
from radii_papers._evidence import StudyClaim, fact
from radii_papers._steps import (
    Paragraph,
    Part,
    StudySettings,
)
from radii_papers._tables import Cell, StudyTable
from radii_papers.baselines import BaselineProblem, run_baseline
from radii_papers.classifier_ensembles._measured import MAX_MILP, MILP
from radii_papers.classifier_ensembles._networks import EnsembleData

if TYPE_CHECKING:
    from radii.networks import Network

KNOWN_DOMAIN = (-4.0, 4.0)
SECONDS_OF_KNOWN = 30.0


def half_space(normal: Sequence[float], offset: float = 1.0) -> Network:
    """Class 0 where `normal @ x < offset`, else class 1; on the border a tie."""
    layer = nn.Linear(len(normal), 2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[0.0] * len(normal), list(normal)]))
        layer.bias.copy_(torch.tensor([float(offset), 0.0]))
    return from_torch(layer, input_shape=(len(normal),), domain=KNOWN_DOMAIN)


def origin(dimensions: int, count: int = 1) -> list[Point]:
    """The same point, of class 0, so many times."""
    return [Point(i, 0, np.zeros(dimensions, np.float32)) for i in range(count)]


def one_axis_each(count: int) -> list[Network]:
    """Classifier c is fooled beyond 1 on axis c: in L1 below 2, one of them at a time."""
    return [half_space([float(c == axis) for axis in range(count)]) for c in range(count)]


LEFT, RIGHT = (-1.0, 0.0), (1.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class KnownGame:
    """An ensemble at points in an L1 ball, and its value by hand."""

    name: str
    networks: tuple[Network, ...]
    points: int
    eps: float
    value: Fraction


def known_games() -> list[KnownGame]:
    pair = (half_space(LEFT), half_space(RIGHT))
    both = (half_space(RIGHT), half_space(RIGHT), half_space(LEFT))
    return [
        KnownGame("Figure 1 within reach of both lines", pair, 1, 2.0, Fraction(1, 2)),
        KnownGame("Figure 1 within reach of neither", pair, 1, 0.9, Fraction(0)),
        KnownGame("two fooled on the right, one on the left", both, 1, 2.0, Fraction(1, 2)),
        *(
            KnownGame(
                f"one axis each, {count} classifiers",
                tuple(one_axis_each(count)),
                1,
                1.5,
                Fraction(1, count),
            )
            for count in (2, 3, 4, 5)
        ),
    ]


def known_step(_: EnsembleData, __: StudySettings) -> list[Part]:
    """The exact value beside what is known, and how the sum of losses misses it."""
    lines: list[tuple[Cell, ...]] = []
    most_attacks: list[tuple[int, int]] = []
    for known in known_games():
        points = origin(known.networks[0].input_shape[0], known.points)
        with EnsembleStudy.open(known.networks, points, norm=Norm.L1) as study:
            game = study.value(known.eps)
            attacks = len(study.attack(game).probabilities)
        most_attacks.append((attacks, len(known.networks)))
        lines.append((known.name, str(known.value), str(game.lower), str(game.upper), attacks))
    count = 5
    for size in range(1, count):
        sets = tuple(sum(1 << c for c in chosen) for chosen in combinations(range(count), size))
        found = solve([ListedSets(sets)], count)
        expected = Fraction(size, count)
        name = f"all sets of {size} of {count} classifiers (the game alone)"
        lines.append((name, str(expected), str(found.lower), str(found.upper), None))
    right = sum(line[1] == line[2] == line[3] for line in lines)
    columns = ("ensemble", "value by hand", "attained", "proven at most", "attacks")
    return [
        StudyTable("known", "Values that are known by hand", columns, tuple(lines)),
        Paragraph(f"{right} of {len(lines)} are found exactly."),
        *_sum_of_losses(),
        _bound_claim(most_attacks),
    ]


def _sum_of_losses() -> list[Part]:
    """MaxMILP on the ensemble with a pair: asked for 0.1, it gives the pair the rest."""
    alpha, known = 0.1, known_games()[2]
    problem = BaselineProblem(
        Ensemble(known.networks),
        origin(2),
        Norm.L1,
        known.eps,
        alpha,
        attacks=2,
        seconds=SECONDS_OF_KNOWN,
    )
    found = run_baseline(MAX_MILP, problem)
    value = math.nan if found.attack is None else float(found.attack.value)
    is_short = found.is_optimal and value < float(known.value) - 1e-3
    return [
        StudyClaim(
            "An optimum of MaxMILP's objective may, but need not, be an optimal attack",
            "Section 6.1",
            "an ensemble whose value and optimum are known by hand",
            (
                fact(
                    "three classifiers",
                    is_short or None,
                    f"the value is {float(known.value):g}; MaxMILP ends at {value:.2g}, "
                    f"{'optimal' if found.is_optimal else 'not optimal'} by its solver",
                    rule="an optimum below the value",
                ),
            ),
            note="By hand: one perturbation fools two classifiers, another one the third, so the "
            f"sum of losses is largest where the pair gets all but alpha = {alpha:g}.",
        )
    ]


def _bound_claim(attacks: Sequence[tuple[int, int]]) -> StudyClaim:
    """It stands by its proof; games of ours could only show an error in solving them."""
    few = sum(used <= classifiers for used, classifiers in attacks)
    return StudyClaim(
        "At most (|X| + 1)^|C| deterministic attacks are needed",
        "Proposition 1",
        "the paper's proof, read again",
        (
            fact(
                "any randomized attack",
                True,
                "attacks with the same losses are one, and these have (|X| + 1)^|C| values",
            ),
        ),
        note="A vertex of the linear program has no more than |C| attacks: so many are enough for "
        f"an optimal mix, and no more were found in {few} of {len(attacks)} games known by hand.",
    )


# How many attacks: with fewer than classifiers, "no attack" does not mean robust.


def few_on_known(counts: Sequence[int]) -> tuple[list[tuple[Cell, ...]], list[str]]:
    """Three classifiers that are fooled one at a time: the value by the number of attacks.

    Also the numbers of attacks with which none reaches alpha, though the value does.
    """
    networks, eps, alpha = one_axis_each(3), 1.5, 0.3
    lines: list[tuple[Cell, ...]] = []
    wrong = []
    for points in (1, 3):
        with EnsembleStudy.open(networks, origin(3, points), norm=Norm.L1) as study:
            game = study.value(eps)
            for count in counts:
                lower, upper = study.value_of_few(game, count)
                problem = BaselineProblem(
                    study.ensemble,
                    study.points,
                    Norm.L1,
                    eps,
                    alpha,
                    count,
                    SECONDS_OF_KNOWN,
                )
                said = run_baseline(MILP, problem)
                if upper < Fraction(str(alpha)) <= game.lower:
                    wrong.append(str(count))
                exact = str(lower) if lower == upper else f"{lower} to {upper}"
                lines.append((points, count, exact, str(game.lower), said.reply.value))
    return lines, wrong
