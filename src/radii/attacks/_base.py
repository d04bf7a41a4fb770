"""What an attack is. An attack writes `run`; `attack` checks, converts and replays around it."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, final

from radii import __version__
from radii.attacks.replays import closest_witness
from radii.balls import Norm
from radii.errors import UnsupportedQuery
from radii.networks import Network
from radii.properties import Requirement
from radii.queries import Query
from radii.verdicts import Array, Result, Verdict

__all__ = ["Attack"]


class Attack(ABC):
    """Looks for counterexamples. Failing proves nothing: the verdict is then UNKNOWN.

    Instances are cheap, picklable and hold options only. The same queries, in the same batch, with
    the same seed give the same candidates.
    """

    name: ClassVar[str]
    norms: frozenset[Norm] = frozenset(Norm)

    @property
    def version(self) -> str:
        return __version__

    def unsupported(self, kind: type[Requirement]) -> str | None:
        """Why the attack cannot break requirements of this kind; None if it can.

        Asked once, before any work starts.
        """
        return None

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
        started = time.perf_counter()
        open_places = [
            place for place, query in enumerate(queries) if query.eps > 0 and query.instance.holds
        ]
        candidates: list[Sequence[Array]] = [(query.instance.input,) for query in queries]
        if open_places:
            found = self.run(network, [queries[place] for place in open_places], seed)
            for place, points in zip(open_places, found, strict=True):
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
