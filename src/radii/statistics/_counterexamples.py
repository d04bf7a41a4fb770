"""Inputs and what breaks them, as arrays, tensors, pictures and tables of what changed.

A distribution that was measured remembers where each row's arrays are: in the store's directory, or
with it where nothing was to be kept. They are read when they are asked for.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

import radii
from radii.errors import DataError
from radii.problem import Array
from radii.statistics._display import CELL, TABLE
from radii.statistics.reading._run import Run
from radii.store import Record, Store, StoredSettings
from radii.terminal import plain

if TYPE_CHECKING:
    import torch
    from matplotlib.figure import Figure

MOST_CHANGES = 8
"""Rows of a table of changed features; more are counted."""

THUMBNAIL_PIXELS = 96
"""How wide a picture is shown."""


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
        lines = [self._title]
        if not self._is_picture:
            lines += ["  " + "  ".join(row) for row in self._change_rows()]
            lines += [f"  {more}"] if (more := self._more_changes()) else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Three pictures, or the table of the most changed features."""
        shown = self._pictures() if self._is_picture else self._table()
        return (
            "<div style='display:inline-block;margin:0 20px 12px 0;vertical-align:top;"
            f"font-size:90%'><div>{escape(self._title)}</div>{shown}</div>"
        )

    @property
    def _is_picture(self) -> bool:
        """Features with names are no pixels."""
        return not self.features and radii.views.is_picture(self.input)

    @property
    def _title(self) -> str:
        stays = (
            self.witness_class == self.label
        )  # it breaks another property than that of the class
        change = "is broken" if stays else f"becomes {self.witness_class}"
        return (
            f"{plain(self.network)}, input {self.index}: class {self.label}, {change} "
            f"at {self.distance:.4g}"
        )

    def _change_rows(self) -> list[tuple[str, str, str]]:
        names = self.features or [f"feature {place}" for place in range(self.input.size)]
        return [
            (plain(names[place]), f"{before:.5g} -> {after:.5g}", f"{after - before:+.3g}")
            for place, before, after in self.changes(MOST_CHANGES)
        ]

    def _more_changes(self) -> str:
        more = int(np.count_nonzero(self.difference)) - MOST_CHANGES
        return f"and {more} more that change no more than these" if more > 0 else ""

    def _table(self) -> str:
        rows = (
            "<tr style='background:none'>"
            + "".join(f"<td style='{CELL}'>{escape(text)}</td>" for text in row)
            + "</tr>"
            for row in self._change_rows()
        )
        return f"{TABLE}{''.join(rows)}</table><div>{self._more_changes()}</div>"

    def _pictures(self) -> str:
        low, high = self.pixel_range
        most = max(float(np.abs(self.difference).max()), np.finfo(np.float64).tiny)
        pictures = {
            "input": _as_bytes(radii.views.as_picture(self.input, low, high)),
            "counterexample": _as_bytes(radii.views.as_picture(self.counterexample, low, high)),
            f"difference, ±{most:.2g}": _difference_as_bytes(
                2 * radii.views.as_picture(self.difference, -most, most) - 1
            ),
        }
        return "".join(
            "<figure style='display:inline-block;margin:4px 8px 0 0'>"
            f"{_image(pixels, name)}<figcaption style='opacity:.7'>{name}</figcaption></figure>"
            for name, pixels in pictures.items()
        )


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


def _as_bytes(picture: Array) -> Any:
    """Shades of grey from white to black, as in figures; colours as they are."""
    shades = 1 - picture if picture.ndim == 2 else picture
    return np.rint(255 * shades).astype(np.uint8)


def _difference_as_bytes(change: Array) -> Any:
    """From -1 to 1, the largest over channels: blue is less, orange more, nothing transparent."""
    if change.ndim == 3:
        strongest = np.abs(change).argmax(axis=-1)[..., None]
        change = np.take_along_axis(change, strongest, axis=-1)[..., 0]
    pixels = np.empty((*change.shape, 4), np.uint8)
    pixels[..., :3] = np.where((change > 0)[..., None], (224, 123, 31), (47, 134, 209))
    pixels[..., 3] = np.rint(255 * np.abs(change))
    return pixels


def _image(pixels: Any, name: str) -> str:
    from PIL import Image

    stream = BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    source = base64.b64encode(stream.getvalue()).decode()
    return (
        f"<img alt='{name}' src='data:image/png;base64,{source}' width='{THUMBNAIL_PIXELS}' "
        "style='image-rendering:pixelated;border:1px solid #8888;max-width:none;margin:0'>"
    )


# --- where the arrays are


@dataclass(frozen=True, slots=True, eq=False)
class StoredArrays:
    """Where the arrays of one row are: `held`, or in the store in `place` under `key`."""

    place: Path
    key: str
    held: tuple[Record, StoredSettings] | None = None


def sources_of(run: Run, store: Store | None = None) -> npt.NDArray[np.object_] | None:
    """Where the arrays of each row are; what is only in an open store is read now."""
    if not run.is_measured:
        return None
    if store is None or store.place.is_dir():
        place = run.place.resolve()
        return np.array([StoredArrays(place, record.key) for record in run.records], np.object_)
    settings = store.settings()
    held = (_with_closest_witness(record) for record in store.records())
    return np.array([StoredArrays(run.place, one.key, (one, settings)) for one in held], np.object_)


def _with_closest_witness(record: Record) -> Record:
    """Without the other answers, whose witnesses take memory as long as the distribution lives."""
    closest = record.closest_witness
    kept = (pair for pair in record.answered if closest is not None and pair[1].witness is closest)
    return dataclasses.replace(record, answered=tuple(kept))


def read_sources(sources: Sequence[StoredArrays]) -> list[tuple[Record, StoredSettings]]:
    """The records with their arrays, and what they were measured by; a store is opened once."""
    found = {row: source.held for row, source in enumerate(sources) if source.held is not None}
    stored: dict[Path, list[int]] = {}
    for row, source in enumerate(sources):
        if source.held is None:
            stored.setdefault(source.place, []).append(row)
    for place, rows in stored.items():
        with Store.open(place) as store:
            settings = store.settings()
            records = store.records([sources[row].key for row in rows])
            found |= {row: (one, settings) for row, one in zip(rows, records, strict=True)}
    return [found[row] for row in range(len(sources))]


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
