"""Services for children of tests, in a module that loads nothing heavy: a child imports it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from radii.processes import Allowance, Child, Line, Message, Service, StoppedCall, watch

START = Allowance(120.0)

ENVIRONMENT = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
"""With it a child finds this module."""


def make_slowly(seconds: float) -> Callable[..., Any]:
    """A service whose requests are expressions, in terms of `line`."""
    time.sleep(seconds)
    return evaluate


def evaluate(line: Line, expression: str) -> Any:
    return eval(expression, {"line": line, "time": time, "os": os, "wait_for_cancel": wait_for})


def wait_for(line: Line) -> str:
    while not line.is_cancelled():
        time.sleep(0.01)
    return "stopped by itself"


def start(seconds: float = 0.0, *, is_counting: bool = False) -> Child:
    """A child that takes so long to load."""
    service = Service(make_slowly, (seconds,), has_line=True)
    return Child.start(service, START, ENVIRONMENT, is_counting=is_counting)


def next_event(child: Child) -> Message | StoppedCall:
    while True:
        for _, event in watch([child], 0.05):
            return event
