"""Help in two lengths, commands in groups, and what was probably meant."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import parsers
from radii import demo
from radii.cli import COMMANDS, GROUPS, build_parser, main
from radii.cli._parser import Parser
from radii.errors import did_you_mean, with_suggestion

FIRST_SCREEN = 50
"""Lines of a terminal that is not small."""


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    try:
        code = main(list(words))
    except SystemExit as ended:
        code = int(ended.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def test_every_command_is_in_one_group(capsys: pytest.CaptureFixture[str]) -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert len(grouped) == len(set(grouped))
    assert set(COMMANDS) <= set(grouped)
    code, out, _ = told(capsys, "--help")
    assert code == 0
    places = [out.index(f"\n{group}:\n") for group in GROUPS]
    assert places == sorted(places)
    for name, purpose in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(purpose)}$", out, re.MULTILINE)


def lines_on_screen(text: str) -> int:
    """On a terminal of 80 columns, which breaks longer lines."""
    return sum(max(1, math.ceil(len(line) / 80)) for line in text.splitlines())


def test_the_first_screen_of_all_is_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert lines_on_screen(told(capsys, "--help")[1]) <= FIRST_SCREEN


@pytest.mark.parametrize("name", COMMANDS)
def test_the_first_screen_of_help_is_one(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, short, _ = told(capsys, name, "--help")
    assert code == 0
    assert lines_on_screen(short) <= FIRST_SCREEN
    assert "examples:" in short
    code, whole, _ = told(capsys, name, "--help-all")
    assert code == 0
    if short != whole:
        assert f"radii {name} --help-all has" in short
        assert len(short) < len(whole)


def test_what_is_first_exists() -> None:
    """But for `eps` of run, which is there in some versions only."""
    for parser in parsers(build_parser()):
        assert isinstance(parser, Parser)
        dests = {action.dest for action in parser._actions}
        assert set(parser.first) - {"eps"} <= dests, parser.prog


def test_the_whole_help_has_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = told(capsys, "run", "--help-all")
    for flag in ("--ray-gpus", "--cuts", "--tool", "--log-file"):
        assert flag in out
    _, out, _ = told(capsys, "run", "--help")
    assert "--network" in out and "--ray-gpus" not in out


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["rnu"], "'run'"),
        (["ensemble", "verfy"], "'verify'"),
        (["run", "--netwrok", "net.onnx"], "'--network'"),
        (["train", "--dta", "digits"], "'--data'"),
        (["compare", "results", "--eqs=0.1"], "'--eps'"),
        (["data", "get", "mnits"], "'mnist'"),
    ],
)
def test_did_you_mean(words: list[str], meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = told(capsys, *words)
    assert code == 2
    assert f"did you mean {meant}?" in err


@pytest.mark.parametrize(
    "words", [["run", "--netwrok", "a"], ["gate", "results"], ["show"], ["data", "get"]]
)
def test_a_wrong_command_line_is_answered_in_two_lines(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Not with every flag that there is, above which the reason scrolls away."""
    code, _, err = told(capsys, *words)
    assert code == 2
    usage, error = err.splitlines()
    assert usage.startswith(f"usage: radii {words[0]}") and ": error: " in error


@pytest.mark.parametrize("name", COMMANDS)
def test_descriptions_fit_a_terminal(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    usage, description, *_ = told(capsys, name, "--help")[1].split("\n\n")
    assert usage.startswith("usage: ")
    assert max(map(len, description.splitlines())) <= 80


def test_values_that_look_like_flags_are_values() -> None:
    args = build_parser("run").parse_args(["run", "--tool", "--a command {onnx}", "--domain=-1:1"])
    assert args.tool == "--a command {onnx}"


def test_a_misspelt_name_in_a_sentence() -> None:
    said = with_suggestion("search 'binry' is not one of native, binary, linear")
    assert said.endswith("linear; did you mean 'binary'?")
    assert with_suggestion("nothing to add") == "nothing to add"
    assert with_suggestion("a 'zzz' is not one of b, c") == "a 'zzz' is not one of b, c"
    assert did_you_mean("", ["a"]) == ""


REPORTED = """
import sys
from radii.cli import main
for words in sys.argv[1:]:
    assert main(words.split()) == 2, words
    assert "torch" not in sys.modules and "onnxruntime" not in sys.modules, words
"""

MISSING_FILES = {
    "run --network nett.onnx --data digits --domain 0:1 --out r": "did you mean 'net.onnx'?",
    "run --network net.onnx --data no.npz --domain 0:1 --out r": "data 'no.npz' is neither",
    "run missing.toml --out r": "missing.toml: cannot be read",
    "run --network net.onnx --data digits --out r": "domain is missing: say which inputs",
    "run there.toml --out r": "gone.onnx: cannot be read",
    "attack --network no.onnx --data digits --domain 0:1": "no.onnx: cannot be read",
    "global --network no.onnx --data digits --domain 0:1 --eps 0.1": "no.onnx: cannot be",
    "metrics --network no.onnx --data digits --domain 0:1 --eps 0.1": "no.onnx: cannot be",
    "init --yes --network no.onnx --data digits": "no.onnx: cannot be read",
}


def test_a_missing_file_is_reported_before_anything_heavy_loads(tmp_path: Path) -> None:
    """Torch alone takes longer to load than the second within which the answer must come. All
    commands run in one process: what one of them loads is still there for the next."""
    shutil.copy(demo.network_path("mlp-standard"), tmp_path / "net.onnx")
    (tmp_path / "there.toml").write_text('networks = ["gone.onnx"]\ndata = "digits"\ndomain="0:1"')
    command = [sys.executable, "-c", REPORTED, *MISSING_FILES]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for line, message in zip(done.stderr.splitlines(), MISSING_FILES.values(), strict=True):
        assert message in line
