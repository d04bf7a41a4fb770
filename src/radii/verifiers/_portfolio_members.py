"""What is said between a race and those who run in it. Cheap to import."""

from __future__ import annotations

import atexit
import os
import pickle
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from radii.networks import Network
from radii.processes import CANCEL_MESSAGE, READY_MESSAGE, resident_bytes
from radii.queries import Specification
from radii.verdicts import Verdict
from radii.verifiers._base import Answer, Limits, Verifier

if TYPE_CHECKING:
    from radii.networks import Network
    from radii.queries import Specification


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One specification to decide; `network` comes along the first time it is needed."""

    fingerprint: str
    network: Network | None
    specification: Specification
    seconds: float
    memory_bytes: int | None
    cpu_seconds: float


# The processes of a portfolio: started once, kept for the next query, killed when they must be.


ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


@dataclass(slots=True, eq=False)
class PortfolioMember:
    """One process that runs one verifier. Busy between `ask` and the answer that `take` gives."""

    verifier: Verifier
    process: subprocess.Popen[bytes]
    connection: Connection
    is_ready: bool = False
    is_busy: bool = False
    waiting: tuple[Network, Specification, Limits] | None = None
    known: set[str] = field(default_factory=set)

    @classmethod
    def start(cls, verifier: Verifier) -> PortfolioMember:
        ours, theirs = socket.socketpair()
        module = f"{__package__}._portfolio_process"
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", module, str(theirs.fileno()), str(os.getpid())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **ONE_THREAD},
            )
        connection = Connection(ours.detach())
        connection.send(verifier)
        return cls(verifier, process, connection)

    @property
    def name(self) -> tuple[str, str]:
        return self.verifier.name, self.verifier.version

    def ask(self, network: Network, specification: Specification, limits: Limits) -> None:
        """Start deciding, at once or as soon as the process is ready."""
        self.is_busy = True
        self.waiting = (network, specification, limits)
        if self.is_ready:
            self._send()

    def _send(self) -> None:
        assert self.waiting is not None
        network, specification, limits = self.waiting
        self.waiting = None
        fingerprint = network.fingerprint
        sent = None if fingerprint in self.known else network
        self.known.add(fingerprint)
        self.connection.send(
            Job(
                fingerprint,
                sent,
                specification,
                limits.remaining,
                limits.memory_bytes,
                limits.cpu_seconds,
            )
        )

    def take(self) -> Answer | None:
        """What the process sent: its answer, None if it was something else. It may have died."""
        try:
            message = self.connection.recv()
            if message == READY_MESSAGE:
                self.is_ready = True
                if self.waiting is not None:
                    self._send()
                return None
        except (EOFError, OSError):
            code = self.process.wait()
            self.kill()
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            return Answer(Verdict.ERROR, message=f"its process died ({how})")
        self.is_busy = False
        answer: Answer = message
        return answer

    def overran(self, memory_bytes: int | None) -> bool:
        """It holds more than it may, and has not stopped by itself."""
        held = resident_bytes(self.process.pid) if memory_bytes is not None else None
        return memory_bytes is not None and held is not None and held > memory_bytes

    def cancel(self) -> None:
        """Ask the process to stop. One that was not ready yet has nothing to stop."""
        if self.waiting is not None:
            self.waiting, self.is_busy = None, False
        elif self.is_busy:
            try:
                self.connection.send(CANCEL_MESSAGE)
            except OSError:
                self.kill()

    @property
    def is_dead(self) -> bool:
        return self.connection.closed

    @property
    def has_ended(self) -> bool:
        """Somebody else has ended its process."""
        return self.process.poll() is not None

    def kill(self) -> None:
        self.is_busy = False
        self.connection.close()
        self.process.kill()
        self.process.wait()


_members: dict[bytes, PortfolioMember] = {}


def member_for(verifier: Verifier) -> PortfolioMember:
    """The living member that runs such a verifier in this process; a new one if there is none."""
    key = pickle.dumps(verifier)
    member = _members.get(key)
    if member is None or member.is_dead or member.is_busy or member.has_ended:
        if member is not None and not member.is_dead:
            member.kill()
        member = _members[key] = PortfolioMember.start(verifier)
    return member


@atexit.register
def _kill_all() -> None:
    for member in _members.values():
        if not member.is_dead:
            member.kill()
