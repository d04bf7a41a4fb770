"""What was measured, wherever it was read: brackets with how they came about."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from radii.errors import StoreError
from radii.problem import Disagreement, Grid, Measurement
from radii.statistics._columns import Array
from radii.statistics._distribution import Distribution
from radii.store import Excerpt, Record, StoredSettings


@dataclass(frozen=True, eq=False)
class Run:
    """A distribution's `brackets` with how they came about.

    A run of radii has one of `records` for each row, with every question and answer; files of
    others have none, and their values are claims. Of these, `settings` has no more than what the
    files say, and `notes` what cannot be taken at its word. `excerpts` are samples of which it has
    some shards only.
    """

    place: Path
    brackets: Distribution
    settings: StoredSettings = field(default_factory=StoredSettings)
    records: tuple[Record, ...] = ()
    notes: tuple[str, ...] = ()
    excerpts: tuple[Excerpt, ...] = ()

    def __len__(self) -> int:
        return len(self.brackets)

    @property
    def columns(self) -> Mapping[str, Array]:
        """Those of the brackets: see `COLUMNS`."""
        return self.brackets.columns

    @property
    def only_eps(self) -> float | None:
        """The one value that was asked about, None where there were several."""
        return self.brackets.only_eps

    @property
    def is_measured(self) -> bool:
        """Whether radii measured it, with proofs and counterexamples of its own."""
        return bool(self.records)

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """One an instance, in order."""
        return self.brackets.measurements

    @property
    def grid(self) -> Grid:
        """The eps values of its search; a StoreError where it does not say which."""
        if self.settings.grid is None:
            raise StoreError(f"{self.place}: does not say on which grid it was measured")
        return self.settings.grid

    @property
    def networks(self) -> tuple[str, ...]:
        """The names of the networks, in order of appearance."""
        return self.brackets.networks

    @cached_property
    def disagreements(self) -> tuple[tuple[int, Disagreement], ...]:
        """Claims of proofs that a replayed witness contradicts, with their rows."""
        return tuple(
            (row, disagreement)
            for row, record in enumerate(self.records)
            for disagreement in record.disagreements
        )

    def labelled(self, **columns: Any) -> Self:
        """The same with columns set anew, each to one value or to an array."""
        return dataclasses.replace(self, brackets=self.brackets.labelled(**columns))
