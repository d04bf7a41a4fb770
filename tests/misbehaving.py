"""More tools that misbehave on purpose, beside those of the executors' conformance suite."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from radii.attacks import Attack
from radii.errors import SpecificationError
from radii.networks import Network
from radii.problem import Array, Ball, Instance, Query, Specification, Verdict
from radii.testing._simulated import HOARDED_BYTES, Simulated, hang
from radii.verifiers import Answer, GridVerifier, Limits, RadiusAnswer, Verifier


def hoard(*_: object) -> None:
    """Takes ever more memory, some hundred megabytes a second."""
    blocks = []
    while True:
        blocks.append(bytearray(b"1") * HOARDED_BYTES)
        time.sleep(0.02)


def refuse(*_: object) -> None:
    """Finds fault with what it was given."""
    raise SpecificationError("nothing is good enough")


class Hoarding(Simulated):
    """Takes ever more memory and looks at no limit."""

    name: ClassVar[str] = "hoarding"

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        hoard()
        return Answer(Verdict.UNKNOWN)


class Segfaulting(Simulated):
    """Reads where nothing is, as a broken library does."""

    name: ClassVar[str] = "segfaulting"

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        faulthandler.disable()
        ctypes.string_at(0)
        return Answer(Verdict.UNKNOWN)


class Deaf(Simulated):
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


class Slow(Simulated):
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


class Stumbling(GridVerifier, Simulated):
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


class Hopeless(Attack):
    """Finds nothing, which proves nothing."""

    name: ClassVar[str] = "hopeless"

    def run(
        self, network: Network, queries: Sequence[Query], seed: int
    ) -> Sequence[Sequence[Array]]:
        return [()] * len(queries)
