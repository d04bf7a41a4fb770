"""Tools that misbehave on purpose, importable by worker processes: for tests of executors."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from typing import ClassVar

from radii.attacks import Attack
from radii.balls import Ball
from radii.errors import SpecificationError
from radii.networks import Network
from radii.queries import Query, Specification
from radii.verdicts import Array, Verdict
from radii.verifiers import Answer, Limits, Verifier

__all__ = [
    "Cooperating",
    "Crashing",
    "Hanging",
    "Hoarding",
    "Hopeless",
    "Lying",
    "Raising",
    "Scripted",
    "hang",
    "hoard",
    "refuse",
]

BLOCK_BYTES = 16 * 2**20


def hang(*_: object) -> None:
    """Sleeps longer than anybody waits."""
    time.sleep(3600)


def hoard(*_: object) -> None:
    """Takes ever more memory, some hundred megabytes a second."""
    blocks = []
    while True:
        blocks.append(bytearray(b"1") * BLOCK_BYTES)
        time.sleep(0.02)


def refuse(*_: object) -> None:
    """Finds fault with what it was given."""
    raise SpecificationError("nothing is good enough")


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
        hang()
        return Answer(Verdict.UNKNOWN)


class Hoarding(_Simulated):
    """Takes ever more memory and looks at no limit."""

    name: ClassVar[str] = "hoarding"

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        hoard()
        return Answer(Verdict.UNKNOWN)


class Cooperating(_Simulated):
    """Works for ever, takes memory as told, and stops as soon as its limits say so."""

    name: ClassVar[str] = "cooperating"

    def __init__(self, *, is_hoarding: bool = False) -> None:
        self.is_hoarding = is_hoarding

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        blocks = []
        while (expired := limits.expired) is None:
            if self.is_hoarding:
                blocks.append(bytearray(b"1") * BLOCK_BYTES)
            time.sleep(0.02)
        return Answer(expired, message="it stopped by itself")


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


class Scripted(_Simulated):
    """Behaves at each eps as the verifier that its script names there."""

    name: ClassVar[str] = "scripted"

    def __init__(self, script: Mapping[float, Verifier]) -> None:
        self.script = dict(script)

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        region = specification.region
        if not isinstance(region, Ball):
            raise SpecificationError("a script is for balls")
        return self.script[region.eps].run(network, specification, limits)


class Hopeless(Attack):
    """Finds nothing, which proves nothing."""

    name: ClassVar[str] = "hopeless"

    def run(
        self, network: Network, queries: Sequence[Query], seed: int
    ) -> Sequence[Sequence[Array]]:
        return [()] * len(queries)
