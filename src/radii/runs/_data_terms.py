"""On what terms data are read: what the classes are called, and how random selections are drawn.
And whether data, domain and network speak of the same units, before any work.

A directory of results keeps the terms of its first run, so that the same command means the same
inputs and labels for as long as it grows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from radii.datasets import Dataset, are_numbers, are_words, displaced, name_list
from radii.errors import DataError
from radii.store import STORE_FILE, Store

if TYPE_CHECKING:
    from radii.networks import Network
    from radii.problem import Instance
    from radii.runs._plan import Plan

SALTED_DRAW = "salted"
"""How stores write that their selections are drawn from salted seeds; older ones write nothing."""

SMALL_PART = 0.05
"""Inputs that spread over less of the domain than this are probably in other units: pixels that
were divided by 255 twice fill 0.004 of it."""

FEWEST_INPUTS = 10
"""The least number of inputs at which an accuracy near chance is worth a warning."""

FEWEST_WRONG = 4
"""The least number of inputs that are all misclassified, for a warning: at an accuracy of 0.5 this
happens to 1 set of 16 by bad luck."""


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


# --- units


def unit_warnings(plan: Plan) -> Iterator[str]:
    """A sentence for everything about units and normalisation that is probably a mistake."""
    for network in plan.networks:
        own = [each for each in plan.instances if each.network == network.fingerprint]
        distinct = list({each.index: each for each in own}.values())
        yield from _spread_warning(plan.data, network, distinct)
        yield from _chance_warning(network, distinct)
    yield from _copies_warning(plan)


def _copies_warning(plan: Plan) -> Iterator[str]:
    """Inputs that occur more than once, which whatever is said of all inputs counts as often."""
    labels = {each.index: each.label for each in plan.instances}
    originals: dict[str, int] = {}
    pairs = [
        (index, first)
        for index, digest in plan.inputs.items()
        if index in labels and (first := originals.setdefault(digest, index)) != index
    ]
    if not pairs:
        return
    copy, original = next((p for p in pairs if labels[p[0]] != labels[p[1]]), pairs[0])
    if labels[copy] != labels[original]:
        yield (
            f"{plan.data}: input {copy} is the same as input {original}, but their labels are "
            f"{labels[copy]} and {labels[original]}"
        )
    yield (
        f"{plan.data}: {len(pairs)} of {len(labels)} inputs are copies of others (input "
        f"{pairs[0][0]} of input {pairs[0][1]}); intervals and tests take all for different"
    )


def _spread_warning(data: str, network: Network, instances: list[Instance]) -> Iterator[str]:
    low, high = float(np.min(network.domain.low)), float(np.max(network.domain.high))
    least = min(float(each.input.min()) for each in instances)
    most = max(float(each.input.max()) for each in instances)
    if not math.isfinite(high - low) or high <= low:
        return
    part = (most - least) / (high - low)
    if 0 < part < SMALL_PART:
        yield (
            f"{data}: values from {least:.3g} to {most:.3g} fill {100 * part:.2g} % of the domain "
            f"{low:g}:{high:g}; are they scaled twice, or is the domain in other units?"
        )


def _chance_warning(network: Network, instances: list[Instance]) -> Iterator[str]:
    count, right = len(instances), sum(each.correct for each in instances)
    chance = 1 / max(2, network.output_size)
    usual = chance + math.sqrt(chance * (1 - chance) / count)  # one standard deviation above
    if count >= FEWEST_INPUTS and right <= count * usual:
        found = (
            f"{right} of {count} inputs are classified correctly, about as many as by chance among "
            f"{network.output_size} classes"
        )
    elif count >= FEWEST_WRONG and not right:
        found = f"none of {count} inputs is classified correctly"
    else:
        return
    yield (
        f"{network.name}: {found}; are labels, scale, order of axes and normalisation (--mean, "
        "--std) those it was trained with? radii init tries the usual ones"
    )
