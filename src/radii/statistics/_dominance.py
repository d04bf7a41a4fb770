"""Which of two networks is more robust at which eps: first-order stochastic dominance, in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from radii.errors import DataError
from radii.statistics._columns import Array, Float64
from radii.statistics._confidence import Band, robust_accuracy_band

if TYPE_CHECKING:
    from radii.statistics._distribution import Distribution


@dataclass(frozen=True, slots=True)
class Stretch:
    """The eps values above `start` up to `stop` at which `leader` is shown to be more robust."""

    leader: str
    start: float
    stop: float


@dataclass(frozen=True, slots=True, eq=False)
class Dominance:
    """Where one of two is shown to be more robust: proven beyond what is not refuted of the other.

    `stretches` are in order of eps; between them nothing is shown. Without `level` they speak about
    these inputs; with it, about all inputs, at every eps at once. `dominant` is the one that leads
    wherever one does and is nowhere behind, even by what brackets leave open, up to `reach`: inf,
    or where proofs end if the other has inputs without a witness, about which nothing is known
    beyond.
    """

    names: tuple[str, str]
    stretches: tuple[Stretch, ...]
    dominant: str | None
    level: float | None
    reach: float = math.inf

    def __str__(self) -> str:
        first, second = self.names
        for_whom = "" if self.level is None else f", with {100 * self.level:g} % confidence"
        if not self.stretches:
            return f"Neither {first} nor {second} is shown to be more robust at any eps{for_whom}."
        runs = _runs(self.stretches)
        if self.dominant is not None:
            other = second if self.dominant == first else first
            where = "" if math.isinf(self.reach) else f" up to {self.reach:.4g}"
            return f"{self.dominant} is at least as robust as {other} at every eps{where}."
        if len(runs) == 1:
            leader = runs[0].leader
            where = _eps_text(runs[0], True, True)
            if len(self.stretches) > 1:
                where = f"at some eps {where}, and nowhere shown to be less so"
            other = second if leader == first else first
            return f"{leader} is more robust than {other} {where}{for_whom}."
        texts = [
            f"{run.leader} {'is more robust ' if place == 0 else ''}"
            f"{_eps_text(run, place == 0, place == len(runs) - 1)}"
            for place, run in enumerate(runs)
        ]
        return f"{', '.join(texts)}{for_whom}."


def dominance(
    a: Distribution,
    b: Distribution,
    *,
    names: tuple[str, str] | None = None,
    tolerance: float = 0.0,
    level: float | None = None,
) -> Dominance:
    """Compare robust accuracy at every eps, misclassified inputs counted.

    Leads of at most `tolerance` (a share of inputs) are passed over. With a confidence `level`, a
    lead must exceed the sampling error of both samples.
    """
    if not 0 <= tolerance < 1:
        raise DataError(f"a tolerance is a share of inputs below 1, not {tolerance}")
    one, two = names or (_name(a), _name(b))
    if level is None:
        bands = Band(1.0, ((a, 0.0),)), Band(1.0, ((b, 0.0),))
    else:  # half of the miss for each of the two samples
        each = 1 - (1 - level) / 2
        bands = robust_accuracy_band(a, each), robust_accuracy_band(b, each)
    edges, gain, loss = _margins(a, b, bands)
    leads = np.where(gain > tolerance + 1e-12, 1, np.where(loss > tolerance + 1e-12, -1, 0))
    stretches = tuple(
        Stretch(one if sign > 0 else two, float(edges[start]), float(edges[stop]))
        for sign, start, stop in _stretches(leads)
    )
    dominant, reach = None, math.inf
    if level is None and stretches:
        # Even if brackets were as bad for the leader as they can be, it is not behind.
        for leader, ahead, other in ((one, gain, b), (two, loss, a)):
            if np.all(ahead >= -1e-12):
                dominant = leader
                # Beyond the last edge nothing is proven, but the other may hold.
                reach = math.inf if np.isfinite(other.upper).all() else float(edges[-1])
                break
    return Dominance((one, two), stretches, dominant, level, reach)


def _margins(
    a: Distribution, b: Distribution, bands: tuple[Band, Band]
) -> tuple[Float64, Float64, Float64]:
    """Edges, and between neighbouring ones by how much a leads b at least, and b leads a."""
    sides = np.concatenate([a.lower, a.upper, b.lower, b.upper, [0.0]])
    edges = np.unique(sides[np.isfinite(sides)])
    if len(edges) < 2:
        edges = np.array([0.0, 1.0])
    middles = (edges[:-1] + edges[1:]) / 2
    (low_a, high_a), (low_b, high_b) = (band.at(middles) for band in bands)
    return edges, low_a - high_b, low_b - high_a


def _stretches(leads: Array) -> list[tuple[int, int, int]]:
    """Runs of one leader: who, and the edges where the run starts and stops."""
    changes = np.flatnonzero(np.diff(leads)) + 1
    starts = np.concatenate([[0], changes])
    stops = np.concatenate([changes, [len(leads)]])
    return [(int(leads[a]), int(a), int(b)) for a, b in zip(starts, stops, strict=True) if leads[a]]


def _runs(stretches: tuple[Stretch, ...]) -> list[Stretch]:
    """Neighbouring stretches of one leader as one, over what lies undecided between them."""
    runs: list[Stretch] = []
    for stretch in stretches:
        if runs and runs[-1].leader == stretch.leader:
            runs[-1] = Stretch(stretch.leader, runs[-1].start, stretch.stop)
        else:
            runs.append(stretch)
    return runs


def _eps_text(run: Stretch, is_first: bool, is_last: bool) -> str:
    """`below` and `above` where the run is the first or last: no other leads on that side."""
    if is_first and not is_last:
        return f"below {run.stop:.4g}"
    if is_last and not is_first:
        return f"above {run.start:.4g}"
    return f"between {run.start:.4g} and {run.stop:.4g}"


def _name(distribution: Distribution) -> str:
    return ", ".join(distribution.networks)
