"""From instances that are finished to what all of them would take, and how tight they would be.

The instances not yet seen are drawn from those that are finished, with weights that are themselves
drawn at random (a Bayesian bootstrap), so that few of them leave much open. Two more are added with
half the weight of one: an instance that is as easy as the easiest, and one that uses its whole time
and closes nothing, because a few instances may have missed the hard ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from radii.errors import ExperimentError
from radii.strategy._agendas import is_closed, width
from radii.strategy._schedule import Case

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """How often instances are drawn, and between which quantiles of the draws is reported."""

    confidence: float = 0.9
    draws: int = 4000
    unseen_weight: float = 0.5
    """Of each of the two instances that were not seen, where a finished one counts 1."""


@dataclass(frozen=True, slots=True)
class PredictionInterval:
    """A quantity that is not known yet: between `low` and `high` with the stated confidence."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True, slots=True)
class NetworkEstimate:
    """What is expected of one network's inputs.

    `seconds` is work that is left, of one worker. `closed` is the share of all inputs with no grid
    value left open, `width` the mean width of all brackets, misclassified inputs included with 0.
    """

    network: str
    inputs: int
    misclassified: int
    finished: int
    seconds: PredictionInterval
    closed: PredictionInterval
    width: PredictionInterval


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """What is left of a run: wall `seconds` with that many workers at once."""

    networks: tuple[NetworkEstimate, ...]
    jobs: int
    seconds: PredictionInterval
    confidence: float


@dataclass(frozen=True, slots=True)
class _Replicates:
    """One network's replicates beside the plain figure of each quantity."""

    seconds: Float64
    closed: Float64
    width: Float64
    plain: tuple[float, float, float]
    shown: tuple[int, int, int]


def estimate(
    cases: Sequence[Case],
    names: dict[str, str],
    *,
    jobs: int,
    limit: float,
    budget: float = math.inf,
    seed: int = 0,
    bootstrap: Bootstrap | None = None,
) -> RunEstimate:
    """From cases of which some are finished; `names` are by fingerprint.

    `limit` is what an instance may take at most for its proofs, as far as that is known. Who has
    spent `budget` is finished, whatever is left to ask.
    """
    chance, rules = np.random.default_rng(seed), bootstrap or Bootstrap()
    drawn = {}
    for fingerprint, name in names.items():
        own = [case for case in cases if case.instance.network == fingerprint]
        drawn[name] = _drawn(own, limit, budget, chance, rules)
    networks = tuple(
        NetworkEstimate(
            name,
            *one.shown,
            _range(one.seconds, one.plain[0], rules),
            _range(one.closed, one.plain[1], rules),
            _range(one.width, one.plain[2], rules),
        )
        for name, one in drawn.items()
    )
    wall = sum((one.seconds for one in drawn.values()), np.zeros(rules.draws)) / jobs
    plain = sum(one.plain[0] for one in drawn.values()) / jobs
    return RunEstimate(networks, jobs, _range(wall, plain, rules), rules.confidence)


def _drawn(
    cases: Sequence[Case],
    limit: float,
    budget: float,
    chance: np.random.Generator,
    rules: Bootstrap,
) -> _Replicates:
    def is_done(case: Case) -> bool:
        return case.spent >= budget or case.search.next_question() is None

    correct = [case for case in cases if case.instance.holds]
    done = [case for case in correct if is_done(case)]
    rest = [case for case in correct if not is_done(case)]
    closed = np.array([is_closed(case.search) for case in done], float)
    widths = np.array([_width(case) for case in done])
    known_closed, known_width = closed.sum() + len(cases) - len(correct), widths.sum()
    shown = len(cases), len(cases) - len(correct), len(done)
    if not rest:
        sums = (0.0, float(known_closed) / len(cases), float(known_width) / len(cases))
        seconds, share, mean = (np.full(rules.draws, value) for value in sums)
        return _Replicates(seconds, share, mean, sums, shown)
    if not done:
        raise ExperimentError("no input of a network is finished yet: nothing can be estimated")
    costs = np.array([case.spent for case in done])
    worst = max(costs.max(), limit if limit < math.inf else 0.0)
    widest = max(min(c.search.bracket.upper, c.search.values[-1]) for c in done)
    table = np.stack([costs, closed, widths])
    unseen = np.array([[costs.min(), worst], [1.0, 0.0], [widths.min(), widest]])
    weights = np.array([1.0] * len(done) + [rules.unseen_weight] * 2)
    shares = chance.dirichlet(weights, size=rules.draws)
    counts = np.stack([chance.multinomial(len(rest), share) for share in shares])
    totals = counts @ np.concatenate([table, unseen], axis=1).T
    spent = sum(case.spent for case in rest)
    means = len(rest) * table.mean(axis=1)
    return _Replicates(
        np.maximum(0.0, totals[:, 0] - spent),
        (known_closed + totals[:, 1]) / len(cases),
        (known_width + totals[:, 2]) / len(cases),
        (
            max(0.0, float(means[0]) - spent),
            float(known_closed + means[1]) / len(cases),
            float(known_width + means[2]) / len(cases),
        ),
        shown,
    )


def _width(case: Case) -> float:
    return width(case.search.bracket, case.search.values[-1])


def _range(draws: Float64, plain: float, rules: Bootstrap) -> PredictionInterval:
    """The middle part of the draws, and the plain figure, which counts nothing unseen."""
    ends = (1 - rules.confidence) / 2, (1 + rules.confidence) / 2
    low, high = np.quantile(draws, ends)
    return PredictionInterval(min(float(low), plain), plain, max(float(high), plain))
