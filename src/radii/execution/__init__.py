"""Execution: where and how tasks run."""

from __future__ import annotations

from radii.execution._base import Executor, Task, Toolbox
from radii.execution.inline import Inline
from radii.execution.local import LocalWorkers
from radii.execution.scheduling import Case, drive

__all__ = ["Case", "Executor", "Inline", "LocalWorkers", "Task", "Toolbox", "drive"]
