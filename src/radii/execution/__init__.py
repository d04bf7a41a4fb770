"""Execution: where and how tasks run. Executors load on use: a guarded call needs no torch."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "Agenda": "cases",
    "Case": "cases",
    "Cluster": "nodes",
    "Executor": "_base",
    "Inline": "inline",
    "LocalWorkers": "local",
    "RayWorkers": "cluster",
    "Request": "staff",
    "Staff": "staff",
    "Stopped": "guarding",
    "Task": "_base",
    "Toolbox": "_base",
    "drive": "scheduling",
    "guarded": "guarding",
}

__all__ = [
    "Agenda",
    "Case",
    "Cluster",
    "Executor",
    "Inline",
    "LocalWorkers",
    "RayWorkers",
    "Request",
    "Staff",
    "Stopped",
    "Task",
    "Toolbox",
    "drive",
    "guarded",
]

if TYPE_CHECKING:
    from radii.execution._base import Executor, Task, Toolbox
    from radii.execution.cases import Agenda, Case
    from radii.execution.cluster import RayWorkers
    from radii.execution.guarding import Stopped, guarded
    from radii.execution.inline import Inline
    from radii.execution.local import LocalWorkers
    from radii.execution.nodes import Cluster
    from radii.execution.scheduling import drive
    from radii.execution.staff import Request, Staff


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
