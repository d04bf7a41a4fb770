"""The table of `radii show`: what is not known is a dash, and gaps are those of `compare`."""

from __future__ import annotations

import io
import math

from radii.cli._show import instance_table, summary_table
from radii.cli._tables import Console
from radii.distributions import Distribution, quality


def shown(distribution: Distribution) -> list[str]:
    console = Console(file=io.StringIO(), width=120)
    console.print(summary_table(distribution, console))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def row(distribution: Distribution) -> list[str]:
    (line,) = (line for line in shown(distribution) if "/" in line)
    return line.split()


def test_what_is_not_known_is_a_dash() -> None:
    (wrong,) = (
        line for line in shown(Distribution.from_arrays([0.0] * 3, [0.0] * 3)) if "/" in line
    )
    assert wrong.split() == ["network", "0/3", "-", "-", "-", "-", "-", "-"]
    (attacked,) = (
        line for line in shown(Distribution.from_arrays([0.1], [math.inf])) if "/" in line
    )
    assert attacked.split() == ["network", "1/1", *["0.1000–none"] * 4, "-", "-"]


def test_the_gap_is_that_of_compare() -> None:
    """Misclassified inputs have no bracket to be wide."""
    dist = Distribution.from_arrays([0.1, 0.2, 0.0], [0.12, 0.24, 0.0], seconds=1.0)
    assert math.isclose(quality(dist).mean_gap, 0.03)
    assert row(dist)[-2:] == ["0.0300", "1.00"]
    assert "radii of correct inputs, proven–witnessed; gap: mean width of their" in shown(dist)[-1]


def test_no_number_of_an_instance_is_ever_cut() -> None:
    dist = Distribution.from_arrays(
        [0.123456, 0.0], [0.1345678, 0.0], network="a-network-with-a-long-name", seconds=123.456
    )
    for width, has_costs in ((80, False), (120, True)):
        console = Console(file=io.StringIO(), width=width)
        console.print(instance_table(dist, console))
        assert isinstance(console.file, io.StringIO)
        told = console.file.getvalue()
        assert "0.123456" in told and "0.134568" in told
        assert "predicted" in told and "target" not in told
        assert ("queries" in told) is has_costs


def test_results_without_an_answer_are_counted() -> None:
    several = Distribution.from_arrays([0.0, 0.2, 0.3], [math.inf, 0.3, 0.4], seconds=1.0)
    assert row(several)[1:3] == ["3/3", "1"]
    told = " ".join(" ".join(shown(several)).split())
    assert "no answer: nothing proven, nothing witnessed" in told
    assert "no answer" not in " ".join(shown(several.solved()))
