"""Does a fitted family describe the radii? The papers' check beside a test of the right level."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import kstest

from radii.errors import DataError
from radii.statistics._columns import Float64
from radii.statistics._families import Family, family_named
from radii.statistics._fits import Fit, fit, fit_brackets
from radii.statistics._grid_fits import FEWEST_SIMULATIONS, fit_on_grid
from radii.statistics._tests import side_values

if TYPE_CHECKING:
    from radii.statistics._distribution import Distribution


@dataclass(frozen=True, slots=True, eq=False)
class GoodnessOfFit:
    """Two tests of one family.

    `ks_p_value` is the papers': the proven sides against the family fitted to them, as if they were
    exact and the parameters known. It is None (invalid) if a side is 0, which the family never is.
    Brackets without any answer have no part in either test; `fit` counts them.
    `p_value` is of the Monte-Carlo test, which refits and re-grids every simulated sample.
    """

    fit: Fit
    ks_statistic: float | None
    ks_p_value: float | None
    statistic: float
    p_value: float
    simulations: int
    assumption: str

    def verdict(self, level: float = 0.05) -> str:
        """What the tests say, in a sentence; plainly where they disagree."""
        title = family_named(self.fit.family).title
        rejects = self.p_value < level
        result = f"{'rejects' if rejects else 'does not reject'} {title} (p = {self.p_value:.3f})"
        if self.ks_p_value is None:
            return (
                f"The Monte-Carlo test {result}; the plain Kolmogorov-Smirnov check is invalid "
                "here, because some input is proven nowhere."
            )
        plain = f"p = {self.ks_p_value:.3f}"
        if (self.ks_p_value < level) == rejects:
            both = "and so does" if rejects else "and neither does"
            return f"The Monte-Carlo test {result}, {both} the plain check ({plain})."
        other = "does not" if rejects else "does"
        return (
            f"The tests disagree: the Monte-Carlo test {result}, the plain Kolmogorov-Smirnov "
            f"check {other} ({plain}). The plain check takes fitted parameters as known and values "
            "on a grid as exact; trust the Monte-Carlo test."
        )


def goodness_of_fit(
    distribution: Distribution,
    family: str = "lognormal",
    *,
    grid: Iterable[float] | None = None,
    simulations: int = 999,
    seed: int = 0,
) -> GoodnessOfFit:
    """Test a family on the correctly classified inputs.

    `grid` holds the eps values that were asked; without it they are read off the proven sides.
    """
    if simulations < FEWEST_SIMULATIONS:
        raise DataError(
            f"a Monte-Carlo test needs at least {FEWEST_SIMULATIONS} simulations, not {simulations}"
        )
    proven = side_values(distribution.correctly_classified(), "lower")
    ks = ks_check(proven, family_named(family))
    tested = fit_on_grid(distribution, family, grid, simulations=simulations, seed=seed)
    return GoodnessOfFit(
        fit=fit(distribution, family),
        ks_statistic=None if ks is None else ks[0],
        ks_p_value=None if ks is None else ks[1],
        statistic=tested.statistic,
        p_value=tested.p_value,
        simulations=simulations,
        assumption=tested.assumption,
    )


def ks_check(values: Float64, family: Family) -> tuple[float, float] | None:
    """The papers' statistic and p-value: values against the family fitted to them.

    None where a value is 0 and the family has none. The p-value is only right for parameters known
    beforehand and values without ties: with fitted ones it is too large, with many ties too small.
    """
    if family.is_positive and np.any(values <= 0):
        return None
    fitted = fit_brackets(values, values, family)
    tested = kstest(values, family.frozen(fitted.coordinates).cdf)
    return float(tested.statistic), float(tested.pvalue)
