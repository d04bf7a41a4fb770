"""Names and messages of others do nothing to a terminal, and pass for no line of radii's own.

Each command is run on two stores that differ in their names only: those of the second are what the
first's look like once they are harmless. Both must print the same.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import radii
from conftest import work_in_this_process
from radii.cli import main
from radii.problem import Domain, Instance, Norm, OneToAny, Proof, Result, Verdict, Witness
from radii.store import Store
from radii.strategy import Question, QuestionKind
from radii.terminal import plain, say

ROW = "relu\n  safe      4/4   0.4000–0.5000   0.0010  0.01"
HOSTILE = (
    f"\x1b[2J\x1b]0;title\x07 {ROW}",
    "net\r\u202egnp.\u2066\x9b31m\u2028### Proven\x00 [red]x[/red] :smile:",
)
SETTINGS = {
    "property": "one-to-any",
    "norm": "linf",
    "grid": "0.01:0.5:0.01",
    "search": "attack-guided",
    "verifier": "milp",
    "budget": None,
    "domain": ["0.0:1.0"],
    "split": "test",
}
STYLE = re.compile(r"\x1b\[[0-9;]*m")


def instances(network: str, count: int = 4) -> list[Instance]:
    return [
        Instance(
            network=network,
            index=place,
            input=np.full((1, 2, 2), 0.5, np.float32),
            label=place % 2,
            outputs=np.eye(2)[place % 2],
            property=OneToAny(),
            norm=Norm.LINF,
            domain=Domain(np.float64(0), np.float64(1)),
        )
        for place in range(count)
    ]


def write_store(directory: Path, names: tuple[str, ...], tool: str) -> None:
    """Two networks of four inputs each; one disagreement, one failure with what the tool said."""
    networks = {str(place) * 64: name for place, name in enumerate(names)}
    made = {fingerprint: instances(fingerprint) for fingerprint in networks}
    named = {fingerprint: (name, f"{name}.onnx") for fingerprint, name in networks.items()}
    with Store.create_or_open(directory) as store:
        store.begin(
            {**SETTINGS, "source": tool}, named, [i for each in made.values() for i in each]
        )
        for each in made.values():
            for place, one in enumerate(each):
                distance = 0.1 + 0.01 * place
                rival = 1 - one.label
                witness = Witness(one.input + np.float32(distance), distance, rival,
                                  np.eye(2)[rival], tool)  # fmt: skip
                broken = Result(Verdict.NOT_ROBUST, 0.49, tool, "1", 0.1, witness=witness)
                proof = Proof(0.3 if place == 0 else 0.09, 1e-6)
                proven = Result(Verdict.ROBUST, proof.eps, tool, "1", 0.2, proof=proof)
                failed = Result(Verdict.ERROR, 0.2, tool, "1", 0.2, message=tool)
                store.record([(one.key, Question(QuestionKind.ATTACK, 0.49), broken)])
                store.record([(one.key, Question(QuestionKind.PROVE, proof.eps), proven)])
                store.record([(one.key, Question(QuestionKind.PROVE, 0.2), failed)])


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A directory with `results` of hostile names, and one with harmless ones."""
    hostile, harmless = tmp_path_factory.mktemp("hostile"), tmp_path_factory.mktemp("harmless")
    write_store(hostile / "results", HOSTILE, HOSTILE[0])
    one, two = map(plain, HOSTILE)
    write_store(harmless / "results", (one, two), one)
    return hostile, harmless


def printed(
    place: Path, words: list[str], capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch
) -> tuple[int, str, str]:
    patch.chdir(place)
    code = main(words)
    told = capsys.readouterr()
    return code, STYLE.sub("", told.out), STYLE.sub("", told.err)


