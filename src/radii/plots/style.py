"""How every figure looks: colour-blind safe, fit for a paper's column, no global state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from radii.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "COLUMN_WIDTH",
    "DASHES",
    "TEXT_WIDTH",
    "add_axes",
    "blank_figure",
    "colour_of",
    "dashes_of",
    "draw_band",
    "mark_eps",
    "new_figure",
    "save_figure",
    "show_legend",
]

COLUMN_WIDTH = 3.4
"""Inches: one of the two columns of a conference paper."""

TEXT_WIDTH = 6.0
"""Inches: the text of a journal page."""

COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#E69F00",
    "#000000",
    "#999933",
)
"""Okabe and Ito's palette, told apart with every common colour-vision deficiency."""

DASHES: tuple[Any, ...] = ("solid", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)))
"""Line styles that go with the colours, so that a print without colour can be read."""

LABEL_SIZE, TICK_SIZE, SMALL_SIZE = 9, 8, 7
"""Points. Figures are drawn at the size they are printed at, so these are what readers see."""

EMBEDDED_TRUETYPE = 42
"""The PDF font type that conferences accept; matplotlib's default, Type 3, is refused by many."""

Float64 = npt.NDArray[np.float64]


def colour_of(place: int) -> str:
    """The colour of the group at a place."""
    return COLOURS[place % len(COLOURS)]


def dashes_of(place: int) -> Any:
    """The dashes of the group at a place; colour and dashes together repeat after 32."""
    return DASHES[(place + place // len(COLOURS)) % len(DASHES)]


def blank_figure(width: float, height: float) -> Figure:
    """A figure without axes, in inches, drawn without a display and without touching pyplot."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def new_figure(width: float = TEXT_WIDTH, height: float | None = None) -> tuple[Figure, Axes]:
    """A figure with one pair of axes in the style of all radii figures; 8:5 unless told."""
    figure = blank_figure(width, 0.62 * width if height is None else height)
    return figure, add_axes(figure)


def add_axes(figure: Figure, rows: int = 1, columns: int = 1, place: int = 1) -> Axes:
    """Axes in the style of all radii figures, at a place in a table of them."""
    axes = figure.add_subplot(rows, columns, place)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=TICK_SIZE)
    for axis in (axes.xaxis, axes.yaxis):
        axis.label.set_fontsize(LABEL_SIZE)
    axes.title.set_fontsize(LABEL_SIZE)
    return axes


def draw_band(
    axes: Axes, place: int, label: str, edges: Float64, witnessed: Float64, proven: Float64
) -> None:
    """Two step functions over the same edges, and the gap between them shaded.

    `place` chooses colour and dashes. The witnessed side is the thick line, which the legend shows.
    """
    colour = colour_of(place)
    axes.stairs(
        witnessed,
        edges,
        baseline=None,
        color=colour,
        linestyle=dashes_of(place),
        linewidth=1.4,
        label=label,
    )
    axes.stairs(proven, edges, baseline=None, color=colour, linewidth=0.6)
    axes.stairs(proven, edges, baseline=witnessed, fill=True, color=colour, alpha=0.25, linewidth=0)


def mark_eps(axes: Axes, eps: Sequence[float]) -> None:
    """Vertical lines at values of eps, named above the axes; a crowded name stands higher.

    What lies beyond axes of a fixed range gets none.
    """
    start, stop = axes.get_xlim()
    if not axes.get_autoscalex_on():
        eps = [value for value in eps if start <= value <= stop]
    figure = axes.get_figure(root=True)
    points = 0.75 * 72 * (figure.get_figwidth() if figure else TEXT_WIDTH) / (stop - start)
    taken: list[float] = []
    for value in sorted(eps):
        text = f"{value:g}"
        half = 0.3 * SMALL_SIZE * (len(text) + 1)
        left = points * value - half
        level = next((k for k, end in enumerate(taken) if end <= left), len(taken))
        taken[level : level + 1] = [points * value + half]
        axes.axvline(value, color="#444444", linewidth=0.8, linestyle=DASHES[1], zorder=1.5)
        axes.annotate(
            text,
            (value, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 1.5 + SMALL_SIZE * level),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=SMALL_SIZE,
            color="#444444",
        )


def show_legend(figure: Figure, axes: Axes) -> None:
    """What each line is, above the axes, where it hides nothing; as many a row as there is room.

    The figure grows by the legend's height, so that the axes keep theirs.
    """
    handles, labels = axes.get_legend_handles_labels()
    if not labels:
        return
    # A glyph is about 0.55 of the type size wide; the handle and its gaps take six of them.
    longest = (max(len(label) for label in labels) + 6) * 0.55 * TICK_SIZE / 72
    columns = max(1, min(len(labels), int(figure.get_figwidth() / longest)))
    rows = -(-len(labels) // columns)
    figure.set_figheight(figure.get_figheight() + 0.165 * rows)
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=-(-len(labels) // rows),
        frameon=False,
        fontsize=TICK_SIZE,
        handlelength=2.2,
        columnspacing=1.2,
        borderaxespad=0.2,
    )


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure; the suffix (.pdf, .svg, .png) chooses the format."""
    from matplotlib import rc_context

    # Without the date of its making, the same figure is the same file.
    metadata = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(path.suffix)
    try:
        with rc_context({"pdf.fonttype": EMBEDDED_TRUETYPE, "svg.hashsalt": "radii"}):
            figure.savefig(path, dpi=200, metadata=metadata)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: the figure cannot be written ({error})") from None
