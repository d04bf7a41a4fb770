"""Data sets: embedded digits, published sets in their official formats, and files of your own."""

from __future__ import annotations

from radii.datasets._acquisition import DataOrigin, ProgressCallback, acquire
from radii.datasets._archives import gunzip
from radii.datasets._cache import changed_files, manifest_of
from radii.datasets._cache import root as data_root
from radii.datasets._catalogue import CATALOGUE, PublishedSet, published_set
from radii.datasets._conversion import convert, save
from radii.datasets._dataset import Dataset, from_arrays
from radii.datasets._digits import DIGITS_SPLITS
from radii.datasets._digits import NAME as DIGITS
from radii.datasets._images import extent
from radii.datasets._sources import as_dataset, dataset_names, load, load_spec, read
from radii.datasets._specs import Spec, exists
from radii.datasets.formats._verona import is_verona

__all__ = [
    "AXIS_ORDERS",
    "CATALOGUE",
    "DIGITS",
    "DIGITS_SPLITS",
    "DataOrigin",
    "Dataset",
    "ProgressCallback",
    "PublishedSet",
    "Spec",
    "acquire",
    "as_dataset",
    "changed_files",
    "convert",
    "data_root",
    "dataset_names",
    "exists",
    "extent",
    "from_arrays",
    "gunzip",
    "is_verona",
    "load",
    "load_spec",
    "manifest_of",
    "published_set",
    "read",
    "save",
]
