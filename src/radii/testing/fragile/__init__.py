"""Networks made to be fragile in floating point, and a search for inputs that break them.

For tests of proofs: no proof may cover an input at which the runtime breaks the property.
"""

from __future__ import annotations

from radii.testing.fragile._families import FAMILIES, generated
from radii.testing.fragile._known import KNOWN, FragileCase
from radii.testing.fragile._search import Break, breaks, find_break, find_break_in_orders

__all__ = [
    "FAMILIES",
    "KNOWN",
    "Break",
    "FragileCase",
    "breaks",
    "find_break",
    "find_break_in_orders",
    "fragile",
    "generated",
]


def fragile(family: str, seed: int) -> FragileCase:
    """The case of a family, be it one of `KNOWN` or of `FAMILIES`."""
    return KNOWN[family](seed) if family in KNOWN else generated(family, seed)
