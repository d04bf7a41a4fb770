"""The live page in a real browser, beside real runs that are paused, killed and started again."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_runs import HOSTILE, Served, begin, broken, failed, instance, proven, serving

from radii.store import Store

playwright = pytest.importorskip(
    "playwright.sync_api", reason="the package playwright is not installed"
)
BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium to open pages with")

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
PATIENCE = 120_000
"""Milliseconds: the machine that runs tests may be busy with others."""

COUNT = 16
NAME = HOSTILE.replace("/", "")
RUN = """import sys, time
from radii.cli import _progress, main
_progress.ProgressBar.answered = lambda *_: time.sleep(0.4)  # so that there is something to see
sys.exit(main(sys.argv[1:]))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def open_live(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens pages, and fails on anything that one complains of; going away is announced."""
    wrong: list[str] = []
    contexts = []

    def dismiss(box: Any) -> None:
        wrong.append(f"dialog {box.message}")
        box.dismiss()

    def opening(served: Served, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": DESKTOP, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", dismiss)
        page.goto(served.server.address)
        return page

    yield opening
    for context in contexts:
        context.close()
    assert wrong == []


def done(page: Any) -> int:
    return int(page.locator(".run [role=progressbar]").get_attribute("aria-valuenow"))


def closed(page: Any) -> int:
    return int(page.locator(".run canvas").get_attribute("data-closed") or 0)


def wait_for(page: Any, state: str) -> None:
    page.locator(f'.run[data-state="{state}"]').wait_for()


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE / 1000
    while not holds():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.1)


def test_a_run_from_its_start_to_its_end(
    open_live: Callable[..., Any], linear_file: Path, tmp_path: Path
) -> None:
    """Progress moves, a bracket closes; paused, killed and run again, the page goes along."""
    network = linear_file.rename(tmp_path / f"{NAME}.onnx")
    points = np.random.default_rng(3).uniform(0.3, 0.7, (COUNT, 2)).astype(np.float32)
    np.savez(tmp_path / "points.npz", images=points, labels=points.argmax(axis=1))
    served_place, log = tmp_path / "served", tmp_path / "log"
    served_place.mkdir()
    command = [
        *(sys.executable, "-c", RUN, "run", "--network", str(network), "--jobs", "1"),
        *("--data", str(tmp_path / "points.npz"), "--domain", "0:1", "--verifier", "milp"),
        *("--grid", "0.001:0.3:0.001"),
        *("--out", str(served_place / NAME)),
    ]
    with serving(served_place) as served, log.open("w") as stream:
        page = open_live(served)
        page.locator("#loading", has_text="No experiment is in").wait_for()
        run = subprocess.Popen(command, stderr=stream, stdout=subprocess.DEVNULL)
        try:
            wait_for(page, "running")
            assert page.locator(".run h2").inner_text() == NAME
            page.wait_for_selector("html[data-ready]")
            start = done(page), closed(page)
            wait_until(lambda: done(page) > start[0] and closed(page) > start[1])
            page.locator(".run .pause", has_text="Pause").click()
            wait_for(page, "paused")
            assert "radii: paused" in log.read_text()
            held = done(page)
            assert held < COUNT, "it is not at its end"
        finally:
            run.kill()
            run.wait()
        wait_for(page, "stopped")
        assert "run it again to continue" in page.locator(".run .lead").first.inner_text()
        again = subprocess.Popen(command, stderr=stream, stdout=subprocess.DEVNULL)
        try:
            wait_for(page, "running")
            assert done(page) >= held, "nothing was lost"
            assert again.wait(PATIENCE / 1000) == 0
        finally:
            again.kill()
            again.wait()
        wait_for(page, "finished")
        assert done(page) == COUNT
        shown = page.locator("#accuracy .name")
        wait_until(lambda: shown.all_inner_texts() == [NAME])
        assert page.locator("img").count() == 0


def grow(place: Path, *answers: Any) -> None:
    with Store.create_or_open(place) as store:
        store.record(answers)


def test_what_is_chosen_stays_while_brackets_close(
    open_live: Callable[..., Any], tmp_path: Path
) -> None:
    made = begin(tmp_path / "run", name=NAME)
    grow(tmp_path / "run", broken(made[0], 0.105), proven(made[0], 0.1))
    with serving(tmp_path) as served:
        page = open_live(served)
        page.wait_for_selector("html[data-ready]")
        page.locator("#eps-number").fill("0.04")
        page.locator("#eps-number").press("Enter")
        page.locator('[data-table="brackets"] .sort', has_text="Counterexample").click()
        page.locator('[data-table="brackets"] .open').first.click()
        page.locator("#detail canvas[data-picture=input]").wait_for()
        first = page.locator("html").get_attribute("data-ready")
        grow(tmp_path / "run", broken(made[1], 0.2), proven(made[1], 0.19))
        wait_until(lambda: closed(page) == 2)
        time.sleep(1.5)
        assert page.locator("html").get_attribute("data-ready") == first, "nobody is disturbed"
        page.locator("#detail .close").click()
        wait_until(lambda: page.locator("html").get_attribute("data-ready") != first)
        assert page.locator("#eps-number").input_value() == "0.04"
        head = page.locator('[data-table="brackets"] th[aria-sort="descending"]')
        assert head.inner_text().startswith("Counterexample")
        page.locator('[data-table="brackets"] .open').nth(3).click()
        page.locator("#detail canvas[data-picture=counterexample]").wait_for()
        pixels = page.evaluate(PIXELS)
        wanted = 255 * (instance(0).input.ravel() + 0.105)
        assert max(abs(pixels[4 * i] - wanted[i]) for i in range(64)) < 1.6


def test_failures_and_disagreements_as_text(open_live: Callable[..., Any], tmp_path: Path) -> None:
    made = begin(tmp_path / "run", name=NAME)
    begin(tmp_path / NAME)
    with serving(tmp_path) as served:
        page = open_live(served, viewport=PHONE)
        page.locator(".all-runs label", has_text=NAME).wait_for()
        if not page.locator(".all-runs label", has_text="run").locator("input").is_checked():
            page.locator(".all-runs label", has_text="run").locator("input").check()
        page.locator('.run[aria-label="Run run"]').wait_for()
        grow(
            tmp_path / "run",
            *(broken(made[0], 0.1), proven(made[0], 0.2), failed(made[1], 0.1, HOSTILE)),
        )
        page.locator('.run[aria-label="Run run"] .alarms', has_text="claims a proof").wait_for()
        box = page.locator('.run[aria-label="Run run"] .failures')
        box.locator("summary").click()
        assert HOSTILE in box.inner_text()
        assert page.locator("img").count() == 0
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE["width"], "nothing is wider than the screen"


@pytest.mark.slow
def test_the_server_comes_back(open_live: Callable[..., Any], tmp_path: Path) -> None:
    made = begin(tmp_path / "run")
    grow(tmp_path / "run", broken(made[0], 0.105), proven(made[0], 0.1))
    with serving(tmp_path) as served:
        page = open_live(served)
        page.wait_for_selector("html[data-ready]")
        assert page.locator("#connection").inner_text() == ""
        port = served.server.server_port
    page.locator("#connection", has_text="radii serve does not answer").wait_for()
    assert page.locator("#accuracy .name").all_inner_texts() == ["net"], "what is shown stays"
    grow(tmp_path / "run", broken(made[1], 0.2), proven(made[1], 0.19))
    with serving(tmp_path, port=port):
        wait_until(lambda: closed(page) == 2)
        assert page.locator("#connection").inner_text() == ""


PIXELS = """() => {
  const canvas = document.querySelector("#detail canvas[data-picture=counterexample]");
  return [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data];
}"""
