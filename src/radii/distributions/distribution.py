"""The distribution of one or more networks' brackets, and its first statistics."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from radii.brackets import Measurement
from radii.errors import DataError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Distribution", "Share"]

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Share:
    """A share of inputs known only as an interval: proven for some, not refuted for more."""

    proven: float
    not_refuted: float

    def __str__(self) -> str:
        return f"[{self.proven:.3f}, {self.not_refuted:.3f}]"


class Distribution:
    """Brackets over a set of inputs. Misclassified inputs are in it, with radius 0."""

    def __init__(self, measurements: Iterable[Measurement]) -> None:
        self.measurements = tuple(measurements)
        if not self.measurements:
            raise DataError("a distribution needs at least one measurement")

    def __len__(self) -> int:
        return len(self.measurements)

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self.measurements)

    def __repr__(self) -> str:
        return f"<Distribution of {len(self)} brackets on {', '.join(self.networks)}>"

    @property
    def networks(self) -> tuple[str, ...]:
        """The names of the networks, in order of appearance."""
        return tuple(dict.fromkeys(m.network for m in self))

    @property
    def lower(self) -> Float64:
        """The proven side: no radius is smaller."""
        return np.array([m.bracket.lower for m in self])

    @property
    def upper(self) -> Float64:
        """The witnessed side: every radius is smaller; inf without a witness."""
        return np.array([m.bracket.upper for m in self])

    @property
    def correct(self) -> npt.NDArray[np.bool_]:
        return np.array([m.correct for m in self])

    def where(self, keep: Callable[[Measurement], bool]) -> Distribution:
        """The part of the distribution for which `keep` is true."""
        return Distribution(m for m in self if keep(m))

    def by_network(self) -> dict[str, Distribution]:
        """One distribution a network, by name."""
        parts: dict[str, list[Measurement]] = {name: [] for name in self.networks}
        for measurement in self:
            parts[measurement.network].append(measurement)
        return {name: Distribution(part) for name, part in parts.items()}

    def robust_accuracy(self, eps: float) -> Share:
        """The share of all inputs whose class holds in the closed ball of radius eps."""
        if not eps >= 0:
            raise DataError(f"eps {eps} must be a number >= 0")
        not_refuted = self.upper > eps
        proven = (self.lower >= eps) & not_refuted
        return Share(float(proven.mean()), float(not_refuted.mean()))

    def quantile(self, share: float) -> tuple[float, float]:
        """Lower and upper bounds on a quantile of the radii."""
        lower = np.quantile(self.lower, share, method="inverted_cdf")
        upper = np.quantile(self.upper, share, method="inverted_cdf")
        return float(lower), float(upper)

    def to_pandas(self) -> pd.DataFrame:
        """One row an instance; `upper` is inf without a witness."""
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for m in self:
            row = dataclasses.asdict(m)
            bracket = row.pop("bracket")
            rows.append({**row, "lower": bracket["lower"], "upper": bracket["upper"]})
        frame = pd.DataFrame(rows)
        return frame.astype({"target": "Int64", "witness_class": "Int64"})

    def plot_ecdf(self) -> Figure:
        """Both sides of the empirical distribution, the gap between them shaded."""
        from radii.plots import draw_ecdf

        return draw_ecdf(self)
