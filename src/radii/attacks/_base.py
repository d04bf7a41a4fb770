"""What an attack is, and how its candidates become the closest witness.

An attack writes `run`; `attack` checks and converts what goes in, and replays the candidates that
come out. torch and ONNX Runtime round differently, so a point on the boundary for one may not be
over it for the other. ONNX Runtime decides, also where the segment to the input is searched.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from typing import ClassVar, final

import numpy as np
from torch import Tensor

from radii import __version__
from radii.attacks._batches import Batch, Clock, batches
from radii.attacks._discrete import with_discrete
from radii.errors import UnsupportedQuery
from radii.networks import Network
from radii.plugins import Plugin
from radii.problem import (
    Array,
    Ball,
    Norm,
    Query,
    Requirement,
    Result,
    Specification,
    Verdict,
    Witness,
    check_witness,
)

OUTWARD_SHARES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
"""How much further out a candidate is tried that does not replay, as parts of its distance."""
INWARD_SHARES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5)
"""How much closer to the input a witness is tried, as parts of its distance, while it is one."""
PRECISION = 5e-7
"""Parts of the distance at which halving stops: some units in the last place of a float32."""
SAFETY_SHARE = 1e-6
"""How much further out than the closest witness the final one lies, as a part of its distance, so
that it is one, too, for a runtime that rounds differently."""


def closest_witness(
    network: Network, specification: Specification, ball: Ball, candidates: Sequence[Array]
) -> Witness | None:
    """The closest witness on the segments from the ball's centre to the candidates, best first.

    A candidate further away than a witness that is known already is not looked at.
    """
    best: Witness | None = None
    for candidate in candidates:
        point = ball.project(candidate.reshape(ball.shape))
        if best is None or ball.distance(point) < best.distance:
            witness = _Segment(network, specification, ball, point).closest()
            if witness is not None and (best is None or witness.distance < best.distance):
                best = witness
    return best


class _Segment:
    """The ray from the centre through a candidate, which is at place 1."""

    def __init__(
        self, network: Network, specification: Specification, ball: Ball, point: Array
    ) -> None:
        self._network, self._specification, self._center = network, specification, ball.center
        self._offset = np.asarray(point, np.float64) - ball.center

    def closest(self) -> Witness | None:
        """The closest witness that stepping and then halving finds; None without any."""
        if (witness := self._at(1.0)) is not None:
            intact, broken, witness = self._inward(witness)
        else:
            intact, broken, witness = self._outward()
        if witness is None:
            return None
        while broken - intact > PRECISION:
            middle = (intact + broken) / 2
            if (closer := self._at(middle)) is not None:
                broken, witness = middle, closer
            else:
                intact = middle
        return self._at(broken * (1 + SAFETY_SHARE)) or witness

    def _inward(self, witness: Witness) -> tuple[float, float, Witness]:
        broken = 1.0
        for step in INWARD_SHARES:
            closer = self._at(1 - step)
            if closer is None:
                return 1 - step, broken, witness
            broken, witness = 1 - step, closer
        return 0.0, broken, witness

    def _outward(self) -> tuple[float, float, Witness | None]:
        intact = 1.0
        for step in OUTWARD_SHARES:
            if (witness := self._at(1 + step)) is not None:
                return intact, 1 + step, witness
            intact = 1 + step
        return 1.0, 1.0, None

    def _at(self, place: float) -> Witness | None:
        return check_witness(
            self._network, self._specification, self._center + place * self._offset
        )


class Attack(Plugin, ABC):
    """Looks for counterexamples. Failing proves nothing: the verdict is then UNKNOWN.

    Instances are cheap, picklable and hold options only. The same queries, in the same batch, with
    the same seed give the same candidates.
    """

    norms: frozenset[Norm] = frozenset(Norm)
    needs_gradient: ClassVar[bool] = False

    @property
    def version(self) -> str:
        return __version__

    def unsupported(self, kind: type[Requirement]) -> str | None:
        """Why the attack cannot break requirements of this kind; None if it can.

        Asked once, before any work starts.
        """
        return None

    @final
    def gradient_refusal(self, network: Network) -> str | None:
        """Why the attack cannot ask what it needs of the network; None if it can."""
        if not self.needs_gradient or network.has_gradient:
            return None
        return (
            f"attack '{self.name}' needs gradients, which a model that only runs does not have; "
            "choose --attack random-search"
        )

    def quick(self) -> Attack | None:
        """A cheaper attack whose counterexamples are mostly as close; None if there is none.

        If a proof just below its witness succeeds, no thorough attack follows.
        """
        return None

    def within(self, seconds: float) -> Attack:
        """The same attack with a limit in seconds, at which it returns what it has found so far;
        one that cannot end early stays as it is."""
        return self

    @abstractmethod
    def run(
        self, network: Network, queries: Sequence[Query], seed: int
    ) -> Sequence[Sequence[Array]]:
        """For each query its candidates, best first; they may lie outside the ball.

        Called only with queries whose property holds at the input itself and whose eps is above 0.
        """

    @final
    def attack(self, network: Network, queries: Sequence[Query], *, seed: int = 0) -> list[Result]:
        """One result a query: NOT_ROBUST with the closest witness that replays, else UNKNOWN.

        An input at which the property fails as it stands is its own witness, at distance 0.
        """
        for query in queries:
            if query.instance.norm not in self.norms:
                raise UnsupportedQuery(
                    f"attack '{self.name}' does not search balls in {query.instance.norm.value}"
                )
            if (reason := self.unsupported(query.instance.kind)) is not None:
                raise UnsupportedQuery(reason)
        if (reason := self.gradient_refusal(network)) is not None:
            raise UnsupportedQuery(f"{network.name}: {reason}")
        started = time.perf_counter()
        open_places = [
            place for place, query in enumerate(queries) if query.eps > 0 and query.instance.holds
        ]
        candidates: list[Sequence[Array]] = [(query.instance.input,) for query in queries]
        if open_places:
            asked = [queries[place] for place in open_places]
            attacked = self.run(network, asked, seed)
            if any(query.instance.is_discrete for query in asked):
                attacked = with_discrete(network, asked, attacked, seed)
            for place, points in zip(open_places, attacked, strict=True):
                candidates[place] = points
        share = (time.perf_counter() - started) / max(1, len(queries))
        return [
            self._replayed(network, query, points, share)
            for query, points in zip(queries, candidates, strict=True)
        ]

    def _replayed(
        self, network: Network, query: Query, candidates: Sequence[Array], seconds: float
    ) -> Result:
        started = time.perf_counter()
        ball = query.instance.ball(query.eps)
        witness = closest_witness(network, query.specification, ball, candidates)
        return Result(
            verdict=Verdict.NOT_ROBUST if witness else Verdict.UNKNOWN,
            eps=query.eps,
            verifier=self.name,
            version=self.version,
            seconds=seconds + time.perf_counter() - started,
            witness=witness,
        )


class BatchAttack(Attack, ABC):
    """An attack on whole batches of queries, which get equal parts of its `seconds`; then it stops
    and returns what it has found so far."""

    seconds: float

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many points it moves at once for each task."""

    @abstractmethod
    def search(self, batch: Batch, seed: int, clock: Clock) -> Mapping[int, Tensor]:
        """For each query that it breaks, by its place in the batch, its closest counterexample."""

    def run(
        self, network: Network, queries: Sequence[Query], seed: int
    ) -> Sequence[Sequence[Array]]:
        candidates: list[Sequence[Array]] = [()] * len(queries)
        clock = Clock.of(self.seconds)
        todo = batches(network, queries, rows=self.rows)
        for done, batch in enumerate(todo):
            for place, point in self.search(batch, seed, clock.share(len(todo) - done)).items():
                candidates[batch.members[place]] = batch.points(point[None])
        return candidates

    @final
    def within(self, seconds: float) -> Attack:
        limited = copy(self)
        limited.seconds = min(self.seconds, seconds)
        return limited
