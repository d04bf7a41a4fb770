"""A value found on a sample of inputs, and where that of all inputs lies, with confidence.

Inputs are taken as drawn independently. A share of inputs gets the exact limits of Clopper and
Pearson. A mean of numbers between 0 and 1, one an input, gets those of Chernoff's bound in the form
of Hoeffding (1963, theorem 1), which holds for every distribution of such numbers: the true mean is
where its relative entropy to the one found is at most log(2 / (1 - level)) / inputs. That is never
wider than Hoeffding's better known limits, and much narrower for a mean near 0 or 1.
"""

from __future__ import annotations

import builtins
import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from radii.balls import Ball, Domain, Norm
from radii.datasets import Dataset
from radii.distributions import (
    Distribution,
    check_inputs_differ,
    clopper_pearson,
    weakest_arithmetic,
    why_unsearched,
)
from radii.errors import DataError, ExperimentError, SpecificationError
from radii.experiments import Observer, Plan, Settings, plan
from radii.networks import Network, load_network
from radii.properties import parse
from radii.queries import Grid, Instance, Query
from radii.store import Store
from radii.verdicts import Array
from radii.witnesses import check_witness

LIMIT_HALVINGS = 60
"""Of an interval between 0 and 1: beyond what a float64 resolves."""


@dataclass(frozen=True, slots=True)
class MetricEstimate:
    """`value` on the sample; that of all inputs is between `low` and `high` with confidence."""

    value: float
    low: float
    high: float


def share_estimate(successes: int, trials: int, level: float = 0.95) -> MetricEstimate:
    """A share of inputs."""
    low, high = clopper_pearson(successes, trials, level)
    return MetricEstimate(successes / trials, low, high)


def mean_estimate(values: npt.ArrayLike, level: float = 0.95) -> MetricEstimate:
    """The mean of one number an input, each between 0 and 1; it may be an estimate itself.

    That an input's number is estimated without bias from samples of its own only adds to the
    spread that is seen between inputs, so it needs no allowance of its own.
    """
    numbers = np.asarray(values, np.float64).ravel()
    if not 0 < level < 1:
        raise DataError(f"a confidence level is between 0 and 1, not {level}")
    if not numbers.size or not np.all((numbers >= 0) & (numbers <= 1)):
        raise DataError("a mean is of numbers between 0 and 1, at least one")
    mean = float(numbers.mean())
    allowed = math.log(2 / (1 - level)) / numbers.size
    return MetricEstimate(
        mean, _chernoff_limit(mean, 0.0, allowed), _chernoff_limit(mean, 1.0, allowed)
    )


def _chernoff_limit(mean: float, end: float, allowed: float) -> float:
    """The number between `mean` and `end`, 0 or 1, at which the relative entropy is `allowed`.

    Rounded away from the mean.
    """
    near, far = mean, end
    for _ in range(LIMIT_HALVINGS):
        middle = (near + far) / 2
        if _relative_entropy(mean, middle) <= allowed:
            near = middle
        else:
            far = middle
    return far


def _relative_entropy(found: float, true: float) -> float:
    """Of one Bernoulli variable to another, by their means; inf where `true` rules `found` out."""
    if found == true:
        return 0.0
    if true in (0.0, 1.0):
        return math.inf
    total = found * math.log(found / true) if found > 0 else 0.0
    return total + ((1 - found) * math.log((1 - found) / (1 - true)) if found < 1 else 0.0)


# Constraint accuracy: of the points of a ball, how many keep the property?


Float64 = npt.NDArray[np.float64]

BORDER_MARGIN = 1e-4
"""A margin nearer to 0 than this, relative to the size of the outputs, may be torch's rounding:
such a point counts as broken only if ONNX Runtime says so."""
CHUNK_VALUES = 2**22
"""Numbers of sampled points that are held at once."""


def sampled_shares(
    network: Network, instances: Sequence[Instance], eps: float, samples: int, *, seed: int = 0
) -> Float64:
    """For each instance the share of uniform samples of its ball that keep its property.

    The samples depend on the instance and the seed alone, and those of two eps are the same
    directions, so that a curve over eps is smooth.
    """
    if samples < 1:
        raise SpecificationError(f"{samples} samples: an estimate needs at least one")
    return np.array([_share(network, Query(each, eps), samples, seed) for each in instances])


