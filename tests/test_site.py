"""The documentation site builds strictly, holds every page, and needs nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
REMOTE = re.compile(
    r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?(?:https?:)?//|"""
    r"""<link[^>]*rel=["']?(?:stylesheet|preconnect|preload|icon)[^>]*href=["']?(?:https?:)?//"""
)
"""What a browser would fetch by itself; links that a reader may follow are not among it."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def test_every_page_is_there(site: Path) -> None:
    docs = ROOT / "docs"
    written = {page.relative_to(docs).with_suffix(".html") for page in docs.rglob("*.md")}
    notebooks = {page.relative_to(docs).with_suffix(".html") for page in docs.rglob("*.ipynb")}
    made = {Path(f"{name}.html") for name in ("changelog", "contributing", "commands", "examples")}
    there = {page.relative_to(site) for page in site.rglob("*.html")}
    assert written | notebooks | made <= there


def test_it_fetches_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not REMOTE.search(page.read_text()), page
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(?:https?:)?//", style.read_text()), style


def test_made_pages_show_what_they_are_made_from(site: Path) -> None:
    assert "radii ensemble curve" in (site / "commands.html").read_text()
    assert "robustness_distribution" in (site / "api.html").read_text()
    assert "replay_witness" in (site / "examples.html").read_text()
    notebook = (site / "notebooks" / "first-distribution.html").read_text()
    assert "(witnessed)" in notebook and "first-distribution-" in notebook
