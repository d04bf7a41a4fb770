"""An executor whose seconds are of the processor: what else the machine does changes nothing."""

from __future__ import annotations

import math
from dataclasses import replace

from radii.execution import Inline, Task
from radii.verdicts import Result


class OnCpuTime(Inline):
    """Limits and durations are CPU seconds. An agenda beside it uses `time.process_time`."""

    def submit(self, task: Task) -> None:
        super().submit(replace(task, seconds=math.inf, cpu_seconds=task.seconds))

    def wait(self) -> tuple[Task, list[Result]]:
        task, results = super().wait()
        return task, [replace(result, seconds=result.cpu_seconds or 0.0) for result in results]
