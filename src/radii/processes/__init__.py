"""Child processes with hard limits on time and memory, which die with their parents.

`Child` is one process and `watch` the loop that waits for several; `call_guarded` and `ProcessPool`
are calls and requests on top of them, and `run_program` runs a foreign program. What they use is
counted with all that they start. Nothing here knows of networks or verdicts, and loading it is
cheap: psutil comes with the first look at a process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from radii import load_on_use

_HOMES = {
    "_child": (
        "ONE_THREAD",
        "START_SECONDS",
        "WORK_GRACE_SECONDS",
        "Child",
        "Message",
        "MessageKind",
        "Service",
        "StoppedCall",
        "spare_children",
        "watch",
    ),
    "_locks": ("has_workers", "take_lock"),
    "_pool": ("ProcessPool", "Request", "call_guarded"),
    "_programs": ("ProgramEnd", "run_program"),
    "_usage": (
        "POLL_SECONDS",
        "Allowance",
        "Ending",
        "available_bytes",
        "check_room",
        "cpu_seconds",
        "descendant_pids",
        "family_seconds",
        "is_alive",
        "is_out_of_memory",
        "memory_limit",
        "memory_share",
        "parse_size",
        "resident_bytes",
        "show_size",
        "speaks_of_memory",
        "usable_cores",
        "usable_workers",
    ),
    "_worker": ("Line",),
}

__all__ = [
    "ONE_THREAD",
    "POLL_SECONDS",
    "START_SECONDS",
    "WORK_GRACE_SECONDS",
    "Allowance",
    "Child",
    "Ending",
    "Line",
    "Message",
    "MessageKind",
    "ProcessPool",
    "ProgramEnd",
    "Request",
    "Service",
    "StoppedCall",
    "available_bytes",
    "call_guarded",
    "check_room",
    "cpu_seconds",
    "descendant_pids",
    "family_seconds",
    "has_workers",
    "is_alive",
    "is_out_of_memory",
    "memory_limit",
    "memory_share",
    "parse_size",
    "resident_bytes",
    "run_program",
    "show_size",
    "spare_children",
    "speaks_of_memory",
    "take_lock",
    "usable_cores",
    "usable_workers",
    "watch",
]

if TYPE_CHECKING:
    from radii.processes._child import (
        ONE_THREAD,
        START_SECONDS,
        WORK_GRACE_SECONDS,
        Child,
        Message,
        MessageKind,
        Service,
        StoppedCall,
        spare_children,
        watch,
    )
    from radii.processes._locks import has_workers, take_lock
    from radii.processes._pool import ProcessPool, Request, call_guarded
    from radii.processes._programs import ProgramEnd, run_program
    from radii.processes._usage import (
        POLL_SECONDS,
        Allowance,
        Ending,
        available_bytes,
        check_room,
        cpu_seconds,
        descendant_pids,
        family_seconds,
        is_alive,
        is_out_of_memory,
        memory_limit,
        memory_share,
        parse_size,
        resident_bytes,
        show_size,
        speaks_of_memory,
        usable_cores,
        usable_workers,
    )
    from radii.processes._worker import Line


if not TYPE_CHECKING:  # type checkers see the imports above, and nothing else
    __getattr__ = load_on_use(
        __name__, {name: home for home, names in _HOMES.items() for name in names}
    )
