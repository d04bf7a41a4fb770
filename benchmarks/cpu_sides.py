"""Checkouts of radii that are asked with budgets in CPU seconds, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.peer_instances import Subject
from benchmarks.sides import Side

PROGRAM = Path(__file__).with_name("cpu_measuring.py")


@dataclass(slots=True)
class CpuProcesses:
    """One process a side, started again for each network: memory is then that network's."""

    running: dict[Side, tuple[str, subprocess.Popen[str]]] = field(default_factory=dict)

    def ask(self, side: Side, subject: Subject, budget: float) -> dict[str, Any]:
        """What `cpu_measuring` says of an instance. A RuntimeError where it failed."""
        process = self._process(side, subject.network)
        assert process.stdin is not None and process.stdout is not None
        source = subject.source
        asked = {
            "network": str(subject.file),
            "data": f"{source.data}[{subject.image}:{subject.image + 1}]",
            "grid": source.grid,
            "mean": source.mean,
            "std": source.std,
            "budget": budget,
        }
        print(json.dumps(asked), file=process.stdin, flush=True)
        line = process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "the process has ended"}
        if "error" in answer:
            raise RuntimeError(f"{subject.name} by {side.checkout}: {answer['error']}")
        return answer

    def _process(self, side: Side, network: str) -> subprocess.Popen[str]:
        name, process = self.running.get(side, ("", None))
        if process is not None and name == network:
            return process
        if process is not None:
            process.kill()
            process.communicate()  # closes its pipes
        paths = str(side.checkout / "src")
        process = subprocess.Popen(
            [sys.executable, PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths},
        )
        self.running[side] = network, process
        return process

    def __enter__(self) -> CpuProcesses:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for _, process in self.running.values():
            process.kill()
            process.communicate()  # closes its pipes
