"""The first screen, what leads from it, and that no control of the page asks the network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made_experiments import HOSTILE, ROBUST, STANDARD, Known, write_experiment
from opened_pages import BROWSER, DESKTOP, PHONE, TWO_FRAMES, Opened, browser, open_page, table

from radii.views import make_payload, render_live_page, write_report
from radii.views.page._page import without_addresses

__all__ = ["browser"]

pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium to open pages with")

ADDRESS = re.compile(r"https?://(?!www\.w3\.org/)[^\s\"'`]*")


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("opening")
    robust = [*ROBUST[:5], Known(0.0, 0.12)]  # without the false claim, which would come first
    run = write_experiment(folder / "run", {"mlp-standard": STANDARD, "mlp-robust": robust})
    payload = make_payload([run], own_notes=[f"Reviewed in May. {HOSTILE}"])
    write_report(payload, folder / "page.html")
    return folder / "page.html"


@pytest.fixture(scope="module")
def shared(browser: Any, page_file: Path) -> Iterator[Opened]:
    yield from open_page(browser, page_file)


@pytest.fixture
def seen(shared: Opened) -> Iterator[Opened]:
    """For tests that leave the page as it was; a page takes a second to open."""
    shared.page.evaluate("window.scrollTo(0, 0)")
    yield shared
    assert shared.wrong == []


@pytest.fixture
def opened(browser: Any, page_file: Path) -> Iterator[Opened]:
    yield from open_page(browser, page_file)


# --- the network


def test_every_control_asks_the_network_for_nothing(opened: Opened) -> None:
    opened.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    opened.page.wait_for_function("document.querySelectorAll('.main-svg').length >= 4")
    opened.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    pressed = opened.page.evaluate(PRESS_EVERYTHING)
    assert {"button", "select", "input", "summary", "a"} <= {one.split("|")[1] for one in pressed}
    assert sum("Save as a picture" in one for one in pressed) >= 4
    assert sum("Download CSV" in one for one in pressed) >= 6
    opened.page.evaluate("document.getElementById('detail').close()")
    for chart in opened.page.locator(".chart").all():
        chart.scroll_into_view_if_needed()
        chart.hover()
    assert opened.page.locator(".modebar-btn").count() == 0
    assert "Share chart" not in " ".join(opened.texts("body"))


PRESS_EVERYTHING = """async () => {
  const pressed = [];
  const tell = (one, ...topics) => topics.forEach((topic) => one.dispatchEvent(new Event(topic)));
  const keyOf = (one) => [one.closest('section, dialog, footer, header')?.id ?? '',
    one.tagName.toLowerCase(), one.type ?? '',
    one.getAttribute('aria-label') ?? one.textContent.trim().slice(0, 40),
    one.closest('[data-table]')?.dataset.table ?? ''].join('|');
  const press = (one) => {
    if (one.tagName === 'SELECT') {
      for (const option of one.options) { one.value = option.value; tell(one, 'change'); }
    } else if (['range', 'number'].includes(one.type)) {
      for (const value of [1, '']) { one.value = value; tell(one, 'input', 'change'); }
    } else one.click();
  };
  const controls = 'button, a, summary, select, input, [role=button], [data-title]';
  for (let round = 0; round < 1000; round++) {
    const next = [...document.querySelectorAll(controls)]
      .find((one) => !one.disabled && !one.hidden && !pressed.includes(keyOf(one)));
    if (!next) return pressed;
    pressed.push(keyOf(next));
    press(next);
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  }
  throw new Error('there is no end of controls');
}"""


def test_no_address_is_left_in_a_page(page_file: Path) -> None:
    """Whatever version of Plotly is installed: only its licences name places."""
    page = page_file.read_text("utf-8")
    assert "Plotly" in page
    without_licences = re.sub(r"/\*!.*?\*/", "", page, flags=re.DOTALL)
    assert ADDRESS.findall(without_licences) == []


def test_addresses_lead_nowhere_and_licences_stay() -> None:
    licence = "/*! MIT, https://a.org */"
    code = 'send("https://cloud.example/new?x=1");`http://b.org/${p}`'
    cut = 'send("about:blank#cloud.example/new?x=1");`about:blank#b.org/${p}`'
    assert without_addresses(licence + code) == licence + cut
    namespace = 'create("http://www.w3.org/2000/svg")'
    assert without_addresses(namespace) == namespace


def test_the_policy_forbids_requests(page_file: Path) -> None:
    assert "default-src 'none'" in page_file.read_text("utf-8")[:2000]
    assert "connect-src 'none'" in page_file.read_text("utf-8")[:2000]


# --- the first screen


def test_sentence_curve_and_gallery_are_on_the_first_screen(opened: Opened) -> None:
    opened.page.locator("#curves .main-svg").first.wait_for()
    for place in ("#live", "#eps", "#curves .plot", "#gallery .fragile >> nth=3"):
        box = opened.page.locator(place).bounding_box()
        assert box["y"] >= 0, place
        assert box["y"] + box["height"] <= DESKTOP["height"], place
    sentences = opened.page.locator(".sentences")
    assert not sentences.is_visible()
    opened.page.locator(".folded summary", has_text="More about these results").click()
    assert "took" in sentences.inner_text()


def test_phone_opens_with_sentence_and_curve(browser: Any, page_file: Path) -> None:
    options: dict[str, Any] = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
    for opened in open_page(browser, page_file, **options):
        box = opened.page.locator("#curves .plot").bounding_box()
        assert box["y"] + box["height"] <= PHONE["height"]
        broken = "names => names.filter((name) => name.getClientRects().length > 1).length"
        assert opened.page.locator(".whole").count() > 4
        assert opened.page.locator(".whole").evaluate_all(broken) == 0
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_gallery_shows_each_input_once_and_the_most_fragile_first(opened: Opened) -> None:
    opened.page.locator("#gallery canvas").nth(11).wait_for()
    assert opened.texts("#gallery .distance") == [
        "0.034",
        "0.055",
        "0.06",
        "0.085",
        "0.108",
        "0.155",
    ]
    assert opened.texts("#gallery .fragile strong")[0] == "2 → 0"
    opened.page.locator("#gallery select").select_option(label="mlp-robust")
    assert opened.texts("#gallery .distance") == ["0.12", "0.155", "0.188", "0.205", "0.256"]
    opened.eps(0.16)
    assert opened.page.locator("#gallery .within").count() == 2
    opened.page.locator("#gallery .fragile").nth(1).click()
    dialog = opened.page.locator("#detail")
    assert "Input 2, class 2" in dialog.inner_text()
    assert "2 of 5" in dialog.inner_text(), "arrow keys follow the gallery"


@pytest.mark.parametrize("shape", [(4,), (1, 60), (2, 40)])
def test_inputs_that_are_no_pictures(browser: Any, tmp_path: Path, shape: tuple[int, ...]) -> None:
    run = write_experiment(tmp_path / "run", {"net": STANDARD}, shape=shape)
    write_report(make_payload([run]), tmp_path / "page.html")
    for opened in open_page(browser, tmp_path / "page.html"):
        assert opened.page.locator("#gallery .fragile").count() == 5
        if shape == (4,):
            opened.page.locator("#gallery .changed-features").nth(4).wait_for()
            first = opened.texts("#gallery .changed-features >> nth=0")[0].splitlines()
            assert re.fullmatch(r"feature \d", first[0])
            before, after = map(float, first[1].split(" → "))
            assert abs(after - before) == pytest.approx(0.034, abs=0.002)
        elif shape != (2, 40):
            opened.page.locator("#gallery canvas.signal").nth(4).wait_for()
            opened.page.locator("#gallery .fragile").first.click()
            opened.page.locator("#detail canvas.signal").wait_for()
            assert len(table(opened, "features-5")) == 12


def test_features_have_their_names_and_are_ranked_by_scale(browser: Any, tmp_path: Path) -> None:
    run = write_experiment(tmp_path / "run", {"net": STANDARD}, shape=(4,))
    payload = make_payload([run])
    names = ["age", HOSTILE, "income", "debt"]
    payload.facts["features"] = {"names": names, "scales": [10.0, 2.0, 0.5, 0.0]}
    write_report(payload, tmp_path / "page.html")
    for opened in open_page(browser, tmp_path / "page.html"):
        told = opened.page.locator("#gallery .changed-features").first.locator("i")
        told.first.wait_for()
        # All change by the same; a scale of 0 says that a feature does not move at all.
        assert told.all_inner_texts() == ["income", "debt", HOSTILE]
        opened.page.locator("#gallery .fragile").first.click()
        opened.page.locator('[data-table="features-5"]').wait_for()
        assert table(opened, "features-5")[0][0] == "income"


def test_results_without_inputs_have_a_gallery(browser: Any, tmp_path: Path) -> None:
    header = "network,image,original_label,epsilon_value,smallest_sat_value"
    (tmp_path / "published.csv").write_text(f"{header}\nnet,3,1,0.02,0.03\nnet,4,0,0.05,0.06\n")
    write_report(make_payload([tmp_path / "published.csv"]), tmp_path / "page.html")
    for opened in open_page(browser, tmp_path / "page.html"):
        assert opened.texts("#gallery .blank") == ["input 3", "input 4"]


def test_own_notes_are_text_on_the_first_screen(seen: Opened) -> None:
    assert seen.texts(".own-notes") == [f"Reviewed in May. {HOSTILE}"]


# --- finding one's way


def test_contents_lead_to_every_part(seen: Opened) -> None:
    links = seen.page.locator("#contents a")
    names = links.evaluate_all("links => links.map((link) => link.hash.slice(1))")
    parts = seen.page.locator("main > section[id]").evaluate_all("all => all.map((one) => one.id)")
    assert names == [part for part in parts if part != "disagreements"]
    seen.page.locator("#contents a", has_text="Brackets").click()
    seen.page.evaluate(TWO_FRAMES)
    top = seen.page.locator("#brackets").bounding_box()["y"]
    bar = seen.page.locator("#controls").bounding_box()
    assert bar["height"] <= top < DESKTOP["height"], "the slider covers no heading"
    seen.page.wait_for_function(
        "document.querySelector('#contents [aria-current]').hash === '#brackets'"
    )


def test_addresses_work_on_an_open_page(seen: Opened) -> None:
    dialog = seen.page.locator("#detail")
    for row, title in ((2, "Input 2, class 2"), (9, "Input 3, class 0")):
        seen.page.evaluate(f"location.hash = '#row-{row}'")
        seen.page.locator("#detail-title", has_text=title).wait_for()
        assert dialog.is_visible()
    seen.page.evaluate("location.hash = '#classes'")
    dialog.wait_for(state="hidden")
    assert seen.page.evaluate("location.hash") == "#classes"


def test_a_page_opens_at_a_part(browser: Any, page_file: Path) -> None:
    for opened in open_page(browser, page_file, at="#quality"):
        assert 0 < opened.page.locator("#quality").bounding_box()["y"] < DESKTOP["height"] / 2


def test_lines_bars_and_ticks_are_explained(seen: Opened) -> None:
    lines = ["thin: proven", "thick: not refuted", "between: open", "pale: 95 % confidence"]
    assert seen.texts("#curves .key li") == lines
    assert "accuracy without any change (ε = 0)" in seen.texts("#accuracy .key li")


def test_wide_tables_show_that_there_is_more(browser: Any, page_file: Path) -> None:
    for opened in open_page(browser, page_file, viewport=PHONE):
        edges = opened.page.locator('[data-table="brackets"] .edges')
        edges.scroll_into_view_if_needed()
        opened.page.evaluate(TWO_FRAMES)
        assert edges.get_attribute("class") == "edges more-after"
        edges.locator(".scroller").evaluate("box => { box.scrollLeft = box.scrollWidth; }")
        opened.page.evaluate(TWO_FRAMES)
        assert edges.get_attribute("class") == "edges more-before"


def test_tools_of_a_chart_cover_nothing(opened: Opened) -> None:
    page = opened.page
    plot = page.locator("#curves .plot").bounding_box()
    assert (
        page.locator("#curves .chart-tools").bounding_box()["y"] >= plot["y"] + plot["height"] - 1
    )
    with page.expect_download() as waiting:
        page.locator("#curves .chart-tools button", has_text="Save SVG").click()
    assert waiting.value.suggested_filename == "radii.svg"
    assert Path(waiting.value.path()).read_text("utf-8").startswith("<svg")
    back = page.locator("#curves .chart-tools button", has_text="Whole range")
    assert not back.is_visible()
    plot = page.locator("#curves .plot").bounding_box()
    middle = plot["y"] + plot["height"] / 2
    page.mouse.move(plot["x"] + 150, middle)
    page.mouse.down()
    page.mouse.move(plot["x"] + 350, middle + 60, steps=4)
    page.mouse.up()
    back.wait_for()
    back.click()
    back.wait_for(state="hidden")


def test_tests_and_fits_are_on_the_page(opened: Opened) -> None:
    opened.page.locator("#statistics").scroll_into_view_if_needed()
    row = table(opened, "tests")[0]
    assert row[:2] == ["mlp-standard", "mlp-robust"]
    fits = table(opened, "fits")
    assert len(fits) == 8
    assert sum("(best)" in fit[1] for fit in fits) == 2
    lines = opened.page.locator("#curves .scatterlayer .trace")
    before = lines.count()
    opened.page.locator("#curves label", has_text="best fit").click()
    opened.page.wait_for_function(
        "count => document.querySelectorAll('#curves .scatterlayer .trace').length === count",
        arg=before + 2,
    )


def test_the_live_page_has_no_address_either() -> None:
    page = re.sub(r"/\*!.*?\*/", "", render_live_page()[0], flags=re.DOTALL)
    assert ADDRESS.findall(page) == []
