"""Execution: where and how tasks run. Executors load on use: a guarded call needs no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from radii import load_on_use

_HOMES = {
    "Agenda": "_scheduling",
    "Case": "_scheduling",
    "Cluster": "_cluster",
    "SealedToolbox": "_base",
    "Executor": "_base",
    "Inline": "_base",
    "LocalWorkers": "_local",
    "RayWorkers": "_ray_workers",
    "Task": "_base",
    "Toolbox": "_base",
    "drive": "_scheduling",
}

WORKER_MODULES = ("torch", "onnxruntime", "radii.execution._local", "radii.verifiers")
"""What a local worker imports before it can work, about: nine tenths of the time to start one."""

__all__ = [
    "WORKER_MODULES",
    "Agenda",
    "Case",
    "Cluster",
    "Executor",
    "Inline",
    "LocalWorkers",
    "RayWorkers",
    "SealedToolbox",
    "Task",
    "Toolbox",
    "drive",
]

if TYPE_CHECKING:
    from radii.execution._base import Executor, Inline, SealedToolbox, Task, Toolbox
    from radii.execution._cluster import Cluster
    from radii.execution._local import LocalWorkers
    from radii.execution._ray_workers import RayWorkers
    from radii.execution._scheduling import Agenda, Case, drive


if not TYPE_CHECKING:  # type checkers see the imports above, and nothing else
    __getattr__ = load_on_use(__name__, _HOMES)
