"""What a counterexample changes, by the names of the features."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from radii.problem import Features, Measurement
from radii.store import Record, Store, StoredSettings

WholeQuestion = tuple[str, int, str, int | None]
"""Network, input, property and target: what tells an instance of a run from the others."""


@dataclass(frozen=True, slots=True)
class FeatureChange:
    """One feature from what it was to what it is in a counterexample; a category by its names.

    `units` is the change as a multiple of the feature's scale, None for a category.
    """

    feature: str
    before: float | str
    after: float | str
    units: float | None = None

    def __str__(self) -> str:
        """`income +3 % (41200 to 42436)`, `age +2 (40 to 42)`, `purpose car to house`."""
        if isinstance(self.before, str) or isinstance(self.after, str):
            return f"{self.feature} {self.before} to {self.after}"
        change = self.after - self.before
        share = change / abs(self.before) if self.before else np.inf
        small = 100 * share
        size = f"{small:+.2g} %" if abs(small) < 99.5 else f"{change:+.4g}"
        return f"{self.feature} {size} ({self.before:.6g} to {self.after:.6g})"

    def flat(self) -> dict[str, Any]:
        """For JSON and tables."""
        return {
            "feature": self.feature,
            "before": self.before,
            "after": self.after,
            "units": self.units,
        }


@dataclass(frozen=True, slots=True)
class NamedWitness:
    """The closest counterexample of an instance: its changes, the largest first, and who stays."""

    measurement: Measurement
    changes: tuple[FeatureChange, ...]
    fixed: tuple[str, ...]

    def __str__(self) -> str:
        if not self.changes:
            return "misclassified without any change"
        said = ", ".join(map(str, self.changes))
        return f"{said}; fixed: {', '.join(self.fixed)}" if self.fixed else said


def question_of(measured: Measurement) -> WholeQuestion:
    """What tells its instance from the others of a run."""
    return measured.network, measured.input, measured.property, measured.target


def named_witnesses(place: Store | Path) -> dict[WholeQuestion, NamedWitness]:
    """The counterexamples of a store whose features have names; none where they have none."""
    if isinstance(place, Path):
        with Store.open(place) as store:
            return named_witnesses(store)
    features = features_of(place.settings())
    if features is None:
        return {}
    named = (_named(record, features) for record in place.records())
    return {question_of(one.measurement): one for one in named if one is not None}


def features_of(settings: StoredSettings) -> Features | None:
    """What is known of the features of a run: all of it, only their names, or nothing."""
    if settings.features is not None or not settings.feature_names:
        return settings.features
    return Features.of(settings.feature_names)


def _named(record: Record, features: Features) -> NamedWitness | None:
    witness = record.closest_witness
    if witness is None or record.input.size != len(features):
        return None
    before, after = (np.ravel(x).astype(np.float64) for x in (record.input, witness.input))
    changes, in_groups = [], {place for places in features.groups.values() for place in places}
    for name, places in features.groups.items():
        was, now = (features.names[places[int(x[list(places)].argmax())]] for x in (before, after))
        if was != now:
            changes.append(FeatureChange(name, category_of(was, name), category_of(now, name)))
    units = features.units(after - before)
    for place in np.argsort(-np.abs(units), kind="stable").tolist():
        if before[place] != after[place] and place not in in_groups:
            sides = _shortest(before[place], record), _shortest(after[place], record)
            changes.append(FeatureChange(features.names[place], *sides, float(units[place])))
    stays = tuple(
        name
        for place, name in enumerate(features.names)
        if features.scale[place] == 0 and place not in in_groups
    )
    fixed_groups = (name for name, p in features.groups.items() if features.scale[p[0]] == 0)
    return NamedWitness(record.measurement, tuple(changes), (*stays, *fixed_groups))


def category_of(category: str, group: str) -> str:
    """`purpose=car` and `purpose_car` are the category car of purpose."""
    return category.removeprefix(group).lstrip("=_:. ") or category


def _shortest(value: float, record: Record) -> float:
    """The shortest number that is this one in the input's own type: 0.1, not 0.10000000149."""
    return float(str(record.input.dtype.type(value)))
