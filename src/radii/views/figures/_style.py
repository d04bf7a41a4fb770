"""How every figure looks: colour-blind safe, fit for a paper's column, no global state.

Also what figures share: steps with a shaded gap, lines at values of eps, legends, panels, and the
groups of a distribution that are drawn as one line, box or row each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.errors import DataError
from radii.statistics import Float64

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from radii.statistics import Distribution


COLUMN_WIDTH = 3.4
"""Inches: one of the two columns of a conference paper."""

TEXT_WIDTH = 6.0
"""Inches: the text of a journal page."""

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

DASHES: tuple[Any, ...] = ("solid", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)))
"""Line styles that go with the colours, so that a print without colour can be read."""

PAGE_HEIGHT = 8.5
"""Inches: the text of a page, less some lines for a caption."""

LABEL_SIZE, TICK_SIZE, SMALL_SIZE, TINY_SIZE = 9, 8, 7, 5
"""Points. Figures are drawn at the size they are printed at, so these are what readers see."""

EMBEDDED_TRUETYPE = 42
"""The PDF font type that conferences accept; matplotlib's default, Type 3, is refused by many."""

HOW_TO_GET = {
    "class": "the results do not tell the class of an input",
    "target": "measure with --property one-to-one or become",
    "split": "the results do not tell what is training and what is test data",
    "training": "the results do not tell how networks were trained",
    "group": "name a column with `radii compare --by`, or set it with labelled(group=...)",
}
"""Why nothing can be grouped by a name, and what to do about it."""


def colour_of(place: int) -> str:
    """The colour of the group at a place."""
    return COLOURS[place % len(COLOURS)]


