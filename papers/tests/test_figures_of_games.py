"""The value of ensembles over eps: a panel for each ensemble, a line for each series."""

from __future__ import annotations

import numpy as np

from radii_papers.figures import ValueAtEps, draw_game_values


def test_lines_are_what_is_attained_and_gaps_are_shaded() -> None:
    exact = [ValueAtEps(0.1, 0.0, 0.0), ValueAtEps(0.2, 0.5, 0.5)]
    open_ = [ValueAtEps(0.1, 0.0, 0.5), ValueAtEps(0.2, 0.5, 1.0)]
    figure = draw_game_values(
        {"one": {"|A| = 1": exact, "|A| = 2": open_}, "two": {"value": open_}}
    )
    first, second = figure.axes
    assert [axes.get_title() for axes in (first, second)] == ["one", "two"]
    assert [np.asarray(line.get_ydata()).tolist() for line in first.lines] == [
        [0.0, 0.5],
        [0.0, 0.5],
    ]
    assert len(first.collections) == 2 and len(second.lines) == 1
    shaded = first.collections[1].get_paths()[0].get_extents()
    assert (shaded.y0, shaded.y1) == (0.0, 1.0)
