"""Data sets: embedded digits, published sets in their official formats, and files of your own."""

from __future__ import annotations

from radii.datasets.dataset import Dataset, from_arrays
from radii.datasets.given import as_dataset
from radii.datasets.sources import load, load_spec, read
from radii.datasets.specs import Spec

__all__ = ["Dataset", "Spec", "as_dataset", "from_arrays", "load", "load_spec", "read"]
