"""Experiments of the study on networks at hand: brackets of radii's own, kept with their step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from radii.statistics import Distribution
from radii_papers._steps import StudySettings
from radii_papers.distributions._audit import DOMAIN, FIRST_IMAGES
from radii_papers.distributions._public import PublicResults, PublishedNetwork

MNIST_GRID = "0.001:0.4:0.002"
PIXEL_GRID = "1/255:0.4:1/255"
"""Of the paper: for MNIST, and for the other data sets."""

WALL_FACTOR = 20.0
"""Wall seconds of an image for each CPU second of its proofs: attacks, which end by the wall clock,
and other work on the machine fit in."""


def of_scale(settings: StudySettings) -> StudySettings:
    """With a folder for this scale alone: stores of different experiments are not mixed."""
    return replace(settings, folder=settings.folder / settings.scale.value)


def measured(
    folder: Path, settings: StudySettings, *, jobs: int | None = None, **options: Any
) -> Distribution:
    """The brackets of an experiment; what `folder` holds already is not measured again.

    A folder that holds more images than are asked for is gone on with, and they are left out.
    """
    from radii.runs import Experiment, prepare
    from radii.store import Store

    plan = prepare(Experiment.from_options({"domain": DOMAIN, "seed": 0, **options}))
    with Store.create_or_open(folder) as store:
        workers = settings.jobs if jobs is None else jobs
        plan.run(store, jobs=workers, observer=settings.progress.inside(), grows=True)
        everything = Distribution.from_store(store)
    return everything.select(np.isin(everything.column("input"), [i.index for i in plan.instances]))


def native_limits(seconds: float) -> dict[str, Any]:
    """Of a native search: proofs of an image end by CPU seconds, so that brackets are the same on a
    busy machine."""
    return {
        "search": "native",
        "verifier": "native",
        "cpu_timeout": seconds,
        "budget_per_input": WALL_FACTOR * seconds,
    }


def cpu_minutes(parts: Iterable[Distribution]) -> str:
    """What brackets took, attacks and proofs: `14 min`."""
    seconds = sum(float(np.nansum(part.column("cpu_seconds"))) for part in parts)
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def file_of(results: PublicResults, network: PublishedNetwork) -> Path:
    return results.networks[network.file]


def at_hand(
    results: PublicResults, networks: Sequence[PublishedNetwork]
) -> dict[str, PublishedNetwork]:
    """Those whose ONNX file is there, by its name without the suffix; each file once."""
    found: dict[str, PublishedNetwork] = {}
    for network in networks:
        if network.file in results.networks:
            found.setdefault(network.file, network)
    return found


def mnist_images(results: PublicResults, count: int) -> str:
    """The first training images: from the folder of the data where that has enough of them."""
    path = results.folder / FIRST_IMAGES
    if path.exists():
        with np.load(path) as saved:
            if len(saved["labels"]) >= count:
                return f"{path}[0:{count}]"
    return f"mnist:train[0:{count}]"
