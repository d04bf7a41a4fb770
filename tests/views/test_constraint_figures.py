"""Curves of constraint satisfaction and security: the sides of a distribution, by property."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from radii.statistics import Distribution
from radii.views import (
    COLUMN_WIDTH,
    TEXT_WIDTH,
    ShareCurve,
    constraint_curves,
    draw_constraints,
    save_figure,
)


def two_properties() -> Distribution:
    """Two networks, each under two properties, in two directories, as `radii plot` names them."""
    rows = [
        (f"{network} ({place})", spec, lower, upper)
        for place, spec in (("sr", "sr:delta=1.0"), ("lr", "lr:L=2.0"))
        for network, sides in (
            ("a", [(0.1, 0.2), (0.3, math.inf)]),
            ("b", [(0.0, 0.0), (0.2, 0.2)]),
        )
        for lower, upper in sides
    ]
    network, spec, lower, upper = zip(*rows, strict=True)
    return Distribution.from_arrays(
        lower,
        upper,
        network=list(network),
        property=list(spec),
        input=np.tile([0, 1], 4),
        label=0,
        correct=True,
    )


def at(curves: dict[str, list[ShareCurve]], name: str, spec: str, eps: float) -> float:
    (curve,) = [c for c in curves[spec] if c.name == name]
    assert np.array_equal(curve.least, curve.most)
    return float(curve.least[np.searchsorted(curve.edges, eps, side="right") - 1])


def test_curves_are_the_two_sides() -> None:
    security, satisfaction = (
        constraint_curves(two_properties(), metric) for metric in ("security", "satisfaction")
    )
    assert set(security) == {"sr:delta=1.0", "lr:L=2.0"}
    assert all([c.name for c in curves] == ["a", "b"] for curves in security.values())
    for name, eps, proven, not_refuted in (
        ("a", 0.05, 1.0, 1.0),
        ("a", 0.15, 0.5, 1.0),
        ("a", 0.25, 0.5, 0.5),
        ("b", 0.05, 0.5, 0.5),
        ("b", 0.25, 0.0, 0.0),
    ):
        assert at(satisfaction, name, "lr:L=2.0", eps) == proven
        assert at(security, name, "lr:L=2.0", eps) == not_refuted


def test_bands_are_as_wide_as_the_sample_is_small() -> None:
    curves = constraint_curves(two_properties(), confidence=0.95).values()
    for curve in itertools.chain.from_iterable(curves):
        assert curve.low is not None
        assert curve.high is not None
        assert np.all((curve.low <= curve.least) & (curve.least <= curve.high))


@pytest.mark.parametrize("width", [COLUMN_WIDTH, TEXT_WIDTH])
def test_a_panel_a_property_with_one_legend(width: float, tmp_path: Path) -> None:
    figure = draw_constraints(two_properties(), eps=[0.1], width=width)
    assert [axes.get_title() for axes in figure.axes] == ["sr:delta=1.0", "lr:L=2.0"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
    save_figure(figure, tmp_path / "security.png")