def _share(network: Network, query: Query, samples: int, seed: int) -> float:
    instance = query.instance
    rng = np.random.default_rng([seed, int(instance.key, 16)])
    ball = instance.ball(query.eps)
    chunk = max(1, CHUNK_VALUES // instance.input.size)
    broken = 0
    for start in range(0, samples, chunk):
        points = _exact(ball, ball.sample(rng, min(chunk, samples - start)), network)
        broken += _count_broken(network, query, ball, points)
    return 1 - broken / samples


def _exact(ball: Ball, points: Float64, network: Network) -> Array:
    """The points in the network's own type, those that rounding pushed out drawn back in."""
    rounded = points.astype(network.input_dtype)
    low, high = ball.domain.box(ball.shape)
    axes = tuple(range(1, rounded.ndim))
    outside = ((rounded < low) | (rounded > high)).any(axis=axes)
    outside |= _distances(ball, rounded) > ball.eps
    for row in np.flatnonzero(outside):
        rounded[row] = ball.project(points[row], network.input_dtype)
    return rounded


def _count_broken(network: Network, query: Query, ball: Ball, points: Array) -> int:
    requirement = query.instance.requirement
    with torch.no_grad():
        outputs = network(torch.from_numpy(points)).numpy().astype(np.float64)
    margins = requirement.margin(outputs, _distances(ball, points))
    border = BORDER_MARGIN * np.maximum(1.0, np.abs(outputs).max(axis=1))
    unsure = ~(np.abs(margins) > border)  # NaN as well
    replayed = sum(
        check_witness(network, query.specification, points[row]) is not None
        for row in np.flatnonzero(unsure)
    )
    return int(np.sum((margins < 0) & ~unsure)) + replayed


def _distances(ball: Ball, points: Array) -> Float64:
    offsets = points.astype(np.float64).reshape(len(points), -1) - ball.center.ravel()
    order = {Norm.LINF: np.inf, Norm.L2: 2, Norm.L1: 1}[ball.norm]
    return np.asarray(np.linalg.norm(offsets, order, axis=1))


# The three metrics of a network at one eps, from its distribution and from samples.
#
# Over all eps, satisfaction and security are the two sides of the distribution: the share of
# inputs
# proven at eps at least, and the share that no counterexample within eps refutes.


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
    satisfaction: MetricEstimate
    security: MetricEstimate | None
    accuracy: MetricEstimate | None = None
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
            if isinstance(value, MetricEstimate):
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
        satisfaction=MetricEstimate(kept / size, least, security.high),
        security=None if why else security,
        accuracy=None if shares is None else mean_estimate(shares, level),
        samples=0 if shares is None else samples,
        unsearched=why,
        arithmetic=None if (weakest := weakest_arithmetic(part)) is None else str(weakest),
    )


# Measuring the metrics: run what decides them, or read what a run has found; then sample.


SAMPLES_AN_INPUT = 1000


def measure(
    networks: Network | Sequence[Network],
    data: Dataset,
    *,
    eps: Sequence[float],
    samples: int = SAMPLES_AN_INPUT,
    level: float = 0.95,
    out: Path | str | None = None,
    jobs: int = 0,
    observer: Observer | None = None,
    **settings: Any,
) -> list[Metrics]:
    """Decide, attack and sample every input of `data` on every network, at each eps.

    With `out` the brackets are kept in that directory, and running again continues. `settings` are
    those of `radii.experiments.Settings`; the grid holds the eps asked for unless one is given.
    """
    several = (networks,) if isinstance(networks, Network) else tuple(networks)
    settings.setdefault("grid", str(grid_through(eps)))
    try:
        chosen = plan(several, data, Settings(**settings))
    except TypeError as error:
        raise ExperimentError(f"not a setting of an experiment: {error}") from None
    with Store.in_memory() if out is None else Store.create_or_open(Path(out)) as store:
        chosen.run(store, jobs=jobs, observer=observer)
        return measure_plan(chosen, store, eps, samples=samples, level=level)


