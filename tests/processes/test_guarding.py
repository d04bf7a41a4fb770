"""Calls in a process of their own: values, faults, and limits that hold whatever is called."""

from __future__ import annotations

import math
import os
import time

import pytest

from conftest import BUSY_SECONDS
from misbehaving import refuse
from radii.errors import InputError, RadiiError
from radii.processes import Ending, StoppedCall, call_guarded


def test_a_value_comes_back() -> None:
    assert call_guarded(math.hypot, 3, 4) == 5.0


def test_faults_keep_their_words() -> None:
    with pytest.raises(InputError, match="nothing is good enough"):
        call_guarded(refuse)
    with pytest.raises(RadiiError, match="ZeroDivisionError"):
        call_guarded(divmod, 1, 0)


def test_a_dead_process_is_an_error() -> None:
    stopped = call_guarded(os._exit, 7)
    assert isinstance(stopped, StoppedCall)
    assert stopped.ending is Ending.FAILED
    assert "exit code 7" in stopped.message


@pytest.mark.parametrize("seconds", [0.0, 2.0])
def test_a_hang_ends_at_its_limit(seconds: float) -> None:
    until = time.monotonic() + seconds
    stopped = call_guarded(time.sleep, 3600, until=until)
    assert isinstance(stopped, StoppedCall)
    assert stopped.ending is Ending.TIME_LIMIT
    assert 0 <= time.monotonic() - until < BUSY_SECONDS


def test_hoarding_ends_at_the_memory_limit() -> None:
    block = "(bytearray(b'1') * 2**24, __import__('time').sleep(0.02))"
    hoard = f"[{block} for _ in iter(int, 1)]"  # without end
    stopped = call_guarded(eval, hoard, memory_bytes=300 * 2**20, until=time.monotonic() + 60)
    assert isinstance(stopped, StoppedCall)
    assert stopped.ending is Ending.MEMORY_LIMIT
