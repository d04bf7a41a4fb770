"""The class stays: against every other class, or against one target class.

Classification robustness (CR) is `OneToAny`; `PredictionStays` asks the same of the class that the
network itself predicts, right or wrong. "Against one target" has two meanings: `OneToOne` is broken
as soon as the target's output reaches the label's, `Become` only where the target is the answer.
`TopK` lets the label be any of the k largest outputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import ClassVar

import numpy as np

from radii.errors import SpecificationError
from radii.problem.properties._base import (
    Anchor,
    Halfspaces,
    LinearRequirement,
    ProbabilityBound,
    Property,
    Requirement,
    SoftmaxRequirement,
    TargetedProperty,
    check_class,
    number_text,
)

MOST_CHOICES = 20_000
"""Choices of rivals in `TopK`: each is decided by itself, so more would outlast any budget."""


def _reached_by(rival: int, others: Sequence[int], outputs: int) -> Halfspaces:
    """Outputs where `rival` is at least as large as each of the others: y_other - y_rival <= 0."""
    matrix = np.zeros((len(others), outputs))
    matrix[np.arange(len(others)), others] = 1.0
    matrix[:, rival] = -1.0
    return Halfspaces(matrix, np.zeros(len(others)))


class OneToAny(Property):
    """The label's output stays strictly above every other output."""

    @property
    def spec(self) -> str:
        return "one-to-any"

    def at(self, anchor: Anchor) -> LinearRequirement:
        check_class(anchor.label, anchor, "label")
        if anchor.outputs.size < 2:
            raise SpecificationError("one-to-any needs a network with at least two outputs")
        size, label = anchor.outputs.size, anchor.label
        rivals = (rival for rival in range(size) if rival != label)
        return LinearRequirement(tuple(_reached_by(rival, [label], size) for rival in rivals))


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


class OneToOne(TargetedProperty):
    """The label's output stays strictly above that of one target class.

    Broken where y_target >= y_label, whatever the other outputs are, as verifiers state a targeted
    query: a counterexample may well be taken for a third class. The one-to-any radius is the
    smallest of the one-to-one radii.
    """

    name: ClassVar[str] = "one-to-one"

    def at(self, anchor: Anchor) -> LinearRequirement:
        self.check_target(anchor)
        reached = _reached_by(self._target, [anchor.label], anchor.outputs.size)
        return LinearRequirement((reached,))


class Become(TargetedProperty):
    """The network does not take the input for the target class.

    Broken where y_target >= y_j for every other class j at once; a tie for the largest output
    counts, with the label or with a third class. That implies a violation of one-to-one, so the
    radius is at least the one-to-one radius for the same target; and wherever the label is not
    strictly the largest some other class is (or ties), so the one-to-any radius is the smallest of
    these radii, too.
    """

    name: ClassVar[str] = "become"

    def at(self, anchor: Anchor) -> LinearRequirement:
        self.check_target(anchor)
        size = anchor.outputs.size
        others = [index for index in range(size) if index != self._target]
        return LinearRequirement((_reached_by(self._target, others, size),))


class TopK(Property):
    """The label's output stays strictly among the k largest: never do k others reach it.

    `k` = 1 is one-to-any. Of m outputs, the violations are one polyhedron for each choice of k
    rivals, binom(m - 1, k) in all.
    """

    def __init__(self, k: int) -> None:
        if not isinstance(k, int) or k < 1:
            raise SpecificationError(f"property 'top': k must be a whole number above 0, not {k}")
        self.k = k

    @property
    def spec(self) -> str:
        return f"top:k={self.k}"

    def at(self, anchor: Anchor) -> LinearRequirement:
        check_class(anchor.label, anchor, "label")
        size, label = anchor.outputs.size, anchor.label
        if size <= self.k:
            raise SpecificationError(
                f"property 'top': k = {self.k} always holds for a network with {size} outputs"
            )
        if math.comb(size - 1, self.k) > MOST_CHOICES:
            raise SpecificationError(
                f"property 'top': k = {self.k} of {size} outputs has "
                f"{math.comb(size - 1, self.k):,} choices of rivals, more than {MOST_CHOICES:,}"
            )
        reached = np.eye(size)[label] - np.delete(np.eye(size), label, axis=0)
        choices = combinations(range(size - 1), self.k)
        zeros = np.zeros(self.k)
        return LinearRequirement(tuple(Halfspaces(reached[list(c)], zeros) for c in choices))


class StrongClassification(Property):
    """Strong classification robustness (SCR): the softmax of the label's output stays above `eta`.

    With eta > 0.5 it implies CR.
    """

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
