"""Figures by class: which classes are robust, against which target, and whether that is fair.

Heat maps show classes by network or by target; curves show how far apart the robust recalls of
classes are; bars show which classes gain from one network to another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.errors import DataError, InputError
from radii.statistics import (
    Distribution,
    Float64,
    class_curves,
    class_gains,
    closest_targets,
    fairness,
)
from radii.views.figures._curves import ShareCurve
from radii.views.figures._matrices import draw_matrix, short, shortened
from radii.views.figures._style import (
    COLOURS,
    LABEL_SIZE,
    TEXT_WIDTH,
    draw_band,
    finish_curves,
    last_edge,
    missing_group,
    name_rows,
    new_figure,
    new_panels,
    show_legend,
    step_edges,
    with_left_out,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, eq=False)
class ClassTable:
    """A number for each row and column; NaN where there is no input. `name` is the network's.

    `counts` says of how many inputs each number is.
    """

    name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Float64
    counts: npt.NDArray[np.int64]

    def row_names(self) -> list[str]:
        """The rows with their number of inputs, such as `3 (n = 28–30)`."""
        names = []
        for row, counts in zip(self.rows, self.counts, strict=True):
            low, high = int(counts.min()), int(counts.max())
            names.append(f"{row} (n = {low if low == high else f'{low}–{high}'})")
        return names


def class_table(distribution: Distribution, eps: float | None = None) -> ClassTable:
    """For each class and network the proven median radius of correct inputs with an answer.

    With `eps`, the proven robust recall there instead, misclassified inputs counted.
    """
    labels = distribution.labels
    if not labels:
        raise missing_group("class")
    return _table("", distribution, labels, "network", distribution.networks, eps)


def target_tables(distribution: Distribution, eps: float | None = None) -> list[ClassTable]:
    """For each network: the proven median radius by class and target, of one-to-one or become.

    With `eps`, the proven share of inputs for which that property holds within it instead.
    """
    targeted = distribution.column("target") >= 0
    if not targeted.any():
        raise missing_group("target")
    chosen = distribution.select(targeted)
    labels = chosen.labels
    if not labels:
        raise missing_group("class")
    targets = [int(target) for target in np.unique(chosen.column("target"))]
    return [
        _table(name, part, labels, "target", targets, eps)
        for name, part in chosen.by_network().items()
    ]


def _table(
    name: str,
    distribution: Distribution,
    labels: Sequence[int],
    by: str,
    keys: Sequence[str | int],
    eps: float | None,
) -> ClassTable:
    """A row for each class; a column for each network or target, as `by` says."""
    values = np.full((len(labels), len(keys)), np.nan)
    counts = np.zeros(values.shape, np.int64)
    for (label, key), part in distribution.group_by("class", by).items():
        if label is not None:
            place = labels.index(label), keys.index(key)
            values[place], counts[place] = _number_of_inputs(part, eps)
    return ClassTable(name, tuple(map(str, labels)), tuple(map(str, keys)), values, counts)


def _number_of_inputs(part: Distribution, eps: float | None) -> tuple[float, int]:
    """The number of a cell, and how many inputs it is of: all, or those with a radius."""
    if eps is not None:
        return part.robust_accuracy(eps).proven, len(part)
    has_radius = part.holds & ~part.is_unsolved
    if not has_radius.any():
        return float("nan"), 0
    return part.correctly_classified().solved().median()[0], int(has_radius.sum())


def draw_classes(
    distribution: Distribution, *, eps: float | None = None, width: float = TEXT_WIDTH
) -> Figure:
    """The proven median radius, or robust recall at `eps`, by class (rows) and network (columns).

    Behind each class, n is how many inputs its numbers are of. Results without any answer have no
    part in medians; for recall they are not proven.
    """
    table = class_table(distribution, eps)
    figure, axes = new_figure(width, 1.35 + 0.21 * len(table.rows))
    _draw_table(axes, table, _limits([table], eps), 3 if eps is None else 2)
    axes.set_yticks(range(len(table.rows)), table.row_names())
    axes.set_ylabel("class")
    if eps is None:
        title = with_left_out("proven median radius", distribution.unsolved)
    else:
        title = f"proven robust recall at $\\varepsilon$ = {eps:g}"
    figure.suptitle(title, fontsize=LABEL_SIZE)
    return figure


def draw_targets(
    distribution: Distribution, *, eps: float | None = None, width: float = TEXT_WIDTH
) -> Figure:
    """The proven median radius of each class towards each target, in a panel for each network.

    With `eps`, the proven share of inputs that are safe from the target within eps: those never
    classified as it (become), or whose label keeps a larger output than it (one-to-one).
    """
    tables = target_tables(distribution, eps)
    targets = len(tables[0].columns)
    figure, axes = new_panels(
        [shortened(table.name) for table in tables],
        width=width,
        panel_width=min(width, 0.6 + 0.2 * targets),
        panel_height=0.5 + 0.2 * len(tables[0].rows),
        x_label="target",
        y_label="class",
    )
    limits = _limits(tables, eps)
    across = max(1, min(len(tables), int(width / (0.6 + 0.2 * targets))))
    digits = 3 if eps is None and (width / across - 0.5) / targets > 0.25 else 2
    for panel, table in zip(axes, tables, strict=True):
        _draw_table(panel, table, limits, digits)
    if eps is None:
        title = "proven median radius, by class and target"
        title = with_left_out(title, distribution.unsolved)
    else:
        title = f"proven share safe at $\\varepsilon$ = {eps:g}, by class and target"
    figure.suptitle(title, fontsize=LABEL_SIZE)
    return figure


def draw_closest_targets(distribution: Distribution, *, width: float = TEXT_WIDTH) -> Figure:
    """How many inputs of each class break first towards which class, in a panel per network."""
    parts = distribution.by_network()
    counts = {name: table for name in parts if (table := closest_targets(parts[name])).any()}
    if not counts:
        raise DataError("no input has a class and a witness of a known class")
    largest = max(int(table.max()) for table in counts.values())
    size = max(len(table) for table in counts.values())
    figure, axes = new_panels(
        [shortened(name) for name in counts],
        width=width,
        panel_width=min(width, 0.7 + 0.2 * size),
        panel_height=0.55 + 0.19 * size,
        x_label="class of the closest counterexample",
        y_label="class",
    )
    names = [str(label) for label in range(size)]
    for panel, table in zip(axes, counts.values(), strict=True):
        shown = np.full((size, size), np.nan)
        shown[: len(table), : len(table)] = np.where(table > 0, table, np.nan)
        draw_matrix(
            panel,
            shown,
            rows=names,
            columns=names,
            colours="cividis",
            limits=(0, largest),
            text_of=lambda value: "" if np.isnan(value) else f"{value:.0f}",
        )
    return figure


def _limits(tables: list[ClassTable], eps: float | None) -> tuple[float, float]:
    if eps is not None:
        return 0.0, 1.0
    known = np.concatenate([table.values[~np.isnan(table.values)] for table in tables])
    return 0.0, float(known.max()) if known.size and known.max() > 0 else 1.0


def _draw_table(axes: Axes, table: ClassTable, limits: tuple[float, float], digits: int) -> None:
    draw_matrix(
        axes,
        table.values,
        rows=table.rows,
        columns=table.columns,
        colours="cividis",
        limits=limits,
        text_of=lambda value: short(value, digits),
    )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SpreadCurve(ShareCurve):
    """The largest robust recall of a class minus the smallest, of one network.

    `p_value` is of a permutation test that the radii of all classes are distributed alike.
    """

    p_value: float


def spread_curves(distribution: Distribution) -> list[SpreadCurve]:
    """One curve for each network that has at least two classes."""
    end = last_edge(distribution)
    curves, reason = [], ""
    for name, part in distribution.by_network().items():
        edges = step_edges(part, end)
        try:
            least, most = class_curves(part, (edges[:-1] + edges[1:]) / 2).spread
            p_value = fairness(part, 0.0).p_value
        except InputError as error:
            reason = str(error)
            continue
        curves.append(SpreadCurve(name, part, edges, least, most, p_value=p_value))
    if not curves:
        raise DataError(reason)
    return curves


def draw_fairness(
    distribution: Distribution, *, eps: Sequence[float] = (), width: float = TEXT_WIDTH
) -> Figure:
    """How far apart the classes' robust recalls are at each eps, as brackets leave it.

    With few inputs per class, recalls differ by chance too: the p-value in the legend says whether
    the classes differ at all.
    """
    figure, axes = new_figure(width)
    curves = spread_curves(distribution)
    for place, curve in enumerate(curves):
        p_value = "p < 0.001" if curve.p_value < 0.001 else f"p = {curve.p_value:.3f}"
        draw_band(axes, place, f"{curve.name}, {p_value}", curve.edges, curve.least, curve.most)
    finish_curves(figure, axes, "spread of robust recall", curves[0].edges[-1], eps)
    return figure


def draw_class_gains(
    distribution: Distribution,
    first: str,
    second: str,
    eps: float,
    *,
    width: float = TEXT_WIDTH,
) -> Figure:
    """What each class's robust recall at `eps` gains from the first network to the second.

    A bar is what brackets leave open. Classes that significantly gain or lose (5 %, Holm) have a
    colour of their own.
    """
    gains = class_gains(distribution.only(network=first), distribution.only(network=second), eps)
    figure, axes = new_figure(width, 1.0 + 0.2 * len(gains))
    kinds = {"gains": COLOURS[2], "loses": COLOURS[1], "undecided": "#999999"}
    for kind, colour in kinds.items():
        rows = [(place, gain) for place, gain in enumerate(gains) if gain.verdict() == kind]
        if not rows:
            continue
        places = [place for place, _ in rows]
        axes.barh(
            places,
            [gain.most - gain.least for _, gain in rows],
            left=[gain.least for _, gain in rows],
            height=0.6,
            color=colour,
            edgecolor=colour,
            linewidth=1.5,
            label=kind if kind != "undecided" else "not significant",
        )
    axes.axvline(0, color="#444444", linewidth=0.8)
    name_rows(axes, range(len(gains)), [str(gain.label) for gain in gains], 0.5)
    axes.set_xlim(-1.02, 1.02)
    axes.set_ylabel("class")
    figure.supxlabel(
        f"gain of robust recall at $\\varepsilon$ = {eps:g},\n{first} to {second}",
        fontsize=LABEL_SIZE,
    )
    show_legend(figure, axes)
    return figure
