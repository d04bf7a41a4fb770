"""A distribution as people read it: a few numbers as text, and beside a small curve in notebooks.

Notebooks are light or dark. Text and axes take the colour of the text around them, and curves have
colours that can be distinguished on both; so one picture does for both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from radii.statistics import CATALOGUE, Float64, inputs_with_radius, proof_scope
from radii.terminal import plain
from radii.views.figures._style import largest_side

if TYPE_CHECKING:
    from radii.statistics import Distribution, Share, ValueRange

MOST_NETWORKS = 5
"""Columns of the table and curves in the picture; more are counted."""

MOST_EPS = 3
"""At which robust accuracy is given in numbers."""

COLOURS = ("#2f86d1", "#e07b1f", "#2b9f7a", "#b35fb5", "#c8503f")
"""Of the networks' curves: told apart on white and on black, also by most who see few colours."""

CURVE_POINTS = 241
"""Where each curve is evaluated; a step is then at most two pixels off."""

WIDTH, HEIGHT = 420, 190
LEFT, RIGHT, TOP, BOTTOM = 34, 408, 10, 156
"""Of the picture and of the axes in it, in pixels."""

TABLE = "<table style='border:0;margin:0;color:inherit;font-size:inherit'>"
CELL = "text-align:left;padding:1px 12px 1px 0;background:none"
"""Notebooks have tables of their own style; this one is plain, and as light or dark as the text."""

Facts = dict[str, list[str]]
"""What is said of each of several networks, under the name of the fact."""


