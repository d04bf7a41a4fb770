"""The completion scripts, in the shells that are here."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import parsers
from radii import strategy
from radii.cli import COMMANDS, build_parser, main
from radii.cli._data import VIA
from radii.datasets import DataOrigin, catalogue, published_names
from radii.problem import Norm
from radii.runs import Experiment, options_of


@pytest.fixture
def script(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Path:
    shell = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"the shell {shell} is not here")
    assert main(["completion", shell]) == 0
    path = tmp_path / "script"
    path.write_text(capsys.readouterr().out)
    return path


def completed(script: Path, folder: Path, *words: str) -> list[str]:
    """What bash would offer for the last of the words."""
    code = (
        'source "$1"; shift; COMP_WORDS=(radii "$@"); COMP_CWORD=$#; compopt() { :; }; '
        "_shtab_radii; "
        "printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(
        ["bash", "-c", code, "bash", str(script), *words],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize("script", ["bash"], indirect=True)
def test_bash(script: Path, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "my results.toml").touch()

    def offered(*words: str) -> list[str]:
        return completed(script, folder, *words)

    assert offered("ser") == ["serve"]
    assert {"run", "show", "doctor", "init"} <= set(offered(""))
    assert offered("run", "--nor") == ["--norm"]
    assert offered("run", "--norm", "l") == ["linf", "l2", "l1"]
    assert offered("run", "my") == ["my results.toml"]
    assert offered("run", "--network", "my") == ["my results.toml"]
    assert offered("run", "--seed", "") == [], "a number is no file"
    assert offered("data", "ge") == ["get"]
    assert offered("data", "get", "--via", "") != []
    assert offered("data", "get", "--fo") == ["--force"]
    assert offered("completion", "z") == ["zsh"]


@pytest.mark.parametrize("script", ["bash", "zsh", "fish"], indirect=True)
def test_each_shell_can_read_its_script(script: Path, request: pytest.FixtureRequest) -> None:
    shell = request.node.callspec.params["script"]
    done = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_everything_is_in_it(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    for parser in parsers(build_parser()):
        assert parser.prog.split()[-1] in text
        for action in parser._actions:
            for name in action.option_strings if action.help != argparse.SUPPRESS else ():
                assert (name if shell != "fish" else name.lstrip("-")) in text


@pytest.mark.parametrize("script", ["fish"], indirect=True)
def test_fish(script: Path, tmp_path: Path) -> None:
    (tmp_path / "my results.toml").touch()

    def offered(line: str) -> list[str]:
        code = f"source {script}; complete -C '{line}'"
        done = subprocess.run(
            ["fish", "--no-config", "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
        )
        return sorted(one.split("\t")[0] for one in done.stdout.splitlines())

    assert offered("radii ser") == ["serve"]
    assert offered("radii run --norm l") == ["l1", "l2", "linf"]
    assert offered("radii run --network my") == ["my results.toml"]
    assert offered("radii run --seed ") == []
    assert offered("radii data ge") == ["get"]


@pytest.mark.parametrize("script", ["zsh"], indirect=True)
@pytest.mark.parametrize("read", ['source "$1"', 'eval "$(<$1)"'])
def test_zsh_takes_it_sourced_or_evaluated(script: Path, read: str) -> None:
    code = f"autoload -U compinit; compinit -u -D; {read}; print $_comps[radii]"
    done = subprocess.run(
        ["zsh", "-f", "-c", code, "zsh", str(script)], capture_output=True, text=True, check=True
    )
    assert (done.stdout.strip(), done.stderr) == ("_shtab_radii", "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_commands_are_described_by_their_purpose(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert COMMANDS["compare"] in text
    assert "put a set in place" in text


def test_values_are_those_that_are_known() -> None:
    assert set(options_of(Experiment)["norm"].values) == {norm.value for norm in Norm}
    assert set(options_of(Experiment)["search"].values) <= {kind.name for kind in strategy.SEARCHES}


def test_names_in_help_are_those_of_the_catalogue() -> None:
    assert tuple(known.name for known in catalogue()) == published_names()
    assert [via.value for via in DataOrigin] == list(VIA)


def test_help_loads_no_numpy() -> None:
    code = (
        "import sys; from radii.cli import build_parser; build_parser(only='').format_help(); "
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "numpy" not in loaded
    assert not loaded & {f"radii.cli._{name}" for name in COMMANDS}, "names and purposes suffice"


def test_every_command_has_a_module_and_its_module_alone_is_loaded() -> None:
    code = (
        "import sys; from radii.cli import build_parser; build_parser(only='global'); "
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = {f"radii.cli._{name}" for name in COMMANDS}
    assert modules & set(done.stdout.split()) == {"radii.cli._global"}


UNREADABLE = (
    "show missing",
    "compare missing",
    "gate missing --require median>=0.1",
    "export missing",
    "card missing",
)


def test_missing_results_are_reported_without_loading_what_shows_results(tmp_path: Path) -> None:
    """All commands in one process: what one of them loads is still there after the last."""
    code = (
        "import sys; from radii.cli import main; "
        "print(*[main(words.split()) for words in sys.argv[1:]]); print(*sys.modules)"
    )
    command = [sys.executable, "-c", code, *UNREADABLE]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    exit_codes, loaded = done.stdout.splitlines()
    assert exit_codes.split() == ["2"] * len(UNREADABLE)
    assert done.stderr.count("\n") == len(UNREADABLE)
    heavy = {"rich", "importlib.metadata", "radii.datasets._dataset", "pandas", "scipy"}
    assert heavy.isdisjoint(loaded.split())


def test_json_needs_no_tables(tmp_path: Path) -> None:
    rows = "network,input,label,predicted,lower,upper\na.onnx,0,1,1,0.1,0.2\n"
    (tmp_path / "brackets.csv").write_text(rows)
    words = ["show", "brackets.csv", "--json"]
    code = f"import sys; from radii.cli import main; assert main({words}) == 0; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert "a.onnx" in done.stdout
    assert "rich" not in done.stdout.split()
