"""What `radii compare` tells: every pair of groups, as objects for JSON and rows for CSV."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from radii.distributions import (
    Comparison,
    Correlations,
    Distribution,
    class_gains,
    compare,
    dominance,
    fairness,
    holm,
    inputs_with_radius,
    over_targets,
    quality,
    robust_accuracy_interval,
    spearman_matrix,
    summary,
    why_unsearched,
)
from radii.errors import DataError
from radii.terminal import say


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonOptions:
    """How groups are made and compared; see `radii compare --help`."""

    by: str = "network"
    eps: tuple[float, ...] = ()
    inputs: Literal["correct", "all"] = "correct"
    side: Literal["lower", "upper"] = "lower"
    level: float = 0.95
    permutations: int = 4999
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class GroupComparison:
    """Groups, all pairs of them within a network (or of networks), and what else is asked.

    `adjusted` has, for each test's name, Holm's p-values of all pairs. `confident` says for each
    pair who is more robust where among all inputs.
    """

    options: ComparisonOptions
    distribution: Distribution
    groups: dict[str, Distribution]
    comparisons: tuple[Comparison, ...]
    adjusted: dict[str, list[float]]
    confident: tuple[str, ...]
    correlations: Correlations | None

    def summaries(self) -> list[dict[str, Any]]:
        """One a group: the papers' numbers, and robust accuracy at each eps."""
        return [
            {"group": name, **summary(part).row(), "robust_accuracy": self._shares(part)}
            for name, part in self.groups.items()
        ]

    def _shares(self, part: Distribution) -> list[dict[str, Any]]:
        """`unsearched` says why what is not refuted means nothing at an eps, where that is so."""
        told = []
        for eps in self.options.eps:
            share = part.robust_accuracy(eps)
            low, high = robust_accuracy_interval(part, eps, self.options.level)
            why = why_unsearched(part, eps)
            sides = {"proven": share.proven, "not_refuted": None if why else share.not_refuted}
            told.append({"eps": eps, **sides, "low": low, "high": high, "unsearched": why})
        return told

    def qualities(self) -> list[dict[str, Any]]:
        return [
            {"group": name, **dataclasses.asdict(quality(part))}
            for name, part in self.groups.items()
        ]

    def pairs(self) -> list[dict[str, Any]]:
        """One a pair, nested; `left_out` counts brackets that have no answer, and so no value."""
        return [
            {
                "first": found.names[0],
                "second": found.names[1],
                "inputs": list(found.inputs),
                "left_out": list(found.left_out),
                "matched": found.is_matched,
                "tests": [
                    {**dataclasses.asdict(test), "adjusted": self.adjusted[test.test][place]}
                    for test in found.all_tests
                ],
                "cliffs_delta": dataclasses.asdict(found.delta),
                "mean_difference": dataclasses.asdict(found.means),
                "verdict": found.verdict(adjusted=self.adjusted[found.permutation.test][place]),
                "mean_widths": list(found.widths),
                "dominance": str(found.dominance),
                "dominant": found.dominance.dominant,
                "leads": [dataclasses.asdict(stretch) for stretch in found.dominance.stretches],
                "dominance_of_all_inputs": self.confident[place],
            }
            for place, found in enumerate(self.comparisons)
        ]

    def pair_rows(self) -> list[dict[str, Any]]:
        """One a pair, flat."""
        rows = []
        for place, found in enumerate(self.comparisons):
            row: dict[str, Any] = {
                **dict(zip(("first", "second"), found.names, strict=True)),
                **dict(zip(("first_inputs", "second_inputs"), found.inputs, strict=True)),
                **dict(zip(("first_left_out", "second_left_out"), found.left_out, strict=True)),
                "matched": found.is_matched,
            }
            for test in found.all_tests:
                row[f"{test.test}: statistic"] = test.statistic
                row[f"{test.test}: p"] = test.p_value
                row[f"{test.test}: p after Holm"] = self.adjusted[test.test][place]
            for name, effect in (("Cliff's delta", found.delta), ("mean difference", found.means)):
                row |= {f"{name}: {k}": v for k, v in dataclasses.asdict(effect).items()}
            row["dominance"] = str(found.dominance)
            row["dominance of all inputs"] = self.confident[place]
            rows.append(row)
        return rows

    def correlation_rows(self) -> list[dict[str, Any]]:
        found = self.correlations
        if found is None:
            return []
        return [
            {
                "first": found.networks[one],
                "second": found.networks[two],
                "inputs": int(found.inputs[one, two]),
                "left_out": [found.left_out[one], found.left_out[two]],
                "spearman": float(found.coefficients[one, two]),
                "p": float(found.p_values[one, two]),
                "p_after_holm": float(found.adjusted[one, two]),
            }
            for one, two in combinations(range(len(found.networks)), 2)
        ]

    def fairness_sentences(self) -> list[str]:
        """Of each network at each eps, how unequal its classes are; then which classes gain."""
        if self.options.by != "class":
            return []
        networks, told = self.distribution.by_network(), []
        for eps in self.options.eps:
            for name, part in networks.items():
                told.append(f"{name}: {fairness(part, eps, level=self.options.level)}")
            for one, two in combinations(networks, 2):
                told.append(_gain_sentence(networks[one], networks[two], (one, two), eps))
        return told


