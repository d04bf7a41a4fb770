"""Pages in a real browser, and everything they must not do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip(
    "playwright.sync_api", reason="the package playwright is not installed"
)
BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}

RECORD_ASKING = """window.asked = [];
for (const name of ['open', 'fetch', 'XMLHttpRequest', 'WebSocket', 'EventSource', 'Worker']) {
  window[name] = function (...told) { window.asked.push(`${name} ${told[0]}`); };
}
navigator.sendBeacon = (...told) => { window.asked.push(`beacon ${told[0]}`); };
window.print = () => {};"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield started
        started.close()


@dataclass
class Opened:
    """A page, and everything it must not have done."""

    page: Any
    wrong: list[str] = field(default_factory=list)

    def hear(self, said: Any) -> None:
        if said.type in ("error", "warning"):
            self.wrong.append(said.text)

    def eps(self, value: float) -> None:
        self.page.evaluate(
            """value => { const slider = document.getElementById('eps');
            slider.value = value; slider.dispatchEvent(new Event('input')); }""",
            value,
        )
        self.page.evaluate("() => new Promise(requestAnimationFrame)")

    def texts(self, selector: str) -> list[str]:
        found = self.page.locator(selector).all_inner_texts()
        return [text.strip().replace("\xa0", " ") for text in found]


def open_page(browser: Any, path: Path, *, at: str = "", **options: Any) -> Iterator[Opened]:
    """Every request but the file itself is blocked, and every complaint is recorded.

    So is every call of a function that could ask the network, even where a policy stops it.
    """
    context = browser.new_context(**{"viewport": DESKTOP, **options})
    page = context.new_page()
    found = Opened(page)
    address = path.resolve().as_uri()

    def decide(route: Any) -> None:
        if route.request.url.split("#")[0] == address:
            route.continue_()
        else:
            found.wrong.append(f"request for {route.request.url}")
            route.abort()

    def dismiss(box: Any) -> None:
        found.wrong.append(f"dialog {box.message}")
        box.dismiss()

    context.add_init_script(RECORD_ASKING)
    context.route(lambda url: not url.startswith(("data:", "blob:")), decide)
    page.on("console", found.hear)
    page.on("pageerror", lambda error: found.wrong.append(str(error)))
    page.on("dialog", dismiss)
    context.on("page", lambda other: found.wrong.append(f"a window for {other.url}"))
    page.goto(address + at)
    page.wait_for_selector("html[data-ready]", timeout=60_000)
    yield found
    found.wrong += page.evaluate("window.asked")
    context.close()
    assert found.wrong == []


def sort_by(opened: Opened, name: str, title: str) -> None:
    opened.page.locator(f'[data-table="{name}"] th button', has_text=title).first.click()


def table(opened: Opened, name: str) -> list[list[str]]:
    """What a table shows once it is on the screen; off it, it need not follow the slider."""
    place = opened.page.locator(f'[data-table="{name}"]')
    place.scroll_into_view_if_needed()
    opened.page.evaluate(TWO_FRAMES)
    cells: list[list[str]] = place.locator("tbody tr").evaluate_all(CELLS)
    return cells


CELLS = """rows => rows.map((row) => [...row.cells].map((cell) =>
  cell.innerText.trim().replaceAll('\\u00a0', ' ')))"""

TWO_FRAMES = """() => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"""
