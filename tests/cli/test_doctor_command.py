"""`radii doctor` says what is here, and its exit code whether that is enough."""

from __future__ import annotations

import json

import pytest

from radii import testing as diagnosis
from radii.cli import main
from radii.testing import PackageStatus, SelfTestStep


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the self-test, which has tests of its own."""
    monkeypatch.setattr(diagnosis, "self_test", lambda told: [SelfTestStep("native", 1.0, "")])


def test_it_says_what_is_here(quick: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    told = capsys.readouterr().out
    for part in ("torch 2", "yes  digits", "yes  native", "core", "radii can do its job here."):
        assert part in told


def test_json(quick: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["is_able"] is True
    assert told["cores"] >= 1
    assert told["memory_bytes"] > 1 << 28
    assert told["self_test"] == [{"name": "native", "seconds": 1.0, "problem": ""}]
    assert {tool["name"]: tool["refusal"] for tool in told["verifiers"]}["milp"] is None


def test_a_failed_self_test(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = SelfTestStep("milp", 1.0, "the bracket misses the radius")

    def failing(told: object) -> list[SelfTestStep]:
        assert callable(told)
        told(wrong)
        return [wrong]

    monkeypatch.setattr(diagnosis, "self_test", failing)
    assert main(["doctor"]) == 1
    told = capsys.readouterr().out
    assert "FAILED  milp, 1.0 s: the bracket misses the radius" in told
    assert told.endswith("radii does not work as it should here.\n")


def test_a_missing_package(
    quick: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(diagnosis, "packages", lambda: [PackageStatus("highspy", None, None)])
    assert main(["doctor"]) == 1
    assert capsys.readouterr().out.endswith("here: pip install highspy\n")
