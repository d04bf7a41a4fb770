"""The embedded data set: 1797 handwritten digits of 8x8 pixels.

Source: the test set of "Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak,
1998, UCI Machine Learning Repository, licence CC BY 4.0), in the order in which scikit-learn ships
it (BSD-3-Clause). A pixel counts the inked ones of a 4x4 block, 0 to 16, and is divided by 16.
`scripts/embed_digits.py` makes the file.

The first 1297 images are `train`, the last 500 are `test`. Nothing is shuffled, because neighbours
in the file tend to come from the same writer, and shuffling would put a writer on both sides.
"""

from __future__ import annotations

from importlib.resources import files

import numpy as np

from radii.datasets._dataset import Dataset
from radii.datasets._images import Stack
from radii.errors import DataError

NAME = "digits"
DIGITS_SPLITS = {"train": slice(0, 1297), "test": slice(1297, 1797)}
LARGEST_PIXEL = 16.0


def load_digits(split: str) -> Dataset:
    """The embedded digits; images in [0, 1] of shape (1, 8, 8)."""
    if split not in DIGITS_SPLITS:
        raise DataError(f"data set '{NAME}' has splits train and test, not '{split}'")
    with (
        files("radii.datasets").joinpath("digits.npz").open("rb") as stream,
        np.load(stream, allow_pickle=False) as arrays,
    ):
        images, labels = (
            arrays["images"][DIGITS_SPLITS[split]],
            arrays["labels"][DIGITS_SPLITS[split]],
        )
    return Dataset(
        Stack(images[:, None], LARGEST_PIXEL),
        labels.astype(np.int64),
        name=NAME,
        split=split,
        classes=tuple("0123456789"),
    )
