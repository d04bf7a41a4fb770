"""On what terms data are read: what the classes are called, and how random selections are drawn.

A directory of results keeps the terms of its first run, so that the same command means the same
inputs and labels for as long as it grows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from radii.datasets import Dataset, are_numbers, are_words, displaced, name_list
from radii.errors import DataError
from radii.store import STORE_FILE, Store

if TYPE_CHECKING:
    from radii.networks import Network

SALTED_DRAW = "salted"
"""How stores write that their selections are drawn from salted seeds; older ones write nothing."""


@dataclass(frozen=True, slots=True)
class DataTerms:
    """What a directory says about reading data: by default, as of one that is new.

    `classes` are in the order of the outputs, empty where labels are only numbers; `networks` are
    the fingerprints of those that got labels on these terms.
    """

    classes: tuple[str, ...] = ()
    networks: frozenset[str] = frozenset()
    is_salted: bool = True

    @classmethod
    def of(cls, place: Store | Path | str | None) -> Self:
        """Those of a store, or of a directory that may hold one."""
        if isinstance(place, Store):
            steps = place.steps()
            if not steps:
                return cls()
            is_salted = steps[0].described.get("draw") == SALTED_DRAW
            return cls(place.settings().class_names, frozenset(place.networks()), is_salted)
        if place is None or not (Path(place) / STORE_FILE).is_file():
            return cls()
        with Store.open(Path(place)) as store:
            return cls.of(store)

    def apply(
        self,
        dataset: Dataset,
        networks: Sequence[Network],
        given: Sequence[str] | None = None,
    ) -> Dataset:
        """The data set with the classes that were `given`, or else those of the directory, of the
        networks' metadata, or its own."""
        if not self.is_salted:
            dataset = dataset.unsalted()
        names = self._class_names(dataset, networks, given)
        return dataset.with_classes(names) if names else dataset

    def _class_names(
        self, dataset: Dataset, networks: Sequence[Network], given: Sequence[str] | None
    ) -> Sequence[str]:
        if given is not None:
            for network in networks:
                if network.output_size != len(given):
                    raise DataError(
                        f"{network.name}: has {network.output_size} outputs, but {len(given)} "
                        f"classes are named: {name_list(given)}"
                    )
            return given
        names = self.classes
        for network in networks:
            own = () if network.fingerprint in self.networks else network.class_names
            if names and (name := displaced(own, names)) is not None:
                raise DataError(
                    f"{network.name}: its classes are {name_list(own)}, so that '{name}' has "
                    f"another place than among {name_list(names)}; name the right order with "
                    "--classes, or measure each network in a directory of its own"
                )
            names = names or own
        if names and not self.classes and dataset.classes is None:
            _refuse_ambiguous(dataset, names)
        return names


def _refuse_ambiguous(dataset: Dataset, names: Sequence[str]) -> None:
    """Label 2 may be the output number 2, or the one that is called 2."""
    if are_numbers(names) and are_words(names):
        raise DataError(
            f"{dataset.title}: labels are numbers, and the network calls its outputs "
            f"{name_list(names)}: repeat these with --classes if labels are such names, or write "
            "--classes 0,1,... if they count outputs"
        )


def reading_notes(data: str, dataset: Dataset, networks: Sequence[Network]) -> Iterator[str]:
    """What was done to the data that may not be meant."""
    yield from dataset.notes
    if dataset.holds_bytes:
        if all(dataset.in_units_of(network.domain) is dataset for network in networks):
            yield (f"{data}: pixels are bytes and were divided by 255: eps and --domain are in 0:1")
        else:
            yield (
                f"{data}: pixels are bytes and are taken as they stand, from 0 to 255, since "
                "--domain is not within 0:1"
            )
    if dataset.assumes_order and dataset.classes is not None:
        numbers = [f"{name} is {number}" for number, name in enumerate(dataset.classes)]
        yield (
            f"{data}: labels are words, numbered in alphabetical order ({name_list(numbers)}); "
            "--classes names another order"
        )
