"""All pairs of groups compared: networks, or the classes, targets or splits of each network.

A `GroupComparison` holds the statistics, and gives them as objects for JSON and as rows for CSV.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from radii.errors import DataError, InputError
from radii.statistics._catalogue import CATALOGUE
from radii.statistics._classes import class_gains, fairness
from radii.statistics._columns import NO_NUMBER
from radii.statistics._comparisons import Comparison, compare
from radii.statistics._confidence import robust_accuracy_interval
from radii.statistics._distribution import Distribution, inputs_with_radius
from radii.statistics._dominance import dominance
from radii.statistics._evidence import why_unsearched
from radii.statistics._targets import over_targets
from radii.statistics._tests import Correlations, holm, side_values, spearman_matrix

TIGHTNESS = ("mean_gap", "largest_gap", "critical")
COST = (
    *("unsolved", "without_witness", "queries", "missing", "timeouts", "memouts"),
    *("total_seconds", "mean_seconds", "cpu_seconds"),
)


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
    """Groups, all pairs of them within a network (or of networks), and how they correlate.

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
        """For each group the papers' numbers, and robust accuracy at each eps."""
        return [
            {"group": name, **_summary(part), "robust_accuracy": self._shares(part)}
            for name, part in self.groups.items()
        ]

    def _shares(self, part: Distribution) -> list[dict[str, Any]]:
        """`unsearched` says why what is not refuted means nothing at an eps, where that is so."""
        shares = []
        for eps in self.options.eps:
            share = part.robust_accuracy(eps)
            low, high = robust_accuracy_interval(part, eps, self.options.level)
            why = why_unsearched(part, eps)
            sides = {"proven": share.proven, "not_refuted": None if why else share.not_refuted}
            shares.append({"eps": eps, **sides, "low": low, "high": high, "unsearched": why})
        return shares

    def qualities(self) -> list[dict[str, Any]]:
        """For each group how tight its brackets are, and what they cost."""
        return [{"group": name, **_quality(part)} for name, part in self.groups.items()]

    def pairs(self) -> list[dict[str, Any]]:
        """For each pair all statistics; `left_out` counts brackets without an answer: no value."""
        return [
            {
                "first": pair.names[0],
                "second": pair.names[1],
                "inputs": list(pair.inputs),
                "left_out": list(pair.left_out),
                "matched": pair.is_matched,
                "tests": [
                    {**dataclasses.asdict(test), "adjusted": self.adjusted[test.test][place]}
                    for test in pair.all_tests
                ],
                "cliffs_delta": dataclasses.asdict(pair.delta),
                "mean_difference": dataclasses.asdict(pair.means),
                "verdict": pair.verdict(adjusted=self.adjusted[pair.permutation.test][place]),
                "mean_widths": list(pair.widths),
                "dominance": str(pair.dominance),
                "dominant": pair.dominance.dominant,
                "leads": [dataclasses.asdict(stretch) for stretch in pair.dominance.stretches],
                "dominance_of_all_inputs": self.confident[place],
            }
            for place, pair in enumerate(self.comparisons)
        ]

    def pair_rows(self) -> list[dict[str, Any]]:
        """The same as one flat row for each pair."""
        rows = []
        for place, pair in enumerate(self.comparisons):
            row: dict[str, Any] = {
                **dict(zip(("first", "second"), pair.names, strict=True)),
                **dict(zip(("first_inputs", "second_inputs"), pair.inputs, strict=True)),
                **dict(zip(("first_left_out", "second_left_out"), pair.left_out, strict=True)),
                "matched": pair.is_matched,
            }
            for test in pair.all_tests:
                row[f"{test.test}: statistic"] = test.statistic
                row[f"{test.test}: p"] = test.p_value
                row[f"{test.test}: p after Holm"] = self.adjusted[test.test][place]
            for name, effect in (("Cliff's delta", pair.delta), ("mean difference", pair.means)):
                row |= {f"{name}: {k}": v for k, v in dataclasses.asdict(effect).items()}
            row["dominance"] = str(pair.dominance)
            row["dominance of all inputs"] = self.confident[place]
            rows.append(row)
        return rows

    def correlation_rows(self) -> list[dict[str, Any]]:
        """Spearman's coefficient of each pair of networks; none where other groups are compared."""
        correlations = self.correlations
        if correlations is None:
            return []
        return [
            {
                "first": correlations.networks[one],
                "second": correlations.networks[two],
                "inputs": int(correlations.inputs[one, two]),
                "left_out": [correlations.left_out[one], correlations.left_out[two]],
                "spearman": float(correlations.coefficients[one, two]),
                "p": float(correlations.p_values[one, two]),
                "p_after_holm": float(correlations.adjusted[one, two]),
            }
            for one, two in combinations(range(len(correlations.networks)), 2)
        ]

    def fairness_sentences(self) -> list[str]:
        """Of each network at each eps, how unequal its classes are; then which classes gain."""
        if self.options.by != "class":
            return []
        networks, sentences = self.distribution.by_network(), []
        for eps in self.options.eps:
            for name, part in networks.items():
                sentences.append(f"{name}: {fairness(part, eps, level=self.options.level)}")
            for one, two in combinations(networks, 2):
                sentences.append(_gain_sentence(networks[one], networks[two], (one, two), eps))
        return sentences


