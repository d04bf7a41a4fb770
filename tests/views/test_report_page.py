"""The page in a real browser: what it shows, how it answers, and that it asks for nothing."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_experiments import HOSTILE, ROBUST, STANDARD, write_experiment
from opened_pages import (
    BROWSER,
    CELLS,
    DESKTOP,
    PHONE,
    TWO_FRAMES,
    Opened,
    browser,
    open_page,
    sort_by,
    table,
)

from radii.statistics import Distribution, Run, Share
from radii.store import StoredSettings
from radii.views import make_payload, payload_of, write_report

__all__ = ["browser"]

pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium to open pages with")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("report")
    run = write_experiment(folder / "run", {"standard": STANDARD, HOSTILE: ROBUST})
    targeted = write_experiment(folder / "targeted", {"net": ROBUST[:3]}, targeted=True)
    tabular = write_experiment(folder / "tabular", {"net": STANDARD}, shape=(4,))
    made = {"run": [run], "targeted": [targeted], "tabular": [tabular]}
    for name, places in made.items():
        write_report(make_payload(places, title=HOSTILE), folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in made}


@pytest.fixture(scope="module")
def shared(browser: Any, files: dict[str, Path]) -> Iterator[Opened]:
    yield from open_page(browser, files["run"])


@pytest.fixture
def seen(shared: Opened) -> Iterator[Opened]:
    """For tests that change nothing but eps and open dialogs; a page takes a second to open."""
    shared.page.evaluate("document.getElementById('detail').close()")
    yield shared
    assert shared.wrong == []


@pytest.fixture
def opened(browser: Any, files: dict[str, Path]) -> Iterator[Opened]:
    yield from open_page(browser, files["run"])


def test_slider_moves_robust_accuracy_everywhere(seen: Opened) -> None:
    seen.eps(0.1)
    assert seen.texts("#accuracy .value") == ["16.7 %", "83.3–100.0 %"]
    assert "Within ε = 0.1" in seen.page.locator("#live").inner_text()
    before = table(seen, "per-class"), table(seen, "robust-accuracy")
    seen.eps(0.22)
    assert seen.texts("#accuracy .value") == ["0.0 %", "33.3 %"]
    after = table(seen, "per-class"), table(seen, "robust-accuracy")
    assert before[0] != after[0]
    assert [row[3:5] for row in after[1]] == [["0.0 %", "0.0 %"], ["33.3 %", "33.3 %"]]
    assert "33.3 %" in seen.texts("#live")[0]


def test_shares_are_those_of_distributions(seen: Opened, files: dict[str, Path]) -> None:
    measured = Distribution.from_store(files["run"].parent / "run")
    for eps in (0.0, 0.02, 0.05, 0.055, 0.06, 0.12, 0.15, 0.2, 0.205, 0.3):
        seen.page.locator("#eps-number").fill(str(eps))
        seen.page.locator("#eps-number").press("Enter")
        seen.page.evaluate("() => new Promise(requestAnimationFrame)")
        for place, part in enumerate(measured.by_network().values()):
            share = part.robust_accuracy(eps)
            row = table(seen, "robust-accuracy")[place]
            assert row[3:5] == [f"{end} %" for end in per_cent(share)], eps
            for line in table(seen, "per-class"):
                low, high = per_cent(part.robust_recall(int(line[0]), eps))
                assert line[2 + place] == (f"{low} %" if low == high else f"{low}–{high} %")


def per_cent(share: Share) -> tuple[str, str]:
    """Rounded outward where it is an interval, so that it stays true."""
    if share.proven == share.not_refuted:
        return f"{100 * share.proven:.1f}", f"{100 * share.proven:.1f}"
    low = math.floor(1000 * share.proven + 1e-9) / 10
    return f"{low:.1f}", f"{math.ceil(1000 * share.not_refuted - 1e-9) / 10:.1f}"


def test_slider_obeys_the_keyboard(seen: Opened) -> None:
    seen.eps(0.1)
    seen.page.locator("#eps").focus()
    seen.page.keyboard.press("ArrowRight")
    assert seen.page.locator("#eps-number").input_value() == "0.11"


def test_a_point_opens_the_input_and_its_counterexample(seen: Opened) -> None:
    seen.page.locator("#points .chart").scroll_into_view_if_needed()
    point = seen.page.locator("#points .scatterlayer .trace").first.locator("path.point").first
    point.wait_for(timeout=20_000)
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    seen.page.mouse.move(*middle)
    seen.page.locator("#points .hovertext").wait_for()
    seen.page.mouse.click(*middle)
    dialog = seen.page.locator("#detail")
    dialog.locator('canvas[data-picture="counterexample"]').wait_for()
    assert "Input 0, class 0" in dialog.inner_text()
    pixels = {
        kind: np.array(seen.page.evaluate(PIXELS, kind)).reshape(8, 8, 4)
        for kind in ("input", "counterexample", "difference")
    }
    change = np.abs(pixels["counterexample"][..., 0] - pixels["input"][..., 0])
    assert np.abs(change - 255 * 0.055).max() <= 1.5
    assert len(np.unique(pixels["difference"].reshape(-1, 4), axis=0)) == 2, "up and down"


def test_detail_tells_the_history(seen: Opened) -> None:
    seen.page.locator('[data-table="brackets"] tbody tr').nth(3).locator("button").click()
    dialog = seen.page.locator("#detail")
    dialog.locator("canvas").first.wait_for()
    told = table(seen, "history-3")
    assert [row[2] for row in told] == ["✗ not robust", "? timeout", "✓ robust"]
    assert [row[5] for row in told] == ["0.250", "60.000", "1.500"]
    assert told[1][1] == "Prove at 0.05"
    assert told[2][3] == "proven up to 0.02"
    assert "[0.0200, 0.0600)" in dialog.inner_text()
    others = dialog.locator(".other")
    assert others.count() == 2
    others.nth(1).click()
    assert HOSTILE in dialog.inner_text()
    seen.page.keyboard.press("ArrowRight")
    assert "Input 4" in dialog.inner_text()
    seen.page.keyboard.press("Escape")
    assert not dialog.is_visible()


def test_addresses_of_instances(browser: Any, files: dict[str, Path]) -> None:
    for page in open_page(browser, files["run"], at="#row-2"):
        dialog = page.page.locator("#detail")
        assert "Misclassified as it stands: class 2 is seen as 0." in dialog.inner_text()


def test_tables_sort_both_ways(opened: Opened) -> None:
    sort_by(opened, "brackets", "Proven")
    falling = [float(row[4]) for row in table(opened, "brackets")]
    assert falling == sorted(falling, reverse=True)
    sort_by(opened, "brackets", "Proven")
    assert [float(row[4]) for row in table(opened, "brackets")] == sorted(falling)
    head = opened.page.locator('[data-table="brackets"] th', has_text="Proven")
    assert head.get_attribute("aria-sort") == "ascending"


def test_filters(opened: Opened) -> None:
    opened.page.locator("#brackets select").nth(2).select_option("missing")
    assert [row[0] for row in table(opened, "brackets")] == ["3"]
    opened.page.locator("#brackets select").nth(2).select_option("all")
    opened.page.locator("#brackets select").nth(0).select_option("1")
    opened.page.locator("#brackets select").nth(1).select_option("2")
    assert [row[0] for row in table(opened, "brackets")] == ["2", "5"]


def test_csv_download(seen: Opened, files: dict[str, Path]) -> None:
    with seen.page.expect_download() as waiting:
        seen.page.locator('[data-table="brackets"] .csv').click()
    assert waiting.value.suggested_filename == "brackets.csv"
    rows = list(csv.DictReader(io.StringIO(Path(waiting.value.path()).read_text("utf-8"))))
    measured = Distribution.from_store(files["run"].parent / "run")
    assert [float(row["lower"]) for row in rows] == measured.lower.tolist()
    assert [float(row["upper"]) for row in rows] == measured.upper.tolist()
    assert [row["network"] for row in rows] == measured.network.tolist()


def test_disagreements_are_loud(seen: Opened) -> None:
    seen.page.evaluate("window.scrollTo(0, 0)")
    alarm = seen.page.locator("#disagreements")
    assert alarm.get_attribute("role") == "alert"
    assert "A claimed proof is wrong" in alarm.inner_text()
    assert "liar 0 claims a proof at eps 0.13" in alarm.inner_text()
    assert alarm.bounding_box()["y"] < DESKTOP["height"] / 2
    alarm.locator("button").click()
    assert "Input 5" in seen.page.locator("#detail").inner_text()


def test_names_are_text(seen: Opened) -> None:
    assert seen.page.locator("h1").inner_text() == HOSTILE
    assert HOSTILE in seen.texts("#accuracy .name")
    for name in ("curves", "points", "pairs", "classes"):
        seen.page.locator(f"#{name}").scroll_into_view_if_needed()
        seen.page.locator(f"#{name} .main-svg").first.wait_for(timeout=20_000)
    assert seen.page.locator("img").count() == 0
    assert seen.page.locator("main b").count() == 0


def test_per_target_view_moves_with_eps(browser: Any, files: dict[str, Path]) -> None:
    for opened in open_page(browser, files["targeted"]):
        opened.eps(0.21)
        opened.page.locator("#targets").scroll_into_view_if_needed()
        opened.page.evaluate(TWO_FRAMES)
        shown = opened.page.locator("#targets .matrix tbody tr").evaluate_all(CELLS)
        assert shown == [["0", "", "100", ""], ["1", "", "", ""], ["2", "100", "100", ""]]
        opened.eps(0.16)
        assert (
            opened.page.locator("#targets .matrix td[title]").evaluate_all(
                "cells => cells.filter(c => c.innerText).length"
            )
            == 1
        )
        assert len(table(opened, "per-target")) == 6
        assert opened.texts("#accuracy .value") == ["66.7 %"]


def test_features_are_shown_as_numbers(browser: Any, files: dict[str, Path]) -> None:
    for opened in open_page(browser, files["tabular"], at="#row-0"):
        opened.page.locator('[data-table="features-0"]').wait_for()
        rows = table(opened, "features-0")
        assert len(rows) == 4
        assert all(abs(float(row[3])) == pytest.approx(0.055, rel=1e-3) for row in rows)


def test_networks_can_be_hidden(opened: Opened) -> None:
    opened.page.locator("#curves").scroll_into_view_if_needed()
    lines = opened.page.locator("#curves .scatterlayer .trace")
    lines.first.wait_for(timeout=20_000)
    before = lines.count()
    opened.page.locator("#curves .chip").first.click()
    opened.page.wait_for_function(
        "before => document.querySelectorAll('#curves .scatterlayer .trace').length === before / 2",
        arg=before,
    )
    assert opened.page.locator("#points .chip").first.get_attribute("aria-pressed") == "false"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone(browser: Any, files: dict[str, Path], scheme: str) -> None:
    options: dict[str, Any] = {
        "viewport": PHONE,
        "color_scheme": scheme,
        "has_touch": True,
        "is_mobile": True,
    }
    for opened in open_page(browser, files["run"], **options):
        page = opened.page
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        page.wait_for_function("document.querySelectorAll('.main-svg').length >= 4")
        page.evaluate("window.dispatchEvent(new Event('afterprint'))")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        page.locator('[data-table="brackets"] tbody tr').first.locator("button").click()
        page.locator("#detail canvas").first.wait_for()
        assert page.evaluate("document.getElementById('detail').scrollWidth") <= PHONE["width"]
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (max(map(int, paper[4:-1].split(","))) < 60) == (scheme == "dark")


def test_theme_button(opened: Opened) -> None:
    before = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    opened.page.locator("#theme").click()
    assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") != before


@pytest.mark.slow
def test_ten_thousand_inputs_answer_the_slider_at_once(browser: Any, tmp_path: Path) -> None:
    inputs, networks = 10_000, 4
    rng = np.random.default_rng(5)
    parts = []
    for place in range(networks):
        radius = rng.lognormal(-3 + 0.2 * place, 0.5, inputs)
        lower, upper = np.floor(radius / 0.002) * 0.002, radius
        wrong = rng.random(inputs) < 0.05
        part = Distribution.from_arrays(
            np.where(wrong, 0, lower),
            np.where(wrong, 0, upper),
            network=f"network {place}",
            label=np.arange(inputs) % 10,
            witness_class=(np.arange(inputs) + 1) % 10,
            seconds=1.0,
        )
        parts.append(part)
    both = Distribution.union(parts)
    run = Run(tmp_path, both, StoredSettings(source="made up"))
    write_report(payload_of([run]), tmp_path / "large.html")
    for opened in open_page(browser, tmp_path / "large.html"):
        assert opened.page.locator("#brackets .pager").inner_text().find("of 40,000") > 0
        chart = opened.page.locator("#points .chart")
        chart.scroll_into_view_if_needed()
        opened.page.locator("#points .cloud").wait_for(timeout=60_000)
        times = opened.page.evaluate(MOVE_SLIDER)
        assert min(times) < 200, times  # the machine that runs tests may be busy with others
        opened.eps(0.06)
        shown = table(opened, "robust-accuracy")[0][3]
        assert shown == f"{per_cent(parts[0].robust_accuracy(0.06))[0]} %"
        chart.scroll_into_view_if_needed()
        box = opened.page.locator("#points .cloud").bounding_box()
        opened.page.mouse.click(box["x"] + box["width"] * 0.08, box["y"] + box["height"] * 0.1)
        opened.page.locator("#detail").wait_for()
        assert "network 0" in opened.page.locator("#detail").inner_text()


PIXELS = """kind => {
  const canvas = document.querySelector(`#detail canvas[data-picture=${kind}]`);
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  return [...data];
}"""

MOVE_SLIDER = """async () => {
  const slider = document.getElementById('eps');
  const times = [];
  for (let i = 1; i <= 9; i++) {
    const start = performance.now();
    slider.value = 0.02 * i;
    slider.dispatchEvent(new Event('input'));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    times.push(performance.now() - start);
  }
  return times;
}"""
