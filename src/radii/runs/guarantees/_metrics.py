"""Constraint satisfaction, security and accuracy of a network at one eps (CSat, CSec, CAcc).

Over all eps, satisfaction and security are the two sides of a distribution: the share of inputs
proven at eps or above, and the share that no counterexample within eps refutes. Accuracy is asked
of the points of each ball: how many of them keep the property? It is estimated by sampling them
uniformly. `measure` runs what decides the metrics, `measure_run` reads what a run has decided, and
both then sample.
"""

from __future__ import annotations

import builtins
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from radii.datasets import Dataset
from radii.errors import DataError, ExperimentError, SpecificationError
from radii.networks import Network
from radii.problem import Array, Ball, Grid, Instance, Norm, Query, check_witness
from radii.runs._description import Settings
from radii.runs._plan import Observer, Plan, plan
from radii.runs._stored_data import stored_networks
from radii.statistics import (
    Distribution,
    Estimate,
    Float64,
    check_inputs_differ,
    draw_of_all,
    mean_estimate,
    robust_accuracy_interval,
    share_estimate,
    share_limits,
    weakest_arithmetic,
    why_unsearched,
)
from radii.store import Store

BORDER_MARGIN = 1e-4
"""A margin nearer to 0 than this, relative to the size of the outputs, may be torch's rounding:
such a point counts as broken only if ONNX Runtime says so."""
CHUNK_VALUES = 2**22
"""Numbers of sampled points in memory at once."""
SAMPLES_AN_INPUT = 1000

Shares = Mapping[tuple[str, float], Float64]


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
    if ball.features is not None:
        offsets = ball.features.units(offsets)
    order = {Norm.LINF: np.inf, Norm.L2: 2, Norm.L1: 1}[ball.norm]
    return np.asarray(np.linalg.norm(offsets, order, axis=1))


@dataclass(frozen=True, slots=True)
class Metrics:
    """How much of a data set a property holds for, at one eps.

    Of `inputs`, `proven` keep the property in the whole ball, `refuted` have a counterexample, and
    the others are open. So constraint satisfaction lies between `satisfaction` and
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
        flat: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Estimate):
                flat |= {
                    field.name: value.value,
                    f"{field.name}_low": value.low,
                    f"{field.name}_high": value.high,
                }
            elif field.name in ("security", "accuracy"):
                flat |= dict.fromkeys(f"{field.name}{end}" for end in ("", "_low", "_high"))
            else:
                flat[field.name] = value
            if field.name == "refuted":
                flat["undecided"] = self.undecided
        return flat


def metrics_of(
    distribution: Distribution,
    eps: Sequence[float],
    *,
    level: float = 0.95,
    shares: Shares | None = None,
    samples: int = 0,
) -> list[Metrics]:
    """One row for each network and eps; `shares` are those of `samples` points, by name and eps.

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
    shares: Float64 | None,
    samples: int,
) -> Metrics:
    check_inputs_differ(part)
    size, why = len(part), why_unsearched(part, eps)
    proven, not_refuted = part.robust_counts(eps)
    low, high = robust_accuracy_interval(part, eps, level)
    least, most = share_limits(part, lambda inputs: inputs.robust_counts(eps)[1], level)
    return Metrics(
        network=name,
        property=", ".join(dict.fromkeys(part.column("property").tolist())),
        eps=eps,
        inputs=size,
        proven=proven,
        refuted=size - not_refuted,
        level=level,
        satisfaction=replace(
            share_estimate(proven, size, level, most=not_refuted), low=low, high=high
        ),
        security=None
        if why
        else replace(share_estimate(not_refuted, size, level), low=least, high=most),
        accuracy=None if shares is None else _sampled_accuracy(part, shares, level),
        samples=0 if shares is None else samples,
        unsearched=why,
        arithmetic=None if (weakest := weakest_arithmetic(part)) is None else str(weakest),
    )


def _sampled_accuracy(part: Distribution, shares: Float64, level: float) -> Estimate:
    """The mean of the inputs' shares; of inputs drawn class by class it is between the classes'."""
    mean = mean_estimate(shares, level)
    if not draw_of_all(part).is_by_class:
        return mean
    by_class = [mean_estimate(shares[part.label == label], level) for label in part.labels]
    low, high = min(each.low for each in by_class), max(each.high for each in by_class)
    return replace(mean, low=low, high=high)


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
    those of `radii.runs.Settings`; the grid holds the eps asked for unless one is given.
    """
    several = (networks,) if isinstance(networks, Network) else tuple(networks)
    settings.setdefault("grid", Grid.of_values(sorted(set(eps))))
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
) -> list[Metrics]:
    """The metrics of a run that is kept in a directory; `samples` 0 needs no network."""
    with Store.open(Path(directory)) as store:
        distribution = Distribution.from_store(store)
        shares = {}
        if samples:
            seed = store.settings().seed
            if seed is None:
                raise DataError(f"{directory}: its store does not say how it was measured")
            networks, instances = _measured(store)
            shares = _sampled(networks, instances, eps, samples, seed)
    return metrics_of(distribution, eps, level=level, shares=shares, samples=samples)


def _measured(store: Store) -> tuple[dict[str, Network], dict[str, list[Instance]]]:
    """The networks of a store, and the instances of each, by the network's name."""
    records = store.all_records()
    networks = {one.name: one.network for one in stored_networks(store, records).values()}
    instances: dict[str, list[Instance]] = {name: [] for name in networks}
    for record in records:
        name, instance = record.facts.network, store.instance(record.key)
        if instance is None:
            raise DataError(
                f"{store.place}: property '{record.facts.property}' was made in Python: sample "
                "nothing (--samples 0)"
            )
        is_probable = networks[name].outputs_are_probabilities
        instances[name].append(replace(instance, outputs_are_probabilities=is_probable))
    return networks, instances


def _sampled(
    networks: Mapping[str, Network],
    instances: Mapping[str, Sequence[Instance]],
    eps: Sequence[float],
    samples: int,
    seed: int,
) -> dict[tuple[str, float], Float64]:
    if not samples:
        return {}
    return {
        (name, at): sampled_shares(network, instances[name], at, samples, seed=seed)
        for name, network in networks.items()
        for at in eps
    }
