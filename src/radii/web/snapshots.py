"""Reports as they were at a moment: a page asks for the parts of one in several requests."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from radii.errors import StoreError
from radii.report import Payload, Source, named_apart, payload_of, pictures_of
from radii.web.watching import Watch

__all__ = ["Snapshots"]

KEPT = 4
"""How many are kept: pages that show different experiments, and the one before of each."""

REST = 10.0
"""A new one is made only after this many times as long as the last one took to make."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    name: str
    wanted: tuple[str, ...]
    revision: str
    sources: tuple[Source, ...]
    payload: Payload
    next_at: float

    def facts(self) -> dict[str, Any]:
        return {**self.payload.facts, "snapshot": self.name, "revision": self.revision}


class Snapshots:
    """The latest reports, made when a page asks and there is news. Safe in several threads."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._kept: dict[str, Snapshot] = {}
        self._numbers = itertools.count(1)
        self._start = f"{time.time_ns():x}"  # a page may ask for one of a server that is gone

    def facts(self, wanted: Sequence[str]) -> bytes:
        """The facts of the report as it is now, or was a moment ago."""
        with self._watch.lock:
            return json.dumps(self._latest(tuple(wanted)).facts(), allow_nan=False).encode()

    def columns(self, name: str) -> bytes:
        return self._named(name).payload.columns

    def pictures(self, name: str, number: int) -> bytes:
        """Of one input, by its number in the report."""
        return json.dumps(pictures_of(self._named(name).sources, number), allow_nan=False).encode()

    def _named(self, name: str) -> Snapshot:
        found = self._kept.get(name)
        if found is None:
            raise StoreError("that report is not kept any more: the page asks for a newer one")
        return found

    def _latest(self, wanted: tuple[str, ...]) -> Snapshot:
        shown = [one for one in self._watch.chosen(wanted) if one.revision]
        revision = ";".join(one.revision for one in shown)
        for known in reversed(self._kept.values()):
            if known.wanted == wanted:
                if known.revision == revision or time.monotonic() < known.next_at:
                    return known
                break
        if not shown:
            raise StoreError("there is nothing to show yet")
        began = time.monotonic()
        sources = tuple(named_apart([one.source() for one in shown]))
        payload = payload_of(sources, picture_bytes=None)
        ended = time.monotonic()
        made = Snapshot(
            f"{self._start}-{next(self._numbers)}",
            wanted,
            revision,
            sources,
            payload,
            ended + REST * (ended - began),
        )
        self._kept[made.name] = made
        for name in list(self._kept)[:-KEPT]:
            del self._kept[name]
        return made
