"""How every figure looks: colour-blind safe, fit for a paper's column, no global state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "DASHES", "blank_figure", "draw_band", "new_figure", "save_figure"]

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

DASHES = ("solid", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)))
"""Line styles that go with the colours, so that a print without colour can be read."""

EMBEDDED_TRUETYPE = 42
"""The PDF font type that conferences accept; matplotlib's default, Type 3, is refused by many."""

Float64 = npt.NDArray[np.float64]


def blank_figure(width: float, height: float) -> Figure:
    """A figure without axes, in inches, drawn without a display and without touching pyplot."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def new_figure(width: float = 6.0, height: float = 3.7) -> tuple[Figure, Axes]:
    """A figure with one pair of axes in the style of all radii figures."""
    figure = blank_figure(width, height)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=9)
    return figure, axes


def draw_band(
    axes: Axes, place: int, label: str, edges: Float64, witnessed: Float64, proven: Float64
) -> None:
    """Two step functions over the same edges, and the gap between them shaded.

    `place` chooses colour and dashes. The witnessed side is the thick line, which the legend shows.
    """
    colour = COLOURS[place % len(COLOURS)]
    dashes = DASHES[place % len(DASHES)]
    axes.stairs(
        witnessed, edges, baseline=None, color=colour, linestyle=dashes, linewidth=1.5, label=label
    )
    axes.stairs(proven, edges, baseline=None, color=colour, linewidth=0.6)
    axes.stairs(proven, edges, baseline=witnessed, fill=True, color=colour, alpha=0.25, linewidth=0)


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
