"""What an attack is. An attack writes `run`; `attack` checks, converts and replays around it."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, final

from radii import __version__
from radii.balls import Norm
from radii.errors import UnsupportedQuery
from radii.networks import Network
from radii.queries import Query
from radii.verdicts import Array, Result, Verdict
from radii.witnesses import check_witness

__all__ = ["Attack"]


class Attack(ABC):
    """Looks for counterexamples. Failing proves nothing: the verdict is then UNKNOWN.

    Instances are cheap, picklable and hold options only. The same queries, in the same batch, with
    the same seed give the same candidates.
    """

    name: ClassVar[str]
    norms: ClassVar[frozenset[Norm]] = frozenset(Norm)

    @property
    def version(self) -> str:
        return __version__

    @abstractmethod
    def run(
        self, network: Network, queries: Sequence[Query], seed: int
    ) -> Sequence[Sequence[Array]]:
        """For each query its candidates, best first; they may lie outside the ball."""

    @final
    def attack(self, network: Network, queries: Sequence[Query], *, seed: int = 0) -> list[Result]:
        """One result a query: NOT_ROBUST with the closest witness that replays, else UNKNOWN."""
        for query in queries:
            if query.instance.norm not in self.norms:
                raise UnsupportedQuery(
                    f"attack '{self.name}' does not search balls in {query.instance.norm.value}"
                )
        started = time.perf_counter()
        found = self.run(network, queries, seed) if queries else []
        share = (time.perf_counter() - started) / max(1, len(queries))
        return [
            self._replayed(network, query, candidates, share)
            for query, candidates in zip(queries, found, strict=True)
        ]

    def _replayed(
        self, network: Network, query: Query, candidates: Sequence[Array], seconds: float
    ) -> Result:
        started = time.perf_counter()
        checked = (check_witness(network, query.specification, c) for c in candidates)
        witness = min((w for w in checked if w), key=lambda w: w.distance, default=None)
        return Result(
            verdict=Verdict.NOT_ROBUST if witness else Verdict.UNKNOWN,
            eps=query.eps,
            verifier=self.name,
            version=self.version,
            seconds=seconds + time.perf_counter() - started,
            witness=witness,
        )
