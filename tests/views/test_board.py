"""The board: ranks that brackets allow, tables of what compares, and its page in a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_experiments import HOSTILE, ROBUST, STANDARD, Known, write_experiment
from opened_pages import (
    BROWSER,
    PHONE,
    Opened,
    browser,  # noqa: F401  # the fixture
    open_page,
    sort_by,
    table,
)

from radii.cli import main
from radii.errors import InputError
from radii.statistics import Distribution
from radii.views import make_board, write_board

MIDDLE = [Known(0.1, 0.22), Known(0.04, 0.2), *ROBUST[2:]]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    networks = {"standard": STANDARD, "robust": ROBUST, "middle": MIDDLE}
    return write_experiment(tmp_path / "run", networks)


def test_shares_and_medians_are_those_of_distributions(run: Path) -> None:
    parts = Distribution.from_store(run).by_network()
    (told,) = make_board([run], eps=(0.1, 0.2)).tables
    assert told.inputs == 6 and told.eps == (0.1, 0.2)
    for entry in told.entries:
        part = parts[entry.network]
        for share in entry.shares:
            known = part.robust_accuracy(share.eps)
            assert (share.proven, share.not_refuted) == (known.proven, known.not_refuted)
        assert entry.accuracy == part.holds.mean()
        assert entry.median == part.correctly_classified().median()


def test_a_network_has_the_colour_that_a_report_gives_it(run: Path) -> None:
    """Which follows the order of networks in results, not their rank."""
    (told,) = make_board([run], eps=(0.15,)).tables
    networks = Distribution.from_store(run).networks
    assert {one.network: one.number for one in told.entries} == {
        name: place for place, name in enumerate(networks)
    }
    assert [one.number for one in told.entries] != sorted(one.number for one in told.entries)


def test_nobody_is_ranked_below_another_without_a_proof(run: Path) -> None:
    (told,) = make_board([run], eps=(0.15,)).tables
    ranks = {entry.network: entry.rank for entry in told.entries}
    # At 0.15: standard [0, 0], robust [5/6, 5/6] less the refuted, middle [3/6, 5/6].
    assert ranks == {"robust": 1, "middle": 1, "standard": 3}
    assert [entry.network for entry in told.entries] == ["robust", "middle", "standard"]
    for entry in told.entries:
        better = sum(
            other.shares[0].proven > (entry.shares[0].not_refuted or 0) for other in told.entries
        )
        assert entry.rank == 1 + better


def test_closed_is_the_share_without_an_open_grid_value(run: Path) -> None:
    (told,) = make_board([run]).tables
    closed = {entry.network: entry.closed for entry in told.entries}
    # The grid is 0.01, 0.02, ..., 0.49: of `standard` only [0.02, 0.06) has values inside.
    assert closed["standard"] == pytest.approx(5 / 6)
    assert closed["robust"] == pytest.approx(4 / 6)  # without a witness; [0, 0.12)


@pytest.mark.parametrize(
    ("other", "word"),
    [
        ({"norm": "l2"}, "norm"),
        ({"source": "mnist:test[0:6]"}, "data"),
        ({"property": "scr:0.1"}, "property"),
    ],
)
def test_what_differs_is_in_tables_of_its_own(
    run: Path, tmp_path: Path, other: dict[str, Any], word: str
) -> None:
    second = write_experiment(tmp_path / "other", {"standard": ROBUST}, **other)
    board = make_board([run, second], eps=(0.1,))
    assert [len(one.entries) for one in board.tables] == [3, 1]
    assert [one.entries[0].rank for one in board.tables] == [1, 1]
    (sentence,) = board.notes
    assert "2 tables" in sentence and word in sentence and "cannot be compared" in sentence
    assert board.tables[1].entries[0].network == "standard", "no other in its table has the name"


def test_same_name_in_one_table_carries_its_run(run: Path, tmp_path: Path) -> None:
    second = write_experiment(tmp_path / "again", {"standard": ROBUST})
    (told,) = make_board([run, second]).tables
    names = {entry.network for entry in told.entries}
    assert names == {"standard (run)", "standard (again)", "robust", "middle"}


def test_other_inputs_are_another_table(run: Path, tmp_path: Path) -> None:
    fewer = write_experiment(tmp_path / "fewer", {"net": ROBUST[:3]})
    assert [one.inputs for one in make_board([run, fewer]).tables] == [6, 3]


def test_targets_are_combined(tmp_path: Path) -> None:
    place = write_experiment(tmp_path / "targeted", {"net": ROBUST[:3]}, targeted=True)
    (told,) = make_board([place], eps=(0.18,)).tables
    (entry,) = told.entries
    assert told.inputs == 3 and told.property == "one-to-one"
    assert entry.shares[0].proven == pytest.approx(2 / 3)  # 0.20 and 0.30, not 0.15


def test_published_results_are_claims(tmp_path: Path) -> None:
    Distribution.from_arrays(np.array([0.1, 0.2]), np.array([0.2, 0.3])).to_pandas().to_csv(
        tmp_path / "published.csv", index=False
    )
    (told,) = make_board([tmp_path / "published.csv"], eps=(0.15,)).tables
    (entry,) = told.entries
    assert entry.is_claim and entry.closed is None and entry.measured == ("", "")
    assert (entry.shares[0].proven, entry.shares[0].not_refuted) == (0.5, 1.0)


def test_beyond_the_search_nothing_is_not_refuted(tmp_path: Path) -> None:
    untried = [Known(0.2, None), Known(0.1, 0.11)]
    place = write_experiment(tmp_path / "run", {"net": untried})
    (told,) = make_board([place], eps=(0.1, 0.6)).tables
    near, far = told.entries[0].shares
    assert near.not_refuted == 1.0 and near.unsearched == ""
    assert far.not_refuted is None and "0.49" in far.unsearched
    assert told.entries[0].searched == pytest.approx(0.49)


def test_command(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["board", str(run), "--eps", "0.1", "--title", "Digits"]) == 0
    assert "board.html: 3 networks" in capsys.readouterr().out
    assert "<title>Digits · radii</title>" in Path("board.html").read_text()
    assert main(["board", str(run), "--eps", "0.1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [entry["rank"] for entry in told["tables"][0]["entries"]] == [1, 1, 3]
    assert main(["board", str(run), "--out", str(tmp_path)]) == 2
    assert main(["board", str(run), str(run)]) == 2


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        make_board([tmp_path / "nowhere"])


# --- in a browser

in_browser = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium to open pages with")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("board")
    networks = {"standard": STANDARD, HOSTILE: ROBUST, "middle": MIDDLE}
    first = write_experiment(folder / "run", networks)
    second = write_experiment(folder / "other", {"net": ROBUST[:3]}, source="mnist:test[0:3]")
    write_board(make_board([first, second], eps=(0.1, 0.2), title=HOSTILE), folder / "board.html")
    return folder / "board.html"


@pytest.fixture
def opened(browser: Any, page: Path) -> Iterator[Opened]:  # noqa: F811
    yield from open_page(browser, page)


@in_browser
def test_page_ranks_at_the_chosen_eps(opened: Opened) -> None:
    rows = table(opened, "board-0")
    assert [row[0] for row in rows] == ["1", "1", "3"]
    assert [row[1] for row in rows] == [HOSTILE, "middle", "standard"]
    assert rows[0][2] == "83.3–100.0 %" and rows[2][2] == "16.7 %"
    assert "share the lead" in opened.texts(".live")[0]
    box = opened.page.locator(".eps-box").first
    box.fill("0.25")
    box.press("Enter")
    rows = table(opened, "board-0")
    assert [row[0] for row in rows] == ["1", "2", "3"]
    assert "leads: it stays right on 33.3 %" in opened.texts(".live")[0]
    assert rows[0][4] == "83.3–100.0 %", "the columns of --eps stay"


@in_browser
def test_every_control_asks_for_nothing(opened: Opened) -> None:
    """`open_page` fails on any request, complaint or dialog."""
    page = opened.page
    page.evaluate("window.print = () => {}")
    for place in range(page.locator("button").count()):
        button = page.locator("button").nth(place)
        if button.inner_text() == "Download CSV":
            with page.expect_download():
                button.click()
        else:
            button.click()
    for slider in page.locator(".eps").all():
        slider.focus()
        for key in ("ArrowRight", "PageUp", "ArrowLeft", "PageDown"):
            page.keyboard.press(key)
    for chart in page.locator(".steps svg").all():
        chart.click(position={"x": 300, "y": 100})
    for row in page.locator("tbody tr").all():
        row.hover()
    for summary in page.locator("summary").all():
        summary.click()


@in_browser
def test_chart_chooses_eps(opened: Opened) -> None:
    chart = opened.page.locator(".steps svg").first
    box = chart.bounding_box()
    chart.click(position={"x": box["width"] - 10, "y": 50})
    assert float(opened.page.locator(".eps-box").first.input_value()) == pytest.approx(0.315, 0.01)


@in_browser
def test_sorts_by_any_column(opened: Opened) -> None:
    sort_by(opened, "board-0", "Accuracy")
    accuracies = [float(row[6].split()[0]) for row in table(opened, "board-0")]
    assert accuracies == sorted(accuracies, reverse=True)


@in_browser
def test_fits_a_phone(browser: Any, page: Path) -> None:  # noqa: F811
    for opened in open_page(browser, page, viewport=PHONE):
        wide = opened.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= PHONE["width"]
        assert opened.page.locator("tbody tr").first.is_visible()
