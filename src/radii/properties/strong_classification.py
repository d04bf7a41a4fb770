"""Strong classification robustness (SCR): the label's probability stays high."""

from __future__ import annotations

import numpy as np

from radii.errors import SpecificationError
from radii.properties._base import (
    Anchor,
    Halfspaces,
    LinearRequirement,
    Property,
    Requirement,
    number_text,
)
from radii.properties.classification import check_class
from radii.properties.probabilities import ProbabilityBound, SoftmaxRequirement

__all__ = ["StrongClassification"]


class StrongClassification(Property):
    """The softmax of the label's output stays above `eta`. With eta > 0.5 it implies CR."""

    def __init__(self, eta: float) -> None:
        if not 0 < eta < 1:
            raise SpecificationError(f"property 'scr': eta must lie between 0 and 1, but is {eta}")
        self.eta = float(eta)

    @property
    def spec(self) -> str:
        return f"scr:eta={number_text(self.eta)}"

    @property
    def warning(self) -> str | None:
        if self.eta > 0.5:
            return None
        return (
            f"property 'scr' with eta {self.eta:g} does not imply that the class stays: "
            "use eta > 0.5"
        )

    def kind(self, outputs_are_probabilities: bool) -> type[Requirement]:
        return LinearRequirement if outputs_are_probabilities else SoftmaxRequirement

    def at(self, anchor: Anchor) -> Requirement:
        check_class(anchor.label, anchor, "label")
        if anchor.outputs.size < 2:
            raise SpecificationError("property 'scr' needs a network with at least two outputs")
        if not anchor.outputs_are_probabilities:
            return SoftmaxRequirement((ProbabilityBound(anchor.label, self.eta),))
        row = np.zeros(anchor.outputs.size)
        row[anchor.label] = 1.0
        return LinearRequirement((Halfspaces(row, np.array([-self.eta])),))
