"""Arrays as one compressed block of bytes, with a table of contents that JavaScript can read."""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.errors import DataError
from radii.statistics import Run
from radii.store import Record, Store
from radii.views.figures._counterexamples import FEWEST_PIXELS, as_picture

TYPES = {"f8": "Float64Array", "f4": "Float32Array", "i4": "Int32Array", "u4": "Uint32Array"}
TYPES |= {"u2": "Uint16Array", "u1": "Uint8Array", "i1": "Int8Array"}

ALIGNMENT = 8
"""A typed array must begin at a multiple of the size of its items."""


class PackedArrays:
    """Named arrays, one after the other, little-endian."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self.contents: dict[str, dict[str, Any]] = {}

    @property
    def size(self) -> int:
        """Bytes, before they are compressed."""
        return self._size

    def add(self, name: str, values: npt.ArrayLike, kind: str) -> None:
        """`kind` is one of `TYPES`; values must fit into it."""
        array = np.asarray(values)
        if kind[0] in "iu" and array.size:
            bounds = np.iinfo(kind)
            if array.min() < bounds.min or array.max() > bounds.max:
                raise OverflowError(f"array '{name}' does not fit into {TYPES[kind]}")
        data = np.ascontiguousarray(array, np.dtype(f"<{kind}")).tobytes()
        self.contents[name] = {"type": TYPES[kind], "at": self._size, "length": array.size}
        padded = data + bytes(-len(data) % ALIGNMENT)
        self._parts.append(padded)
        self._size += len(padded)

    def add_words(self, name: str, texts: Iterable[str], kind: str = "u2") -> list[str]:
        """Texts as places in the list of distinct ones, which is returned."""
        words: dict[str, int] = {}
        self.add(name, [words.setdefault(text, len(words)) for text in texts], kind)
        return list(words)

    def add_known(self, name: str, values: Iterable[float | None], kind: str = "f8") -> None:
        """Numbers, NaN where there is none."""
        self.add(name, [math.nan if value is None else value for value in values], kind)

    def compressed(self) -> bytes:
        """What the browser's DecompressionStream('deflate') takes apart."""
        return zlib.compress(b"".join(self._parts), level=6)


# Inputs and what breaks them, small enough for a page: a byte a pixel, each input once.


DIFFERENCE_LEVELS = 127
"""Differences are rounded to this many steps on each side of zero, relative to the largest."""

Array = npt.NDArray[np.floating]


@dataclass(slots=True, eq=False)
class Pictures:
    """Where in the block each input and each row's difference lies; -1 where it is left out.

    `shapes` of inputs are (height, width, channels), or (features,) for those that are no picture.
    `pixel_range` is how far black is from white, in the input's own units.
    """

    block: PackedArrays
    shapes: list[list[int]]
    input_at: npt.NDArray[np.int64]
    input_shape: npt.NDArray[np.int64]
    pixel_range: npt.NDArray[np.float64]
    difference_at: npt.NDArray[np.int64]
    difference_scale: npt.NDArray[np.float64]
    shown: int
    inputs: int

    def of_input(self, number: int) -> dict[str, Any]:
        """What the page needs to draw one input and what breaks it, as JSON."""
        rows = np.flatnonzero(self.difference_at >= 0)
        return {
            "shape": self.shapes[self.input_shape[number]],
            "input_at": int(self.input_at[number]),
            "pixel_range": float(self.pixel_range[number]),
            "differences": [
                [int(row), int(self.difference_at[row]), float(self.difference_scale[row])]
                for row in rows
            ],
            "contents": self.block.contents,
            "data": base64.b64encode(self.block.compressed()).decode(),
        }

    def note(self, limit: int) -> str:
        """What is missing, in a sentence; empty if nothing is."""
        if self.shown == self.inputs:
            return ""
        return (
            f"Of {self.inputs:,} inputs, the {self.shown:,} with the smallest radii are shown with "
            f"their counterexamples: pictures are limited to {limit / 2**20:.4g} MB "
            "(radii report --pictures SIZE)."
        )


@dataclass(slots=True, eq=False)
class Bytes:
    """Bytes and numbers, appended; differences of pictures are bytes, all else are floats."""

    pixels: list[npt.NDArray[np.uint8]] = field(default_factory=list)
    values: list[npt.NDArray[np.float32]] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=lambda: {"pixels": 0, "values": 0})

    @property
    def size(self) -> int:
        return self.sizes["pixels"] + 4 * self.sizes["values"]

    def append(self, name: str, flat: npt.NDArray[np.generic]) -> int:
        at = self.sizes[name]
        getattr(self, name).append(flat)
        self.sizes[name] += flat.size
        return at

    def add_to(self, block: PackedArrays, prefix: str = "") -> None:
        """The two arrays, under their names."""
        for name, kind in (("pixels", "u1"), ("values", "f4")):
            parts = getattr(self, name)
            block.add(f"{prefix}{name}", np.concatenate(parts) if parts else [], kind)


