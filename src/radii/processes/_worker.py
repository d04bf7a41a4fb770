"""The process behind `radii.processes._child`: `python -m radii.processes._worker FD PARENT`.

Started by `Child`, never by hand. It is a process of its own, not a fork or a re-import of the
caller's main module, so it works from any script or notebook. Its first message is its job: a call,
a post to hold, or the equipment to answer tasks with until the other end closes.
"""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from radii.errors import InputError
from radii.processes._child import Call, Service
from radii.processes._subordinate import CANCEL_MESSAGE, READY_MESSAGE, Cancelled, obey

if TYPE_CHECKING:
    from radii.execution import SealedToolbox


def main() -> None:
    """Read the job and do it."""
    obey(int(sys.argv[2]))
    connection = Connection(int(sys.argv[1]))
    try:
        job: Call | Service | SealedToolbox = connection.recv()
        if isinstance(job, Call):
            connection.send(_outcome(job))
        elif isinstance(job, Service):
            _serve(job, connection)
        else:
            _answer_tasks(job, connection)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _outcome(call: Call) -> tuple[str, object]:
    try:
        return "value", call.function(*call.arguments)
    except InputError as error:
        return "input error", str(error)
    except MemoryError:
        raise
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"


def _serve(post: Service, connection: Connection) -> None:
    handle = post.make(*post.arguments)
    while True:
        connection.send(_outcome(Call(handle, connection.recv())))


def _answer_tasks(equipment: SealedToolbox, connection: Connection) -> None:
    import torch

    torch.set_num_threads(1)
    from radii.execution import Inline, PartialResults

    is_cancelled = Cancelled(connection)
    inline = Inline(equipment.unpack(), is_cancelled, lambda r: connection.send(PartialResults(r)))
    connection.send(READY_MESSAGE)
    while True:
        message = connection.recv()
        if message == CANCEL_MESSAGE:  # it came too late: the answer was on its way
            continue
        is_cancelled.value = False
        inline.submit(message)
        connection.send(inline.wait()[1])


if __name__ == "__main__":
    main()
