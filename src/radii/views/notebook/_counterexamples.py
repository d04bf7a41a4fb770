"""A counterexample as people read it: three pictures, or a table of what changed."""

from __future__ import annotations

import base64
from html import escape
from io import BytesIO

import numpy as np
import numpy.typing as npt

from radii.problem import Array
from radii.statistics import Counterexample
from radii.terminal import plain
from radii.views.figures._counterexamples import as_picture, is_picture
from radii.views.notebook._distribution import CELL, TABLE

MOST_CHANGES = 8
"""Rows of a table of changed features; more are counted."""

THUMBNAIL_PIXELS = 96
"""How wide a picture is shown."""


def counterexample_text(one: Counterexample) -> str:
    """A line, and where the input is not a picture one for each of the most changed features."""
    lines = [_title(one)]
    if not _is_picture(one):
        lines += ["  " + "  ".join(row) for row in _change_rows(one)]
        lines += [f"  {more}"] if (more := _more_changes(one)) else []
    return "\n".join(lines)


def counterexample_html(one: Counterexample) -> str:
    """Three pictures, or the table of the most changed features."""
    shown = _pictures(one) if _is_picture(one) else _table(one)
    return (
        "<div style='display:inline-block;margin:0 20px 12px 0;vertical-align:top;"
        f"font-size:90%'><div>{escape(_title(one))}</div>{shown}</div>"
    )


def _is_picture(one: Counterexample) -> bool:
    """Features with names are no pixels."""
    return not one.features and is_picture(one.input)


def _title(one: Counterexample) -> str:
    # A counterexample that stays in its class breaks another property than that of the class.
    stays = one.witness_class == one.label
    change = "is broken" if stays else f"becomes {one.witness_class}"
    return (
        f"{plain(one.network)}, input {one.index}: class {one.label}, {change} "
        f"at {one.distance:.4g}"
    )


def _change_rows(one: Counterexample) -> list[tuple[str, str, str]]:
    names = one.features or [f"feature {place}" for place in range(one.input.size)]
    return [
        (plain(names[place]), f"{before:.5g} -> {after:.5g}", f"{after - before:+.3g}")
        for place, before, after in one.changes(MOST_CHANGES)
    ]


def _more_changes(one: Counterexample) -> str:
    more = int(np.count_nonzero(one.difference)) - MOST_CHANGES
    return f"and {more} more that change no more than these" if more > 0 else ""


def _table(one: Counterexample) -> str:
    rows = (
        "<tr style='background:none'>"
        + "".join(f"<td style='{CELL}'>{escape(text)}</td>" for text in row)
        + "</tr>"
        for row in _change_rows(one)
    )
    return f"{TABLE}{''.join(rows)}</table><div>{_more_changes(one)}</div>"


def _pictures(one: Counterexample) -> str:
    low, high = one.pixel_range
    most = max(float(np.abs(one.difference).max()), np.finfo(np.float64).tiny)
    pictures = {
        "input": _as_bytes(as_picture(one.input, low, high)),
        "counterexample": _as_bytes(as_picture(one.counterexample, low, high)),
        f"difference, ±{most:.2g}": _difference_as_bytes(
            2 * as_picture(one.difference, -most, most) - 1
        ),
    }
    return "".join(
        "<figure style='display:inline-block;margin:4px 8px 0 0'>"
        f"{_image(pixels, name)}<figcaption style='opacity:.7'>{name}</figcaption></figure>"
        for name, pixels in pictures.items()
    )


def _as_bytes(picture: Array) -> npt.NDArray[np.uint8]:
    """Shades of grey from white to black, as in figures; colours as they are."""
    shades = 1 - picture if picture.ndim == 2 else picture
    return np.rint(255 * shades).astype(np.uint8)


def _difference_as_bytes(change: Array) -> npt.NDArray[np.uint8]:
    """From -1 to 1, the largest over channels: blue is less, orange more, nothing transparent."""
    if change.ndim == 3:
        strongest = np.abs(change).argmax(axis=-1)[..., None]
        change = np.take_along_axis(change, strongest, axis=-1)[..., 0]
    pixels = np.empty((*change.shape, 4), np.uint8)
    pixels[..., :3] = np.where((change > 0)[..., None], (224, 123, 31), (47, 134, 209))
    pixels[..., 3] = np.rint(255 * np.abs(change))
    return pixels


def _image(pixels: npt.NDArray[np.uint8], name: str) -> str:
    from PIL import Image

    stream = BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    source = base64.b64encode(stream.getvalue()).decode()
    return (
        f"<img alt='{name}' src='data:image/png;base64,{source}' width='{THUMBNAIL_PIXELS}' "
        "style='image-rendering:pixelated;border:1px solid #8888;max-width:none;margin:0'>"
    )
