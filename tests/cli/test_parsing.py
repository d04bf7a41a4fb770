"""How arguments are read: no abbreviations, values that begin with a minus sign."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest

from radii.cli import build_parser, main

AUDIT = ["audit", "r.csv", "--data", "digits", "--domain", "-1:1"]


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from parsers(child)


def test_no_flag_can_be_shortened() -> None:
    assert all(not parser.allow_abbrev for parser in parsers(build_parser()))
    with pytest.raises(SystemExit):
        build_parser().parse_args(["run", "--net", "a.onnx"])


def test_networks_are_all_kept() -> None:
    several = ["--networks", "a.onnx", "b.onnx", "--network", "c.onnx", "--network", "d.onnx"]
    told = build_parser().parse_args([*AUDIT, *several])
    assert told.networks == [Path(f"{name}.onnx") for name in "abcd"]


@pytest.mark.parametrize("command", ["run", "init", "attack", "global", "metrics"])
@pytest.mark.parametrize("value", ["-1:1", "-.5,-1", "-2"])
def test_values_may_begin_with_a_minus_sign(command: str, value: str) -> None:
    given = ["--eps", "1"] if command == "metrics" else []
    for flag in ("--domain", "--mean"):
        told = build_parser().parse_args([command, *given, flag, value, "--std", "1"])
        assert (getattr(told, flag[2:]), told.std) == (value, "1")


def test_a_negative_grid_gets_its_own_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--network", "n.onnx", "--data", "digits", "--domain", "0:1", "--out", "out"]
    assert main(["run", *flags, "--grid", "-0.1:0.4:0.1"]) == 2
    assert "0 <= start < stop" in capsys.readouterr().err
