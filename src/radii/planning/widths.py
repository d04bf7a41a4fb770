"""How much of an instance's grid its bracket leaves open."""

from __future__ import annotations

from collections.abc import Iterable

from radii.brackets import Bracket
from radii.search import Search

__all__ = ["is_closed", "total_width", "width"]


def width(bracket: Bracket, top: float) -> float:
    """The bracket's width; without a witness it ends where the grid does, at `top`."""
    return max(0.0, min(bracket.upper, top) - bracket.lower)


def total_width(brackets: Iterable[Bracket], top: float) -> float:
    """The widths of a distribution, summed: what a budget is spent to narrow."""
    return sum(width(bracket, top) for bracket in brackets)


def is_closed(search: Search) -> bool:
    """No grid value is left between what is proven and what is witnessed."""
    first, last = search.open_range()
    return first >= last
