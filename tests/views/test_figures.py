"""Figures: the numbers behind them by hand; drawing them neither warns nor opens pyplot."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from radii.errors import DataError
from radii.problem import Bracket, Measurement
from radii.statistics import Counterexample, Distribution
from radii.views import (
    as_picture,
    box_summaries,
    draw_boxes,
    draw_counterexamples,
    draw_ecdf,
    draw_robust_accuracy,
    ecdf_curves,
    robust_accuracy_curves,
    save_figure,
)


def measured(network: str, index: int, lower: float, upper: float, correct: bool) -> Measurement:
    return Measurement(
        network=network,
        fingerprint=network,
        input=index,
        label=1,
        predicted=1 if correct else 2,
        correct=correct,
        property="one-to-any",
        target=None,
        bracket=Bracket(lower, upper),
        witness_class=None if math.isinf(upper) else 2,
        seconds=0.5,
        queries=2,
        missing=0,
        cancelled=0,
    )


@pytest.fixture
def distribution() -> Distribution:
    """Network a: wrong, [0.1, 0.2), [0.3, 0.4), no witness above 0.5; network b: [0.2, 0.2)."""
    brackets = [(0.0, 0.0, False), (0.1, 0.2, True), (0.3, 0.4, True), (0.5, math.inf, True)]
    rows = [measured("a", place, *row) for place, row in enumerate(brackets)]
    return Distribution([*rows, measured("b", 0, 0.2, 0.2, True)])


def at(edges: np.ndarray, values: np.ndarray, eps: float) -> float:
    """The step function's value at eps, which must not be an edge."""
    return float(values[np.searchsorted(edges, eps) - 1])


def test_robust_accuracy_by_hand(distribution: Distribution) -> None:
    first, second = robust_accuracy_curves(distribution)
    assert (first.name, second.name) == ("a", "b")
    expected = {0.05: (0.75, 0.75), 0.15: (0.5, 0.75), 0.25: (0.5, 0.5), 0.35: (0.25, 0.5)}
    for eps, (proven, not_refuted) in expected.items():
        assert at(first.edges, first.least, eps) == proven
        assert at(first.edges, first.most, eps) == not_refuted
    assert at(first.edges, first.least, 0.51) == 0
    assert at(first.edges, first.most, 0.51) == 0.25
    assert at(second.edges, second.least, 0.1) == 1
    assert at(second.edges, second.most, 0.3) == 0


def test_the_ecdf_is_its_complement(distribution: Distribution) -> None:
    pairs = zip(ecdf_curves(distribution), robust_accuracy_curves(distribution), strict=True)
    for ecdf, accuracy in pairs:
        assert np.array_equal(ecdf.edges, accuracy.edges)
        np.testing.assert_allclose(ecdf.least, 1 - accuracy.most)
        np.testing.assert_allclose(ecdf.most, 1 - accuracy.least)
        assert np.all(np.diff(ecdf.least) >= 0)
        assert np.all(ecdf.least <= ecdf.most)


def test_quantiles_of_a_box_are_intervals(distribution: Distribution) -> None:
    first, second = box_summaries(distribution)
    assert (first.name, first.inputs) == ("a", 3)
    assert first.median == (0.3, 0.4)
    assert first.low_whisker == (0.1, 0.2)
    assert first.high_whisker == (0.5, math.inf)
    assert second.quartile == second.upper_quartile == (0.2, 0.2)


def test_boxes_of_witnesses_run_out_where_there_is_none(distribution: Distribution) -> None:
    """A bracket with a proof and without a witness has a distance beyond every other."""
    first, _ = box_summaries(distribution, side="upper")
    assert (first.inputs, first.minimum, first.median) == (3, (0.2, 0.2), (0.4, 0.4))
    assert first.high_whisker == (math.inf, math.inf)
    (axes,) = draw_boxes(distribution, side="upper").axes
    assert axes.get_xlim()[1] == pytest.approx(1.05 * 0.4)
    assert all(np.isfinite(patch.get_extents().extents).all() for patch in axes.patches)
    draw_boxes(Distribution([measured("a", 0, 0.1, math.inf, True)]), side="upper")


def test_a_network_that_is_always_wrong_has_no_box() -> None:
    wrong = Distribution([measured("a", 0, 0.0, 0.0, False)])
    assert box_summaries(wrong) == []
    draw_boxes(wrong)
    draw_ecdf(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("draw", [draw_ecdf, draw_robust_accuracy, draw_boxes])
@pytest.mark.parametrize("suffix", [".pdf", ".png", ".svg"])
def test_figures_are_written_the_same_twice(
    draw: Any, suffix: str, distribution: Distribution, tmp_path: Path
) -> None:
    files = [tmp_path / f"{name}{suffix}" for name in ("once", "twice")]
    for file in files:
        save_figure(draw(distribution), file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert len(files[0].read_bytes()) > 1000


def test_a_pdf_embeds_truetype_fonts(distribution: Distribution, tmp_path: Path) -> None:
    save_figure(draw_ecdf(distribution), tmp_path / "ecdf.pdf")
    content = (tmp_path / "ecdf.pdf").read_bytes()
    assert b"/CIDFontType2" in content
    assert b"/Type3" not in content


def test_each_network_has_its_own_line_in_the_legend(distribution: Distribution) -> None:
    for draw in (draw_ecdf, draw_robust_accuracy):
        (legend,) = draw(distribution).legends
        assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]


def test_an_unwritable_figure_is_one_sentence(distribution: Distribution, tmp_path: Path) -> None:
    figure = draw_ecdf(distribution)
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        save_figure(figure, tmp_path / "file" / "ecdf.png")
    with pytest.raises(DataError, match="cannot be written"):
        save_figure(figure, tmp_path / "ecdf.xyz")


def test_pictures_from_every_layout() -> None:
    assert as_picture(np.zeros((1, 8, 8))).shape == (8, 8)
    assert as_picture(np.zeros((784, 1))).shape == (28, 28)
    assert as_picture(np.zeros((3, 32, 32))).shape == (32, 32, 3)
    assert as_picture(np.zeros((1, 32, 32, 3))).shape == (32, 32, 3)
    assert as_picture(np.full((2, 2), 127.5), 0, 255).max() == 0.5
    with pytest.raises(DataError, match=r"\(7,\) is not a picture"):
        as_picture(np.zeros(7))


def test_counterexamples_stand_below_their_input() -> None:
    picture = np.zeros((8, 8))
    examples = [
        Counterexample(network, index, 3, 8, picture, picture, 0.125)
        for network in ("a", "b")
        for index in (4, 7, 9)
    ]
    (axes,) = draw_counterexamples(examples).axes
    assert len(axes.get_images()) == 9
    texts = [text.get_text() for text in axes.texts]
    assert texts[:3] == ["3", "3", "3"]
    assert all("8" in text and "0.125" in text for text in texts[3:9])
    assert texts[9:] == ["input", "a", "b"]
    with pytest.raises(DataError, match="no counterexample"):
        draw_counterexamples([])


def test_drawing_leaves_pyplot_alone() -> None:
    code = (
        "import sys; from radii.views.figures._style import new_figure; new_figure();"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_distribution_draws_its_figures(distribution: Distribution) -> None:
    assert distribution.plot_ecdf().axes
    assert distribution.plot_boxes(by="class").axes
