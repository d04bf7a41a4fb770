"""The three metrics of a network at one eps, from its distribution and from samples.

Over all eps, satisfaction and security are the two sides of the distribution: the share of inputs
proven at eps at least, and the share that no counterexample within eps refutes.
"""

from __future__ import annotations

import builtins
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.distributions import Distribution, weakest_arithmetic
from radii.distributions.confidence import check_inputs_differ, clopper_pearson
from radii.distributions.searched import why_unsearched
from radii.errors import DataError
from radii.metrics.estimates import Estimate, mean_estimate, share_estimate

__all__ = ["Metrics", "metrics_of"]


@dataclass(frozen=True, slots=True)
class Metrics:
    """How much of a data set a property holds for, at one eps.

    Of `inputs`, `proven` keep the property in the whole ball, `refuted` have a counterexample, and
    nobody knows of the others. So constraint satisfaction lies between `satisfaction` and
    `security`; the limits of the former allow for both ends and for the sample. `security` is the
    share that was not refuted, None where `unsearched` says why that means nothing at this eps;
    `accuracy` the mean share of `samples` uniform points of each ball that keep the property, None
    where nobody sampled. `arithmetic` is that in which all proofs of the network hold, as text.
    """

    network: str
    property: str
    eps: float
    inputs: int
    proven: int
    refuted: int
    level: float
    satisfaction: Estimate
    security: Estimate | None
    accuracy: Estimate | None = None
    samples: int = 0
    unsearched: str = ""
    arithmetic: str | None = None

    @builtins.property
    def undecided(self) -> int:
        return self.inputs - self.proven - self.refuted

    def flat(self) -> dict[str, Any]:
        """One level of names and numbers, for tables."""
        told: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Estimate):
                told |= {
                    field.name: value.value,
                    f"{field.name}_low": value.low,
                    f"{field.name}_high": value.high,
                }
            elif field.name in ("security", "accuracy"):
                told |= dict.fromkeys(f"{field.name}{end}" for end in ("", "_low", "_high"))
            else:
                told[field.name] = value
            if field.name == "refuted":
                told["undecided"] = self.undecided
        return told


Shares = Mapping[tuple[str, float], npt.NDArray[np.float64]]


def metrics_of(
    distribution: Distribution,
    eps: Sequence[float],
    *,
    level: float = 0.95,
    shares: Shares | None = None,
    samples: int = 0,
) -> list[Metrics]:
    """One row a network and eps; `shares` are those of `samples` points, by name and eps.

    Raises a DataError where rows are not independent: several targets of an input.
    """
    if not eps:
        raise DataError("metrics are measured at an eps: name at least one")
    return [
        _row(name, part, at, level, (shares or {}).get((name, at)), samples)
        for name, part in distribution.by_network().items()
        for at in eps
    ]


def _row(
    name: str,
    part: Distribution,
    eps: float,
    level: float,
    shares: npt.NDArray[np.float64] | None,
    samples: int,
) -> Metrics:
    check_inputs_differ(part)
    size, (proven, open_) = len(part), part.shares(eps)
    kept, not_refuted = round(float(proven) * size), round(float(open_) * size)
    least, _ = clopper_pearson(kept, size, level)
    security, why = share_estimate(not_refuted, size, level), why_unsearched(part, eps)
    return Metrics(
        network=name,
        property=", ".join(dict.fromkeys(part.column("property").tolist())),
        eps=eps,
        inputs=size,
        proven=kept,
        refuted=size - not_refuted,
        level=level,
        satisfaction=Estimate(kept / size, least, security.high),
        security=None if why else security,
        accuracy=None if shares is None else mean_estimate(shares, level),
        samples=0 if shares is None else samples,
        unsearched=why,
        arithmetic=None if (weakest := weakest_arithmetic(part)) is None else str(weakest),
    )
