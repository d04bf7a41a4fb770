"""Heat maps whose cells show their numbers, and Kolmogorov-Smirnov matrices drawn as such.

The latter are those of the per-class paper's appendix B.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from radii.errors import DataError, InputError
from radii.statistics import Distribution, Float64, KsMatrix, ks_matrix
from radii.views.figures._style import (
    LABEL_SIZE,
    PAGE_HEIGHT,
    SMALL_SIZE,
    TEXT_WIDTH,
    TICK_SIZE,
    TINY_SIZE,
    groups_of,
    missing_group,
    new_panels,
    with_left_out,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure


UNKNOWN_COLOUR = "#eeeeee"
"""The ground of cells about which nothing is known."""
PLURALS = {"class": "classes", "network": "networks", "target": "targets"}
CELL_COLOURS = {
    "differ (Holm)": ("#0072B2", "white"),
    "differ (one test)": ("#9ecbe8", "black"),
    "no difference shown": ("#f5e7b2", "black"),
}
"""Ground and ink of a cell: significant among all tests, on its own only, or not at all."""


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
    text_of: Callable[[float], str] = short,
    marks: Collection[tuple[int, int]] = (),
) -> None:
    """Draw a table. NaN is a cell on a grey ground; cells in `marks` have a star."""
    from matplotlib import colormaps
    from matplotlib.colors import Normalize

    palette = colormaps[colours].with_extremes(bad=UNKNOWN_COLOUR)
    scale = Normalize(*limits)
    _draw_grounds(axes, values, palette, scale)
    for place in np.ndindex(values.shape):
        value = float(values[place])
        ink = "#888888" if np.isnan(value) else _readable_on(palette(scale(value)))
        _write(axes, place, text_of(value) + ("*" if place in marks else ""), ink, SMALL_SIZE)
    frame_cells(axes, rows, columns)


def _draw_grounds(axes: Axes, values: Float64, palette: Colormap, scale: Normalize) -> None:
    axes.imshow(
        np.ma.masked_invalid(values), cmap=palette, norm=scale, aspect="auto", interpolation="none"
    )


def _write(axes: Axes, place: tuple[int, ...], text: str, ink: str, letters: float) -> None:
    """The text of a cell. It has no part in the layout: it lies within its cell, and measuring
    hundreds of texts takes seconds."""
    axes.text(
        place[1],
        place[0],
        text,
        ha="center",
        va="center",
        fontsize=letters,
        color=ink,
        in_layout=False,
    )


def shortened(name: str, limit: int = 22) -> str:
    """A name with an ellipsis in the middle where it is too long for a label."""
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


def ks_matrices(
    distribution: Distribution,
    by: str | Sequence[str] = "class",
    side: Literal["lower", "upper"] = "lower",
) -> dict[str, KsMatrix]:
    """A matrix of the groups of `by`; of two names, one for each group of the second.

    That is by default the network. Groups with nothing to compare are left out. `side` is that of
    the brackets which is compared.
    """
    by, *panels = (by,) if isinstance(by, str) else by
    panel = panels[0] if panels else ("network" if by != "network" else None)
    parts = (
        {"": distribution}
        if panel is None
        else {group.name: group.distribution for group in groups_of(distribution, panel)}
    )
    matrices, reason = {}, ""
    for name, part in parts.items():
        try:
            matrices[name] = ks_matrix(part, by, side)
        except InputError as error:
            reason = str(error)
    if not matrices:
        raise DataError(reason)
    if by != "network" and all(matrix.keys == (None,) for matrix in matrices.values()):
        raise missing_group(by)
    return matrices


CELL_SIDE, WIDE_CELL_SIDE, SMALLEST_CELL_SIDE, LOWEST_CELL_SIDE = 0.3, 0.22, 0.16, 0.12
"""Inches. A cell is so wide; its number needs so much, in tiny letters so much; and is so high."""


def ks_title(distribution: Distribution, by: str, side: str = "lower") -> str:
    """What the cells are; which triangle is of which inputs only where there are two kinds."""
    what = "KS statistic" if side == "lower" else "KS statistic of witnessed distances"
    splits = sorted({str(name) for name in np.unique(distribution.column("split"))})
    if "test" in splits and len(splits) > 1:
        return f"{what}; training below the diagonal, testing above"
    of_inputs = {"train": ", training inputs", "test": ", testing inputs"}.get(splits[0], "")
    return f"{what} of every two {PLURALS.get(by, by)}{of_inputs if len(splits) == 1 else ''}"


def _panel_size(count: int, size: int, names: float, width: float) -> tuple[float, float, float]:
    """Width and height of a panel, and the width of a cell: as large as one page allows, in inches.

    `names` is the room that names take beside and below the cells. Where even the smallest cells
    do not fit on a page, the figure is longer than one.
    """
    around, across = names + 0.3, 1
    while True:
        cell = min(CELL_SIDE, (width / across - names) / size)
        room = (PAGE_HEIGHT - 1.1) / -(-count // across) - around
        high = 0.7 * max(cell, WIDE_CELL_SIDE) * size
        is_last = across == count or (width / (across + 1) - names) / size < SMALLEST_CELL_SIDE
        if high <= room or is_last:
            high = min(high, max(room, LOWEST_CELL_SIDE * size))
            return min(width / across, names + CELL_SIDE * size), around + high, cell
        across += 1


def draw_ks_matrix(
    distribution: Distribution,
    by: str | Sequence[str] = "class",
    *,
    level: float = 0.05,
    side: Literal["lower", "upper"] = "lower",
    width: float = TEXT_WIDTH,
) -> Figure:
    """The largest distance between the proven radii's distributions, for every pair of groups.

    Groups and matrices are those of `ks_matrices`. With `side="upper"`, distances are between the
    distributions of the witnesses' distances.

    Training inputs are compared below the diagonal, testing inputs above it, and training with
    testing on it; inputs of one kind fill one triangle. Blue cells differ after Holm's correction
    over the matrix. Pale ones differ only if each test is taken alone, as in the paper; yellow ones
    are not shown to differ. Results without any answer have no value to test; the title counts
    them. The figure fits a page where it can.
    """
    from matplotlib.patches import Patch

    matrices = ks_matrices(distribution, by, side)
    compared = by if isinstance(by, str) else by[0]
    size = max(len(matrix.keys) for matrix in matrices.values())
    longest = max(len(shortened(str(key))) for matrix in matrices.values() for key in matrix.keys)
    names = 0.4 + 0.045 * longest
    panel_width, panel_height, cell = _panel_size(len(matrices), size, names, width)
    figure, axes = new_panels(
        [shortened(name) for name in matrices],
        width=width,
        panel_width=panel_width,
        panel_height=panel_height,
        x_label=compared,
        y_label=compared,
    )
    for panel, matrix in zip(axes, matrices.values(), strict=True):
        _draw_cells(panel, matrix, level, SMALL_SIZE if cell >= WIDE_CELL_SIDE else TINY_SIZE)
    title = ks_title(distribution, compared, side)
    left_out = sum(sum(matrix.left_out) for matrix in matrices.values())
    handles = [Patch(facecolor=ground, label=name) for name, (ground, _) in CELL_COLOURS.items()]
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
        title=with_left_out(title, left_out),
        title_fontsize=LABEL_SIZE if width >= 4 else TICK_SIZE,
    )
    return figure


def _draw_cells(axes: Axes, matrix: KsMatrix, level: float, letters: float) -> None:
    from matplotlib.colors import ListedColormap, Normalize

    adjusted, alone = matrix.differ(level), matrix.differ(level, is_adjusted=False)
    kinds = np.where(adjusted, 0.0, np.where(alone, 1.0, 2.0))
    kinds[np.isnan(matrix.statistics)] = np.nan
    grounds, inks = zip(*CELL_COLOURS.values(), strict=True)
    palette = ListedColormap(grounds).with_extremes(bad="white")
    _draw_grounds(axes, kinds, palette, Normalize(-0.5, 2.5))
    for row, column in np.argwhere(~np.isnan(matrix.statistics)):
        text = short(float(matrix.statistics[row, column]), 2)
        _write(axes, (row, column), text, inks[int(kinds[row, column])], letters)
    names = [str(key) for key in matrix.keys]
    frame_cells(axes, names, names)
    size = len(names)
    steps = np.repeat(np.arange(size + 1), 2) - 0.5
    for x, y in ((steps[1:], steps[:-1]), (steps[:-1], steps[1:])):
        axes.plot(x, y, color="#444444", linewidth=0.9, zorder=4, clip_on=False)
    axes.set_xlim(-0.5, size - 0.5)
    axes.set_ylim(size - 0.5, -0.5)
