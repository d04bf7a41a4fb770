"""Figures of values leave out results without any answer, and say how many."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from radii.cli import main
from radii.statistics import Distribution
from radii.views import (
    box_summaries,
    claims_of,
    class_table,
    draw_boxes,
    draw_classes,
    draw_correlations,
    draw_ks_matrix,
    draw_qq,
    draw_scatter,
    ks_matrices,
    qq_points,
    scatter_of,
)


def half_unsolved() -> Distribution:
    """Two networks on 12 inputs of two classes; `a` has no answer for seven of them."""
    radii = np.linspace(0.1, 0.65, 12)
    lower, upper = np.tile(radii, 2), np.tile(radii + 0.01, 2)
    lower[5:12], upper[5:12] = 0.0, np.inf
    return Distribution.from_arrays(
        lower,
        upper,
        network=np.repeat(["a", "b"], 12),
        input=np.tile(np.arange(12), 2),
        label=np.tile([0, 1], 12),
    )


def words(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.findobj(Text))


def test_boxes_are_of_what_was_solved() -> None:
    first, second = box_summaries(half_unsolved())
    assert (first.inputs, first.left_out) == (5, 7)
    assert (second.inputs, second.left_out) == (12, 0)
    assert first.median == pytest.approx((0.2, 0.21))  # not [0, inf)
    assert math.isfinite(first.high_whisker[1])


def test_a_network_without_any_answer_has_no_box() -> None:
    nothing = Distribution.from_arrays([0.0], [np.inf], network="c")
    found = box_summaries(Distribution.union([half_unsolved(), nothing]))
    assert [summary.name for summary in found] == ["a", "b"]


def test_medians_quantiles_points_and_claims_are_of_what_was_solved() -> None:
    results = half_unsolved()
    table = class_table(results)
    assert table.values[0, 0] == pytest.approx(0.2)  # inputs 0, 2, 4 of class 0
    assert class_table(results, eps=0.05).values[0, 0] == pytest.approx(3 / 6)  # of all six
    points = qq_points(results.only(network="a"), "lognormal")
    assert (len(points.fitted), points.left_out) == (5, 7)
    assert np.isfinite(points.upper).all() and points.lower.min() > 0
    scatter = scatter_of(results, "a", "b")
    assert (int(scatter.unsolved.sum()), scatter.inputs) == (7, 5)
    assert len(claims_of(results, "a", "b", "").claimed) == 5
    assert len(claims_of(results, "b", "a", "").claimed) == 12
    (matrix,) = ks_matrices(results, "network").values()
    assert matrix.left_out == (7, 0)


@pytest.mark.parametrize(
    "draw",
    [draw_boxes, draw_classes, draw_correlations, draw_ks_matrix, draw_qq, draw_scatter],
    ids=lambda draw: draw.__name__,
)
def test_figures_say_how_many_are_left_out(draw: Callable[[Distribution], Figure]) -> None:
    assert "left out: 7 results without an answer" in words(draw(half_unsolved()))
    radii = 0.1 + np.arange(24) / 100
    solved = half_unsolved().labelled(lower=radii, upper=radii + 0.01)
    assert "left out" not in words(draw(solved))


def test_the_command_says_which_networks_lack_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "results.csv"
    half_unsolved().to_pandas().to_csv(table, index=False)
    kinds = ["--kind", "box,classes,ecdf", "--format", "svg", "-o", str(tmp_path / "figures")]
    assert main(["plot", str(table), *kinds]) == 0
    told = capsys.readouterr().err.splitlines()
    assert "radii: box: results without an answer are left out: 7 of a" in told
    assert "radii: classes: results without an answer are left out: 7 of a" in told
    assert not any("ecdf" in line for line in told)  # its band keeps them
    assert main(["plot", str(table), *kinds, "--eps", "0.2"]) == 0
    assert "classes" not in capsys.readouterr().err  # recall counts every input
