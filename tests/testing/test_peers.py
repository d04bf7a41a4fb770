"""How the comparison with peers judges, and what it takes as measured already."""

from __future__ import annotations

from pathlib import Path

import pytest

import radii.demo
from benchmarks.cpu_sides import CpuProcesses
from benchmarks.peer_instances import (
    ALPHA_BETA_CROWN,
    OPEN,
    SOURCES,
    UNSEEN,
    Peer,
    Source,
    Subject,
)
from benchmarks.peer_tool import asked_tool
from benchmarks.peers import measured, standing
from benchmarks.records import Log, Options, Record
from benchmarks.sides import Side
from radii.problem import Grid

GRID = Grid.parse("0.001:0.4:0.002")
DEMO = Path(radii.demo.__file__).parent


def _record(lower: float, upper: float | None, seconds: float = 60.0) -> Record:
    return Record(
        network="n",
        case="0",
        method="m",
        budget=60.0,
        lower=lower,
        upper=upper,
        seconds=seconds,
    )


@pytest.mark.parametrize(
    ("ours", "peer", "expected"),
    [
        (_record(0.083, 0.0845, 5.0), Peer(4.4), "behind"),
        (_record(0.083, 0.0845, 4.5), Peer(4.4), "equal"),
        (_record(0.083, 0.0845, 0.7), Peer(4.4), "ahead"),
        (_record(0.083, 0.0858), Peer(4.4), "behind"),
        (_record(0.083, 0.0845, 59.0), Peer(lower=0.083), "ahead"),
        (_record(0.083, 0.0845, 59.0), OPEN, "ahead"),
        (_record(0.031, 0.07), Peer(lower=0.031), "equal"),
        (_record(0.031, 0.07), Peer(lower=0.033), "behind"),
        (_record(0.031, None), Peer(lower=0.029), "ahead"),
        (_record(0.031, 0.07), OPEN, "both open"),
        (_record(0.031, 0.07), None, "-"),
    ],
)
def test_closed_beats_open_then_time_then_lower(
    ours: Record, peer: Peer | None, expected: str
) -> None:
    assert standing(ours, GRID, peer) == expected


def test_the_table_has_25_instances_with_a_peer_and_100_are_unseen() -> None:
    assert sum(peer is not None for peer in ALPHA_BETA_CROWN.values()) == 25
    unseen = [subject for subjects in UNSEEN.values() for subject in subjects]
    assert len(set(unseen)) == 100
    assert not set(unseen) & set(ALPHA_BETA_CROWN)


def _never(side: Side, subject: Subject, budget: float) -> Record:
    raise AssertionError("it is known already")


def test_what_was_measured_with_other_code_is_not_taken(tmp_path: Path) -> None:
    code = tmp_path / "src" / "radii"
    code.mkdir(parents=True)
    (code / "one.py").write_text("a = 1\n")
    side, subject = Side("radii", tmp_path), Subject("mnist-net", 51)
    log = Log()
    known = log.add(Record(network="mnist-net", case="51", method=side.method, budget=60.0))
    assert measured(side, subject, Options(log), _never) is known
    (code / "one.py").write_text("a = 2\n")
    assert log.find("mnist-net", 51, side.method, 60.0) is None


FAKE_TOOL = """
import sys
from pathlib import Path

config = Path(sys.argv[2]).read_text()
assert "pgd_order: skip" in config
place = Path(sys.argv[2]).parent
bounds = (place / "property.vnnlib").read_text()
print("Finished vnnlib processing in 0.1 seconds")
answer = "unsat" if "{proves}" in bounds.splitlines()[1] else "timeout"
(place / "result.txt").write_text(answer)
print("Result:", answer)
"""


@pytest.mark.parametrize(
    ("proves", "upper", "expected"),
    [
        ("within 0.03 ", 0.0312, "closed"),
        ("within 0.02 ", 0.0312, "0.02"),
        ("within 0.01 ", 0.0312, "0.01"),
        ("within 9 ", 0.0312, "0"),
        ("within 9 ", 0.0152, "open"),
    ],
)
def test_the_tool_is_asked_at_the_goal_then_around_what_radii_proved(
    proves: str, upper: float, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own program is a script that proves one eps."""
    (tmp_path / "complete_verifier").mkdir()
    script = FAKE_TOOL.replace("{proves}", proves)
    (tmp_path / "complete_verifier" / "abcrown.py").write_text(script)
    source = Source(str(DEMO), "digits:test", "0.01:0.05:0.01")
    monkeypatch.setitem(SOURCES, "mlp-standard", source)
    ours = _record(0.01, upper)
    found = asked_tool(tmp_path, Subject("mlp-standard", 0), ours, 60.0, Options(Log()))
    assert str(found).startswith(expected)


def test_a_checkout_is_asked_with_a_budget_in_cpu_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source(str(DEMO), "digits:test", "0.01:0.5:0.01")
    monkeypatch.setitem(SOURCES, "mlp-standard", source)
    side = Side("radii", DEMO.parents[2])
    with CpuProcesses() as processes:
        found = processes.ask(side, Subject("mlp-standard", 0), 5.0)
        with pytest.raises(RuntimeError, match="no-such-network"):
            processes.ask(side, Subject("no-such-network", 0), 5.0)
    assert found["correct"] and 0 < found["lower"] < found["upper"]
    assert 0 < found["cpu_seconds"] < 10
