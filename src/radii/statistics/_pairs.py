"""On which inputs two distributions are compared: networks on the same inputs, input by input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from radii.statistics._columns import NO_NUMBER, Array

if TYPE_CHECKING:
    from radii.statistics._distribution import Distribution


InputChoice = Literal["correct", "all"]

IDENTITY = ("input", "label", "target", "split", "property")
IDENTITY_OF_TARGETS = ("input", "label", "split")


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two distributions; if `is_matched`, row i of both is the same input of the data set."""

    first: Distribution
    second: Distribution
    is_matched: bool

    def solved(self) -> Pair | None:
        """What can be compared by values: without the brackets that have no answer.

        Matched distributions lose an input if either has no answer for it. None if nothing is left
        of one of them.
        """
        one, two = ~self.first.is_unsolved, ~self.second.is_unsolved
        if self.is_matched:
            one = two = one & two
        if not (one.any() and two.any()):
            return None
        return Pair(self.first.select(one), self.second.select(two), self.is_matched)


def paired_on(a: Distribution, b: Distribution, inputs: InputChoice = "correct") -> Pair:
    """The parts of two distributions that are compared, in matching order where they match.

    They match when both hold the same inputs (as two networks measured on one selection do): each
    input is then compared with itself. So do two targets of one network, on the inputs that have
    both. With `correct`, matched distributions lose the inputs that either misclassifies, others
    each their own.
    """
    are_targets = _are_two_targets(a, b)
    identity = IDENTITY_OF_TARGETS if are_targets else IDENTITY
    keys_a, keys_b = _identities(a, identity), _identities(b, identity)
    order_a, order_b = np.argsort(keys_a, kind="stable"), np.argsort(keys_b, kind="stable")
    is_matched = (
        a is not b
        and len(a) == len(b)
        and len(set(keys_a)) == len(a)
        and bool(np.array_equal(keys_a[order_a], keys_b[order_b]))
    )
    if not is_matched:
        # Published files leave out each network's misclassified inputs: match what both have.
        _, at_a, at_b = np.intersect1d(keys_a, keys_b, return_indices=True)
        shared = len(at_a) >= 0.5 * max(len(a), len(b))
        shared &= are_targets or a.networks != b.networks
        unique = len(set(keys_a)) == len(a) and len(set(keys_b)) == len(b)
        if inputs == "correct" and shared and unique:
            order_a, order_b, is_matched = np.sort(at_a), at_b[np.argsort(at_a)], True
    if not is_matched:
        if inputs == "correct":
            return Pair(a.correctly_classified(), b.correctly_classified(), False)
        return Pair(a, b, False)
    first, second = a.select(order_a), b.select(order_b)
    if inputs == "correct":
        both = first.holds & second.holds
        first, second = first.select(both), second.select(both)
    return Pair(first, second, True)


def _are_two_targets(a: Distribution, b: Distribution) -> bool:
    """Two different targets of the same network."""
    one, two = np.unique(a.column("target")), np.unique(b.column("target"))
    is_one_each = (
        len(one) == len(two) == 1 and one[0] != two[0] and min(one[0], two[0]) != NO_NUMBER
    )
    return is_one_each and len(a.networks) == 1 and a.networks == b.networks


def _identities(distribution: Distribution, identity: tuple[str, ...]) -> Array:
    """One text per row, equal for the same input of the same split under the same property."""
    columns = [distribution.column(name).astype(np.str_) for name in identity]
    text = columns[0]
    for column in columns[1:]:
        text = np.strings.add(np.strings.add(text, "\n"), column)
    return text
