"""Inputs beside the closest counterexample of each network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.errors import DataError
from radii.plots.style import blank_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Counterexample", "as_picture", "draw_counterexamples"]

Picture = npt.NDArray[np.floating]


@dataclass(frozen=True, slots=True, eq=False)
class Counterexample:
    """An input and the closest input known at which a network's property fails.

    Pictures are in [0, 1], shaped (height, width) or (height, width, 3): see `as_picture`.
    """

    network: str
    index: int
    label: str
    original: Picture
    broken: Picture
    seen_as: str
    distance: float


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
    """A row of originals, then a row a network: what breaks it, seen as what, how far away."""
    if not examples:
        raise DataError("there is no counterexample to draw")
    networks = list(dict.fromkeys(example.network for example in examples))
    indices = list(dict.fromkeys(example.index for example in examples))
    figure = blank_figure(1.5 + 0.95 * len(indices), 1.22 * (len(networks) + 1))
    grid = figure.subplots(len(networks) + 1, len(indices), squeeze=False)
    for axes in grid.flat:
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[:].set_visible(False)
    for example in examples:
        column, row = indices.index(example.index), networks.index(example.network) + 1
        _show(grid[0, column], example.original, f"{example.label}")
        caption = f"$\\to$ {example.seen_as},  {example.distance:.3f}"
        _show(grid[row, column], example.broken, caption)
    for row, name in enumerate(["input", *networks]):
        grid[row, 0].set_ylabel(
            name, rotation=0, horizontalalignment="right", verticalalignment="center", fontsize=8
        )
    return figure


def _show(axes: Axes, picture: Picture, caption: str) -> None:
    axes.imshow(picture, cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
    axes.set_title(caption, fontsize=8, pad=3)
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color("#cccccc")
