"""Estimates of global robustness over their error: how they gather as the error shrinks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from radii.errors import DataError
from radii.plots.style import (
    COLOURS,
    LABEL_SIZE,
    TEXT_WIDTH,
    TICK_SIZE,
    colour_of,
    new_figure,
    show_legend,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from radii.guarantees import RepeatedEstimates

__all__ = ["draw_repetition"]

SPREAD = 0.25
"""How far the dots of one error stand apart, in steps between errors."""


def draw_repetition(
    series: Mapping[str, Sequence[RepeatedEstimates]],
    *,
    measure: str = "R",
    width: float = TEXT_WIDTH,
) -> Figure:
    """A dot an estimate, for each error, which shrinks to the right; a line for the sample size.

    Where values are bracketed a dot is the middle of its interval, which a hair line shows.
    """
    if not series or not all(series.values()):
        raise DataError("there are no estimates to draw")
    figure, axes = new_figure(width)
    first = next(iter(series.values()))
    errors = [each.error for each in first]
    if any([each.error for each in other] != errors for other in series.values()):
        raise DataError("all series need the same errors")
    for place, (name, estimates) in enumerate(series.items()):
        shift = SPREAD * (place - (len(series) - 1) / 2)
        for column, each in enumerate(estimates):
            jitter = np.linspace(-0.1, 0.1, len(each.least)) if len(each.least) > 1 else np.zeros(1)
            at, colour = column + shift + jitter, colour_of(place)
            axes.vlines(at, each.least, each.most, color=colour, linewidth=0.5, alpha=0.5)
            middles = (each.least + each.most) / 2
            label = name if column == 0 else None
            axes.scatter(at, middles, s=4, color=colour, linewidths=0, label=label)
    axes.set_xticks(range(len(errors)), [f"{error:g}" for error in errors])
    axes.set_xlabel("error that is stated")
    axes.set_ylabel(f"estimate of {measure}")
    sizes = axes.twinx()
    sizes.plot(range(len(errors)), [each.samples for each in first], color=COLOURS[6], linewidth=1)
    sizes.set_yscale("log")
    sizes.set_ylabel("inputs in the sample", fontsize=LABEL_SIZE)
    sizes.tick_params(labelsize=TICK_SIZE)
    show_legend(figure, axes)
    return figure
