"""Measuring the metrics: run what decides them, or read what a run has found; then sample."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.balls import Domain, Norm
from radii.datasets import Dataset
from radii.distributions import Distribution
from radii.errors import DataError, ExperimentError, SpecificationError
from radii.experiments import Observer, Plan, Settings, plan
from radii.metrics.rows import Metrics, metrics_of
from radii.metrics.sampling import sampled_shares
from radii.networks import Network, load_network
from radii.properties import parse
from radii.queries import Grid, Instance
from radii.store import Store

__all__ = ["grid_through", "measure", "measure_plan", "measure_run"]

SAMPLES = 1000


def measure(
    networks: Network | Sequence[Network],
    data: Dataset,
    *,
    eps: Sequence[float],
    samples: int = SAMPLES,
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
    chosen: Plan, store: Store, eps: Sequence[float], *, samples: int = SAMPLES, level: float = 0.95
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
    samples: int = SAMPLES,
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
