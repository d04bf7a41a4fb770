"""Do data, domain and network speak of the same units? What looks wrong, before any work."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from radii.networks import Network
from radii.problem import Instance
from radii.runs._plan import Plan

SMALL_PART = 0.05
"""Inputs that spread over less of the domain than this are probably in other units: pixels that
were divided by 255 twice fill 0.004 of it."""

FEWEST_INPUTS = 10
"""From so many inputs on, an accuracy near that of chance means something."""

FEWEST_WRONG = 4
"""So many inputs that are all wrong are hardly bad luck: at an accuracy of 0.5, 1 set of 16 is."""


def unit_warnings(plan: Plan) -> Iterator[str]:
    """A sentence for everything about units and normalisation that is probably a mistake."""
    for network in plan.networks:
        own = [each for each in plan.instances if each.network == network.fingerprint]
        distinct = list({each.index: each for each in own}.values())
        yield from _spread_warning(plan.data, network, distinct)
        yield from _chance_warning(network, distinct)
    yield from _copies_warning(plan)


def _copies_warning(plan: Plan) -> Iterator[str]:
    """Inputs that occur more than once, which whatever is said of all inputs counts as often."""
    labels = {each.index: each.label for each in plan.instances}
    originals: dict[str, int] = {}
    pairs = [
        (index, first)
        for index, digest in plan.inputs.items()
        if index in labels and (first := originals.setdefault(digest, index)) != index
    ]
    if not pairs:
        return
    copy, original = next((p for p in pairs if labels[p[0]] != labels[p[1]]), pairs[0])
    if labels[copy] != labels[original]:
        yield (
            f"{plan.data}: input {copy} is the same as input {original}, but their labels are "
            f"{labels[copy]} and {labels[original]}"
        )
    yield (
        f"{plan.data}: {len(pairs)} of {len(labels)} inputs are copies of others (input "
        f"{pairs[0][0]} of input {pairs[0][1]}); intervals and tests take all for different"
    )


def _spread_warning(data: str, network: Network, instances: list[Instance]) -> Iterator[str]:
    low, high = float(np.min(network.domain.low)), float(np.max(network.domain.high))
    least = min(float(each.input.min()) for each in instances)
    most = max(float(each.input.max()) for each in instances)
    if not math.isfinite(high - low) or high <= low:
        return
    part = (most - least) / (high - low)
    if 0 < part < SMALL_PART:
        yield (
            f"{data}: values from {least:.3g} to {most:.3g} fill {100 * part:.2g} % of the domain "
            f"{low:g}:{high:g}; are they scaled twice, or is the domain in other units?"
        )


def _chance_warning(network: Network, instances: list[Instance]) -> Iterator[str]:
    count, right = len(instances), sum(each.correct for each in instances)
    chance = 1 / max(2, network.output_size)
    usual = chance + math.sqrt(chance * (1 - chance) / count)  # one standard deviation above
    if count >= FEWEST_INPUTS and right <= count * usual:
        found = (
            f"{right} of {count} inputs are classified correctly, about as many as by chance among "
            f"{network.output_size} classes"
        )
    elif count >= FEWEST_WRONG and not right:
        found = f"none of {count} inputs is classified correctly"
    else:
        return
    yield (
        f"{network.name}: {found}; are labels, scale, order of axes and normalisation (--mean, "
        "--std) those it was trained with? radii init tries the usual ones"
    )
