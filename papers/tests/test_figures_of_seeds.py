"""Curves of networks that were made several times."""

from __future__ import annotations

import numpy as np

from radii_papers.figures import SeedCurve, draw_seed_curves


def test_a_name_has_one_colour_in_every_panel_and_its_range_around_it() -> None:
    eps = np.array([0.1, 0.2])
    first = SeedCurve("a", eps, np.array([0.5, 0.4]), np.array([0.4, 0.3]), np.array([0.6, 0.5]))
    other = SeedCurve("b", eps, np.array([0.9, 0.8]), np.array([0.9, 0.8]), np.array([0.9, 0.8]))
    panels = {"left": [first, other], "right": [other]}
    figure = draw_seed_curves(panels, measure="CSec", eps=0.1)
    left, right = figure.axes
    assert [panel.get_title() for panel in figure.axes] == ["left", "right"]
    assert left.get_lines()[1].get_color() == right.get_lines()[0].get_color()
    assert left.get_lines()[0].get_color() != left.get_lines()[1].get_color()
    band = np.asarray(left.collections[0].get_paths()[0].vertices)[:, 1]
    assert band.min() == 0.3 and band.max() == 0.6
    marked = left.get_lines()[-1].get_xdata()
    assert np.asarray(marked).tolist() == [0.1, 0.1]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
