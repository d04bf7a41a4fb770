"""How every figure looks: colour-blind safe, fit for a paper's column, no global state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from radii.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "new_figure", "save_figure"]

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


def new_figure(width: float = 6.0, height: float = 3.7) -> tuple[Figure, Axes]:
    """An empty figure, in inches, drawn without a display and without touching pyplot."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure; the suffix (.pdf, .svg, .png) chooses the format."""
    try:
        figure.savefig(path, dpi=200)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: the figure cannot be written ({error})") from None
