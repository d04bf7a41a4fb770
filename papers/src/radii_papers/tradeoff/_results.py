"""The results of a study: one record for each network in a file of its own, and what they show.

That is, correlations of the measures with accuracy and the effects of hyper-parameters.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from radii.errors import DataError, ExperimentError, StoreError, writing
from radii.statistics import Estimate, holm, several_p_value
from radii_papers.tradeoff._description import HYPER_PARAMETERS, RECIPE_KINDS, Recipe, Study

Float64 = npt.NDArray[np.float64]
CorrelationMethod = Literal["pearson", "spearman"]

MEMBER_FILE = "result.json"

RESAMPLES = 4999
FEWEST_NETWORKS = 4
"""Networks that a correlation needs: three always lie near some line."""

COEFFICIENT_ROUNDING = 1e-12

STUDY_MEASURES = {
    "R": "share of inputs the attack did not break",
    "R(gamma)": "share of inputs no probability of which was moved by gamma",
    "1-D": "1 - mean largest change found",
    "proven R": "share of inputs proven robust",
}


@dataclass(frozen=True, slots=True)
class Value:
    """A measure: its mean over the sample, at least and at most, and two statements from it.

    `low` and `high` are about the inputs of the test set itself (finite-population statement),
    `beyond_low` and `beyond_high` about all inputs that the test set is an independent sample of
    (i.i.d. statement); None where only the former was made.
    """

    least: float
    most: float
    low: float
    high: float
    inputs: int
    beyond_low: float | None = None
    beyond_high: float | None = None

    @classmethod
    def of(cls, estimate: Estimate, beyond: Estimate | None = None) -> Value:
        sides = (None, None) if beyond is None else (beyond.low, beyond.high)
        ends = (estimate.least, estimate.most, estimate.low, estimate.high)
        return cls(*ends, estimate.samples, *sides)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyMember:
    """One network that was made and measured.

    `robustness`, `steadiness` and `change` are R, R(gamma) and D as the attack sees them, as if it
    found the worst: R and R(gamma) are at most that, D at least. `proven_robustness`,
    `proven_steadiness` and `proven_change` hold whatever was decided; `unbroken` is the share of
    the same inputs that the attack did not break. `failure` says why a network has no values,
    `refusal` why it has none that are proven. `converged` is of the predictions of a Bayesian
    network.
    """

    recipe: Recipe
    parameters: int
    accuracy: float | None = None
    robustness: Value | None = None
    steadiness: Value | None = None
    change: Value | None = None
    proven_robustness: Value | None = None
    proven_steadiness: Value | None = None
    proven_change: Value | None = None
    unbroken: float | None = None
    converged: bool | None = None
    rhat: float | None = None
    effective: float | None = None
    failure: str = ""
    refusal: str = ""
    seconds: float = 0.0

    @property
    def gap(self) -> float | None:
        """The share of inputs that the attack did not break and that are not proven robust."""
        if self.unbroken is None or self.proven_robustness is None:
            return None
        return self.unbroken - self.proven_robustness.least

    @property
    def is_counted(self) -> bool:
        """It has values, and if it is Bayesian its predictions converged."""
        return self.accuracy is not None and self.converged is not False

    def row(self) -> dict[str, Any]:
        """Everything, flat: the columns of the CSV file and the keys of the JSON output."""
        row: dict[str, Any] = {"network": self.recipe.name, "family": self.recipe.family}
        row |= dataclasses.asdict(self.recipe)
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name in _VALUES:
                for part in dataclasses.fields(Value):
                    name = f"{field.name}_{part.name}"
                    row[name] = None if value is None else getattr(value, part.name)
            elif field.name != "recipe":
                row[field.name] = value
        return {**row, "gap": self.gap}


_VALUES = (
    "robustness",
    "steadiness",
    "change",
    "proven_robustness",
    "proven_steadiness",
    "proven_change",
)


def member_directory(directory: Path, recipe: Recipe) -> Path:
    return directory / "networks" / recipe.name


def read_member(directory: Path, recipe: Recipe) -> StudyMember | None:
    """None while the network is not finished."""
    path = member_directory(directory, recipe) / MEMBER_FILE
    try:
        fields = json.loads(path.read_text())
        fields["recipe"] = Recipe(**fields["recipe"])
        for name in _VALUES:
            held = fields.get(name)  # older records have fewer
            fields[name] = None if held is None else Value(**held)
        return StudyMember(**fields)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, LookupError, ExperimentError) as error:
        raise StoreError(
            f"{path}: cannot be read ({error}); remove it to measure the network again"
        ) from None


def read_members(directory: Path) -> list[StudyMember]:
    """Those that are finished, in the order of the study."""
    members = (read_member(directory, recipe) for recipe in Study.read(directory).recipes)
    return [member for member in members if member is not None]


def write_csv(members: Sequence[StudyMember], path: Path) -> None:
    """One line for each network."""
    rows = [member.row() for member in members]
    with writing(path), path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]) if rows else ["network"])
        writer.writeheader()
        writer.writerows(rows)


@dataclass(frozen=True, slots=True)
class Correlation:
    """Of a measure with accuracy, or with the strength of pruning, over networks of one kind.

    `low` and `high` by the bootstrap over networks (percentiles), `fisher_low` and `fisher_high` by
    Fisher's transformation; `p_value` by permutation, two-sided. NaN where it is not defined.
    """

    kind: str
    measure: str
    along: str
    method: CorrelationMethod
    networks: int
    value: float
    low: float
    high: float
    fisher_low: float
    fisher_high: float
    p_value: float

    @property
    def sign(self) -> str:
        """Which way it goes, with the interval's confidence."""
        if math.isnan(self.value) or math.isnan(self.low):
            return "not defined"
        if self.low > 0:
            return "positive"
        return "negative" if self.high < 0 else "neither"


