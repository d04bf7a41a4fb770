"""Radii of targets and the one-to-any radius: the smallest over the targets, input by input."""

from __future__ import annotations

import numpy as np
import pytest

import radii
from radii import demo
from radii.statistics import over_targets

GRID = "0.01:0.6:0.01"
INPUTS = 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one-to-one", "become"])
def test_the_smallest_over_targets_is_the_one_to_any_radius(name: str) -> None:
    network = demo.load_network("mlp-standard")
    digits = radii.datasets.load("digits", split="test").first(INPUTS)
    to_any = radii.robustness_distribution(network, digits, grid=GRID, jobs=0)
    targeted = radii.robustness_distribution(network, digits, property=name, grid=GRID, jobs=0)
    grid = np.array(radii.Grid.parse(GRID).values)
    assert len(targeted) == 9 * INPUTS
    for whole in (to_any, targeted):
        # Closed: no grid value is left between what is proven and the witness.
        assert np.isfinite(whole.upper).all() or len(whole) > INPUTS
        open_values = (grid[None] > whole.lower[:, None]) & (grid[None] < whole.upper[:, None])
        assert not open_values[whole.correct].any()
    combined = over_targets(targeted)
    assert combined.column("input").tolist() == to_any.column("input").tolist()
    for row in range(INPUTS):
        assert combined.lower[row] == to_any.lower[row]
        # Witnesses of both lie before the same next grid value, as close as attacks get.
        np.testing.assert_allclose(combined.upper[row], to_any.upper[row], rtol=2e-3)
        mine = targeted.only(input=int(to_any.column("input")[row]))
        assert combined.lower[row] == mine.lower.min()
        assert combined.upper[row] == mine.upper.min()
        assert (mine.upper > to_any.lower[row]).all()
