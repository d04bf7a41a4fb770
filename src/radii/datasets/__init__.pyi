from ._acquisition import DataOrigin, ProgressCallback, acquire
from ._archives import gunzip
from ._cache import changed_files, data_root, manifest_of
from ._catalogue import PublishedSet, catalogue, find_published, published_names, published_set
from ._classes import (
    are_numbers,
    are_words,
    class_names,
    displaced,
    name_list,
    parsed_names,
)
from ._conversion import convert, save
from ._dataset import Dataset, extent, from_arrays
from ._features import features_text, guessed_features, read_features
from ._files import is_verona
from ._grids import read_grid
from ._sources import (
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
    "catalogue",
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
    "published_names",
    "published_set",
    "read",
    "read_features",
    "read_grid",
    "save",
]
