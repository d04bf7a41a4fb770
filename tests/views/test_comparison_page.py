"""Two runs on one page: who leads on which input, by hand; and every control in a browser."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made_experiments import HOSTILE, ROBUST, STANDARD, Known, write_experiment
from opened_pages import (
    BROWSER,
    PHONE,
    Opened,
    browser,  # noqa: F401  # the fixture
    open_page,
    table,
)

from radii.cli import main

FIRST = [
    Known(0.10, 0.12),  # more robust: proven as far as the other's counterexample
    Known(0.05, 0.06),  # less robust
    Known(0.10, 0.20),  # brackets overlap
    Known(0.0, 0.3),  # right where the other is wrong
    Known(0.0, 0.0),  # both are wrong
    Known(0.2, None),  # without a counterexample, and still more robust
]
SECOND = [
    Known(0.09, 0.10),
    Known(0.06, 0.07),
    Known(0.15, 0.25),
    Known(0.0, 0.0),
    Known(0.0, 0.0),
    Known(0.1, 0.2),
]
LEADERS = ["first", "second", "open", "first", "open", "first"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("comparison")
    first = write_experiment(made / "a", {"one": FIRST})
    second = write_experiment(made / "b", {HOSTILE: SECOND})
    flags = ["--permutations", "19", "--html"]
    assert main(["compare", str(first), str(second), *flags, str(made / "pair.html")]) == 0
    several = write_experiment(made / "several", {"x": STANDARD, "y": ROBUST, "z": FIRST})
    assert main(["compare", str(several), *flags, str(made / "several.html")]) == 0
    tabular = write_experiment(made / "table", {"one": FIRST, "two": SECOND}, shape=(4,))
    assert main(["compare", str(tabular), *flags, str(made / "tabular.html")]) == 0
    return made


def test_bad_flags_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_experiment(tmp_path / "run", {"one": FIRST, "two": SECOND})
    page = str(tmp_path / "page.html")
    assert main(["compare", str(run), "--html", page, "--by", "class"]) == 2
    assert "leave out --only and --by" in capsys.readouterr().err
    assert main(["compare", str(run), "--html", str(tmp_path)]) == 2
    assert "is a directory" in capsys.readouterr().err


if BROWSER is None:
    pytest.skip("there is no Chromium to open pages with", allow_module_level=True)


@pytest.fixture
def opened(browser: Any, folder: Path) -> Iterator[Opened]:  # noqa: F811
    yield from open_page(browser, folder / "pair.html")


def order_by(opened: Opened, text: str) -> None:
    opened.page.locator("#inputs select").nth(1).select_option(label=text)


def shown(opened: Opened) -> list[str]:
    opened.page.locator(".pair-input").first.wait_for()
    found: list[str] = opened.page.locator(".pair-input").evaluate_all(
        "cards => cards.map((card) => card.dataset.who)"
    )
    return found


def test_leaders_are_those_that_brackets_allow(opened: Opened) -> None:
    order_by(opened, "in order of the data")
    assert shown(opened) == LEADERS
    assert opened.texts(".tally-chip b") == ["3", "2", "1"]
    texts = opened.texts(".pair-input > .hint")
    assert texts[0] == "The radius of one is larger by 0.0000 to 0.0300."
    assert texts[2] == "Their difference lies between −0.1500 and +0.0500."
    assert texts[4] == "Both are wrong as it stands."
    assert texts[5] == "The radius of one is larger by at least 0.0000."


def test_chips_filter(opened: Opened) -> None:
    for who in ("first", "second", "open"):
        opened.page.locator(f'.tally-chip[data-who="{who}"]').click()
        opened.page.wait_for_function(
            "n => document.querySelector('.pair-grid').dataset.shown == n", arg=LEADERS.count(who)
        )
        assert shown(opened) == [who] * LEADERS.count(who)


def test_shows_both_counterexamples(opened: Opened) -> None:
    order_by(opened, "in order of the data")
    card = opened.page.locator(".pair-input").first
    kinds = card.locator("canvas").evaluate_all("all => all.map((one) => one.dataset.picture)")
    assert kinds == ["input", "broken-0", "broken-1"]
    alone = opened.page.locator(".pair-input").nth(5)
    assert "no counterexample" in alone.inner_text()


def test_statistics_are_those_of_the_command(opened: Opened, folder: Path, tmp_path: Path) -> None:
    places = [str(folder / "a"), str(folder / "b")]
    flags = ["--permutations", "19", "--csv", str(tmp_path)]
    assert main(["compare", *places, *flags]) == 0
    with (tmp_path / "comparisons.csv").open() as stream:
        (row,) = csv.DictReader(stream)
    told = {cells[0]: cells for cells in table(opened, "tests")}
    for name in ("Kolmogorov-Smirnov", "Mann-Whitney", "permutation of scores"):
        assert float(told[name][2]) == pytest.approx(float(row[f"{name}: p"]), abs=5e-4)
    assert row["dominance"].replace(HOSTILE, "")[:10] in opened.texts(".sentences p")[1]


def test_every_control_asks_for_nothing(browser: Any, folder: Path) -> None:  # noqa: F811
    """`open_page` fails on any request, complaint or dialog."""
    for name in ("several", "pair", "tabular"):
        for opened in open_page(browser, folder / f"{name}.html"):
            press_everything(opened.page)


def press_everything(page: Any) -> None:
    page.evaluate("window.print = () => {}")
    for place in range(page.locator("button").count()):
        button = page.locator("button").nth(place)
        if button.is_disabled():
            continue
        if button.inner_text() == "Download CSV":
            with page.expect_download():
                button.click()
        else:
            button.click()
    for place in range(page.locator("select").count()):
        box = page.locator("select").nth(place)
        for value in box.evaluate("box => [...box.options].map((one) => one.value)"):
            page.locator("select").nth(place).select_option(value)
    page.locator(".eps").focus()
    page.keyboard.press("PageUp")
    page.locator(".steps svg").click(position={"x": 300, "y": 100})
    for summary in page.locator("summary").all():
        summary.click()


def test_features_of_a_table_are_told(browser: Any, folder: Path) -> None:  # noqa: F811
    for opened in open_page(browser, folder / "tabular.html"):
        opened.page.locator(".pair-input").first.wait_for()
        assert "→" in opened.texts(".changes")[0]


def test_fits_a_phone(browser: Any, folder: Path) -> None:  # noqa: F811
    for opened in open_page(browser, folder / "several.html", viewport=PHONE):
        opened.page.locator(".pair-input").first.wait_for()
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
