"""Data sets: embedded digits, published sets in their official formats, and files of your own."""

from __future__ import annotations

from radii.datasets._acquisition import DataOrigin, ProgressCallback, acquire
from radii.datasets._archives import gunzip
from radii.datasets._cache import changed_files, data_root, manifest_of
from radii.datasets._catalogue import CATALOGUE, PublishedSet, find_published, published_set
from radii.datasets._classes import (
    are_numbers,
    are_words,
    class_names,
    displaced,
    name_list,
    parsed_names,
)
from radii.datasets._conversion import convert, save
from radii.datasets._dataset import Dataset, extent, from_arrays
from radii.datasets._features import features_text, guessed_features, read_features
from radii.datasets._files import is_verona
from radii.datasets._grids import read_grid
from radii.datasets._sources import (
    DIGITS,
    DIGITS_SPLITS,
    Spec,
    as_dataset,
    check_spec,
    dataset_names,
    exists,
    load,
    load_spec,
    load_whole,
    read,
)

__all__ = [
    "CATALOGUE",
    "DIGITS",
    "DIGITS_SPLITS",
    "DataOrigin",
    "Dataset",
    "ProgressCallback",
    "PublishedSet",
    "Spec",
    "acquire",
    "are_numbers",
    "are_words",
    "as_dataset",
    "changed_files",
    "check_spec",
    "class_names",
    "convert",
    "data_root",
    "dataset_names",
    "displaced",
    "exists",
    "extent",
    "features_text",
    "find_published",
    "from_arrays",
    "guessed_features",
    "gunzip",
    "is_verona",
    "load",
    "load_spec",
    "load_whole",
    "manifest_of",
    "name_list",
    "parsed_names",
    "published_set",
    "read",
    "read_features",
    "read_grid",
    "save",
]