def dashes_of(place: int) -> Any:
    """The dashes of the group at a place; colour and dashes together repeat after 32."""
    return DASHES[(place + place // len(COLOURS)) % len(DASHES)]


def blank_figure(width: float, height: float) -> Figure:
    """A figure without axes, in inches, drawn without a display and without touching pyplot."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def new_figure(width: float = TEXT_WIDTH, height: float | None = None) -> tuple[Figure, Axes]:
    """A figure with one pair of axes in the style of all radii figures; 8:5 without a height."""
    figure = blank_figure(width, 0.62 * width if height is None else height)
    return figure, add_axes(figure)


def add_axes(figure: Figure, rows: int = 1, columns: int = 1, place: int = 1) -> Axes:
    """Axes in the style of all radii figures, at a place in a table of them."""
    axes = figure.add_subplot(rows, columns, place)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=TICK_SIZE)
    for axis in (axes.xaxis, axes.yaxis):
        axis.label.set_fontsize(LABEL_SIZE)
    axes.title.set_fontsize(LABEL_SIZE)
    return axes


def largest_side(distribution: Distribution) -> float:
    """The largest finite side of any bracket."""
    finite = distribution.upper[np.isfinite(distribution.upper)]
    return float(max(finite.max(initial=0.0), distribution.lower.max(initial=0.0)))


def last_edge(distribution: Distribution) -> float:
    """Where curves over eps end: a little beyond the largest finite side."""
    return 1.05 * largest_side(distribution) or 1.0


def step_edges(distribution: Distribution, end: float) -> Float64:
    """Every eps where one of a distribution's sides steps, from 0 to `end`."""
    finite = distribution.upper[np.isfinite(distribution.upper)]
    return np.unique(np.concatenate([[0.0], distribution.lower, finite, [end]]))


def draw_line(axes: Axes, place: int, label: str, edges: Float64, values: Float64) -> None:
    """A step function as a thick line; `place` chooses its colour and dashes."""
    axes.stairs(
        values,
        edges,
        baseline=None,
        color=colour_of(place),
        linestyle=dashes_of(place),
        linewidth=1.4,
        label=label,
    )


def draw_band(
    axes: Axes, place: int, label: str, edges: Float64, witnessed: Float64, proven: Float64
) -> None:
    """Two step functions over the same edges, and the gap between them shaded.

    `place` chooses colour and dashes. The witnessed side is the thick line, which the legend shows.
    """
    colour = colour_of(place)
    draw_line(axes, place, label, edges, witnessed)
    axes.stairs(proven, edges, baseline=None, color=colour, linewidth=0.6)
    axes.stairs(proven, edges, baseline=witnessed, fill=True, color=colour, alpha=0.25, linewidth=0)


def finish_curves(
    figure: Figure, axes: Axes, measure: str, end: float, eps: Sequence[float]
) -> None:
    """Labels, limits, marked eps and the legend of shares over eps."""
    axes.set_xlabel("radius $\\varepsilon$")
    axes.set_ylabel(measure)
    axes.set_ylim(0, 1.02)
    axes.set_xlim(0, end)
    mark_eps(axes, eps)
    show_legend(figure, axes)


def mark_eps(axes: Axes, eps: Sequence[float]) -> None:
    """Vertical lines at values of eps, named above the axes; a crowded name stands higher.

    Values beyond the limits of axes that have a fixed range are left out.
    """
    start, stop = axes.get_xlim()
    if not axes.get_autoscalex_on():
        eps = [value for value in eps if start <= value <= stop]
    figure = axes.get_figure(root=True)
    points = 0.75 * 72 * (figure.get_figwidth() if figure else TEXT_WIDTH) / (stop - start)
    ends: list[float] = []
    for value in sorted(eps):
        text = f"{value:g}"
        half = 0.3 * SMALL_SIZE * (len(text) + 1)
        left = points * value - half
        level = next((k for k, end in enumerate(ends) if end <= left), len(ends))
        ends[level : level + 1] = [points * value + half]
        axes.axvline(value, color="#444444", linewidth=0.8, linestyle=DASHES[1], zorder=1.5)
        axes.annotate(
            text,
            (value, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 1.5 + SMALL_SIZE * level),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=SMALL_SIZE,
            color="#444444",
        )


def name_rows(axes: Axes, places: Sequence[float], names: Sequence[str], margin: float) -> None:
    """Names of boxes, bars or marks that stand below each other, the first one at the top.

    `margin` is the room above the first and below the last, where rows are about 1 apart.
    """
    axes.set_yticks(places, names)
    axes.set_ylim((places[-1] if len(places) else 0) + margin, -margin)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def draw_diagonal(axes: Axes, edge: float) -> None:
    """Where both coordinates are equal, from 0 to `edge`, which are the limits of both axes."""
    axes.plot([0, edge], [0, edge], color="#999999", linewidth=0.7, zorder=1)
    axes.set_xlim(0, edge)
    axes.set_ylim(0, edge)


def show_legend(figure: Figure, *panels: Axes) -> None:
    """What each line is, above the axes, where it hides nothing; rows are as long as fits.

    Of several panels, that with the most names counts. The figure grows by the legend's height, so
    that the axes keep theirs.
    """
    legends = [panel.get_legend_handles_labels() for panel in panels]
    handles, labels = max(legends, key=lambda legend: len(legend[1]))
    if not labels:
        return
    # A glyph is about 0.55 of the type size wide; the handle and its gaps take six of them.
    longest = (max(len(label) for label in labels) + 6) * 0.55 * TICK_SIZE / 72
    columns = max(1, min(len(labels), int(figure.get_figwidth() / longest)))
    rows = -(-len(labels) // columns)
    figure.set_figheight(figure.get_figheight() + 0.165 * rows)
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=-(-len(labels) // rows),
        frameon=False,
        fontsize=TICK_SIZE,
        handlelength=2.2,
        columnspacing=1.2,
        borderaxespad=0.2,
    )


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure, in a folder that is made if need be; the suffix (.pdf, .svg, .png) chooses
    the format."""
    from matplotlib import rc_context

    # Without the date of its making, the same figure is the same file.
    metadata = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(path.suffix)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with rc_context({"pdf.fonttype": EMBEDDED_TRUETYPE, "svg.hashsalt": "radii"}):
            figure.savefig(path, dpi=200, metadata=metadata)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: the figure cannot be written ({error})") from None


def new_panels(
    titles: list[str],
    *,
    width: float,
    panel_width: float = 1.7,
    panel_height: float = 1.4,
    x_label: str = "",
    y_label: str = "",
) -> tuple[Figure, list[Axes]]:
    """A figure with a panel for each title, as many in a row as fit at `panel_width` inches.

    All share one pair of axis labels. Panels are stretched to fill the width; `panel_height` is at
    `panel_width` and grows with it, by at most one half.
    """
    columns = max(1, min(len(titles), int(width / panel_width)))
    rows = -(-len(titles) // columns)
    height = panel_height * min(1.5, width / columns / panel_width)
    figure = blank_figure(width, rows * height + 0.25)
    axes = []
    for place, title in enumerate(titles, 1):
        panel = add_axes(figure, rows, columns, place)
        panel.set_title(title, fontsize=TICK_SIZE)
        axes.append(panel)
    if x_label:
        figure.supxlabel(x_label, fontsize=LABEL_SIZE)
    if y_label:
        figure.supylabel(y_label, fontsize=LABEL_SIZE)
    return figure, axes


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """A part of a distribution; `keys` are its values of what it was grouped by."""

    name: str
    keys: tuple[Any, ...]
    distribution: Distribution


def groups_of(distribution: Distribution, by: str | Sequence[str] = "network") -> list[Group]:
    """Groups by one or more of network, class, target, split and training, with names to show."""
    names = (by,) if isinstance(by, str) else tuple(by)
    parts = distribution.group_by(*names)
    groups = []
    for key, part in parts.items():
        keys = key if len(names) > 1 else (key,)
        texts = [
            _key_text(name, value, alone=len(names) == 1)
            for name, value in zip(names, keys, strict=True)
        ]
        groups.append(Group(", ".join(filter(None, texts)), keys, part))
    for place, name in enumerate(names):
        if name != "network" and all(group.keys[place] is None for group in groups):
            raise missing_group(name)
    return groups


def with_left_out(title: str, count: int) -> str:
    """The title, and below it how many results without any answer a figure of values leaves out."""
    if not count:
        return title
    return f"{title}\nleft out: {count} {'result' if count == 1 else 'results'} without an answer"


def missing_group(name: str) -> DataError:
    """What to say where nothing can be grouped by `name`."""
    return DataError(f"no bracket has a {name}: {HOW_TO_GET[name]}")


def _key_text(name: str, value: Any, *, alone: bool) -> str:
    if value is None:
        return f"no {name}" if alone else ""
    return f"{name} {value}" if name in ("class", "target") else str(value)
