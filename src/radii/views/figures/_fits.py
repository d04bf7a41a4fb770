"""Do parametric families describe the radii? Fitted curves over the data, and quantile plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from radii.errors import DataError, InputError
from radii.statistics import (
    FAMILIES,
    Distribution,
    Fit,
    Float64,
    family_named,
    fit,
    goodness_of_fit,
)
from radii.views.figures._curves import ShareCurve, ecdf_curves
from radii.views.figures._matrices import shortened
from radii.views.figures._style import (
    COLOURS,
    SMALL_SIZE,
    TEXT_WIDTH,
    colour_of,
    dashes_of,
    draw_diagonal,
    groups_of,
    new_panels,
    show_legend,
    with_left_out,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


CURVE_POINTS = 200


@dataclass(frozen=True, slots=True, eq=False)
class FittedGroup:
    """The correctly classified inputs of a group, and the families that could be fitted to them.

    The best fit (smallest AIC) is first. `p_value` is that of the Monte-Carlo test of the best
    fit, None if it was not asked for.
    """

    name: str
    curve: ShareCurve
    fits: tuple[Fit, ...]
    p_value: float | None


@dataclass(frozen=True, slots=True, eq=False)
class QuantilePoints:
    """Quantiles of a fit, and the intervals in which those of the data lie.

    Results without any answer, which add nothing to the fit, are `left_out` of both.
    """

    name: str
    family: str
    fitted: Float64
    lower: Float64
    upper: Float64
    left_out: int = 0


def fitted_groups(
    distribution: Distribution,
    *,
    by: str | Sequence[str] = "network",
    families: Sequence[str] | None = None,
    simulations: int = 0,
) -> list[FittedGroup]:
    """Fit families to each group; groups without a correct input are left out.

    With `simulations`, the best fit of each group is tested by as many simulated samples.
    """
    wanted = [family_named(name).name for name in (families or FAMILIES)]
    results = []
    for group in groups_of(distribution, by):
        if not group.distribution.holds.any():
            continue
        right = group.distribution.correctly_classified()
        fits = []
        for name in wanted:
            try:
                fits.append(fit(right, name))
            except InputError:  # too few brackets for this family; others may still fit
                continue
        fits.sort(key=lambda fitted: fitted.aic)
        p_value = (
            _p_value_of_fit(right, fits[0].family, simulations) if fits and simulations else None
        )
        (curve,) = ecdf_curves(right.labelled(network=group.name))
        results.append(FittedGroup(group.name, curve, tuple(fits), p_value))
    if not any(group.fits for group in results):
        raise DataError("no group has enough brackets with witnesses for a fit")
    return results


def _p_value_of_fit(distribution: Distribution, family: str, simulations: int) -> float | None:
    try:
        return goodness_of_fit(distribution, family, simulations=simulations).p_value
    except InputError:  # fitted, but too degenerate for a test
        return None


def qq_points(distribution: Distribution, family: str, name: str = "") -> QuantilePoints:
    """The data's quantiles at (i - 1/2) / n, with those of the family fitted to them."""
    right = distribution.correctly_classified()
    left_out = right.unsolved
    right = right.solved()
    fitted = fit(right, family)
    shares = (np.arange(len(right)) + 0.5) / len(right)
    intervals = np.array([right.quantile(float(share)) for share in shares])
    lower, upper = intervals.T
    return QuantilePoints(name, family, fitted.quantile(shares), lower, upper, left_out)


def draw_fits(
    distribution: Distribution,
    *,
    by: str | Sequence[str] = "network",
    families: Sequence[str] | None = None,
    simulations: int = 999,
    width: float = TEXT_WIDTH,
) -> Figure:
    """The empirical distribution, its gap shaded, and fitted families: one panel per group.

    Each panel names the family of the smallest AIC, and the p-value of its Monte-Carlo test: a
    small one says that even the best family does not describe the radii.
    """
    groups = fitted_groups(distribution, by=by, families=families, simulations=simulations)
    wanted = list(families or FAMILIES)
    figure, axes = new_panels(
        [shortened(group.name) for group in groups],
        width=width,
        x_label="radius $\\varepsilon$ of correctly classified inputs",
        y_label="share broken within $\\varepsilon$",
    )
    for panel, group in zip(axes, groups, strict=True):
        curve = group.curve
        panel.stairs(
            curve.most, curve.edges, baseline=curve.least, fill=True, color="#bbbbbb", linewidth=0
        )
        panel.stairs(curve.least, curve.edges, baseline=None, color="#666666", linewidth=0.8)
        panel.stairs(curve.most, curve.edges, baseline=None, color="#666666", linewidth=0.5)
        places = np.linspace(0, curve.edges[-1], CURVE_POINTS)
        for fitted in sorted(group.fits, key=lambda f: wanted.index(f.family)):
            place = wanted.index(fitted.family)
            panel.plot(
                places,
                fitted.broken(places),
                color=colour_of(place),
                linestyle=dashes_of(place),
                linewidth=1.1,
                label=family_named(fitted.family).title,
            )
        _write_fit(panel, group)
        panel.set_xlim(0, curve.edges[-1])
        panel.set_ylim(0, 1.02)
    show_legend(figure, *axes)
    return figure


def _write_fit(axes: Axes, group: FittedGroup) -> None:
    text = "no fit"
    if group.fits:
        text = f"best: {family_named(group.fits[0].family).title}"
        if group.p_value is not None:
            text += f"\np = {group.p_value:.3f}"
    axes.text(
        0.97,
        0.05,
        text,
        transform=axes.transAxes,
        ha="right",
        va="bottom",
        fontsize=SMALL_SIZE,
        bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 1},
    )


def draw_qq(
    distribution: Distribution,
    family: str = "lognormal",
    *,
    by: str | Sequence[str] = "network",
    width: float = TEXT_WIDTH,
) -> Figure:
    """The data's quantiles, as intervals, over those of the fitted family: one panel per group.

    Where the family describes the radii, the diagonal passes through the intervals. Results without
    any answer are left out, and counted below.
    """
    title = family_named(family).title
    shown, reason = [], ""
    for group in groups_of(distribution, by):
        try:
            shown.append(qq_points(group.distribution, family, group.name))
        except InputError as error:
            reason = str(error)
    if not shown:
        raise DataError(f"no group can be fitted: {reason}")
    figure, axes = new_panels(
        [shortened(points.name) for points in shown],
        width=width,
        x_label=with_left_out(f"quantiles of the {title} fit", sum(p.left_out for p in shown)),
        y_label="quantiles of the radii",
    )
    for panel, points in zip(axes, shown, strict=True):
        ends = [*points.fitted, *points.lower, *points.upper[np.isfinite(points.upper)]]
        edge = 1.05 * max(ends)
        draw_diagonal(panel, edge)
        # A tick at each end keeps brackets of a narrow grid visible.
        panel.vlines(
            points.fitted,
            points.lower,
            np.minimum(points.upper, edge),
            color=COLOURS[0],
            linewidth=1.4,
        )
        panel.plot(points.fitted, points.lower, "_", color=COLOURS[0], markersize=3)
        panel.set_xlim(min(0.0, 1.05 * float(points.fitted.min())), edge)
    return figure
