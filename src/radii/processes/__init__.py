"""TODO radii.processes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "CANCEL_MESSAGE": "_subordinate",
    "Cancelled": "_subordinate",
    "Child": "_child",
    "DYING_SECONDS": "_guard",
    "ProgramEnd": "_programs",
    "WORK_GRACE_SECONDS": "_child",
    "READY_MESSAGE": "_subordinate",
    "Request": "_staff",
    "ProcessPool": "_staff",
    "StoppedCall": "_guard",
    "POLL_SECONDS": "_child",
    "check_room": "_memory",
    "cpu_seconds": "_cpu_time",
    "family_seconds": "_cpu_time",
    "call_guarded": "_guard",
    "is_out_of_memory": "_memory",
    "memory_share": "_machine",
    "obey": "_subordinate",
    "parse_size": "_memory",
    "resident_bytes": "_memory",
    "run_program": "_programs",
    "show_size": "_memory",
    "usable_cores": "_machine",
    "usable_workers": "_machine",
}

__all__ = [
    "CANCEL_MESSAGE",
    "DYING_SECONDS",
    "POLL_SECONDS",
    "READY_MESSAGE",
    "WORK_GRACE_SECONDS",
    "Cancelled",
    "Child",
    "ProcessPool",
    "ProgramEnd",
    "Request",
    "StoppedCall",
    "call_guarded",
    "check_room",
    "cpu_seconds",
    "family_seconds",
    "is_out_of_memory",
    "memory_share",
    "obey",
    "parse_size",
    "resident_bytes",
    "run_program",
    "show_size",
    "usable_cores",
    "usable_workers",
]

if TYPE_CHECKING:
    from radii.processes._child import POLL_SECONDS, WORK_GRACE_SECONDS, Child
    from radii.processes._cpu_time import cpu_seconds, family_seconds
    from radii.processes._guard import DYING_SECONDS, StoppedCall, call_guarded
    from radii.processes._machine import memory_share, usable_cores, usable_workers
    from radii.processes._memory import (
        check_room,
        is_out_of_memory,
        parse_size,
        resident_bytes,
        show_size,
    )
    from radii.processes._programs import ProgramEnd, run_program
    from radii.processes._staff import ProcessPool, Request
    from radii.processes._subordinate import CANCEL_MESSAGE, READY_MESSAGE, Cancelled, obey


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
