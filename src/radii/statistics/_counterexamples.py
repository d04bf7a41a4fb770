"""Inputs and what breaks them, as arrays and tensors.

A distribution that was measured remembers where each row's arrays are: in the store's directory, or
with it where nothing was to be kept. They are read when they are asked for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np
import numpy.typing as npt

import radii
from radii.errors import DataError
from radii.problem import Array
from radii.store import Record, Store, StoredSettings

if TYPE_CHECKING:
    import torch
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, eq=False)
class Counterexample:
    """An input, and the closest input known at which the property of the network fails.

    Both arrays are as the network takes them, without the batch axis, in the units of the data; the
    counterexample was replayed on ONNX Runtime. `index` is the input's place in the data set,
    `label` its class, `witness_class` the class that the counterexample goes to, and `distance` is
    measured in the norm of the run. `pixel_range` are black and white, should it be a picture;
    `features` are the names of its values, where they are known.
    """

    network: str
    index: int
    label: int
    witness_class: int
    input: Array
    counterexample: Array
    distance: float
    pixel_range: tuple[float, float] = (0.0, 1.0)
    features: tuple[str, ...] = ()

    @property
    def difference(self) -> Array:
        """What must be added to the input, in float64."""
        return self.counterexample.astype(np.float64) - self.input.astype(np.float64)

    def torch(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The input and the counterexample as tensors."""
        import torch

        return torch.tensor(self.input), torch.tensor(self.counterexample)

    def changes(self, count: int | None = None) -> list[tuple[int, float, float]]:
        """The features that change, the most changed first: their place, before, and after."""
        before, after = self.input.ravel(), self.counterexample.ravel()
        size = np.abs(self.difference.ravel())
        order = np.argsort(-size, kind="stable")[: np.count_nonzero(size)][:count]
        return [(int(place), float(before[place]), float(after[place])) for place in order]

    def plot(self) -> Figure:
        """The input and the counterexample side by side, where inputs are pictures."""
        return radii.views.draw_counterexamples([self])

    def __repr__(self) -> str:
        """A line, and where the input is no picture one for each of the most changed features."""
        return radii.views.counterexample_text(self)

    def _repr_html_(self) -> str:
        """Three pictures, or the table of the most changed features."""
        return radii.views.counterexample_html(self)


class CounterexampleGallery(Sequence[Counterexample]):
    """Several of them: a sequence that notebooks show as a gallery."""

    def __init__(self, examples: Iterable[Counterexample]) -> None:
        self._examples = tuple(examples)

    def __len__(self) -> int:
        return len(self._examples)

    @overload
    def __getitem__(self, place: int) -> Counterexample: ...
    @overload
    def __getitem__(self, place: slice) -> CounterexampleGallery: ...
    def __getitem__(self, place: int | slice) -> Counterexample | CounterexampleGallery:
        if isinstance(place, slice):
            return CounterexampleGallery(self._examples[place])
        return self._examples[place]

    def plot(self) -> Figure:
        """A column for each input, a row for each network, where inputs are pictures."""
        return radii.views.draw_counterexamples(self._examples)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self)) or "no counterexample"

    def _repr_html_(self) -> str:
        return "".join(each._repr_html_() for each in self) or "no counterexample"


# --- where the arrays are


@dataclass(frozen=True, slots=True, eq=False)
class StoredArrays:
    """Where the arrays of one row are: in memory, or in the store in `place` under `key`."""

    place: Path
    key: str
    in_memory: tuple[Record, StoredSettings] | None = None


def sources_of(place: Store | Path, records: Sequence[Record]) -> npt.NDArray[np.object_]:
    """Where the arrays of each row are; what is only in an open store is read now."""
    if isinstance(place, Path) or place.place.is_dir():
        directory = (place if isinstance(place, Path) else place.place).resolve()
        return np.array([StoredArrays(directory, record.key) for record in records], np.object_)
    settings = place.settings()
    whole = map(_with_closest_witness, place.records([record.key for record in records]))
    kept = [StoredArrays(place.place, one.key, (one, settings)) for one in whole]
    return np.array(kept, np.object_)


def _with_closest_witness(record: Record) -> Record:
    """Without the other answers, whose witnesses take memory as long as the distribution lives."""
    closest = record.closest_witness
    kept = (pair for pair in record.answered if closest is not None and pair[1].witness is closest)
    return dataclasses.replace(record, answered=tuple(kept))


def read_sources(sources: Sequence[StoredArrays]) -> list[tuple[Record, StoredSettings]]:
    """The records with their arrays, and what they were measured by; a store is opened once."""
    records_of_rows = {row: each.in_memory for row, each in enumerate(sources) if each.in_memory}
    stored: dict[Path, list[int]] = {}
    for row, source in enumerate(sources):
        if source.in_memory is None:
            stored.setdefault(source.place, []).append(row)
    for place, rows in stored.items():
        with Store.open(place) as store:
            settings = store.settings()
            records = store.records([sources[row].key for row in rows])
            records_of_rows |= {
                row: (one, settings) for row, one in zip(rows, records, strict=True)
            }
    return [records_of_rows[row] for row in range(len(sources))]


def counterexample_of(record: Record, settings: StoredSettings) -> Counterexample:
    """The closest one in a record; a DataError if there is none."""
    facts, witness = record.facts, record.closest_witness
    goes_to = record.measurement.witness_class
    if witness is None or goes_to is None:
        raise DataError(f"{facts.network}, input {facts.input}: no counterexample is known")
    low, high = float(record.input.min()), float(record.input.max())
    domain = settings.domain_of_network().get(facts.fingerprint)
    if domain is not None:
        ends = domain.box(record.input.shape)
        if all(np.isfinite(end).all() for end in ends):
            low, high = float(ends[0].min()), float(ends[1].max())
    return Counterexample(
        network=facts.network,
        index=facts.input,
        label=facts.label,
        witness_class=goes_to,
        input=record.input,
        counterexample=witness.input,
        distance=witness.distance,
        pixel_range=(low, high),
    )