def distribution_text(distribution: Distribution) -> str:
    """The title, and below it a line for each fact."""
    shown = _shown_networks(distribution)
    rows = [["", *map(plain, shown)]] if len(distribution.networks) > 1 else []
    rows += [[name, *values] for name, values in _facts(shown, _shown_eps(distribution)).items()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  "
        + "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    lines += [f"  {remark}" for remark in _remarks(distribution)]
    return "\n".join([_title(distribution), *lines])


def distribution_html(distribution: Distribution) -> str:
    """The same as a table, beside the curve of robust accuracy over eps."""
    shown = _shown_networks(distribution)
    rows = [
        f"<tr style='background:none'><td style='{CELL};opacity:.7'>{escape(name)}</td>"
        + "".join(f"<td style='{CELL}'>{escape(value)}</td>" for value in values)
        + "</tr>"
        for name, values in _facts(shown, _shown_eps(distribution)).items()
    ]
    if len(distribution.networks) > 1:
        names = (
            f"<th style='{CELL}'><span style='color:{COLOURS[place]}'>■</span> "
            f"{escape(plain(name))}</th>"
            for place, name in enumerate(shown)
        )
        rows.insert(0, f"<tr style='background:none'><th style='{CELL}'></th>{''.join(names)}</tr>")
    remarks = "".join(f"<div style='opacity:.7'>{escape(r)}</div>" for r in _remarks(distribution))
    table = f"{TABLE}{''.join(rows)}</table>"
    return (
        "<div style='font-size:90%'>"
        f"<div style='margin-bottom:4px'><b>{escape(_title(distribution))}</b></div>"
        "<div style='display:flex;flex-wrap:wrap;gap:4px 24px;align-items:center'>"
        f"<div>{table}{remarks}</div>"
        f"{_curves(shown, _round_eps(distribution))}</div></div>"
    )


def _bracket_text(bracket: ValueRange | None) -> str:
    """As the half-open interval that it is; without a witness it is open to infinity."""
    if bracket is None:
        return "-"
    return f"[{bracket[0]:.4g}, {'∞' if math.isinf(bracket[1]) else f'{bracket[1]:.4g}'})"


def _title(distribution: Distribution) -> str:
    networks = distribution.networks
    inputs = len(np.unique(distribution.column("input")))
    on = plain(networks[0]) if len(networks) == 1 else f"{len(networks)} networks"
    pairs = zip(distribution.column("property"), distribution.column("target"), strict=True)
    kinds = {str(spec).removesuffix(f":{target}") for spec, target in pairs}
    asked = plain(min(kinds)) if len(kinds) == 1 else f"{len(kinds)} properties"
    return f"Distribution of {_count(len(distribution), 'bracket')}: " + (
        f"{_count(inputs, 'input')} on {on}, {asked}"
    )


def _count(number: int, one: str) -> str:
    return f"{number} {one if number == 1 else one + 's'}"


def _remarks(distribution: Distribution) -> list[str]:
    more = len(distribution.networks) - MOST_NETWORKS
    remarks = [f"and {_count(more, 'more network')}: see by_network()"] if more > 0 else []
    scope = proof_scope(distribution)
    return [*remarks, scope] if scope else remarks


def _shown_networks(distribution: Distribution) -> dict[str, Distribution]:
    return dict(list(distribution.by_network().items())[:MOST_NETWORKS])


def _facts(parts: Mapping[str, Distribution], eps: Sequence[float]) -> Facts:
    each = list(parts.values())
    is_correct = all(inputs_with_radius(part) == "correct inputs" for part in each)
    gaps = [CATALOGUE["mean_gap"](part) for part in each]
    facts = {
        "correct" if is_correct else "holds as it stands": [
            f"{int(part.holds.sum())} of {len(part)}" for part in each
        ],
        "median radius": [_bracket_text(CATALOGUE["median"](part)) for part in each],
        "lowest radius": [_bracket_text(CATALOGUE["lowest"](part)) for part in each],
        "mean gap": ["-" if math.isnan(gap) else f"{gap:.2g}" for gap in gaps],
    }
    if any(part.unsolved for part in each):
        facts["without any answer"] = [str(part.unsolved) for part in each]
    for value in eps:
        shares = [_share_text(part.robust_accuracy(value)) for part in each]
        facts[f"robust accuracy at {value:g}"] = shares
    return facts


def _share_text(share: Share) -> str:
    """One number where nothing is open, to three digits; else both, rounded away from a claim."""
    low, high = math.floor(1000 * share.proven + 1e-9), math.ceil(1000 * share.not_refuted - 1e-9)
    if share.proven == share.not_refuted:
        return f"{share.proven:.3g}"
    return f"{low / 1000:g} to {high / 1000:g}"


def _shown_eps(distribution: Distribution) -> list[float]:
    """At which robust accuracy is given: where only one was asked about, at that."""
    only = distribution.only_eps
    return _round_eps(distribution)[:MOST_EPS] if only is None else [only]


def _round_eps(distribution: Distribution) -> list[float]:
    """A few round values above 0, up to where the curves end."""
    largest = max(largest_side(distribution), distribution.only_eps or 0.0)
    if largest <= 0:
        return []
    power = 10.0 ** math.floor(math.log10(largest / 5))
    step = next(factor * power for factor in (1, 2, 5, 10) if largest / (factor * power) <= 5)
    count = max(1, math.ceil(largest / step - 1e-9))
    return [float(f"{step * place:.6g}") for place in range(1, count + 1)]


# --- the picture


def _curves(parts: Mapping[str, Distribution], ticks: Sequence[float]) -> str:
    """Robust accuracy over eps: thin what is proven, thick what is not refuted."""
    if not ticks:
        return ""
    at = np.linspace(0, ticks[-1], CURVE_POINTS)
    drawn = "".join(
        _band(COLOURS[place], at, *part.shares(at)) for place, part in enumerate(parts.values())
    )
    return (
        f"<svg width='{WIDTH}' height='{HEIGHT}' viewBox='0 0 {WIDTH} {HEIGHT}' role='img' "
        "aria-label='robust accuracy over eps' font-size='11' fill='currentColor' "
        f"style='max-width:100%'>{_axes(ticks)}{drawn}"
        f"<text x='{RIGHT}' y='{HEIGHT - 3}' text-anchor='end'>eps</text>"
        f"<text x='{LEFT}' y='{HEIGHT - 3}'>robust accuracy: thin proven, thick not refuted"
        "</text></svg>"
    )


def _axes(ticks: Sequence[float]) -> str:
    lines = []
    for share in (0, 0.5, 1):
        y = _y(share)
        lines.append(f"<path d='M{LEFT} {y}H{RIGHT}' stroke='currentColor' stroke-opacity='.2'/>")
        lines.append(f"<text x='{LEFT - 6}' y='{y + 4}' text-anchor='end'>{share:g}</text>")
    for value in (0, *ticks):
        x = LEFT + (RIGHT - LEFT) * value / ticks[-1]
        anchor = "end" if value == ticks[-1] else "middle"
        lines.append(f"<text x='{x:.1f}' y='{BOTTOM + 15}' text-anchor='{anchor}'>{value:g}</text>")
    return "".join(lines)


def _band(colour: str, at: Float64, proven: Float64, not_refuted: Float64) -> str:
    xs = LEFT + (RIGHT - LEFT) * at / at[-1]
    below, above = _steps(xs, proven), _steps(xs, not_refuted)
    back = " ".join(reversed(above.split()))
    return (
        f"<polygon points='{below} {back}' fill='{colour}' fill-opacity='.2'/>"
        f"<polyline points='{above}' fill='none' stroke='{colour}' stroke-width='2.5'/>"
        f"<polyline points='{below}' fill='none' stroke='{colour}' stroke-width='1'/>"
    )


def _steps(xs: Float64, shares: Float64) -> str:
    """The corners of a step function: only where it changes, and at both ends."""
    changes = [0, *(np.flatnonzero(np.diff(shares)) + 1).tolist()]
    corners = []
    for place, after in zip(changes, [*changes[1:], len(xs) - 1], strict=True):
        y = _y(float(shares[place]))
        corners += [f"{xs[place]:.1f},{y}", f"{xs[after]:.1f},{y}"]
    return " ".join(corners)


def _y(share: float) -> float:
    return round(BOTTOM - (BOTTOM - TOP) * share, 1)
