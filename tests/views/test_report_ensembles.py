"""Ensembles in the report: what the payload says of them, and the page in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_experiments import STANDARD, write_experiment
from opened_pages import BROWSER, PHONE, Opened, browser, open_page, table

from conftest import dense_model
from radii.ensembles import EnsembleStudy, Point
from radii.errors import StoreError
from radii.networks import Network
from radii.store import ENSEMBLE_FILE
from radii.views import make_payload, write_report
from radii.views.page._live import ExperimentWatcher

__all__ = ["browser"]

HOSTILE = "<img src=x onerror=alert(1)><b>&amp;"
EPS = [0.05, 0.15, 0.25, 0.35]
POINTS = 3

needs_browser = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")


def classifier(name: str, slope: float, offset: float) -> Network:
    """Of 8x8 pictures: class 1 where slope * the first pixel is offset or more."""
    weight = np.zeros((2, 64))
    weight[1, 0] = slope
    model = dense_model((weight, np.array([offset, 0.0])))
    return Network.from_bytes(model.SerializeToString(), domain=(0, 1), name=name)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One network falls where the first pixel is dark, one where it is bright; never both.

    At three points, all 0.2 away from both, the value is 1/2 from there on.
    """
    pictures = np.random.default_rng(0).uniform(0.3, 0.7, (POINTS, 64)).astype(np.float32)
    pictures[:, 0] = 0.5
    points = [Point(10 + place, 0, picture) for place, picture in enumerate(pictures)]
    networks = [classifier("dark", -1.0, -0.3), classifier(HOSTILE, 1.0, 0.7)]
    place = tmp_path_factory.mktemp("ensembles") / "kept"
    with EnsembleStudy.open(networks, points, out=place) as study:
        study.curve(EPS)
        with pytest.raises(StoreError, match="a run is writing there"):
            make_payload([place])
    return place


@pytest.fixture(scope="module")
def pages(kept: Path) -> dict[str, Path]:
    experiment = write_experiment(kept.parent / "run", {"standard": STANDARD})
    made = {"alone": [kept], "both": [experiment, kept]}
    for name, places in made.items():
        write_report(make_payload(places), kept.parent / f"{name}.html")
    return {name: kept.parent / f"{name}.html" for name in made}


@pytest.fixture
def alone(browser: Any, pages: dict[str, Path]) -> Iterator[Opened]:
    yield from open_page(browser, pages["alone"])


def test_payload(kept: Path) -> None:
    facts = make_payload([kept]).facts
    (told,) = facts["ensembles"]
    assert told["networks"] == ["dark", HOSTILE]
    assert [value["eps"] for value in told["values"]] == EPS
    brackets = [(value["lower"]["text"], value["upper"]["text"]) for value in told["values"]]
    assert brackets == [("0", "0"), ("0", "0"), ("1/2", "1/2"), ("1/2", "1/2")]
    value = told["values"][2]
    assert [weight["text"] for weight in value["defence"]] == ["1/2", "1/2"]
    assert [attempt["probability"]["text"] for attempt in value["attack"]] == ["1/2", "1/2"]
    for point in value["points"]:
        assert sorted(point["fooled"]) == [[0], [1]]
        assert [claim["networks"] for claim in point["impossible"]] == [[0, 1]]
    assert "the value of the game against randomized attacks is 1/2" in facts["summary"][-1]
    assert facts["notes"] == []


def test_pictures_have_a_limit(kept: Path) -> None:
    facts = make_payload([kept], picture_bytes=64 * POINTS).facts
    assert "perturbed inputs of ensembles are not shown" in facts["notes"][-1]


def test_damage_is_one_sentence(kept: Path, tmp_path: Path) -> None:
    (tmp_path / ENSEMBLE_FILE).write_bytes(b"not a database at all, but long enough to look at")
    with pytest.raises(StoreError, match="cannot be read"):
        make_payload([tmp_path])
    with pytest.raises(StoreError, match="given twice"):
        make_payload([kept, kept])


def test_serving_shows_experiments_only(kept: Path) -> None:
    assert ExperimentWatcher([kept]).state([], {})["experiments"] == []


CANVAS = """kind => [...document.querySelectorAll(`#ensembles canvas[data-picture="${kind}"]`)].map(
  (canvas) => [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data])"""


@needs_browser
def test_section(alone: Opened) -> None:
    section = alone.page.locator("#ensembles")
    shown = section.inner_text().replace("\xa0", " ")
    assert HOSTILE in shown
    assert "At ε = 0.35 the value is exactly 1/2 (0.5)." in shown
    assert "a share of at least 1/2 (0.5) of the points" in shown
    assert "For α = 0.5: proven robust up to ε = 0.15; broken from ε = 0.25 on." in shown
    assert table(alone, "defence-0") == [["dark", "1/2 (0.5)"], [HOSTILE, "1/2 (0.5)"]]
    rows = table(alone, "together-0")
    assert [row[:2] for row in rows] == [["10", "0"], ["11", "0"], ["12", "0"]]
    assert all(sorted(row[2].split("\n")) == sorted(["dark", HOSTILE]) for row in rows)
    assert all(row[3].startswith(f"dark + {HOSTILE}, by ") for row in rows)
    section.locator(".main-svg").first.wait_for()
    assert section.locator(".scatterlayer .trace").count() == 2
    section.locator("canvas[data-picture]").first.wait_for()
    perturbed = np.array(alone.page.evaluate(CANVAS, "perturbed"))
    assert len(perturbed) == 2 * POINTS, "two attacks of all points"
    first = perturbed.reshape(len(perturbed), 64, 4)[:, 0, 0] / 255
    assert ((first < 0.31) | (first > 0.69)).all(), "that is where one of the networks falls"
    section.locator("select").nth(1).select_option("input")
    section.locator('canvas[data-picture="input"]').first.wait_for()
    as_it_is = np.array(alone.page.evaluate(CANVAS, "input")).reshape(-1, 64, 4)[:, 0, 0]
    assert set(as_it_is) <= {127, 128}


@needs_browser
def test_choosing_eps_and_alpha(alone: Opened) -> None:
    section = alone.page.locator("#ensembles")
    section.locator("select").first.select_option(label="0.15")
    assert "At ε = 0.15 the value is exactly 0." in section.inner_text()
    section.locator("input[type=number]").fill("0.6")
    assert "For α = 0.6: proven robust up to ε = 0.35; nowhere broken." in section.inner_text()


@needs_browser
def test_beside_experiments_on_a_phone(browser: Any, pages: dict[str, Path]) -> None:
    options: dict[str, Any] = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
    for opened in open_page(browser, pages["both"], **options):
        page = opened.page
        assert page.locator("#accuracy").count() == page.locator("#ensembles").count() == 1
        page.locator("#ensembles canvas[data-picture]").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
