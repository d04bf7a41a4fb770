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
from radii.verdicts import Array, Result, Verdict, Witness
from radii.witnesses import check_witness

__all__ = ["Attack"]

NUDGES = (0.0, 1e-6, 1e-5, 1e-4, 1e-3)
"""How much further out a candidate is tried when it does not replay, as parts of its distance."""


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

    def _closest_replay(self, network: Network, query: Query, candidate: Array) -> Witness | None:
        """The candidate as a witness, or a point a little further out that is one.

        torch and ONNX Runtime round differently, so a point on the edge for one may not be over it
        for the other.
        """
        offset = candidate - query.instance.input
        for further in NUDGES:
            point = query.instance.input + (1 + further) * offset
            witness = check_witness(network, query.specification, point)
            if witness is not None:
                return witness
        return None

    def _replayed(
        self, network: Network, query: Query, candidates: Sequence[Array], seconds: float
    ) -> Result:
        started = time.perf_counter()
        checked = (self._closest_replay(network, query, candidate) for candidate in candidates)
        witness = min((w for w in checked if w), key=lambda w: w.distance, default=None)
        return Result(
            verdict=Verdict.NOT_ROBUST if witness else Verdict.UNKNOWN,
            eps=query.eps,
            verifier=self.name,
            version=self.version,
            seconds=seconds + time.perf_counter() - started,
            witness=witness,
        )
