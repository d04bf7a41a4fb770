"""Counterexamples around training images, as further training images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from radii.datasets import Dataset, from_arrays
from radii.errors import StoreError
from radii.experiments import Plan
from radii.queries import Query
from radii.store import Store
from radii.training._checkpoints import replacing
from radii.verdicts import Array
from radii.witnesses import check_witness

COUNTEREXAMPLES_FILE = "counterexamples.npz"


@dataclass(frozen=True, slots=True, eq=False)
class Counterexamples:
    """What was found around training images: points, with the labels of the images they break.

    Of `attacked` images `broken` were broken, and of the others `verified` were given to a
    verifier, which proved `proven` and refuted `refuted`. An image that is misclassified as it
    stands counts as broken and gives no point.
    """

    images: Array
    labels: Array
    attacked: int
    broken: int
    verified: int = 0
    proven: int = 0
    refuted: int = 0


def collect(plan: Plan, store: Store, eps: float) -> tuple[Array, Array, Array]:
    """Points and labels, one for each image that has a witness, and which images have one.

    The witness is the closest that was found, just over the border; where the same direction
    still breaks the property at the edge of the ball, that point teaches more and is taken.
    """
    network = plan.networks[0]
    images, labels, has_witness = [], [], []
    for instance, record in zip(plan.instances, store.records(), strict=True):
        witnesses = [r.witness for _, r in record.answered if r.witness is not None]
        has_witness.append(bool(witnesses))
        if not witnesses:
            continue
        closest = min(witnesses, key=lambda witness: witness.distance)
        if closest.distance == 0:
            continue
        centre = instance.input.astype(np.float64)
        edge = centre + (closest.input - centre) * (eps / closest.distance)
        further = check_witness(network, Query(instance, eps).specification, edge)
        images.append((further or closest).input)
        labels.append(instance.label)
    shape = plan.instances[0].input.shape
    points = np.array(images, np.float32).reshape(-1, *shape)
    return points, np.array(labels, np.int64), np.array(has_witness)


def write(found: Counterexamples, directory: Path) -> None:
    with replacing(directory / COUNTEREXAMPLES_FILE) as partial, partial.open("wb") as file:
        np.savez_compressed(
            file,
            images=found.images,
            labels=found.labels,
            counts=np.array(
                [found.attacked, found.broken, found.verified, found.proven, found.refuted]
            ),
        )


def read(directory: Path) -> Counterexamples | None:
    """What a hunt found; None if it has not ended."""
    path = directory / COUNTEREXAMPLES_FILE
    if not path.exists():
        return None
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
            return Counterexamples(held["images"], held["labels"], *map(int, held["counts"]))
    except Exception as error:  # numpy fails on damaged files in more ways than it documents
        raise StoreError(
            f"{path}: cannot be read as counterexamples ({type(error).__name__}); remove it to "
            "seek them anew"
        ) from None


def with_counterexamples(data: Dataset, rounds: Sequence[Counterexamples]) -> Dataset:
    """The training images and the counterexamples of all rounds so far."""
    added = [found for found in rounds if len(found.labels)]
    if not added:
        return data
    count = sum(len(found.labels) for found in added)
    return from_arrays(
        np.concatenate([data.images, *(found.images.reshape(-1, *data.shape) for found in added)]),
        np.concatenate([data.labels, *(found.labels for found in added)]),
        name=f"{data.title} and {count} counterexamples",
        split="train",
        classes=data.classes,
    )