@dataclass(frozen=True, slots=True)
class Effect:
    """A measure for each value of one hyper-parameter, over networks of one kind.

    `p_value` is that of Kruskal and Wallis' test by permutation, `adjusted` Holm's over all
    hyper-parameters of the kind.
    """

    kind: str
    measure: str
    parameter: str
    groups: tuple[tuple[str, tuple[float, ...]], ...]
    p_value: float
    adjusted: float


def measure_of(member: StudyMember, measure: str) -> float | None:
    """The value of one of `STUDY_MEASURES`; more is better. None where it was not measured."""
    ends = measure_ends(member, measure)
    return None if ends is None else ends[0]


def measure_ends(member: StudyMember, measure: str) -> tuple[float, float, float] | None:
    """The value of a measure, and its interval for the test set; None if it was not measured."""
    held = {
        "R": member.robustness,
        "R(gamma)": member.steadiness,
        "1-D": member.change,
        "proven R": member.proven_robustness,
    }
    if measure not in held:
        raise DataError(f"measure '{measure}' is not one of {', '.join(STUDY_MEASURES)}")
    value = held[measure]
    if value is None:
        return None
    if measure == "1-D":
        return 1 - value.least, 1 - value.high, 1 - value.low
    return value.least if measure == "proven R" else value.most, value.low, value.high


def correlations(
    members: Sequence[StudyMember], *, confidence: float = 0.95, seed: int = 0
) -> list[Correlation]:
    """Of every measure with accuracy for each kind, and with the strength among pruned networks.

    Networks that failed or did not converge are left out.
    """
    found = []
    for kind in RECIPE_KINDS:
        own = [member for member in members if member.recipe.kind == kind and member.is_counted]
        for measure in STUDY_MEASURES:
            told = [(m, value) for m in own if (value := measure_of(m, measure)) is not None]
            along = {"accuracy": [m.accuracy for m, _ in told]}
            if kind == "pruned":
                along["strength"] = [m.recipe.strength for m, _ in told]
            for name, values in along.items():
                if len(told) < FEWEST_NETWORKS:
                    continue
                x, y = np.array(values, np.float64), np.array([value for _, value in told])
                for method in ("pearson", "spearman"):
                    numbers = correlate(x, y, method, confidence=confidence, seed=seed)
                    found.append(Correlation(kind, measure, name, method, len(told), *numbers))
    return found


