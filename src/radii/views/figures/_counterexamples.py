"""Inputs beside the closest counterexample of each network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.errors import DataError
from radii.statistics import Counterexample
from radii.views.figures._style import blank_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Picture = npt.NDArray[np.floating]

FEWEST_PIXELS = 49
"""A flat input with fewer features is shown as numbers, even if it could be a square."""


def is_picture(values: npt.NDArray[np.floating]) -> bool:
    """Whether an input is shown as a picture: `as_picture` takes it, and it is not a short list."""
    if max(np.squeeze(values).shape, default=1) == values.size < FEWEST_PIXELS:
        return False
    try:
        as_picture(values)
    except DataError:
        return False
    return True


def as_picture(values: npt.NDArray[np.floating], low: float = 0.0, high: float = 1.0) -> Picture:
    """An input as a picture: channels last, scaled to [0, 1]; a flat input must be a square."""
    span = max(high - low, np.finfo(np.float64).tiny)
    pixels = np.clip((np.asarray(values, np.float64) - low) / span, 0, 1)
    squeezed = np.squeeze(pixels)
    if squeezed.ndim == 1:
        side = round(squeezed.size**0.5)
        if side * side == squeezed.size:
            return squeezed.reshape(side, side)
    if squeezed.ndim == 3 and squeezed.shape[0] == 3:
        return np.moveaxis(squeezed, 0, -1)
    if squeezed.ndim == 2 or (squeezed.ndim == 3 and squeezed.shape[-1] == 3):
        return squeezed
    raise DataError(f"an input of shape {np.shape(values)} is not a picture")


def draw_counterexamples(examples: Sequence[Counterexample]) -> Figure:
    """A row of originals, then one per network: what breaks it, as which class, how far away."""
    if not examples:
        raise DataError("there is no counterexample to draw")
    networks = list(dict.fromkeys(example.network for example in examples))
    indices = list(dict.fromkeys(example.index for example in examples))
    figure = blank_figure(1.3 + 0.95 * len(indices), 0.1 + 1.2 * (len(networks) + 1))
    # All panels share one pair of axes, one unit each: laying out dozens of axes takes seconds.
    axes = figure.add_subplot()
    for column, index in enumerate(indices):
        first = next(example for example in examples if example.index == index)
        _show(axes, 0, column, as_picture(first.input, *first.pixel_range), str(first.label))
    for example in examples:
        row, column = networks.index(example.network) + 1, indices.index(example.index)
        caption = f"→ {example.witness_class},  {example.distance:.3f}"
        _show(axes, row, column, as_picture(example.counterexample, *example.pixel_range), caption)
    for row, name in enumerate(["input", *networks]):
        axes.text(-0.1, _top(row) + 0.5, name, ha="right", va="center", fontsize=8)
    axes.set_xlim(-0.05, len(indices))
    axes.set_ylim(_top(len(networks)) + 1.05, -0.3)
    axes.set_axis_off()
    return figure


def _top(row: int) -> float:
    """Where a row of panels begins; its captions stand above."""
    return 1.3 * row


def _show(axes: Axes, row: int, column: int, picture: Picture, caption: str) -> None:
    left, right, top, bottom = column, column + 0.95, _top(row), _top(row) + 0.95
    axes.imshow(
        picture,
        cmap="gray_r",
        vmin=0,
        vmax=1,
        interpolation="nearest",
        extent=(left, right, bottom, top),
    )
    axes.plot(
        [left, right, right, left, left], [top, top, bottom, bottom, top], "#cccccc", linewidth=0.8
    )
    axes.text((left + right) / 2, top - 0.06, caption, ha="center", va="bottom", fontsize=8)
