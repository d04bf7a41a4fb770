"""How wide brackets stayed: box plots of the verification gap."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from radii.distributions import Distribution
from radii.errors import DataError
from radii.plots.box import BoxSummary, box_summaries, draw_summaries
from radii.plots.groups import groups_of
from radii.plots.style import TEXT_WIDTH

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_gaps", "gap_summaries"]


def gap_summaries(
    distribution: Distribution, *, by: str | Sequence[str] = "network"
) -> list[BoxSummary]:
    """Quantiles of the width of each group's brackets, over correct inputs with a witness."""
    summaries = []
    for group in groups_of(distribution, by):
        part = group.distribution
        told = part.holds & np.isfinite(part.upper)
        if told.any():
            widths = (part.upper - part.lower)[told]
            # A width is known exactly: a distribution whose two sides are equal.
            exact = Distribution.from_arrays(widths, widths, correct=True, network=group.name)
            (summary,) = box_summaries(exact)
            summaries.append(dataclasses.replace(summary, keys=group.keys))
    return summaries


def draw_gaps(
    distribution: Distribution,
    *,
    by: str | Sequence[str] = "network",
    width: float = TEXT_WIDTH,
) -> Figure:
    """One box a group: by how much the witnessed side of brackets exceeds the proven one.

    Only correct inputs with a witness have a gap; names tell how many have none.
    """
    summaries = gap_summaries(distribution, by=by)
    if not summaries:
        raise DataError("no correctly classified input has a witness, so no bracket has a width")
    right = {
        group.name: int(group.distribution.holds.sum()) for group in groups_of(distribution, by)
    }
    named = []
    for summary in summaries:
        without = right[summary.name] - summary.inputs
        name = f"{summary.name} ({without} open)" if without else summary.name
        named.append(dataclasses.replace(summary, name=name))
    return draw_summaries(named, "verification gap; whiskers at 5 and 95 %", (), width)
