"""The worker process: `python -m radii.execution.worker FD` answers tasks on a socket.

Started by `radii.execution.local`, never by hand. It is a process of its own, not a fork or a
re-import of the caller's main module, so it works from any script or notebook.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from multiprocessing.connection import Connection

__all__ = ["main"]

PR_SET_PDEATHSIG = 1
"""prctl's option: which signal to get when the parent dies."""


def main() -> None:
    """Read the equipment, then answer tasks until the other end closes."""
    parent = int(sys.argv[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    _die_with(parent)
    connection = Connection(int(sys.argv[1]))

    import torch

    torch.set_num_threads(1)
    from radii.execution._base import Equipment
    from radii.execution.inline import Inline

    try:
        equipment: Equipment = connection.recv()
        inline = Inline(equipment.unpack())
        connection.send("ready")
        while True:
            inline.submit(connection.recv())
            connection.send(inline.wait()[1])
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _die_with(parent: int) -> None:
    """Ask the kernel to kill this process when the parent dies, however it dies (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


if __name__ == "__main__":
    main()