def pack_pictures(
    runs: Sequence[Run],
    inputs: Sequence[int],
    *,
    limit: float = math.inf,
    only: int | None = None,
) -> Pictures:
    """Pack inputs from the smallest witnessed radius up while they fit into `limit` bytes.

    `inputs` has the number of each row's input, over all rows of all runs in order; -1: none.
    With `only`, no other input is packed.
    """
    of_row = np.asarray(inputs)
    count = int(of_row.max(initial=-1)) + 1
    packed = Pictures(
        PackedArrays(),
        [],
        np.full(count, -1),
        np.full(count, -1),
        np.zeros(count),
        np.full(len(of_row), -1),
        np.zeros(len(of_row)),
        0,
        count,
    )
    data = Bytes()
    upper = np.concatenate([run.columns["upper"] for run in runs])
    closest = np.full(count, np.inf)
    known = of_row >= 0
    np.minimum.at(closest, of_row[known], upper[known])
    order = np.argsort(closest, kind="stable")
    rows = _rows_by_input(of_row, count)
    readers = _Readers(runs)
    try:
        for number in order if only is None else [only]:
            if data.size >= limit:
                break
            _pack_input(packed, data, readers, int(number), rows[number])
    finally:
        readers.close()
    data.add_to(packed.block)
    return packed


def _pack_input(
    packed: Pictures, data: Bytes, readers: _Readers, number: int, rows: npt.NDArray[np.int64]
) -> None:
    for row in rows:
        record, (low, high) = readers.record(int(row))
        if packed.input_at[number] < 0:
            shape, flat = flat_input(record.input, low, high, is_named=readers.is_named(int(row)))
            if shape not in packed.shapes:
                packed.shapes.append(shape)
            packed.input_shape[number] = packed.shapes.index(shape)
            name = "pixels" if len(shape) == 3 else "values"
            packed.input_at[number] = data.append(name, flat)
            packed.pixel_range[number] = high - low
            packed.shown += 1
        witness = record.closest_witness
        if witness is None or witness.distance == 0:
            continue
        difference = witness.input.astype(np.float64) - record.input.astype(np.float64)
        is_picture = len(packed.shapes[packed.input_shape[number]]) == 3
        name, flat, packed.difference_scale[row] = flat_difference(difference, is_picture)
        packed.difference_at[row] = data.append(name, flat)


def flat_input(
    values: Array, low: float, high: float, *, is_named: bool = False
) -> tuple[list[int], npt.NDArray[np.generic]]:
    """Its shape, as in `Pictures`, and its bytes or numbers; features with names are numbers."""
    is_short = max(np.squeeze(values).shape, default=1) == values.size < FEWEST_PIXELS
    if is_named or is_short:
        return [values.size], values.ravel().astype(np.float32)
    try:
        picture = _picture(values, low, high)
    except DataError:
        return [values.size], values.ravel().astype(np.float32)
    return list(picture.shape), np.rint(255 * picture).astype(np.uint8).ravel()


def flat_difference(
    difference: Array, is_picture: bool
) -> tuple[str, npt.NDArray[np.generic], float]:
    """Which array of `Bytes` it belongs into, its values there, and the largest change."""
    scale = float(np.abs(difference).max())
    if not is_picture:
        return "values", difference.ravel().astype(np.float32), scale
    steps = np.rint(2 * DIFFERENCE_LEVELS * _picture(difference, -scale, scale)).astype(np.uint8)
    return "pixels", steps.ravel(), scale


def _picture(values: Array, low: float, high: float) -> Array:
    """Height, width and channels: 1 or 3."""
    picture = as_picture(values, low, high)
    return picture[..., None] if picture.ndim == 2 else picture


def _rows_by_input(of_row: npt.NDArray[np.int64], count: int) -> list[npt.NDArray[np.int64]]:
    order = np.argsort(of_row, kind="stable")
    edges = np.searchsorted(of_row[order], np.arange(count + 1))
    return [order[start:stop] for start, stop in pairwise(edges)]


class _Readers:
    """Records by row over all runs, and the range of pixels where they come from."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        self._starts = np.cumsum([0, *map(len, runs)])
        self._stores: dict[int, Store] = {}
        self._ranges = [pixel_range(run.settings.domains) for run in runs]

    def record(self, row: int) -> tuple[Record, tuple[float, float]]:
        place = int(np.searchsorted(self._starts, row, side="right")) - 1
        run = self._runs[place]
        if place not in self._stores:
            self._stores[place] = Store.open(run.place)
        key = run.records[row - self._starts[place]].key
        (record,) = self._stores[place].records([key])
        known = self._ranges[place]
        return record, known or (float(record.input.min()), float(record.input.max()))

    def is_named(self, row: int) -> bool:
        """Whether the features of the row's input have names: they are then no pixels."""
        place = int(np.searchsorted(self._starts, row, side="right")) - 1
        return feature_names(self._runs[place].settings) is not None

    def close(self) -> None:
        for store in self._stores.values():
            store.close()


def feature_names(settings: object) -> dict[str, list[Any]] | None:
    """Names and scales of a run's features; None where its store does not tell."""
    known = getattr(settings, "features", None)
    names = getattr(settings, "feature_names", ()) if known is None else known.names
    if not names:
        return None
    scales = np.ones(len(names)) if known is None else known.scale
    return {"names": list(names), "scales": [float(scale) for scale in scales]}


def pixel_range(domains: Iterable[object]) -> tuple[float, float] | None:
    """Black and white: the ends of input domains, by their keys; None where one has none."""
    ends = []
    for key in domains:
        low, _, high = str(key).partition(":")
        try:
            ends += [np.ravel(json.loads(side)) for side in (low, high)]
        except ValueError:
            return None
    if not ends or not all(np.isfinite(side).all() for side in ends):
        return None
    return float(min(side.min() for side in ends)), float(max(side.max() for side in ends))
