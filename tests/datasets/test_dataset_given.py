"""Data as people have it in Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import (
    DataLoader,
    IterableDataset,
    RandomSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

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


SET = TensorDataset(torch.tensor(IMAGES), torch.tensor(LABELS))


def stacked(items: Any) -> Any:
    return [torch.stack(each) for each in zip(*items, strict=True)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_size": 3},
        {"batch_size": 3, "drop_last": True},
        {"batch_size": 2, "shuffle": True},
        {"batch_size": None},
        {"batch_size": None, "shuffle": True},
        {"batch_size": 2, "collate_fn": stacked},
    ],
    ids=lambda options: " ".join(options) or "plain",
)
def test_a_loader_gives_its_data_set_in_order(options: dict[str, Any]) -> None:
    data = as_dataset(DataLoader(SET, **options), name="mine")
    np.testing.assert_array_equal(data.images, IMAGES)
    assert data.labels.tolist() == LABELS


def test_a_loader_of_some_inputs() -> None:
    data = as_dataset(DataLoader(SET, batch_size=2, sampler=SubsetRandomSampler([3, 1, 0])))
    np.testing.assert_array_equal(data.images, IMAGES[[0, 1, 3]])
    assert data.labels.tolist() == [0, 1, 2]


class Stream(IterableDataset):  # type: ignore[type-arg]
    def __iter__(self) -> Iterator[tuple[torch.Tensor, int]]:
        return iter([(torch.zeros(6), 0)])


@pytest.mark.parametrize(
    ("loader", "said"),
    [
        (DataLoader(SET, sampler=WeightedRandomSampler([1.0] * 4, 4)), "with a WeightedRandom"),
        (DataLoader(SET, sampler=RandomSampler(SET, replacement=True)), "with a RandomSampler"),
        (DataLoader(SET, sampler=RandomSampler(SET, num_samples=2)), "with a RandomSampler"),
        (DataLoader(SET, batch_sampler=[[0, 1], [1, 0]]), "with a list has no fixed inputs"),
        (DataLoader(Stream()), "with a _InfiniteConstantSampler"),
        (DataLoader(SET, collate_fn=lambda items: items[0][0]), "pairs of inputs and labels"),
    ],
)
def test_a_loader_without_fixed_inputs_is_refused(loader: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        as_dataset(loader)


@pytest.mark.parametrize("label", [2.7, torch.tensor(2.7), np.float32(0.5)])
def test_amounts_are_not_cut_to_labels(label: Any) -> None:
    with pytest.raises(DataError, match="not an integer: labels are numbers of classes or words"):
        as_dataset([(IMAGES[0], label), (IMAGES[1], label)])


def test_one_hot_labels_are_refused_with_advice() -> None:
    items = [(IMAGES[0], [0, 1]), (IMAGES[1], [1, 0]), (IMAGES[2], [1, 0])]
    for given in (items, (IMAGES, np.eye(4))):
        with pytest.raises(DataError, match=r"give labels\.argmax"):
            as_dataset(given)


def test_numbers_that_numpy_does_not_have() -> None:
    data = as_dataset((torch.tensor(IMAGES).bfloat16(), LABELS))
    assert data.images == pytest.approx(IMAGES, abs=0.01)


def test_words_as_labels() -> None:
    data = as_dataset((IMAGES, ["cat", "dog", "dog", "ant"]))
    assert (data.labels.tolist(), data.classes) == ([1, 2, 2, 0], ("ant", "cat", "dog"))
    assert data.assumes_order