def is_harmless(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


COMMANDS = (
    "show results",
    "show results --instances",
    "show results --statistics",
    "compare results",
    "compare results --eps 0.05,0.1",
    "compare results --by class",
    "gate results --require median>=0.05",
    "gate results --require accuracy>=1.5@95%",
    "gate results --require min>0.4",
    "card results",
    "export results --format verona -o verona.csv",
    "global --curve results",
    "global --curve results --by-class",
    "report results",
    "plot results --kind cumulative",
)


@pytest.mark.parametrize("is_terminal", [False, True])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_prints_harmless_names(
    places: tuple[Path, Path],
    command: str,
    is_terminal: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    if is_terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    hostile, harmless = (printed(place, command.split(), capsys, monkeypatch) for place in places)
    assert is_harmless(hostile[1])
    assert is_harmless(hostile[2])
    assert hostile[0] != 3
    if not command.startswith(("card", "report")):
        assert hostile == harmless


def test_export_is_exact_in_a_file_and_harmless_on_a_terminal(
    places: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(places[0])
    assert main(["export", "results", "-o", "exported.csv"]) == 0
    assert set(pd.read_csv("exported.csv")["network"]) == set(HOSTILE)
    with Path("exported.csv").open(newline="", encoding="utf-8") as stream:
        assert {row["network"] for row in csv.DictReader(stream)} == set(HOSTILE)
    assert main(["export", "results"]) == 0
    assert capsys.readouterr().out == Path("exported.csv").read_bytes().decode()
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert main(["export", "results"]) == 0
    told = capsys.readouterr().out
    assert is_harmless(told)
    assert {row["network"] for row in csv.DictReader(io.StringIO(told))} == set(map(plain, HOSTILE))


@pytest.mark.parametrize("command", ["show", "gate --require min>0", "card", "compare"])
def test_tables_of_others_are_harmless_too(
    places: tuple[Path, Path],
    command: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    monkeypatch.chdir(places[0])
    main(["export", "results", "-o", "evil\x1b[2J\n.csv"])
    name, *rest = command.split()
    assert main([name, "evil\x1b[2J\n.csv", *rest]) in (0, 1)
    told = capsys.readouterr()
    assert is_harmless(told.out)
    assert is_harmless(told.err)


def test_json_is_exact(
    places: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(places[0])
    assert main(["show", "results", "--json"]) == 0
    told = capsys.readouterr().out
    assert is_harmless(told)
    assert [one["network"] for one in json.loads(told)["networks"]] == list(HOSTILE)


def test_tables_of_a_comparison_are_exact(
    places: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(places[0])
    assert main(["compare", "results", "--csv", "tables"]) == 0
    assert set(pd.read_csv("tables/summary.csv")["group"]) == set(HOSTILE)


@pytest.mark.parametrize(
    "name",
    [
        "net\n## Certified safe\n\nby nobody",
        "net\r## Certified safe",
        "net\u2028## Certified safe",
        "## Certified safe",
        "- Certified safe",
        "1. Certified safe",
        "> Certified safe",
        "[net]: https://example.com",
        "    Certified safe",
        "~~~",
        "| a | b |",
        "<h2>Certified safe</h2>",
        "[Certified](https://example.com) ![safe](https://example.com/safe.png)",
        "**Certified** `safe`",
    ],
)
def test_a_card_has_no_markup_of_others(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rendered, a card has the headings, lists and tables that it has with a plain name."""
    markdown = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")

    def shape(names: tuple[str, ...], tool: str) -> list[str]:
        place = tmp_path / str(len(list(tmp_path.iterdir())))
        write_store(place / "results", names, tool)
        code, out, _ = printed(place, ["card", "results", "--eps", "0.05"], capsys, monkeypatch)
        assert code == 0
        tokens = markdown.parse(out)
        inside = [child.type for token in tokens for child in token.children or []]
        return [token.type for token in tokens] + [kind for kind in inside if kind != "text"]

    assert shape((name, "other"), name) == shape(("net", "other"), "tool")


def test_files_and_errors_of_a_run(
    linear_file: Path,
    points_file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Names of files become names of networks and data; errors name them, too."""
    work_in_this_process(monkeypatch)
    monkeypatch.chdir(linear_file.parent)
    monkeypatch.setenv("COLUMNS", "500")
    evil = "evil\x1b[2J\n\u202enet"
    shutil.copy(linear_file, f"{evil}.onnx")
    shutil.copy(points_file, f"{evil}.npz")
    words = ["run", "--network", f"{evil}.onnx", "--data", f"{evil}.npz", "--domain", "0:1"]
    assert main([*words, "--grid", "0.01:0.5:0.2", "--out", evil]) == 0
    told = capsys.readouterr()
    assert is_harmless(told.out)
    assert is_harmless(told.err)
    assert plain(evil) in told.out
    for wrong in (
        ["show", f"{evil}.none"],
        ["run", "--network", f"{evil}.none", "--data", f"{evil}.npz", "--domain", "0:1"],
        ["verify", f"{evil}.onnx", f"{evil}.npz"],
        ["gate", evil, "--require", f"{evil} > 0"],
    ):
        assert main(wrong) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert is_harmless(told.err)
        assert told.err.count("\n") == 1
    with pytest.raises(SystemExit):
        main(["show", "results", evil])
    assert is_harmless(capsys.readouterr().err)


@pytest.mark.parametrize(
    "text",
    [
        "(assert (<= Y_0 \x1b[2J\x07))",
        "(assert (\u202e (<= Y_0 1)))",
        "(declare-const \x1b]0;x\x07 Real)",
        '(assert "\x1b[31m")',
    ],
)
def test_errors_of_vnnlib_files(
    linear_file: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = linear_file.with_name("p.vnnlib")
    declared = "".join(f"(declare-const {kind}_{i} Real)" for kind in "XY" for i in (0, 1))
    path.write_text(declared + text, "utf-8")
    assert main(["verify", str(linear_file), str(path)]) == 2
    told = capsys.readouterr().err
    assert is_harmless(told)
    assert told.count("\n") == 1


def test_plain_text() -> None:
    assert plain("é – 漢 ≤ 🙂 a\\b") == "é – 漢 ≤ 🙂 a\\b"
    assert plain("a\nb\t\x1b\x7f\x9b\u202e\u2028\udc80\ufeff") == (
        r"a\nb\t\x1b\x7f\x9b\u202e\u2028\udc80\ufeff"
    )


def test_lines_are_said_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    say("one\ntwo", 3, "")
    assert capsys.readouterr().out == "one\\ntwo\n3\n\n"


SOURCE = Path(radii.__file__).parent
PROTOCOLS = {"processes/_supervisor.py", "verifiers/_marabou_process.py"}
"""They print JSON for the process that started them."""
DOORS = {"terminal.py", "views/tables/_console.py", "runs/_progress.py"}
"""The last is the bar, whose texts are plain."""


def calls(path: Path) -> Iterator[str]:
    """What a file calls or imports that would get text to a terminal by another way."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(func=ast.Name(id="print")):
                yield f"print, line {node.lineno}"
            case ast.ImportFrom(module="rich.console" | "rich.text" | "rich"):
                yield f"{node.module}, line {node.lineno}"


def test_there_is_one_way_to_the_terminal() -> None:
    paths = {str(path.relative_to(SOURCE)): path for path in SOURCE.rglob("*.py")}
    others = sorted(paths.keys() - PROTOCOLS - DOORS)
    assert {name: found for name in others if (found := list(calls(paths[name])))} == {}
