"""How many workers, and with how much memory: by cores and by the memory of the container."""

from __future__ import annotations

import pytest

from radii.processes import _usage as machine


@pytest.fixture
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(machine, "usable_cores", lambda: 8)
    monkeypatch.setattr(machine, "resident_bytes", lambda: 400 * 2**20)
    return monkeypatch


@pytest.mark.parametrize(
    ("limit", "workers"),
    [(64 * 2**30, 8), (2 * 2**30, 3), (500 * 2**20, 1)],
)
def test_workers_fit_into_the_memory(
    eight_cores: pytest.MonkeyPatch, limit: int, workers: int
) -> None:
    eight_cores.setattr(machine, "memory_limit", lambda: limit)
    assert machine.usable_workers() == workers


def test_workers_with_a_limit_of_their_own(eight_cores: pytest.MonkeyPatch) -> None:
    eight_cores.setattr(machine, "memory_limit", lambda: 10 * 2**30)
    assert machine.usable_workers(2 * 2**30) == 4


def test_a_worker_gets_its_share_unless_that_is_too_little(
    eight_cores: pytest.MonkeyPatch,
) -> None:
    eight_cores.setattr(machine, "memory_limit", lambda: 10 * 2**30)
    assert machine.memory_share(4) == int(0.9 * 10 * 2**30 / 4)
    assert machine.memory_share(100) is None
