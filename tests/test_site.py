"""The documentation site builds strictly, holds every page, and needs nothing from elsewhere."""

from __future__ import annotations

import os
import re
import shutil
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


def test_it_has_the_colours_of_a_report(site: Path) -> None:
    """In light and in dark: every colour of the site's own sheet is one of the report's."""
    report = (ROOT / "src" / "radii" / "views" / "page" / "assets" / "page.css").read_text()
    own = (site / "stylesheets" / "radii.css").read_text()
    given = re.findall(r"--(\w+): (#\w+);", own)
    assert len(given) == 16
    for name, colour in given:
        assert f"--{name}: {colour};" in report, name
    assert "stylesheets/radii.css" in (site / "index.html").read_text()


def test_made_pages_show_what_they_are_made_from(site: Path) -> None:
    assert "radii ensemble curve" in (site / "commands.html").read_text()
    assert "robustness_distribution" in (site / "api.html").read_text()
    assert "median" in (site / "api" / "distributions.html").read_text()
    assert "replay_witness" in (site / "examples.html").read_text()
    notebook = (site / "notebooks" / "first-distribution.html").read_text()
    assert "(witnessed)" in notebook and "first-distribution-" in notebook


def test_the_reference_has_a_page_for_each_section(site: Path) -> None:
    """And the first of them lists all, by links that lead there."""
    sections = re.findall(r"^## (.*)$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
    start = (site / "api.html").read_text()
    for section in sections:
        page = f"api/{section.lower().replace(' ', '-')}.html"
        assert (site / page).is_file()
        assert f'href="{page}"' in start


def test_it_is_searched_from_a_disk(site: Path) -> None:
    """In a browser, on a page that was opened as a file, where no Worker can be started."""
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if chromium is None:
        pytest.skip("there is no Chromium to open pages with")
    asked: list[str] = []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "index.html").as_uri())
        page.keyboard.press("/")
        page.keyboard.type("Clopper")
        found = page.locator(".md-search-result__link").first
        found.wait_for(timeout=30_000)
        assert found.get_attribute("href")
        browser.close()
    assert all(url.startswith("file:") for url in asked)
