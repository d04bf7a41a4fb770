"""The Python face of an experiment: networks and data in, a distribution out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy.typing as npt

from radii.balls import Domain
from radii.datasets import as_dataset
from radii.distributions import Distribution
from radii.errors import ExperimentError
from radii.experiments import Observer, Settings, plan
from radii.networks import as_network
from radii.queries import Grid, distinct_names
from radii.store import Store


def robustness_distribution(
    networks: Any,
    data: Any,
    *,
    grid: Grid | str = "0.001:0.4:0.002",
    domain: Domain | tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    mean: npt.ArrayLike | None = None,
    std: npt.ArrayLike | None = None,
    layout: str | None = None,
    out: Path | str | None = None,
    jobs: int = 0,
    observer: Observer | None = None,
    **settings: Any,
) -> Distribution:
    """The brackets of every input of `data` on every network.

    A network is a radii `Network`, the path of an ONNX file or a torch module (then with `domain`,
    the valid inputs, such as (0, 1), and maybe `mean` and `std`), or a foolbox model; several are a
    list or tuple of them. `data` is a data set, a spec such as "mnist:test[0:100]", a pair of
    arrays (inputs, labels) or a torch data set.

    With `out` the results are kept in that directory, and running again continues. `jobs` 0 works
    in this process; with N workers the time limits are hard. `settings` are those of `Settings`,
    such as verifier="milp" or arithmetic="real".
    """
    chosen = Settings.from_options({"grid": grid, **settings})
    several = networks if isinstance(networks, list | tuple) else (networks,)
    if not several:
        raise ExperimentError("networks is empty: give at least one")
    files = [each for each in several if isinstance(each, str | Path)]
    names = dict(zip(files, distinct_names(files), strict=True))
    dataset = as_dataset(data)
    known = [
        as_network(
            each,
            input_shape=dataset.shape,
            domain=domain,
            mean=mean,
            std=std,
            name=names[each] if isinstance(each, str | Path) else None,
        )
        for each in several
    ]
    measuring = plan(known, dataset, chosen, layout=layout)
    with Store.in_memory() if out is None else Store.create_or_open(Path(out)) as store:
        measuring.run(store, jobs=jobs, observer=observer)
        return Distribution.from_store(store)
