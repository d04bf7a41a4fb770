"""Tools that misbehave on purpose, importable by worker processes: for tests of executors."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from typing import ClassVar

from radii.attacks import Attack
from radii.networks import Network
from radii.queries import Query, Specification
from radii.verdicts import Array, Verdict
from radii.verifiers import Answer, Limits, Verifier

__all__ = ["Crashing", "Hanging", "Hopeless", "Lying", "Raising"]


class _Simulated(Verifier):
    @property
    def version(self) -> str:
        return "0"


class Crashing(_Simulated):
    """Kills its own process, as a segfaulting solver does."""

    name: ClassVar[str] = "crashing"

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        os.kill(os.getpid(), signal.SIGKILL)
        return Answer(Verdict.UNKNOWN)


class Hanging(_Simulated):
    """Sleeps and looks at no limit."""

    name: ClassVar[str] = "hanging"

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        time.sleep(3600)
        return Answer(Verdict.UNKNOWN)


class Raising(_Simulated):
    """Has a bug."""

    name: ClassVar[str] = "raising"

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        raise ZeroDivisionError("a bug in a verifier")


class Lying(_Simulated):
    """Calls everything robust."""

    name: ClassVar[str] = "lying"

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        return Answer(Verdict.ROBUST, margin=1.0)


class Hopeless(Attack):
    """Finds nothing, which proves nothing."""

    name: ClassVar[str] = "hopeless"

    def run(
        self, network: Network, queries: Sequence[Query], seed: int
    ) -> Sequence[Sequence[Array]]:
        return [()] * len(queries)
