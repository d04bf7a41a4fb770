"""The process of one member: `python -m radii.verifiers.portfolio.member FD PARENT`.

Started by `members.py`. Its first message is its verifier; then it takes jobs until the other end
closes. It dies with its parent, and so does whatever program its verifier runs.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from multiprocessing.connection import Connection

from radii.networks import Network
from radii.verdicts import Verdict
from radii.verifiers import Answer, Limits, Verifier
from radii.verifiers.portfolio.jobs import CANCEL, READY, Job

__all__ = ["main"]

PR_SET_PDEATHSIG = 1
"""prctl's option: which signal to get when the parent dies."""


def main() -> None:
    """Read the verifier, then answer jobs."""
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[2]):
        return
    torch.set_num_threads(1)
    connection = Connection(int(sys.argv[1]))
    try:
        verifier: Verifier = connection.recv()
        connection.send(READY)
        _answer_jobs(verifier, connection)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _answer_jobs(verifier: Verifier, connection: Connection) -> None:
    networks: dict[str, Network] = {}
    is_cancelled = _Cancelled(connection)
    while True:
        job = connection.recv()
        if job == CANCEL:  # it came too late: the answer was on its way
            continue
        if job.network is not None:
            networks[job.fingerprint] = job.network
        is_cancelled.value = False
        connection.send(_answer(verifier, networks[job.fingerprint], job, is_cancelled))


def _answer(verifier: Verifier, network: Network, job: Job, cancelled: _Cancelled) -> Answer:
    limits = Limits(job.seconds, job.memory_bytes, cancelled, cpu_seconds=job.cpu_seconds)
    try:
        return verifier.decide(network, job.specification, limits)[0]
    except Exception as error:
        return Answer(Verdict.ERROR, message=f"{type(error).__name__}: {error}")


class _Cancelled:
    """Called often during a job: did the parent say that nobody waits any more?"""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.value = False

    def __call__(self) -> bool:
        if not self.value and self._connection.poll():
            self._connection.recv()
            self.value = True
        return self.value


if __name__ == "__main__":
    main()
