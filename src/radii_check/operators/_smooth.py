"""Smooth functions of each entry, by their turning points."""

from __future__ import annotations

from radii_check._builder import Reader

READERS: dict[str, Reader] = {}
