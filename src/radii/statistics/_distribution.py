"""The distribution of one or more networks' brackets: its parts, and its first statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

import radii
from radii.errors import DataError
from radii.problem import Measurement, is_of_class
from radii.statistics._columns import (
    COLUMNS,
    NO_NUMBER,
    Array,
    Float64,
    columns_of,
    columns_of_frame,
    complete_columns,
    frame_of_columns,
    measurements_of,
)
from radii.statistics._counterexamples import (
    Counterexample,
    CounterexampleGallery,
    StoredArrays,
    counterexample_of,
    read_sources,
)
from radii.statistics.reading._draws import InputDraw

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from radii.statistics._comparisons import Comparison
    from radii.statistics._confidence import Band
    from radii.statistics._fits import Fit
    from radii.statistics._npmle import Turnbull
    from radii.statistics.reading._run import Run
    from radii.store import PartChoice, Store


GROUPS = ("network", "class", "target", "split", "training", "group")
ValueRange = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Share:
    """A share of inputs known only as an interval: proven for some, not refuted for more."""

    proven: float
    not_refuted: float

    def __str__(self) -> str:
        return f"[{self.proven:.3f}, {self.not_refuted:.3f}]"


class Distribution:
    """Brackets over a set of inputs. Misclassified inputs are in it, with radius 0.

    An input is broken within eps when a counterexample lies at a distance of at most eps. The
    distance of its closest counterexample is above `lower` and at most `upper`; where both are
    equal it is known exactly, as it is (0) for inputs that are misclassified as they stand.
    """

    only_eps: float | None = None
    """The one value that was asked about, as with `eps=0.1`; None where there were several."""

    def __init__(self, measurements: Iterable[Measurement]) -> None:
        rows = tuple(measurements)
        if not rows:
            raise DataError("a distribution needs at least one measurement")
        self._columns = complete_columns(columns_of(rows))
        self._sources: Array | None = None

    @classmethod
    def _of(
        cls,
        columns: Mapping[str, Array],
        sources: Array | None = None,
        only_eps: float | None = None,
    ) -> Self:
        """`sources` are where the arrays of each row are, None where a row has none."""
        made = cls.__new__(cls)
        made._columns, made._sources, made.only_eps = dict(columns), sources, only_eps
        return made

    @classmethod
    def of_columns(
        cls,
        columns: Mapping[str, Any],
        *,
        sources: Array | None = None,
        only_eps: float | None = None,
    ) -> Self:
        """From columns as a reader has them: checked, and completed by defaults."""
        return cls._of(complete_columns(columns), sources, only_eps)

    @classmethod
    def from_arrays(cls, lower: npt.ArrayLike, upper: npt.ArrayLike, **columns: Any) -> Self:
        """From arrays of the two sides and any further columns, each an array or one value.

        Without `correct`, an input is misclassified when its `upper` is 0. `docs/distributions.md`
        lists the columns.
        """
        sides = {"lower": np.asarray(lower), "upper": np.asarray(upper)}
        return cls.of_columns({**sides, **columns})

    @classmethod
    def from_pandas(cls, frame: pd.DataFrame) -> Self:
        """From a table as `to_pandas` gives it; only `lower` and `upper` must be there."""
        return cls.of_columns(columns_of_frame(frame))

    @staticmethod
    def from_run(run: Run) -> Distribution:
        """The brackets of what was read by `radii.statistics.read`."""
        return run.brackets

    @staticmethod
    def from_store(
        place: Store | Path | str, *, training: str = "", choice: PartChoice | None = None
    ) -> Distribution:
        """The brackets of an experiment, from its open store or from its directory.

        `choice` says which are meant where it holds several properties, norms or arithmetics.
        """
        from radii.statistics.reading._store import ANY_PART, read_store

        return read_store(place, choice or ANY_PART).labelled(training=training).brackets

    @classmethod
    def union(cls, parts: Iterable[Distribution]) -> Self:
        """All brackets of several distributions, in their order."""
        several = list(parts)
        if not several:
            raise DataError("a distribution needs at least one bracket")
        columns = {
            name: np.concatenate([part._columns[name] for part in several]) for name in COLUMNS
        }
        sources = np.concatenate([part._all_sources() for part in several])
        asked = {part.only_eps for part in several}
        return cls._of(columns, sources, asked.pop() if len(asked) == 1 else None)

    def labelled(self, **columns: Any) -> Distribution:
        """The same brackets with columns set anew, to one value, an array, or by network's name.

        `dist.labelled(split="test", training={"a": "standard", "b": "pgd"})`
        """
        values: dict[str, Any] = dict(self._columns)
        for name, value in columns.items():
            is_by_name = isinstance(value, Mapping)
            values[name] = self._by_network_name(name, value) if is_by_name else value
        return self.of_columns(values, sources=self._sources, only_eps=self.only_eps)

    def _by_network_name(self, name: str, values: Mapping[str, Any]) -> list[Any]:
        absent = [network for network in self.networks if network not in values]
        if absent:
            raise DataError(f"no {name} is given for network '{absent[0]}'")
        return [values[str(network)] for network in self.network]

    def __len__(self) -> int:
        return len(self._columns["lower"])

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self.measurements)

    def __repr__(self) -> str:
        return radii.views.distribution_text(self)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        return radii.views.distribution_html(self)

    @cached_property
    def measurements(self) -> tuple[Measurement, ...]:
        """One for each instance, in order."""
        return tuple(measurements_of(self._columns))

    # --- columns

    @property
    def columns(self) -> Mapping[str, Array]:
        """All of them by name: see `docs/distributions.md`."""
        return self._columns

    def column(self, name: str) -> Array:
        """One fact about every instance, as an array; -1 stands for none in whole numbers."""
        if name not in self._columns:
            raise DataError(f"column '{name}' is not one of {', '.join(COLUMNS)}")
        return self._columns[name]

    @property
    def lower(self) -> Float64:
        """The proven side: no radius is smaller."""
        return self._columns["lower"]

    @property
    def upper(self) -> Float64:
        """The witnessed side: every radius is smaller; inf without a witness."""
        return self._columns["upper"]

    @property
    def correct(self) -> npt.NDArray[np.bool_]:
        return self._columns["correct"]

    @cached_property
    def holds(self) -> npt.NDArray[np.bool_]:
        """Whether the property holds at the input itself, so that there is a radius to speak of.

        For the class of the label that is `correct`; SR and LR hold at misclassified inputs, too.
        """
        return np.where(self._is_of_class, self.correct, self.upper > 0)

    @cached_property
    def is_unsolved(self) -> npt.NDArray[np.bool_]:
        """Where the property holds at the input, but nothing is proven and nothing witnessed.

        Such a bracket, [0, inf), is an interval that excludes nothing. No number stands for it:
        its side of 0 is not a radius of 0, which is what a misclassified input has.
        """
        unsolved: npt.NDArray[np.bool_] = self.holds & (self.lower == 0) & np.isinf(self.upper)
        return unsolved

    @property
    def unsolved(self) -> int:
        """How many brackets are without any answer."""
        return int(self.is_unsolved.sum())

    @cached_property
    def is_about_label(self) -> bool:
        """Whether every property is that the label's class stays: holding is being right then."""
        return bool(self._is_of_class.all())

    @cached_property
    def _is_of_class(self) -> npt.NDArray[np.bool_]:
        """Of each bracket, whether its property is that the label's class stays."""
        specs, members = np.unique(self._columns["property"], return_inverse=True)
        return np.array([is_of_class(str(spec)) for spec in specs])[members]

    @property
    def label(self) -> npt.NDArray[np.int64]:
        """The class of each input."""
        return self._columns["label"]

    @property
    def network(self) -> npt.NDArray[np.str_]:
        """The name of each instance's network."""
        return self._columns["network"]

    @cached_property
    def networks(self) -> tuple[str, ...]:
        """The names of the networks, in order of appearance."""
        return tuple(str(name) for name in _distinct(self.network))

    @cached_property
    def labels(self) -> tuple[int, ...]:
        """The classes, in order."""
        return tuple(int(label) for label in np.unique(self.label) if label != NO_NUMBER)

    # --- parts

    def select(self, keep: npt.ArrayLike) -> Distribution:
        """The rows that a mask or an array of places picks."""
        places = np.asarray(keep)
        part = {name: values[places] for name, values in self._columns.items()}
        if not len(part["lower"]):
            raise DataError(f"no bracket on {', '.join(self.networks)} is left")
        sources = None if self._sources is None else self._sources[places]
        return self._of(part, sources, self.only_eps)

    def where(self, keep: Callable[[Measurement], bool]) -> Distribution:
        """The part of the distribution for which `keep` is true."""
        return self.select(np.array([keep(m) for m in self], np.bool_))

    def only(self, **equal: Any) -> Distribution:
        """The rows with these values: `dist.only(network="a", label=3, split="test")`."""
        mask = np.ones(len(self), np.bool_)
        for name, value in equal.items():
            mask &= self.column(name) == (COLUMNS[name].default if value is None else value)
        if not mask.any():
            wanted = ", ".join(f"{name} {value}" for name, value in equal.items())
            raise DataError(f"no bracket has {wanted}")
        part = self.select(mask)
        return part._within_classes() if "label" in equal else part

    def correctly_classified(self) -> Distribution:
        """The part that the papers call the robustness distribution: misclassified ones left out.

        With another property than the label's class, the inputs at which that holds. Robust
        accuracy is a statement about all inputs, and needs the whole distribution.
        """
        if self.holds.all():
            return self
        if not self.holds.any():
            why = (
                "is classified correctly"
                if self.is_about_label
                else "has the property as it stands"
            )
            raise DataError(f"{', '.join(self.networks)}: no input {why}")
        return self.select(self.holds)

    def solved(self) -> Distribution:
        """The brackets with an answer, for statistics that need one number for each bracket.

        Statistics of intervals keep the others, which say nothing and cost nothing there.
        """
        if not self.unsolved:
            return self
        if self.is_unsolved.all():
            raise DataError(f"{', '.join(self.networks)}: no result has an answer")
        return self.select(~self.is_unsolved)

    def group_by(self, *names: str) -> dict[Any, Distribution]:
        """One distribution for each value of network, class, target, split, training or group.

        With several names the keys are tuples. Classes and targets are in order, others in order of
        appearance; where an instance has none of what is asked for the key is None.
        """
        for name in names or ("",):
            if name not in GROUPS:
                raise DataError(f"groups are by {', '.join(GROUPS)}, not by '{name}'")
        codes = np.zeros(len(self), np.int64)
        keys: list[tuple[Any, ...]] = [()]
        for name in names:
            values = self._columns["label" if name == "class" else name]
            distinct = np.unique(values) if values.dtype.kind == "i" else _distinct(values)
            order = np.argsort(distinct)
            codes = codes * len(distinct) + order[np.searchsorted(distinct, values, sorter=order)]
            keys = [(*key, _key(value)) for key in keys for value in distinct]
        present, members = np.unique(codes, return_inverse=True)
        rows = np.split(np.argsort(members, kind="stable"), np.cumsum(np.bincount(members))[:-1])
        groups = {keys[code]: self.select(part) for code, part in zip(present, rows, strict=True)}
        if "class" in names:
            groups = {key: part._within_classes() for key, part in groups.items()}
        return {key[0]: part for key, part in groups.items()} if len(names) == 1 else dict(groups)

    def _within_classes(self) -> Self:
        """Of one class: what was drawn class by class is a random sample of the class."""
        texts, rows = np.unique(self._columns["draw"], return_inverse=True)
        within = np.array([str(InputDraw(text).within_class) for text in texts])
        return self._of({**self._columns, "draw": within[rows]}, self._sources, self.only_eps)

    def by_network(self) -> dict[str, Distribution]:
        """One distribution for each network, by name."""
        return self.group_by("network")

    # --- first statistics

    def shares(self, eps: npt.ArrayLike) -> tuple[Float64, Float64]:
        """Robust accuracy at every eps: the proven shares, and those not refuted."""
        at = np.asarray(eps, np.float64)
        if not np.all(at >= 0):
            raise DataError(f"eps {at[~(at >= 0)].ravel()[0]} must be a number >= 0")
        unproven = np.searchsorted(self._sorted_proofs, at, side="left")
        refuted = np.searchsorted(self._sorted_witnesses, at, side="right")
        return 1 - unproven / len(self), 1 - refuted / len(self)

    @cached_property
    def _sorted_proofs(self) -> Float64:
        """Up to where each input is proven. A distance known exactly is itself not within it."""
        is_exact = self.lower == self.upper
        return np.sort(np.where(is_exact, np.nextafter(self.lower, -np.inf), self.lower))

    @cached_property
    def _sorted_witnesses(self) -> Float64:
        return np.sort(self.upper)

    def robust_counts(self, eps: float) -> tuple[int, int]:
        """How many inputs are proven at an eps, and how many are not refuted there."""
        proven, not_refuted = self.shares(eps)
        return round(float(proven) * len(self)), round(float(not_refuted) * len(self))

    def robust_accuracy(self, eps: float) -> Share:
        """The share of all inputs whose property holds in the closed ball of radius eps."""
        proven, not_refuted = self.shares(eps)
        return Share(float(proven), float(not_refuted))

    def robust_recall(self, label: int, eps: float) -> Share:
        """The share of all inputs of a class whose class holds in the closed ball of radius eps."""
        return self.only(label=label).robust_accuracy(eps)

    def quantile(self, share: float) -> ValueRange:
        """Lower and upper bounds on a quantile of the radii."""
        if not 0 <= share <= 1:
            raise DataError(f"a quantile's share is between 0 and 1, not {share}")
        lower = np.quantile(self.lower, share, method="inverted_cdf")
        upper = np.quantile(self.upper, share, method="inverted_cdf")
        return float(lower), float(upper)

    def median(self) -> ValueRange:
        return self.quantile(0.5)

    def minimum(self) -> ValueRange:
        return float(self.lower.min()), float(self.upper.min())

    def mean(self) -> ValueRange:
        """Bounds on the mean radius; the upper one is inf if any input has no witness."""
        return float(self.lower.mean()), float(self.upper.mean())

    # --- further statistics

    def turnbull(self) -> Turnbull:
        """The maximum-likelihood distribution of the interval-censored radii."""
        from radii.statistics._npmle import turnbull

        return turnbull(self)

    def band(self, level: float = 0.95) -> Band:
        """Robust accuracy of all inputs at every eps at once, with confidence."""
        from radii.statistics._confidence import robust_accuracy_band

        return robust_accuracy_band(self, level)

    def fit(self, family: str = "lognormal") -> Fit:
        """A parametric family fitted to the brackets of correctly classified inputs."""
        from radii.statistics._fits import fit

        return fit(self, family)

    def compare(self, other: Distribution, **options: Any) -> Comparison:
        """Tests, effect sizes and dominance against another distribution."""
        from radii.statistics._comparisons import compare

        return compare(self, other, **options)

    # --- inputs and what breaks them

    @property
    def inputs(self) -> Array:
        """The input of every row, as the network takes it, in one array."""
        arrays = [record.input for record, _ in read_sources(self._known_sources())]
        if len({array.shape for array in arrays}) > 1:
            raise DataError(
                "the networks take inputs of different shapes: choose one with only(network=...)"
            )
        return np.stack(arrays)

    def counterexample(self, row: int) -> Counterexample:
        """The closest counterexample known of a row, counted as in `lower` and `upper`."""
        if not -len(self) <= row < len(self):
            raise DataError(f"row {row} is not one of the {len(self)} rows, which count from 0")
        ((record, settings),) = read_sources([self._known_sources()[row]])
        return counterexample_of(record, settings)

    def fragile(self, count: int = 10) -> CounterexampleGallery:
        """The rows with the closest counterexamples; inputs that are wrong as they stand aside."""
        rows = np.flatnonzero(self.holds & np.isfinite(self.upper))
        closest = rows[np.argsort(self.upper[rows], kind="stable")][: max(0, count)]
        known = self._known_sources()
        records = read_sources([known[row] for row in closest])
        return CounterexampleGallery(counterexample_of(*each) for each in records)

    def _known_sources(self) -> list[StoredArrays]:
        sources: list[StoredArrays] = self._all_sources().tolist()
        if None in sources:
            raise DataError(
                "these brackets came without their inputs, as from a table: read the run itself "
                "with Distribution.from_store(DIR)"
            )
        return sources

    def _all_sources(self) -> Array:
        return np.full(len(self), None) if self._sources is None else self._sources

    # --- out

    def to_pandas(self) -> pd.DataFrame:
        """One row per instance; `upper` is inf without a witness. `from_pandas` takes it back."""
        return frame_of_columns(self._columns)

    # --- figures, whose options `docs/figures.md` lists

    def plot_ecdf(self, **options: Any) -> Figure:
        """Both sides of the empirical distribution, the gap between them shaded."""
        return radii.views.draw_ecdf(self, **options)

    def plot_robust_accuracy(self, **options: Any) -> Figure:
        """Robust accuracy over eps, as a band from what is proven to what is not refuted."""
        return radii.views.draw_robust_accuracy(self, **options)

    def plot_boxes(self, **options: Any) -> Figure:
        """Quantiles of the radii, each drawn as the interval that it is."""
        return radii.views.draw_boxes(self, **options)


def inputs_with_radius(distribution: Distribution) -> str:
    """Which inputs have a radius: those that `correctly_classified` keeps."""
    if np.array_equal(distribution.holds, distribution.correct):
        return "correct inputs"
    return "inputs at which the property holds"


def _distinct(values: Array) -> Array:
    """Distinct values in order of appearance."""
    _, first = np.unique(values, return_index=True)
    return values[np.sort(first)]


def _key(value: Any) -> Any:
    return None if value in (NO_NUMBER, "") else value.item()
