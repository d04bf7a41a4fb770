"""Networks compared on a page: their inputs side by side, both curves, and the statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from radii.statistics import Run
from radii.views._json import plain_json
from radii.views.page._page import render_sheet, write_page
from radii.views.page._payload import PICTURE_BYTES, payload_of


def write_comparison(
    runs: Sequence[Run],
    statistics: Mapping[str, Any],
    path: Path,
    *,
    title: str = "",
    picture_bytes: int = PICTURE_BYTES,
) -> None:
    """Write the page; `statistics` are those that `radii compare --json` prints of these runs.

    The folder must exist.
    """
    payload = payload_of(runs, title=title, picture_bytes=picture_bytes)
    facts = {**payload.facts, "statistics": plain_json(statistics), "first": first_pair(runs)}
    if not title:
        facts["title"] = "Comparison"
    page = render_sheet(facts, payload.columns, payload.pictures, script="comparison")
    write_page(page, path)


def first_pair(runs: Sequence[Run]) -> tuple[str, str]:
    """Which two networks are shown first: the first ones of the first two runs, or of the only."""
    if len(runs) == 1:
        one, two, *_ = (*runs[0].networks, "")
        return one, two
    return runs[0].networks[0], runs[1].networks[0]
