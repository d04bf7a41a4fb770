"""The documentation tells the truth: its Python runs, its links resolve, its commands exist."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from python_scripts import run_here
from radii.cli import build_parser

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
ELSEWHERE = {
    "docs/audit.md": "tests/cli/test_audit_command.py",
    "docs/extending.md": "tests/test_documentation.py",
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
from radii.queries import Query
from radii.testing._networks import instance_at
from radii.vnnlib import query_text
net = demo.load_network("mlp-standard")
query = Query(instance_at(net, radii.datasets.load("digits").images[0]), eps=0.01)
Path("property.vnnlib.gz").write_bytes(gzip.compress(query_text(query).encode()))
""",
}
"""What a page's Python takes as given: files of the reader, or results of the page's commands."""

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def blocks(page: Path, *languages: str) -> list[str]:
    return [text for language, text in FENCE.findall(page.read_text()) if language in languages]


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
def test_python_blocks_run(page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All blocks of a page, one after the other, as a reader would try them."""
    script = tmp_path / "page.py"
    script.write_text("\n".join([STAND_INS.get(by_name(page), ""), *blocks(page, "python")]))
    run_here(script, tmp_path, capsys)


def test_what_runs_elsewhere_does() -> None:
    for page, test in ELSEWHERE.items():
        assert Path(page).name in (ROOT / test).read_text()


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_python_blocks_name_what_exists(page: Path) -> None:
    for block in blocks(page, "python"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("radii"):
                names = ", ".join(alias.name for alias in node.names)
                exec(f"from {node.module} import {names}", {})


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_links_resolve(page: Path) -> None:
    text = FENCE.sub("", page.read_text())
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        linked = page.parent / name if name else page
        assert linked.exists(), f"{by_name(page)} links to {target}"
        if anchor and linked.suffix == ".md":
            assert anchor in anchors(linked), f"{by_name(page)} links to {target}"


def anchors(page: Path) -> set[str]:
    """The names under which a page's headings are linked to."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_shown_commands_parse(page: Path) -> None:
    """Every complete `radii ...` line of a code block is one that the command line takes."""
    for line in "\n".join(blocks(page, "", "sh", "console")).splitlines():
        command = re.split(r"\s{2,}|\s#", line.removeprefix("$ "))[0]
        is_command = command.startswith("radii ")
        is_template = re.search(r"[\[|<]|\.\.\.", re.sub(r"\[\d*:\d*\]", "", command))
        if is_command and not is_template:
            build_parser().parse_args(shlex.split(command)[1:])


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_scripts_are_scripts(page: Path) -> None:
    """Shell blocks are what bash reads, YAML and TOML blocks what their readers read."""
    for text in blocks(page, "sh", "bash"):
        done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    for text in blocks(page, "yaml"):
        yaml = pytest.importorskip("yaml")
        assert yaml.safe_load(text)
        for command in re.findall(r"radii [a-z]+ [^\n]*", text):
            build_parser().parse_args(shlex.split(command.split(" >> ")[0])[1:])
    for text in blocks(page, "toml"):
        assert tomllib.loads(text)


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_every_block_is_of_a_kind_that_is_checked(page: Path) -> None:
    """Text is shown output, or a picture of something; all else is run, parsed or read.

    The one diff, of a new flag, is applied by tests/experiments/test_fields.py.
    """
    kinds = {language for language, _ in FENCE.findall(page.read_text())}
    assert kinds <= {"", "python", "sh", "bash", "console", "diff", "text", "toml", "yaml"}


@pytest.mark.slow
def test_verifier_of_the_page_on_extending_passes_its_suite(tmp_path: Path) -> None:
    page = ROOT / "docs" / "extending.md"
    (tmp_path / "test_mine.py").write_text("\n".join(blocks(page, "python")))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
