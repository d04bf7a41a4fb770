"""How arguments are read: no abbreviations, values that begin with a minus sign."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import parsers
from radii.cli import build_parser, main
from radii.cli._options import EPS
from radii.errors import ExperimentError
from radii.problem import Domain
from radii.runs import SECONDS, Option

TIMEOUT = Option(name="timeout", form=SECONDS, help="")
AUDIT = ["audit", "r.csv", "--data", "digits", "--domain", "-1:1"]


def test_no_flag_can_be_shortened() -> None:
    assert all(not parser.allow_abbrev for parser in parsers(build_parser()))
    with pytest.raises(SystemExit):
        build_parser().parse_args(["run", "--net", "a.onnx"])


def test_networks_are_all_kept() -> None:
    several = ["--networks", "a.onnx", "b.onnx", "--network", "c.onnx", "--network", "d.onnx"]
    told = build_parser().parse_args([*AUDIT, *several])
    assert told.networks == [Path(f"{name}.onnx") for name in "abcd"]


@pytest.mark.parametrize("command", ["run", "init", "attack", "global", "metrics"])
@pytest.mark.parametrize(
    ("flag", "value"), [("domain", "-1:1"), ("mean", "-.5,-1"), ("mean", "-2")]
)
def test_values_may_begin_with_a_minus_sign(command: str, flag: str, value: str) -> None:
    given = ["--eps", "1"] if command == "metrics" else []
    told = build_parser(command).parse_args([command, *given, f"--{flag}", value, "--std", "1"])
    read = {"-1:1": Domain.parse("-1:1").key(), "-.5,-1": (-0.5, -1), "-2": (-2,)}[value]
    assert (told.domain.key() if flag == "domain" else told.mean) == read
    assert told.std == (1.0,)


def test_a_negative_grid_gets_its_own_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--network", "n.onnx", "--data", "digits", "--domain", "0:1", "--out", "out"]
    assert main(["run", *flags, "--grid", "-0.1:0.4:0.1"]) == 2
    assert "0 <= start < stop" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "value"), [("0.02", 0.02), ("8/255", 8 / 255), (" 1 / 4", 0.25), ("1e-3", 0.001)]
)
def test_numbers(text: str, value: float) -> None:
    assert EPS.parse(text) == value


@pytest.mark.parametrize(
    ("text", "value"), [("90", 90), ("1.5", 1.5), ("10m", 600), ("1h5s", 3605)]
)
def test_seconds(text: str, value: float) -> None:
    assert TIMEOUT.parse(text) == value


@pytest.mark.parametrize("text", ["", "many", "1/0", "1/2/3", "10 parsecs"])
def test_what_is_no_number(text: str) -> None:
    for option in (EPS, TIMEOUT):
        with pytest.raises(ExperimentError, match=rf"--{option.name} '{text}' (is not|must be) a"):
            option.parse(text)


ENSEMBLE = ["--network", "a", "--data", "digits", "--domain", "0:1"]
CYCLE = ["--data", "digits", "--test", "digits", "--arch", "a", "--require", "r", "--out", "o"]


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        (["run"], "timeout"),
        (["run"], "cpu-timeout"),
        (["verify"], "timeout"),
        (["global"], "timeout"),
        (["study", "tradeoff", "--out", "o"], "proof-timeout"),
        (["ensemble", "verify", *ENSEMBLE, "--eps", "8/255"], "timeout"),
        (["ensemble", "curve", *ENSEMBLE, "--grid", "mnist"], "budget"),
        (["cycle", *CYCLE, "--eps", "8/255"], "seconds"),
        (["cycle", *CYCLE], "timeout"),
    ],
)
def test_lengths_of_time_in_every_command(command: list[str], flag: str) -> None:
    told = build_parser().parse_args([*command, f"--{flag}", "10m"])
    assert getattr(told, flag.replace("-", "_")) == 600
    if "8/255" in command:
        assert told.eps == 8 / 255


@pytest.mark.parametrize("flag", ["search", "verifier", "k", "cuts", "timeout", "device", "tool"])
def test_attack_takes_the_flags_of_a_run_without_listing_those_of_proofs(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = build_parser().parse_args(["attack", f"--{flag}", "golden" if flag == "cuts" else "1"])
    assert getattr(told, flag) is not None
    with pytest.raises(SystemExit):
        build_parser().parse_args(["attack", "--help"])
    assert f"\n  --{flag} " not in capsys.readouterr().out


@pytest.mark.usefixtures("without_workers")
def test_attack_says_which_flags_change_nothing(
    linear_file: Path, points_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    what = ["--network", str(linear_file), "--data", str(points_file), "--domain", "0:1"]
    idle = ["--search", "binary", "--verifier", "milp", "--k", "2", "--timeout", "9"]
    assert main(["attack", *what, "--grid", "0.05:0.5:0.05", "--jobs", "1", "--json", *idle]) == 0
    told = capsys.readouterr()
    assert "--search, --verifier, --k changes nothing here" in told.err
    found = json.loads(told.out)["networks"][0]["instances"]
    assert [row["lower"] for row in found] == [0, 0, 0, 0]
    assert found[0]["upper"] == pytest.approx(0.1, abs=0.05)
