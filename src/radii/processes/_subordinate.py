"""What every process that radii starts for itself does: it dies with its parent and can be told to
stop. Numpy and torch are not needed.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from multiprocessing.connection import Connection

READY_MESSAGE = "ready"
"""What it says once it can take tasks."""

CANCEL_MESSAGE = "cancel"
"""What it is told while it is busy, if nobody waits for its answer any more."""

PR_SET_PDEATHSIG = 1
"""prctl's option: which signal to get when the parent dies."""


def obey(parent: int) -> None:
    """Leave Ctrl-C to the parent, and die when it dies, however it dies (at once on Linux)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


class Cancelled:
    """Called often during a task: did the parent say that nobody waits any more?"""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.value = False

    def __call__(self) -> bool:
        if not self.value and self._connection.poll():
            self._connection.recv()
            self.value = True
        return self.value
