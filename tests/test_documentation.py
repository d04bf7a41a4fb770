"""The documentation tells the truth: its Python runs, its links resolve, its commands exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from python_scripts import run_script
from radii.cli import build_parser

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
ELSEWHERE = {
    "docs/audit.md": "tests/cli/test_audit_command.py",
    "docs/tutorial.md": "tests/test_tutorial.py",
}
"""Pages whose Python other tests run: with arguments, with their commands, or as tests."""

SLOW = {"docs/cycle.md"}

DIGITS = """
import radii, shutil
from radii import demo
shutil.copy(demo.network_path("mlp-standard"), "net.onnx")
"""

STAND_INS = {
    "docs/convert.md": """
import warnings
with warnings.catch_warnings():  # foolbox's own, on import
    warnings.simplefilter("ignore")
    import foolbox
""",
    "docs/networks.md": """
import radii
from pathlib import Path
from torch import nn
linear = nn.Sequential(nn.Flatten(), nn.Linear(3072, 10))
given = radii.from_torch(linear, input_shape=(3, 32, 32), domain=(0, 1))
Path("net.onnx").write_bytes(given.onnx_bytes)
""",
    "docs/search.md": DIGITS
    + """
few = radii.datasets.load("digits").first(1)
net = demo.load_network("mlp-standard")
radii.robustness_distribution(net, few, grid="0.1:0.3:0.1", out="results")
""",
    "docs/vnnlib.md": DIGITS
    + """
import gzip
from pathlib import Path
from radii.problem import Query
from radii.testing._networks import instance_at
from radii.vnnlib import query_text
net = demo.load_network("mlp-standard")
query = Query(instance_at(net, radii.datasets.load("digits").images[0]), eps=0.01)
Path("property.vnnlib.gz").write_bytes(gzip.compress(query_text(query).encode()))
""",
}
"""What a page's Python takes as given: files of the reader, or results of the page's commands."""

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^```python\n(?:(?!^```)[^\n]*\n)*```\n+```text\n(.*?)^```$", re.M | re.S)
"""What stands right behind Python is what that prints."""
ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)]) |\s*\|.*\|\s*$")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def blocks_of(text: str, *languages: str) -> list[str]:
    return [block for language, block in FENCE.findall(text) if language in languages]


def blocks(page: Path, *languages: str) -> list[str]:
    return blocks_of(page.read_text(), *languages)


def by_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def running() -> list[Any]:
    """All pages with Python, but for those that are run elsewhere."""
    return [
        pytest.param(
            page, id=by_name(page), marks=[pytest.mark.slow] if by_name(page) in SLOW else []
        )
        for page in PAGES
        if blocks(page, "python") and by_name(page) not in ELSEWHERE
    ]


@pytest.mark.parametrize("page", running())
def test_python_blocks_run(page: Path, tmp_path: Path) -> None:
    """All blocks of a page, one after the other, as a script."""
    script = tmp_path / "page.py"
    script.write_text("\n".join([STAND_INS.get(by_name(page), ""), *blocks(page, "python")]))
    printed = run_script(script, tmp_path)
    for shown in SHOWN.findall(page.read_text()):
        assert shown in printed


def test_what_runs_elsewhere_does() -> None:
    for page, test in ELSEWHERE.items():
        assert Path(page).name in (ROOT / test).read_text()


def test_links_resolve() -> None:
    lost = []
    for page in PAGES:
        for target in LINK.findall(FENCE.sub("", page.read_text())):
            name, _, anchor = target.partition("#")
            linked = page.parent / name if name else page
            if re.match(r"[a-z]+:", target):
                continue
            is_lost = not linked.exists() or (
                anchor and linked.suffix == ".md" and anchor not in anchors(linked)
            )
            lost += [f"{by_name(page)}: {target}"] if is_lost else []
    assert not lost, "\n".join(["", *lost])


@cache
def anchors(page: Path) -> set[str]:
    """The names under which a page's headings are linked to."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_lists_and_tables_are_rendered_as_such() -> None:
    """Markdown takes a list without a blank line before it as part of the paragraph."""
    markdown = pytest.importorskip("markdown")
    extensions = ["tables", "admonition", "attr_list", "toc", "pymdownx.superfences"]
    found = []
    for page in PAGES:
        text = markdown.markdown(FENCE.sub("", page.read_text()), extensions=extensions)
        for paragraph in re.findall(r"<(?:p|li)>(.*?)</(?:p|li)>", text, re.DOTALL):
            lines = paragraph.splitlines()[1:]
            found += [f"{by_name(page)}: {line}" for line in lines if ITEM.match(line)]
    assert not found, "\n".join(["", *found])


def test_shown_commands_parse(capsys: pytest.CaptureFixture[str]) -> None:
    """Every complete `radii ...` line of a code block is one that the command line takes."""
    parser, refused = build_parser(), []
    for page in PAGES:
        for command in commands_of(page):
            try:
                parser.parse_args(shlex.split(command)[1:])
            except SystemExit:
                refused.append(f"{by_name(page)}: {command}: {capsys.readouterr().err}")
    assert not refused, "\n".join(["", *refused])


def commands_of(page: Path) -> Iterator[str]:
    for line in "\n".join(blocks(page, "", "sh", "console")).splitlines():
        command = re.split(r"\s{2,}|\s#", line.removeprefix("$ "))[0]
        is_template = re.search(r"[\[|<]|\.\.\.", re.sub(r"\[\d*:\d*\]", "", command))
        if command.startswith("radii ") and not is_template:
            yield command
    for text in blocks(page, "yaml"):
        for command in re.findall(r"radii [a-z]+ [^\n]*", text):
            yield command.split(" >> ")[0]


def test_blocks_are_what_they_say() -> None:
    """Shell blocks are what bash reads, YAML and TOML blocks what their readers read. Text is shown
    output, or a picture of something. The one diff is applied by tests/runs/test_fields.py.
    """
    shell = []
    for page in PAGES:
        kinds = {language for language, _ in FENCE.findall(page.read_text())}
        known = {"", "python", "sh", "bash", "console", "diff", "text", "toml", "yaml"}
        assert kinds <= known, by_name(page)
        shell += blocks(page, "sh", "bash")
        for text in blocks(page, "toml"):
            assert tomllib.loads(text), by_name(page)
        for text in blocks(page, "yaml"):
            assert pytest.importorskip("yaml").safe_load(text), by_name(page)
    script = "\n".join(f"block{place}() {{\n{text}\n}}" for place, text in enumerate(shell))
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_verifier_of_the_page_on_extending_passes_its_suite(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "extending.md").read_text()
    section = text[text.index("## A verifier\n") : text.index("## A data set\n")]
    (tmp_path / "test_mine.py").write_text("\n".join(blocks_of(section, "python")))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