def compare_groups(
    distribution: Distribution,
    options: ComparisonOptions,
    *,
    note: Callable[[str], None] = lambda _: None,
) -> GroupComparison:
    """All pairs. Groups whose radii are all 0 are left out; `note` receives a sentence on each."""
    distribution = _over_targets(distribution, options.by, note)
    families = [_with_radii(family, note) for family in _families(distribution, options.by)]
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
        test.test: holm([pair.all_tests[place].p_value for pair in comparisons]).tolist()
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


def _summary(part: Distribution) -> dict[str, Any]:
    """Radii of the inputs at which the property holds, as proven and as witnessed sides; their
    `deviation` is that of the proven sides of brackets with an answer.
    """
    proven = side_values(part.correctly_classified(), "lower")
    row = {
        "inputs": len(part),
        "correct": int(part.correct.sum()),
        "unsolved": part.unsolved,
        "accuracy": float(part.correct.mean()),
    }
    for name in ("lowest", "mean", "median"):
        row |= CATALOGUE[name].cells(CATALOGUE[name](part))
    return {**row, "deviation": float(proven.std(ddof=1)) if len(proven) > 1 else 0.0}


def _quality(part: Distribution) -> dict[str, Any]:
    """Where it is not known at which eps answers were missing, `is_critical_exact` is false."""
    known = part.column("critical")[part.holds] != NO_NUMBER
    return {
        "inputs": len(part),
        "correct": int(part.holds.sum()),
        **{name: CATALOGUE[name](part) for name in TIGHTNESS},
        "is_critical_exact": bool(known.all()),
        **{name: CATALOGUE[name](part) for name in COST},
    }


def _families(distribution: Distribution, by: str) -> list[dict[str, Distribution]]:
    """Groups that are compared with each other: networks, or the parts of each network."""
    networks = distribution.by_network()
    if by == "network":
        return [networks]
    families = []
    for network, whole in networks.items():
        named = {}
        for key, part in whole.group_by(by).items():
            if key is None:
                raise DataError(f"{network}: some brackets have no {by}")
            group = str(key) if by == "group" else f"{by} {key}"
            named[group if len(networks) == 1 else f"{network}, {group}"] = part
        families.append(named)
    return families


def _with_radii(
    groups: dict[str, Distribution], note: Callable[[str], None]
) -> dict[str, Distribution]:
    kept = {name: part for name, part in groups.items() if part.holds.any()}
    for name in [name for name in groups if name not in kept]:
        note(f"{name} is left out: it has no {inputs_with_radius(groups[name])}")
    return kept


def _over_targets(distribution: Distribution, by: str, note: Callable[[str], None]) -> Distribution:
    """Brackets of targets as one-to-any, unless targets are what is compared or some lack."""
    if by == "target" or np.any(distribution.column("target") < 0):
        return distribution
    try:
        combined = over_targets(distribution)
    except DataError:
        return distribution
    note("an input's brackets are combined over its targets")
    return combined


def _gain_sentence(a: Distribution, b: Distribution, names: Sequence[str], eps: float) -> str:
    verdicts: dict[str, list[str]] = {"gains": [], "loses": [], "undecided": []}
    for gain in class_gains(a, b, eps):
        verdicts[gain.verdict()].append(str(gain.label))
    changes = [
        f"{', '.join(labels)} {verb}"
        for verb, labels in (
            ("gain", verdicts["gains"]),
            ("lose", verdicts["loses"]),
            ("are undecided", verdicts["undecided"]),
        )
        if labels
    ]
    return f"From {names[0]} to {names[1]}, at eps {eps:g}: classes {'; '.join(changes)}."


def fit_rows(groups: Mapping[str, Distribution], seed: int) -> list[dict[str, Any]]:
    """For each group and family the fit, its AIC, both tests, and what they say together.

    A family that cannot be fitted has the reason as its verdict, and no numbers.
    """
    from radii.statistics._families import FAMILIES
    from radii.statistics._goodness import goodness_of_fit

    rows = []
    for name, part in groups.items():
        for family in FAMILIES:
            row: dict[str, Any] = {"group": name, "family": family}
            try:
                tested = goodness_of_fit(part, family, seed=seed)
            except InputError as error:
                row |= dict.fromkeys(("fit", "aic", "ks_p", "monte_carlo_p"))
                row |= {"verdict": f"Not tested: {error}.", "assumption": ""}
            else:
                row |= {
                    "fit": str(tested.fit),
                    "aic": tested.fit.aic,
                    "ks_p": tested.ks_p_value,
                    "monte_carlo_p": tested.p_value,
                    "verdict": tested.verdict(),
                    "assumption": tested.assumption,
                }
            rows.append(row)
    return rows