def measure_plan(
    chosen: Plan,
    store: Store,
    eps: Sequence[float],
    *,
    samples: int = SAMPLES_AN_INPUT,
    level: float = 0.95,
) -> list[Metrics]:
    """The metrics of a plan that has run into the store."""
    own = {network.name: network for network in chosen.networks}
    instances = {
        name: [each for each in chosen.instances if each.network == network.fingerprint]
        for name, network in own.items()
    }
    shares = _sampled(own, instances, eps, samples, chosen.settings.seed)
    distribution = Distribution.from_store(store)
    return metrics_of(distribution, eps, level=level, shares=shares, samples=samples)


def measure_run(
    directory: Path | str,
    eps: Sequence[float],
    *,
    samples: int = SAMPLES_AN_INPUT,
    level: float = 0.95,
    mean: npt.ArrayLike | None = None,
    std: npt.ArrayLike | None = None,
) -> list[Metrics]:
    """The metrics of a run that is kept in a directory; `samples` 0 needs no network.

    `mean` and `std` are those that the run was given.
    """
    with Store.open(Path(directory)) as store:
        distribution = Distribution.from_store(store)
        shares = {}
        if samples:
            described = store.experiment() or {}
            networks = _networks(store, described, mean, std)
            instances = _instances(store, networks, Norm(described["norm"]))
            shares = _sampled(networks, instances, eps, samples, int(described["seed"]))
    return metrics_of(distribution, eps, level=level, shares=shares, samples=samples)


def grid_through(eps: Sequence[float]) -> Grid:
    """The coarsest grid that holds every eps."""
    values = sorted({Fraction(str(float(at))) for at in eps})
    if not values:
        raise DataError("metrics are measured at an eps: name at least one")
    if values[0] < 0:
        raise SpecificationError(f"eps {float(values[0]):g} must be at least 0")
    steps = [value - values[0] for value in values[1:]]
    scale = math.lcm(*(step.denominator for step in steps)) if steps else 1
    step = Fraction(math.gcd(*(int(each * scale) for each in steps)), scale) if steps else None
    step = step or values[0] or Fraction(1)
    try:
        return Grid(values[0], values[-1] + step, step)
    except SpecificationError:
        raise SpecificationError(
            "no grid of a sensible size holds every eps: choose round ones, or give a grid"
        ) from None


def _sampled(
    networks: Mapping[str, Network],
    instances: Mapping[str, Sequence[Instance]],
    eps: Sequence[float],
    samples: int,
    seed: int,
) -> dict[tuple[str, float], npt.NDArray[np.float64]]:
    if not samples:
        return {}
    return {
        (name, at): sampled_shares(network, instances[name], at, samples, seed=seed)
        for name, network in networks.items()
        for at in eps
    }


def _networks(
    store: Store,
    described: Mapping[str, Any],
    mean: npt.ArrayLike | None,
    std: npt.ArrayLike | None,
) -> dict[str, Network]:
    """The networks of a run, from the files that it was given, if these are still the same."""
    found, files = {}, store.networks()
    for (name, fingerprint), key in zip(
        described["networks"].items(), described["domain"], strict=True
    ):
        _, path = files[fingerprint]
        low, high = (np.array(json.loads(side)) for side in key.split(":"))
        network = load_network(path, domain=Domain(low, high), mean=mean, std=std, name=name)
        if network.fingerprint != fingerprint:
            raise DataError(
                f"{path}: this is not the network that was measured; give the --mean and --std of "
                "the run, or sample nothing (--samples 0)"
            )
        found[name] = network
    return found


def _instances(
    store: Store, networks: Mapping[str, Network], norm: Norm
) -> dict[str, list[Instance]]:
    found: dict[str, list[Instance]] = {name: [] for name in networks}
    for record in store.records():
        measured, network = record.measurement, networks[record.measurement.network]
        instance = Instance(
            network=network.fingerprint,
            index=measured.input,
            input=record.input,
            label=measured.label,
            outputs=network.replay(record.input[None])[0],
            property=parse(measured.property),
            norm=norm,
            domain=network.domain,
            outputs_are_probabilities=network.outputs_are_probabilities,
        )
        found[measured.network].append(instance)
    return found
