"""The process of one member: `python -m radii.verifiers._portfolio_process FD PARENT`.

Started by `members.py`. Its first message is its verifier; then it takes jobs until the other end
closes. It dies with its parent, and so does whatever program its verifier runs.
"""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection

from radii.networks import Network
from radii.processes import CANCEL_MESSAGE, READY_MESSAGE, Cancelled, obey
from radii.verdicts import Verdict
from radii.verifiers._base import Answer, Limits, Verifier
from radii.verifiers._portfolio_members import Job


def main() -> None:
    """Read the verifier, then answer jobs."""
    import torch

    obey(int(sys.argv[2]))
    torch.set_num_threads(1)
    connection = Connection(int(sys.argv[1]))
    try:
        verifier: Verifier = connection.recv()
        connection.send(READY_MESSAGE)
        _answer_jobs(verifier, connection)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _answer_jobs(verifier: Verifier, connection: Connection) -> None:
    networks: dict[str, Network] = {}
    is_cancelled = Cancelled(connection)
    while True:
        job = connection.recv()
        if job == CANCEL_MESSAGE:  # it came too late: the answer was on its way
            continue
        if job.network is not None:
            networks[job.fingerprint] = job.network
        is_cancelled.value = False
        connection.send(_answer(verifier, networks[job.fingerprint], job, is_cancelled))


def _answer(verifier: Verifier, network: Network, job: Job, cancelled: Cancelled) -> Answer:
    limits = Limits(job.seconds, job.memory_bytes, cancelled, cpu_seconds=job.cpu_seconds)
    try:
        return verifier.decide(network, job.specification, limits)[0]
    except Exception as error:
        return Answer(Verdict.ERROR, message=f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
