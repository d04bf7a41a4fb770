"""The figure of repeated estimates: its data, how it looks, bad input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from radii.errors import InputError
from radii.statistics import repeat_estimates
from radii.views import draw_repetition, save_figure

ERRORS = (0.2, 0.1, 0.05)


def test_estimates_gather_as_the_error_shrinks() -> None:
    rng = np.random.default_rng(0)
    robust = (rng.random(2000) < 0.8).astype(float)
    not_refuted = np.maximum(robust, rng.random(2000) < 0.1)
    found = repeat_estimates(robust, not_refuted, errors=ERRORS)
    assert [each.samples for each in found] == [47, 185, 738]
    spreads = [each.least.std() for each in found]
    assert spreads == sorted(spreads, reverse=True)
    for each in found:
        assert len(each.least) == 50
        assert (each.most >= each.least).all()
        assert each.truth == (robust.mean(), not_refuted.mean())
        assert each.missed <= 0.1


def test_the_figure(tmp_path: Path) -> None:
    values = np.repeat([1.0, 0.0], 500)
    series = {
        "by attack": repeat_estimates(values, errors=ERRORS),
        "by proof": repeat_estimates(0.9 * values, errors=ERRORS),
    }
    figure = draw_repetition(series)
    axes, sizes = figure.axes
    assert len(axes.collections) == 2 * 2 * len(ERRORS)
    assert np.asarray(sizes.lines[0].get_ydata()).tolist() == [47, 185, 738]
    save_figure(figure, tmp_path / "figure.pdf")
    assert (tmp_path / "figure.pdf").stat().st_size > 0


def test_bad_input() -> None:
    with pytest.raises(InputError, match="needs 738 inputs but the set has 10"):
        repeat_estimates(np.ones(10), errors=[0.05])
    with pytest.raises(InputError, match="one value"):
        repeat_estimates(np.ones((2, 2)), errors=[0.1])
    with pytest.raises(InputError, match="repeats 0"):
        repeat_estimates(np.ones(500), errors=[0.1], repeats=0)
    with pytest.raises(InputError, match="no estimates"):
        draw_repetition({})
    with pytest.raises(InputError, match="same errors"):
        draw_repetition(
            {
                "a": repeat_estimates(np.ones(500), errors=[0.1]),
                "b": repeat_estimates(np.ones(500), errors=[0.2]),
            }
        )
