"""How estimates of global robustness from many samples gather as their stated error shrinks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from radii.errors import DataError
from radii.statistics import RepeatedEstimates, plan_samples, repeat_estimates
from radii.views.figures._style import (
    COLOURS,
    LABEL_SIZE,
    TEXT_WIDTH,
    TICK_SIZE,
    colour_of,
    groups_of,
    new_figure,
    show_legend,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from radii.statistics import Distribution


ERRORS = (0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.04, 0.03, 0.02)

DOT_SPREAD = 0.25
"""How far the dots of one error stand apart, in steps between errors."""


def draw_convergence(
    distribution: Distribution,
    eps: float,
    *,
    by: Sequence[str] = ("network",),
    confidence: float = 0.95,
    repeats: int = 50,
    width: float = TEXT_WIDTH,
) -> Figure:
    """Estimates of robust accuracy at an eps, from many samples of the inputs that were measured.

    Those by proof count what is proven, those by attack what is not refuted. Errors that need more
    inputs than there are are left out.
    """
    groups = groups_of(distribution, by)
    smallest = min(len(group.distribution) for group in groups)
    errors = [error for error in ERRORS if plan_samples(error, confidence).samples <= smallest]
    if not errors:
        raise DataError(f"{smallest} inputs are too few: {ERRORS[0]:g} is the largest error drawn")
    series = {}
    for group in groups:
        name = f"{group.name}, " if len(groups) > 1 else ""
        sides = {
            "by proof": group.distribution.lower >= eps,
            "by attack": group.distribution.upper > eps,
        }
        for way, values in sides.items():
            series[name + way] = repeat_estimates(
                values, errors=errors, confidence=confidence, repeats=repeats
            )
    return draw_repetition(series, measure=f"R({eps:g})", width=width)


def draw_repetition(
    series: Mapping[str, Sequence[RepeatedEstimates]],
    *,
    measure: str = "R",
    width: float = TEXT_WIDTH,
) -> Figure:
    """Every estimate as a dot over its stated error, which shrinks to the right.

    A line shows the size of the samples. Where values are bracketed, a dot is the middle of its
    interval, which a hair line shows.
    """
    if not series or not all(series.values()):
        raise DataError("there are no estimates to draw")
    figure, axes = new_figure(width)
    first = next(iter(series.values()))
    errors = [each.error for each in first]
    if any([each.error for each in other] != errors for other in series.values()):
        raise DataError("all series need the same errors")
    for place, (name, estimates) in enumerate(series.items()):
        shift = DOT_SPREAD * (place - (len(series) - 1) / 2)
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
