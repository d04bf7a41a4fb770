"""Heat maps by class: which classes are robust on which network, and against which target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.distributions import closest_targets
from radii.errors import DataError
from radii.plots._matrices import draw_matrix, short, shortened
from radii.plots._style import (
    LABEL_SIZE,
    TEXT_WIDTH,
    left_out_text,
    missing_group,
    new_figure,
    new_panels,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from radii.distributions import Distribution


Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ClassTable:
    """A number for each row and column; NaN where there is no input. `name` is the network's."""

    name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Float64


def class_table(distribution: Distribution, eps: float | None = None) -> ClassTable:
    """For each class and network the proven median radius of correct inputs with an answer.

    With `eps`, the proven robust recall there instead, misclassified inputs counted.
    """
    labels = distribution.labels
    if not labels:
        raise missing_group("class")
    networks = distribution.networks
    values = np.full((len(labels), len(networks)), np.nan)
    for (network, label), part in distribution.group_by("network", "class").items():
        if label is not None:
            values[labels.index(label), networks.index(network)] = _number(part, eps)
    return ClassTable("", tuple(map(str, labels)), networks, values)


def target_tables(distribution: Distribution, eps: float | None = None) -> list[ClassTable]:
    """For each network: the proven median radius by class and target, of one-to-one or become.

    With `eps`, the proven share of inputs for which that property holds within it instead.
    """
    targeted = distribution.column("target") >= 0
    if not targeted.any():
        raise missing_group("target")
    told = distribution.select(targeted)
    if not told.labels:
        raise missing_group("class")
    goals = [int(goal) for goal in np.unique(told.column("target"))]
    tables = []
    for name, part in told.by_network().items():
        values = np.full((len(told.labels), len(goals)), np.nan)
        for (label, goal), cell in part.group_by("class", "target").items():
            if label is not None:
                values[told.labels.index(label), goals.index(goal)] = _number(cell, eps)
        rows, columns = tuple(map(str, told.labels)), tuple(map(str, goals))
        tables.append(ClassTable(name, rows, columns, values))
    return tables


def _number(part: Distribution, eps: float | None) -> float:
    if eps is not None:
        return part.robust_accuracy(eps).proven
    if not np.any(part.holds & ~part.is_unsolved):
        return float("nan")
    return part.correctly_classified().solved().median()[0]


def _title_of_medians(what: str, distribution: Distribution) -> str:
    """It counts the results that no median counts."""
    left_out = left_out_text(distribution.unsolved)
    return f"{what}\n{left_out}" if left_out else what


def draw_classes(
    distribution: Distribution, *, eps: float | None = None, width: float = TEXT_WIDTH
) -> Figure:
    """A row a class, a column a network: the proven median radius, or robust recall at `eps`.

    Results without any answer have no part in medians; for recall they are not proven.
    """
    table = class_table(distribution, eps)
    figure, axes = new_figure(width, 1.35 + 0.21 * len(table.rows))
    draw_matrix(
        axes,
        table.values,
        rows=table.rows,
        columns=table.columns,
        colours="cividis",
        limits=_limits([table], eps),
        told=lambda value: short(value, 3 if eps is None else 2),
    )
    axes.set_ylabel("class")
    if eps is None:
        title = _title_of_medians("proven median radius", distribution)
    else:
        title = f"proven robust recall at $\\varepsilon$ = {eps:g}"
    figure.suptitle(title, fontsize=LABEL_SIZE)
    return figure


def draw_targets(
    distribution: Distribution, *, eps: float | None = None, width: float = TEXT_WIDTH
) -> Figure:
    """A panel a network: the proven median radius of each class towards each target.

    With `eps`, the proven share of inputs that are safe from it within eps: of become results not
    taken for the target, of one-to-one results with the label's output above the target's.
    """
    tables = target_tables(distribution, eps)
    goals = len(tables[0].columns)
    figure, axes = new_panels(
        [shortened(table.name) for table in tables],
        width=width,
        panel_width=min(width, 0.6 + 0.2 * goals),
        panel_height=0.5 + 0.2 * len(tables[0].rows),
        x_label="target",
        y_label="class",
    )
    limits = _limits(tables, eps)
    across = max(1, min(len(tables), int(width / (0.6 + 0.2 * goals))))
    digits = 3 if eps is None and (width / across - 0.5) / goals > 0.25 else 2
    for panel, table in zip(axes, tables, strict=True):
        draw_matrix(
            panel,
            table.values,
            rows=table.rows,
            columns=table.columns,
            colours="cividis",
            limits=limits,
            told=lambda value: short(value, digits),
        )
    if eps is None:
        title = _title_of_medians("proven median radius, by class and target", distribution)
    else:
        title = f"proven share safe at $\\varepsilon$ = {eps:g}, by class and target"
    figure.suptitle(title, fontsize=LABEL_SIZE)
    return figure


def draw_closest_targets(distribution: Distribution, *, width: float = TEXT_WIDTH) -> Figure:
    """A panel a network: how many inputs of each class break first towards which class."""
    found = {name: closest_targets(part) for name, part in distribution.by_network().items()}
    counts = {name: table for name, table in found.items() if table.any()}
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
            told=lambda value: "" if np.isnan(value) else f"{value:.0f}",
        )
    return figure


def _limits(tables: list[ClassTable], eps: float | None) -> tuple[float, float]:
    if eps is not None:
        return 0.0, 1.0
    told = np.concatenate([table.values[~np.isnan(table.values)] for table in tables])
    return 0.0, float(told.max()) if told.size and told.max() > 0 else 1.0
