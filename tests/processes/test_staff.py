"""Processes that answer requests: values, failures and limits."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest

from conftest import BUSY_SECONDS
from radii.errors import InputError
from radii.processes import Ending, ProcessPool, Request, StoppedCall


def request(expression: str, seconds: float = 60.0) -> Request:
    """Evaluated by a process that holds `eval`."""
    return Request((expression,), seconds)


def test_answers_limits_and_deaths() -> None:
    requests = [
        request("3 + 4"),
        request("1 // 0"),
        request("__import__('os')._exit(7)"),
        request("5 + 6"),
    ]
    with ProcessPool(partial, eval, jobs=1) as pool:
        answers = list(pool.answers(requests))
        assert [request for request, _ in answers] == requests
        assert answers[0][1] == 7
        assert answers[1][1].ending is Ending.FAILED
        assert "ZeroDivisionError" in answers[1][1].message
        assert answers[2][1] == StoppedCall(Ending.FAILED, "the process died (exit code 7)")
        assert answers[3][1] == 11
        process = request("__import__('os').getpid()")
        first, again = (answer for _, answer in pool.answers([process, process]))
        assert first == again  # the same process: nothing is loaded twice
        started = time.monotonic()
        ((_, stopped),) = pool.answers([request("__import__('time').sleep(60)", seconds=0.2)])
        assert stopped.ending is Ending.TIME_LIMIT
        assert time.monotonic() - started < BUSY_SECONDS


def test_an_input_error_comes_through() -> None:
    refusal = "__import__('radii.datasets', fromlist=['Spec']).Spec.parse('[0:3]')"
    with (
        ProcessPool(partial, eval, jobs=1) as pool,
        pytest.raises(InputError, match="names no data set"),
    ):
        list(pool.answers([request(refusal)]))


def test_a_request_whose_process_is_killed_is_tried_once_more(tmp_path: Path) -> None:
    """Each try leaves a file; the first process is killed, and with `always` every one."""
    tried = "[__import__('tempfile').mkstemp(dir={0!r}), len(__import__('os').listdir({0!r}))][1]"
    killed = "__import__('os').kill(__import__('os').getpid(), 9)"
    for name, condition, last in (("once", "== 1", 2), ("always", "> 0", None)):
        place = tmp_path / name
        place.mkdir()
        expression = f"(lambda n: {killed} if n {condition} else n)({tried.format(str(place))})"
        with ProcessPool(partial, eval, jobs=1) as pool:
            ((_, answer),) = pool.answers([request(expression)])
        expected = StoppedCall(Ending.LOST, "the process died (signal 9)") if last is None else last
        assert answer == expected
        assert len(list(place.iterdir())) == 2
