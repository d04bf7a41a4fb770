"""Sizes as people write them, and what processes hold."""

from __future__ import annotations

import os

import pytest

from radii.errors import InputError
from radii.problem import Verdict
from radii.processes import check_room, parse_size, resident_bytes, show_size
from radii.verifiers import Limits


@pytest.mark.parametrize(
    ("text", "size"),
    [("500M", 500 * 2**20), ("2g", 2**31), ("1.5 GiB", 3 * 2**29), ("4096", 4096), (7, 7)],
)
def test_sizes(text: object, size: int) -> None:
    assert parse_size(text) == size
    assert parse_size(show_size(size)) == size


@pytest.mark.parametrize("text", ["", "G", "0", "-1M", "nan", "1e9", "2X", None, True])
def test_not_a_size(text: object) -> None:
    with pytest.raises(InputError, match="such as 500M or 2G"):
        parse_size(text)


def test_what_a_process_holds() -> None:
    before = resident_bytes()
    assert before is not None
    assert abs((resident_bytes(os.getpid()) or 0) - before) < 2**20
    block = bytearray(b"1") * (64 * 2**20)
    assert (resident_bytes() or 0) - before > 60 * 2**20
    del block
    assert resident_bytes(2**22 + 1) is None


def test_limits_tell_that_memory_is_short() -> None:
    held = resident_bytes() or 0
    assert Limits(memory_bytes=held // 2).expired is Verdict.MEMOUT
    assert Limits(memory_bytes=held // 2).memory_left == 0
    assert Limits(memory_bytes=10 * held).expired is None
    assert 7 * held < Limits(memory_bytes=10 * held).memory_left < 9 * held
    assert Limits(0.0, memory_bytes=1).expired is Verdict.TIMEOUT
    check_room(None)
    check_room(10 * held)
    with pytest.raises(InputError, match="is less than the"):
        check_room(held // 2)


def test_a_part_of_the_work_has_the_same_limits() -> None:
    whole = Limits(50.0, memory_bytes=10**12, cancelled=lambda: True)
    part = whole.within(7.0)
    assert (part.memory_bytes, part.cancelled) == (whole.memory_bytes, whole.cancelled)
    assert part.remaining <= 7 < whole.remaining
    assert whole.within(99.0).remaining <= 50
