"""Tools that misbehave on purpose, importable by worker processes: for tests of executors."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from radii.attacks import Attack
from radii.errors import SpecificationError
from radii.networks import Network
from radii.problem import Array, Ball, Instance, Query, Specification, Verdict
from radii.verifiers import Answer, GridVerifier, Limits, RadiusAnswer, Verifier

HOARDED_BYTES = 16 * 2**20


def hang(*_: object) -> None:
    """Sleeps longer than anybody waits."""
    time.sleep(3600)


def hoard(*_: object) -> None:
    """Takes ever more memory, some hundred megabytes a second."""
    blocks = []
    while True:
        blocks.append(bytearray(b"1") * HOARDED_BYTES)
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


class Segfaulting(_Simulated):
    """Reads where nothing is, as a broken library does."""

    name: ClassVar[str] = "segfaulting"

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        faulthandler.disable()
        ctypes.string_at(0)
        return Answer(Verdict.UNKNOWN)


class Deaf(_Simulated):
    """Computes for ever, on `processes` more processors too, and ignores limits and signals."""

    name: ClassVar[str] = "deaf"

    def __init__(self, *, processes: int = 0) -> None:
        self.processes = processes

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
            signal.signal(number, signal.SIG_IGN)
        busy = [sys.executable, "-c", "while True: pass"]
        for _ in range(self.processes):
            subprocess.Popen(busy, start_new_session=True)
        while True:
            pass


class Slow(_Simulated):
    """Decides as another verifier does, after a random time that depends on eps and seed only."""

    name: ClassVar[str] = "slow"

    def __init__(self, verifier: Verifier, *, seconds: float, seed: int = 0) -> None:
        self.verifier = verifier
        self.seconds = seconds
        self.seed = seed

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        region = specification.region
        eps = region.eps if isinstance(region, Ball) else 0.0
        length = self.seconds * random.Random(f"{self.seed} {eps}").uniform(0.5, 1.5)
        end = time.monotonic() + length
        while time.monotonic() < end:
            if (expired := limits.expired) is not None:
                return Answer(expired)
            time.sleep(0.01)
        return self.verifier.run(network, specification, limits)


class Stumbling(GridVerifier, _Simulated):
    """Climbs two values as another verifier proves them, says so, then hangs or dies."""

    name: ClassVar[str] = "stumbling"

    def __init__(self, verifier: Verifier, *, dies: bool = False) -> None:
        self.verifier = verifier
        self.dies = dies

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        return self.verifier.run(network, specification, limits)

    def climb(
        self,
        network: Network,
        instance: Instance,
        values: Sequence[float],
        limits: Limits,
        report: Callable[[RadiusAnswer], None],
    ) -> RadiusAnswer:
        for eps in values[:2]:
            answer = self.run(network, Query(instance, eps).specification, limits)
            if answer.verdict is Verdict.ROBUST:
                report(RadiusAnswer(eps, margin=answer.margin))
        if self.dies:
            os.kill(os.getpid(), signal.SIGKILL)
        hang()
        return RadiusAnswer(0.0)


class Cooperating(_Simulated):
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
