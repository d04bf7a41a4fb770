"""The Python face of an experiment: networks and data in, a distribution out."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from radii.datasets import Dataset
from radii.distributions import Distribution
from radii.errors import ExperimentError
from radii.experiments import Observer, Settings, plan
from radii.networks import Network
from radii.queries import Grid
from radii.store import Store

__all__ = ["robustness_distribution"]


def robustness_distribution(
    networks: Network | Sequence[Network],
    data: Dataset,
    *,
    grid: Grid | str = "0.001:0.4:0.002",
    out: Path | str | None = None,
    jobs: int = 0,
    observer: Observer | None = None,
    **settings: Any,
) -> Distribution:
    """The brackets of every input of `data` on every network.

    With `out` the results are kept in that directory, and running again continues. `jobs` 0 works
    in this process; with N workers the time limits are hard. `settings` are those of `Settings`.
    """
    several = (networks,) if isinstance(networks, Network) else tuple(networks)
    unknown = settings.keys() - {f.name for f in dataclasses.fields(Settings)}
    if unknown:
        raise ExperimentError(f"option '{min(unknown)}' is not a setting of an experiment")
    chosen = plan(several, data, Settings(grid=str(grid), **settings))
    with Store.in_memory() if out is None else Store.create_or_open(Path(out)) as store:
        chosen.run(store, jobs=jobs, observer=observer)
        return Distribution.from_store(store)
