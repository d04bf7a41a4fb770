"""Kolmogorov-Smirnov matrices as in the per-class paper's appendix B."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from radii.distributions import Distribution, KsMatrix, ks_matrix
from radii.errors import DataError, InputError
from radii.plots.groups import groups_of, left_out_text, missing_group
from radii.plots.matrices import frame_cells, short, shortened
from radii.plots.panels import new_panels
from radii.plots.style import LABEL_SIZE, SMALL_SIZE, TEXT_WIDTH, TICK_SIZE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_ks_matrix", "ks_matrices"]

GROUNDS = {
    "differ (Holm)": ("#0072B2", "white"),
    "differ (one test)": ("#9ecbe8", "black"),
    "no difference shown": ("#f5e7b2", "black"),
}
"""Ground and ink of a cell: significant among all tests, on its own only, or not at all."""


def ks_matrices(
    distribution: Distribution, by: str = "class", each: str | None = None
) -> dict[str, KsMatrix]:
    """One matrix for each group of `each`: of classes or targets a network, of networks a class.

    Groups with nothing to compare are left out.
    """
    panel = each or ("network" if by != "network" else None)
    parts = (
        {"": distribution}
        if panel is None
        else {group.name: group.distribution for group in groups_of(distribution, panel)}
    )
    found, reason = {}, ""
    for name, part in parts.items():
        try:
            found[name] = ks_matrix(part, by)
        except InputError as error:
            reason = str(error)
    if not found:
        raise DataError(reason)
    if by != "network" and all(matrix.keys == (None,) for matrix in found.values()):
        raise missing_group(by)
    return found


def draw_ks_matrix(
    distribution: Distribution,
    by: str = "class",
    *,
    each: str | None = None,
    level: float = 0.05,
    width: float = TEXT_WIDTH,
) -> Figure:
    """The largest distance between the proven radii's distributions, for every pair of groups.

    Training inputs are compared below the diagonal, testing inputs above it, and training with
    testing on it. Blue cells differ after Holm's correction over the matrix, pale ones only if
    theirs were the only test, as the paper takes it; yellow ones are not shown to differ. Results
    without any answer have no value to test; the title counts them.
    """
    from matplotlib.patches import Patch

    matrices = ks_matrices(distribution, by, each)
    size = max(len(matrix.keys) for matrix in matrices.values())
    longest = max(len(shortened(str(key))) for matrix in matrices.values() for key in matrix.keys)
    names = 0.4 + 0.045 * longest
    cell = 0.3 if size <= 12 else 0.22
    figure, axes = new_panels(
        [shortened(name) for name in matrices],
        width=width,
        panel_width=min(width, names + cell * size),
        panel_height=names + 0.3 + 0.7 * cell * size,
        x_label=by,
        y_label=by,
    )
    for panel, matrix in zip(axes, matrices.values(), strict=True):
        _draw(panel, matrix, level)
    title = "KS statistic; training below the diagonal, testing above"
    left_out = left_out_text(sum(sum(matrix.left_out) for matrix in matrices.values()))
    handles = [Patch(facecolor=ground, label=name) for name, (ground, _) in GROUNDS.items()]
    figure.set_figheight(figure.get_figheight() + (0.5 if left_out else 0.35))
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=3,
        frameon=False,
        fontsize=SMALL_SIZE if width < 4 else TICK_SIZE,
        handlelength=1.0,
        handletextpad=0.4,
        columnspacing=1.0,
        title=f"{title}\n{left_out}" if left_out else title,
        title_fontsize=LABEL_SIZE if width >= 4 else TICK_SIZE,
    )
    return figure


def _draw(axes: Axes, matrix: KsMatrix, level: float) -> None:
    from matplotlib.colors import ListedColormap

    adjusted, alone = matrix.differ(level), matrix.differ(level, is_adjusted=False)
    kinds = np.where(adjusted, 0.0, np.where(alone, 1.0, 2.0))
    kinds[np.isnan(matrix.statistics)] = np.nan
    grounds = ListedColormap([ground for ground, _ in GROUNDS.values()]).with_extremes(bad="white")
    axes.imshow(
        np.ma.masked_invalid(kinds),
        cmap=grounds,
        vmin=-0.5,
        vmax=2.5,
        aspect="auto",
        interpolation="none",
    )
    inks = [ink for _, ink in GROUNDS.values()]
    for row, column in np.argwhere(~np.isnan(matrix.statistics)):
        axes.text(
            column,
            row,
            short(float(matrix.statistics[row, column]), 2),
            ha="center",
            va="center",
            fontsize=SMALL_SIZE,
            color=inks[int(kinds[row, column])],
            in_layout=False,
        )
    names = [str(key) for key in matrix.keys]
    frame_cells(axes, names, names)
    size = len(names)
    steps = np.repeat(np.arange(size + 1), 2) - 0.5
    for x, y in ((steps[1:], steps[:-1]), (steps[:-1], steps[1:])):
        axes.plot(x, y, color="#444444", linewidth=0.9, zorder=4, clip_on=False)
    axes.set_xlim(-0.5, size - 0.5)
    axes.set_ylim(size - 0.5, -0.5)
