"""Tools that misbehave on purpose, importable by worker processes: for tests of executors."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from typing import ClassVar

from radii.errors import SpecificationError
from radii.networks import Network
from radii.problem import Ball, Specification, Verdict
from radii.verifiers import Answer, Limits, Verifier

HOARDED_BYTES = 16 * 2**20


def hang(*_: object) -> None:
    """Sleeps longer than anybody waits."""
    time.sleep(3600)


class Simulated(Verifier):
    """A verifier that only pretends."""

    @property
    def version(self) -> str:
        return "0"


class Crashing(Simulated):
    """Kills its own process, as a segfaulting solver does."""

    name: ClassVar[str] = "crashing"

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        os.kill(os.getpid(), signal.SIGKILL)
        return Answer(Verdict.UNKNOWN)


class Hanging(Simulated):
    """Sleeps and looks at no limit."""

    name: ClassVar[str] = "hanging"

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        hang()
        return Answer(Verdict.UNKNOWN)


class Cooperating(Simulated):
    """Works for ever, hoards memory on request, and stops as soon as its limits say so."""

    name: ClassVar[str] = "cooperating"

    def __init__(self, *, is_hoarding: bool = False) -> None:
        self.is_hoarding = is_hoarding

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        blocks = []
        while (expired := limits.expired) is None:
            if self.is_hoarding:
                blocks.append(bytearray(b"1") * HOARDED_BYTES)
            time.sleep(0.02)
        return Answer(expired, message="it stopped by itself")


class Raising(Simulated):
    """Has a bug."""

    name: ClassVar[str] = "raising"

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        raise ZeroDivisionError("a bug in a verifier")


class Lying(Simulated):
    """Calls everything robust."""

    name: ClassVar[str] = "lying"

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        return Answer(Verdict.ROBUST, margin=1.0)


class Scripted(Simulated):
    """Behaves at each eps as the verifier that its script names there."""

    name: ClassVar[str] = "scripted"

    def __init__(self, script: Mapping[float, Verifier]) -> None:
        self.script = dict(script)

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        region = specification.region
        if not isinstance(region, Ball):
            raise SpecificationError("a script is for balls")
        return self.script[region.eps].run(network, specification, limits)
