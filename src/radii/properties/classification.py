"""The class stays: against every other class, or against one target class.

Classification robustness (CR) is `OneToAny`; `PredictionStays` asks the same of the class that the
network itself predicts, right or wrong.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from radii.errors import SpecificationError
from radii.properties._base import Anchor, Halfspaces, LinearRequirement, Property

__all__ = ["OneToAny", "OneToOne", "PredictionStays", "check_class"]


def _beaten_by(rival: int, anchor: Anchor) -> Halfspaces:
    """Outputs where `rival` is at least as large as the label: y_label - y_rival <= 0."""
    row = np.zeros(anchor.outputs.size)
    row[anchor.label] += 1.0
    row[rival] -= 1.0
    return Halfspaces(row, np.zeros(1))


def check_class(index: int, anchor: Anchor, what: str) -> None:
    """A SpecificationError unless the network has an output of this index."""
    if not 0 <= index < anchor.outputs.size:
        raise SpecificationError(
            f"{what} {index} is not one of the network's {anchor.outputs.size} outputs"
        )


class OneToAny(Property):
    """The label's output stays strictly above every other output."""

    @property
    def spec(self) -> str:
        return "one-to-any"

    def at(self, anchor: Anchor) -> LinearRequirement:
        check_class(anchor.label, anchor, "label")
        if anchor.outputs.size < 2:
            raise SpecificationError("one-to-any needs a network with at least two outputs")
        rivals = (t for t in range(anchor.outputs.size) if t != anchor.label)
        return LinearRequirement(tuple(_beaten_by(rival, anchor) for rival in rivals))


class PredictionStays(Property):
    """The output that is largest at the input stays strictly above every other output."""

    @property
    def spec(self) -> str:
        return "cr:of=prediction"

    @property
    def uses_label(self) -> bool:
        return False

    def at(self, anchor: Anchor) -> LinearRequirement:
        return OneToAny().at(replace(anchor, label=int(np.argmax(anchor.outputs))))


class OneToOne(Property):
    """The label's output stays strictly above that of one target class.

    Broken where y_target >= y_label, whatever the other outputs are, as verifiers state a targeted
    query; so the one-to-any radius is the smallest of the one-to-one radii.
    """

    def __init__(self, target: int) -> None:
        self._target = target

    @property
    def spec(self) -> str:
        return f"one-to-one:{self._target}"

    @property
    def target(self) -> int:
        return self._target

    def at(self, anchor: Anchor) -> LinearRequirement:
        check_class(anchor.label, anchor, "label")
        check_class(self._target, anchor, "target")
        if self._target == anchor.label:
            raise SpecificationError(f"target {self._target} is the label itself")
        return LinearRequirement((_beaten_by(self._target, anchor),))
