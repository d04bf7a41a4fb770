"""Several pairs of axes in one figure, with one pair of labels and one legend for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from radii.plots.style import LABEL_SIZE, TICK_SIZE, add_axes, blank_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["new_panels"]


def new_panels(
    titles: list[str],
    *,
    width: float,
    panel_width: float = 1.7,
    panel_height: float = 1.4,
    x_label: str = "",
    y_label: str = "",
) -> tuple[Figure, list[Axes]]:
    """A figure with a titled panel for each title, as many a row as fit at `panel_width` inches.

    Panels are stretched to fill the width; `panel_height` is at `panel_width` and grows with it,
    up to half as much again.
    """
    columns = max(1, min(len(titles), int(width / panel_width)))
    rows = -(-len(titles) // columns)
    height = panel_height * min(1.5, width / columns / panel_width)
    figure = blank_figure(width, rows * height + 0.25)
    axes = []
    for place, title in enumerate(titles, 1):
        panel = add_axes(figure, rows, columns, place)
        panel.set_title(title, fontsize=TICK_SIZE)
        axes.append(panel)
    if x_label:
        figure.supxlabel(x_label, fontsize=LABEL_SIZE)
    if y_label:
        figure.supylabel(y_label, fontsize=LABEL_SIZE)
    return figure, axes
