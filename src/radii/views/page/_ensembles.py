"""Ensembles on the page: the value over eps, who is fooled with whom, the best play in pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.views.page._findings import NORM_TITLES
from radii.views.page._pictures import Bytes, PackedArrays, flat_difference, flat_input, pixel_range

if TYPE_CHECKING:
    from radii.ensembles import EnsembleResults, Fooling, JointResult, Play


PREFIX = "ensemble_"
"""Of the names of the arrays that hold the pictures of ensembles."""

WIDEST_DOMAIN = 10.0
"""A domain this many times as wide as what the points span says nothing of black and white:
the benchmarks of the literature leave inputs nearly unbounded."""

UNASKED_VERIFIERS = ("replay", "crown")
"""Who settles sets of classifiers before anybody is asked about them."""


def ensemble_objects(
    ensembles: Sequence[EnsembleResults], block: PackedArrays, limit: float
) -> tuple[list[dict[str, Any]], list[str]]:
    """What the page shows of each, and notes; pictures are added to `block` up to the limit."""
    data = Bytes()
    packers = [_EnsembleObjects(known, data, limit) for known in ensembles]
    objects = [packer.facts() for packer in packers]
    data.add_to(block, PREFIX)
    missing = sum(packer.left_out for packer in packers)
    note = (
        f"{missing:,} perturbed inputs of ensembles are not shown as pictures, whose size is "
        "limited (radii report --pictures SIZE)."
    )
    return objects, [note] if missing else []


def ensemble_sentences(ensembles: Iterable[EnsembleResults]) -> list[str]:
    """What is known of each at the largest eps that was measured."""
    sentences = []
    for known in ensembles:
        who = (
            f"An ensemble of {len(known.names)} networks at {len(known.points)} points "
            f"({NORM_TITLES[known.norm.value]})"
        )
        if not known.plays:
            sentences.append(f"{who}: no value has been measured yet.")
            continue
        play = known.plays[-1]
        lower, upper = known.attained(play), known.conceded(play)
        value = f"is {lower}" if lower == upper else f"lies between {lower} and {upper}"
        sentences.append(
            f"{who}: at ε = {play.eps:g} the value of the game against randomized attacks {value}."
        )
    return sentences


class _EnsembleObjects:
    """One ensemble; each perturbed input is packed once, however many attacks use it."""

    def __init__(self, known: EnsembleResults, data: Bytes, limit: float) -> None:
        self.known = known
        self.data = data
        self.limit = limit
        self.left_out = 0
        self.low, self.high = _black_and_white(known)
        self.is_picture = False
        self._places: dict[int, tuple[int, float]] = {}

    def facts(self) -> dict[str, Any]:
        known = self.known
        inputs = []
        shape: list[int] = []
        for point in known.points:
            shape, flat = flat_input(point.input, self.low, self.high)
            self.is_picture = len(shape) == 3
            name = "pixels" if self.is_picture else "values"
            at = self.data.append(name, flat) if self.data.size < self.limit else -1
            inputs.append({"index": point.index, "label": point.label, "at": at})
        return {
            "place": "" if known.place is None else str(known.place),
            "norm": NORM_TITLES[known.norm.value],
            "arithmetic": str(known.arithmetic),
            "networks": list(known.names),
            "shape": shape,
            "pixel_range": self.high - self.low,
            "inputs": inputs,
            "values": [self._value(play) for play in known.plays],
            "disagreements": [
                {"input": point.index, **_claim(finding)}
                for point, facts in zip(known.points, known.facts, strict=True)
                for finding in facts.disagreements
            ],
        }

    def _value(self, play: Play) -> dict[str, Any]:
        known = self.known
        asked = [
            finding
            for facts in known.facts
            for finding in facts.findings
            if finding.eps == play.eps and finding.verifier not in UNASKED_VERIFIERS
        ]
        return {
            "eps": play.eps,
            "lower": _fraction(known.attained(play)),
            "upper": _fraction(known.conceded(play)),
            "defence": [_fraction(weight) for weight in play.defence],
            "questions": len(asked),
            "seconds": sum(finding.seconds for finding in asked),
            "points": [
                {
                    "fooled": [_listed(mask) for mask in facts.witnessed(play.eps) if mask],
                    "impossible": [_claim(finding) for finding in facts.certificate(play.eps)],
                    "undecided": [_listed(mask) for mask in facts.undecided(play.eps)],
                }
                for facts in known.facts
            ],
            "attack": [
                {
                    "probability": _fraction(each.probability),
                    "points": [self._perturbed(place, one) for place, one in enumerate(row)],
                }
                for each, row in zip(play.attack, known.perturbed(play), strict=True)
            ],
        }

    def _perturbed(self, place: int, fooling: Fooling) -> dict[str, Any]:
        at, scale = self._packed(place, fooling)
        fooled = _listed(fooling.fooled)
        return {"fooled": fooled, "distance": fooling.distance, "at": at, "scale": scale}

    def _packed(self, place: int, fooling: Fooling) -> tuple[int, float]:
        """Where its difference from the point lies, and the largest change; -1 if nowhere."""
        if fooling.distance == 0:
            return -1, 0.0
        if id(fooling) not in self._places:
            if self.data.size >= self.limit:
                self.left_out += 1
                self._places[id(fooling)] = -1, 0.0
            else:
                point = self.known.points[place].input
                difference = fooling.input.astype(np.float64) - point.astype(np.float64)
                name, flat, scale = flat_difference(difference, self.is_picture)
                self._places[id(fooling)] = self.data.append(name, flat), scale
        return self._places[id(fooling)]


def _black_and_white(known: EnsembleResults) -> tuple[float, float]:
    own = (
        float(min(point.input.min() for point in known.points)),
        float(max(point.input.max() for point in known.points)),
    )
    domain = pixel_range([known.domain])
    if domain is None or domain[1] - domain[0] > WIDEST_DOMAIN * (own[1] - own[0]) > 0:
        return own
    return domain


def _claim(finding: JointResult) -> dict[str, Any]:
    by = f"{finding.verifier} {finding.version}".strip()
    arithmetic = None if finding.arithmetic is None else str(finding.arithmetic)
    return {
        "networks": _listed(finding.classifiers),
        "by": by,
        "eps": finding.eps,
        "arithmetic": arithmetic,
    }


def _fraction(value: Fraction) -> dict[str, Any]:
    return {"text": str(value), "number": float(value)}


def _listed(mask: int) -> list[int]:
    from radii.ensembles import members

    return list(members(mask))
