"""Data as people have it in Python: a data set, a spec, arrays, or pairs of input and label."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.datasets.dataset import Dataset, from_arrays
from radii.datasets.sources import load_spec
from radii.errors import DataError

__all__ = ["as_dataset"]


def as_dataset(data: Any, *, name: str = "arrays") -> Dataset:
    """The data set that was given, in one of these forms.

    A `Dataset`; a spec or path as the command line takes it (`mnist:test[0:100]`, `images.npz`);
    a pair (inputs, labels) of arrays, tensors or lists; or anything with a length whose items are
    pairs of an input and a label, such as a torch data set.
    """
    if isinstance(data, Dataset):
        return data
    if isinstance(data, str | Path):
        return load_spec(str(data))
    if isinstance(data, tuple | list) and len(data) == 2 and not all(map(_is_pair, data)):
        return from_arrays(_array(data[0]), _array(data[1]), name=name)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__") and not hasattr(data, "shape"):
        return _from_pairs(data, name)
    raise DataError(
        f"data of type {type(data).__name__} is not a data set, a spec such as 'mnist:test[0:100]',"
        " a pair (inputs, labels), or a sequence of such pairs"
    )


def _from_pairs(data: Sequence[Any], name: str) -> Dataset:
    try:
        pairs = [data[place] for place in range(len(data))]
        inputs, labels = zip(*((_array(image), label) for image, label in pairs), strict=True)
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise DataError(
            f"{name}: its items are not all pairs of an input and a label ({error})"
        ) from None
    shapes = {image.shape for image in inputs}
    if len(shapes) > 1:
        raise DataError(f"{name}: inputs of different shapes {sorted(shapes)}")
    return from_arrays(np.stack(inputs), [int(label) for label in labels], name=name)


def _is_pair(item: Any) -> bool:
    """Whether it is one input with its label, not all inputs or all labels."""
    is_two = isinstance(item, tuple | list) and len(item) == 2
    return is_two and np.ndim(_array(item[1])) == 0 < np.ndim(_array(item[0]))


def _array(values: Any) -> npt.NDArray[Any]:
    """A tensor may need to be taken off its graph and its device first."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    return np.asarray(values)
