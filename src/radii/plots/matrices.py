"""A table of numbers as a heat map, in which every cell also tells its number."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from radii.plots.style import SMALL_SIZE, TICK_SIZE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_matrix", "frame_cells", "short", "shortened"]

Float64 = npt.NDArray[np.float64]

UNKNOWN = "#eeeeee"
"""The ground of cells about which nothing is known."""


def short(value: float, digits: int = 3) -> str:
    """A share or radius in a narrow cell: `.043`, `1`; a dash where there is none."""
    if np.isnan(value):
        return "–"
    text = f"{value:.{digits}f}"
    if float(text) in (0.0, 1.0):
        return str(int(float(text)))
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def draw_matrix(
    axes: Axes,
    values: Float64,
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    colours: str,
    limits: tuple[float, float],
    told: Callable[[float], str] = short,
    marks: Collection[tuple[int, int]] = (),
) -> Any:
    """Draw a table; returns the image, for a colour bar. NaN is a cell without a number.

    Cells in `marks` have a star behind their number.
    """
    from matplotlib import colormaps
    from matplotlib.colors import Normalize

    palette = colormaps[colours].with_extremes(bad=UNKNOWN)
    scale = Normalize(*limits)
    image = axes.imshow(
        np.ma.masked_invalid(values), cmap=palette, norm=scale, aspect="auto", interpolation="none"
    )
    for row, column in np.ndindex(values.shape):
        value = float(values[row, column])
        axes.text(
            column,
            row,
            told(value) + ("*" if (row, column) in marks else ""),
            ha="center",
            va="center",
            fontsize=SMALL_SIZE,
            color="#888888" if np.isnan(value) else _readable_on(palette(scale(value))),
            in_layout=False,  # it lies within its cell; measuring hundreds of texts takes seconds
        )
    frame_cells(axes, rows, columns)
    return image


def shortened(name: str, limit: int = 22) -> str:
    """A name whose middle gives way to an ellipsis where it is too long to stand at a table."""
    if len(name) <= limit:
        return name
    end = limit // 2
    return f"{name[: limit - end - 1]}…{name[-end:]}"


def frame_cells(axes: Axes, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Names along both sides, white lines between the cells, and no spines."""
    longest = max((len(name) for name in columns), default=0)
    axes.set_xticks(range(len(columns)), [shortened(name) for name in columns])
    if longest > 3:
        axes.tick_params(axis="x", rotation=45)
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("right")
            label.set_rotation_mode("anchor")
    axes.set_yticks(range(len(rows)), [shortened(name) for name in rows])
    axes.set_xticks(np.arange(len(columns) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
    axes.grid(visible=False, which="major")
    axes.grid(visible=True, which="minor", color="white", linewidth=1.0)
    axes.set_axisbelow(False)
    axes.tick_params(which="both", length=0, labelsize=TICK_SIZE)
    axes.spines[:].set_visible(False)


def _readable_on(ground: tuple[float, float, float, float]) -> str:
    """Black or white, whichever stands out more by relative luminance."""
    red, green, blue = (
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
        for channel in ground[:3]
    )
    return "black" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "white"
