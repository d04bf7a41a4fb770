"""Data as people have it in Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from radii.datasets import as_dataset, load
from radii.errors import DataError

IMAGES = np.linspace(0, 1, 24, dtype=np.float32).reshape(4, 6)
LABELS = [0, 1, 1, 2]


@pytest.mark.parametrize(
    "given",
    [
        (IMAGES, LABELS),
        [IMAGES.tolist(), np.array(LABELS)],
        (torch.tensor(IMAGES, requires_grad=True), torch.tensor(LABELS)),
        TensorDataset(torch.tensor(IMAGES), torch.tensor(LABELS)),
        list(zip(IMAGES, LABELS, strict=True)),
    ],
    ids=["arrays", "lists", "tensors", "torch data set", "pairs"],
)
def test_forms_of_the_same_data(given: object) -> None:
    data = as_dataset(given, name="mine")
    np.testing.assert_array_equal(data.images, IMAGES)
    assert data.labels.tolist() == LABELS
    assert data.name == "mine"


@pytest.mark.parametrize("count", [1, 2, 3])
def test_pairs_of_any_number(count: int) -> None:
    data = as_dataset(list(zip(IMAGES, LABELS, strict=True))[:count])
    np.testing.assert_array_equal(data.images, IMAGES[:count])
    assert data.labels.tolist() == LABELS[:count]


def test_two_inputs_and_two_labels_are_not_two_pairs() -> None:
    assert len(as_dataset(([[0.0, 1.0], [1.0, 0.0]], [0, 1]))) == 2


def test_specs_paths_and_data_sets(tmp_path: Path) -> None:
    digits = load("digits")
    assert as_dataset(digits) is digits
    assert len(as_dataset("digits:test[0:7]")) == 7
    np.savez(tmp_path / "a.npz", images=IMAGES, labels=LABELS)
    assert len(as_dataset(tmp_path / "a.npz")) == 4


@pytest.mark.parametrize("bad", [IMAGES, 3, None, {"images": IMAGES}, [IMAGES, IMAGES, IMAGES]])
def test_what_is_no_data_is_refused(bad: object) -> None:
    with pytest.raises(DataError):
        as_dataset(bad)


def test_inputs_of_different_shapes_are_refused() -> None:
    pairs = [(np.zeros(2), 0), (np.zeros(3), 0), (np.zeros(3), 1)]
    with pytest.raises(DataError, match="different shapes"):
        as_dataset(pairs)
