"""The documentation tells the truth: its Python runs, its links resolve, its commands exist."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from radii.cli import build_parser

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
RUNNING = [
    ROOT / "README.md",
    *(
        ROOT / "docs" / f"{name}.md"
        for name in (
            "attacks",
            "bounds",
            "distributions",
            "ensembles",
            "figures",
            "global",
            "training",
            "verifiers",
        )
    ),
]

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def blocks(page: Path, *languages: str) -> list[str]:
    return [text for language, text in FENCE.findall(page.read_text()) if language in languages]


def by_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", RUNNING, ids=by_name)
def test_python_blocks_run(page: Path, tmp_path: Path) -> None:
    """All blocks of a page, one after the other, as a reader would try them."""
    code = "\n".join(blocks(page, "python"))
    assert code
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


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