def compare_groups(distribution: Distribution, options: ComparisonOptions) -> GroupComparison:
    """All pairs; groups whose radii are all 0 are left out, and said to be."""
    distribution = _over_targets(distribution, options.by)
    families = _families(distribution, options)
    pairs = [pair for family in families for pair in combinations(family.items(), 2)]
    if not pairs:
        raise DataError(f"there is only one {options.by} to compare")
    comparisons = tuple(
        compare(
            first,
            second,
            names=(one, two),
            inputs=options.inputs,
            side=options.side,
            level=options.level,
            permutations=options.permutations,
            seed=options.seed,
        )
        for (one, first), (two, second) in pairs
    )
    confident = tuple(
        str(dominance(first, second, names=(one, two), level=options.level))
        for (one, first), (two, second) in pairs
    )
    adjusted = {
        test.test: holm([found.all_tests[place].p_value for found in comparisons]).tolist()
        for place, test in enumerate(comparisons[0].all_tests)
    }
    correlations = None
    if options.by == "network":
        correlations = spearman_matrix(
            distribution, "upper" if options.side == "upper" else "lower"
        )
    groups = {name: part for family in families for name, part in family.items()}
    return GroupComparison(
        options, distribution, groups, comparisons, adjusted, confident, correlations
    )


def _families(
    distribution: Distribution, options: ComparisonOptions
) -> list[dict[str, Distribution]]:
    """Groups that are compared with each other: networks, or the parts of each network."""
    if options.by == "network":
        return [_with_radii(distribution.by_network())]
    networks = distribution.by_network()
    families = []
    for network, whole in networks.items():
        named = {}
        for key, part in whole.group_by(options.by).items():
            if key is None:
                raise DataError(f"{network}: some brackets have no {options.by}")
            group = f"{options.by} {key}"
            named[group if len(networks) == 1 else f"{network}, {group}"] = part
        families.append(_with_radii(named))
    return families


def _with_radii(groups: dict[str, Distribution]) -> dict[str, Distribution]:
    kept = {name: part for name, part in groups.items() if part.holds.any()}
    for name in groups.keys() - kept.keys():
        say(
            f"radii: {name} is left out: it has no {inputs_with_radius(groups[name])}",
            file=sys.stderr,
        )
    return kept


def _over_targets(distribution: Distribution, by: str) -> Distribution:
    """Brackets of targets as one-to-any, unless targets are what is compared or some lack."""
    if by == "target" or np.any(distribution.column("target") < 0):
        return distribution
    try:
        combined = over_targets(distribution)
    except DataError:
        return distribution
    say("radii: an input's brackets are combined over its targets", file=sys.stderr)
    return combined


def _gain_sentence(a: Distribution, b: Distribution, names: Sequence[str], eps: float) -> str:
    verdicts: dict[str, list[str]] = {"gains": [], "loses": [], "undecided": []}
    for gain in class_gains(a, b, eps):
        verdicts[gain.verdict()].append(str(gain.label))
    told = [
        f"{', '.join(labels)} {verb}"
        for verb, labels in (
            ("gain", verdicts["gains"]),
            ("lose", verdicts["loses"]),
            ("are undecided", verdicts["undecided"]),
        )
        if labels
    ]
    return f"From {names[0]} to {names[1]}, at eps {eps:g}: classes {'; '.join(told)}."
