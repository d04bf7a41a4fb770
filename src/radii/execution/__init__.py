"""Execution: where and how tasks run. Executors load on use: a guarded call needs no torch."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "Agenda": "_scheduling",
    "Case": "_scheduling",
    "Cluster": "_cluster",
    "SealedToolbox": "_base",
    "Executor": "_base",
    "Inline": "_inline",
    "LocalWorkers": "_local",
    "RayWorkers": "_cluster",
    "PartialResults": "_base",
    "Task": "_base",
    "Toolbox": "_base",
    "drive": "_scheduling",
}

__all__ = [
    "Agenda",
    "Case",
    "Cluster",
    "Executor",
    "Inline",
    "LocalWorkers",
    "PartialResults",
    "RayWorkers",
    "SealedToolbox",
    "Task",
    "Toolbox",
    "drive",
]

if TYPE_CHECKING:
    from radii.execution._base import Executor, PartialResults, SealedToolbox, Task, Toolbox
    from radii.execution._cluster import Cluster, RayWorkers
    from radii.execution._inline import Inline
    from radii.execution._local import LocalWorkers
    from radii.execution._scheduling import Agenda, Case, drive


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