def correlate(
    x: Float64, y: Float64, method: CorrelationMethod, *, confidence: float = 0.95, seed: int = 0
) -> tuple[float, float, float, float, float, float]:
    """Coefficient, bootstrap interval, Fisher's interval, p-value of a permutation test."""
    if not 0 < confidence < 1:
        raise DataError(f"confidence {confidence:g} must be between 0 and 1, such as 0.95")
    if len(x) != len(y) or len(x) < FEWEST_NETWORKS:
        raise DataError(f"a correlation needs {FEWEST_NETWORKS} pairs or more")
    value = float(_coefficients(x[None], y[None], method)[0])
    if math.isnan(value):
        return (math.nan,) * 6
    rng = np.random.default_rng(seed)
    places = rng.integers(0, len(x), (RESAMPLES, len(x)))
    again = _coefficients(x[places], y[places], method)
    again = again[~np.isnan(again)]  # resamples of one point alone have none
    tail = (1 - confidence) / 2
    low, high = np.quantile(again, (tail, 1 - tail)) if len(again) else (math.nan, math.nan)
    # Shuffled ranks are ranks: they need not be found again.
    shuffled = rng.permuted(np.broadcast_to(_scores(y, method), (RESAMPLES, len(y))), axis=1)
    fixed = np.broadcast_to(_scores(x, method), shuffled.shape)
    by_chance = _coefficients(fixed, shuffled, "pearson")
    reached = np.count_nonzero(np.abs(by_chance) >= abs(value) - COEFFICIENT_ROUNDING)
    fisher = _fisher(value, len(x), method, confidence)
    return value, float(low), float(high), *fisher, (1 + int(reached)) / (1 + RESAMPLES)


def _coefficients(x: Float64, y: Float64, method: CorrelationMethod) -> Float64:
    """A correlation for each row; NaN where a side is constant."""
    x, y = _scores(x, method), _scores(y, method)
    x = x - x.mean(axis=1, keepdims=True)
    y = y - y.mean(axis=1, keepdims=True)
    norm = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.where(norm > COEFFICIENT_ROUNDING, (x * y).sum(axis=1) / norm, np.nan)
    return np.asarray(np.clip(found, -1.0, 1.0))


def _scores(values: Float64, method: CorrelationMethod) -> Float64:
    """What the coefficient is computed from: the values, or their ranks in the last axis."""
    if method == "pearson":
        return values
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, axis=-1), np.float64)


def _fisher(
    value: float, size: int, method: CorrelationMethod, confidence: float
) -> tuple[float, float]:
    """For ranks with the variance of Bonett and Wright."""
    from scipy.special import ndtri

    if abs(value) == 1:
        return value, value
    variance = (1 + value**2 / 2 if method == "spearman" else 1.0) / (size - 3)
    reach = float(ndtri((1 + confidence) / 2)) * math.sqrt(variance)
    middle = math.atanh(value)
    return math.tanh(middle - reach), math.tanh(middle + reach)


def effects(members: Sequence[StudyMember], measure: str = "R", *, seed: int = 0) -> list[Effect]:
    """Of each hyper-parameter that varies within a kind of networks."""
    from scipy.stats import rankdata

    found: list[Effect] = []
    for kind in RECIPE_KINDS:
        own = [
            (member, value)
            for member in members
            if member.recipe.kind == kind
            and member.is_counted
            and (value := measure_of(member, measure)) is not None
        ]
        tests = []
        for parameter in HYPER_PARAMETERS:
            told = [
                (getattr(member.recipe, parameter), value)
                for member, value in own
                if getattr(member.recipe, parameter) is not None
            ]
            levels = sorted({level for level, _ in told})
            if len(levels) < 2:
                continue
            groups = tuple(
                (f"{level}", tuple(value for other, value in told if other == level))
                for level in levels
            )
            scores = rankdata([value for _, value in told]) - (len(told) + 1) / 2
            codes = np.array([levels.index(level) for level, _ in told])
            p = several_p_value(scores, codes, permutations=RESAMPLES, seed=seed)
            tests.append((parameter, groups, p))
        adjusted = holm(np.array([p for _, _, p in tests]))
        found += [
            Effect(kind, measure, parameter, groups, p, float(corrected))
            for (parameter, groups, p), corrected in zip(tests, adjusted, strict=True)
        ]
    return found
