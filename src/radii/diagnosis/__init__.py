"""What is installed, what this machine allows, and whether radii gets known radii right here."""

from __future__ import annotations

from radii.diagnosis.installed import DataSet, Package, Tool, data_sets, packages, tools
from radii.diagnosis.self_test import Check, self_test

__all__ = [
    "Check",
    "DataSet",
    "Package",
    "Tool",
    "data_sets",
    "packages",
    "self_test",
    "tools",
]
