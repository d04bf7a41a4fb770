"""The features of an experiment: as a file or the data name them, with their scales filled in."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from radii.datasets import Dataset
from radii.errors import DataError, ExperimentError
from radii.problem import Domain, Features, Norm
from radii.runs._description import Settings


def resolved_features(
    settings: Settings, dataset: Dataset, domain: Domain | None = None
) -> Features | None:
    """The features in the order of the data; None where every value moves by eps.

    `domain` is for those that name no bounds of their own.
    """
    if settings.features is None and settings.scale is None:
        return None
    dataset = dataset if domain is None else dataset.in_units_of(domain)
    count = math.prod(dataset.shape)
    names = dataset.features or tuple(f"x{place}" for place in range(count))
    features = settings.features or Features.of(names)
    if isinstance(settings.scale, Features):
        given = _in_order(settings.scale, dataset, count)
        features = dataclasses.replace(_in_order(features, dataset, count), scale=given.scale)
    features = _in_order(features, dataset, count)
    if settings.scale is not None and not isinstance(settings.scale, Features):
        features = _rescaled(features, settings.scale, dataset, domain)
    if settings.norm is not Norm.LINF and not features.is_plain:
        raise ExperimentError(
            f"norm '{settings.norm}' measures features with a scale of 1, or of 0 where they stay; "
            "other scales need linf"
        )
    return features


def _in_order(features: Features, dataset: Dataset, count: int) -> Features:
    """The features as the data lists them, by their names where it has some."""
    known = dataset.features
    if known is None or features.names == known:
        if len(features) != count:
            raise DataError(
                f"{dataset.title}: has {count} features, but {len(features)} are described"
            )
        return features
    missing = [name for name in known if name not in features.names]
    missing += [name for name in features.names if name not in known]
    if missing:
        whose = "is not described" if missing[0] in known else "is described but not there"
        raise DataError(f"{dataset.title}: feature '{missing[0]}' {whose}")
    order = [features.names.index(name) for name in known]
    return Features(
        known,
        features.scale[order],
        features.is_whole[order],
        {
            name: tuple(order.index(place) for place in places)
            for name, places in features.groups.items()
        },
        features.low[order],
        features.high[order],
    )


def _rescaled(
    features: Features, scale: str | tuple[float, ...], dataset: Dataset, domain: Domain | None
) -> Features:
    """Numbers and integers that may move get the scale; the others keep theirs."""
    if scale == "std":
        wanted = dataset.deviations().ravel()
    elif scale == "range":
        whole = features.domain(domain)
        wanted = np.broadcast_to((whole.high - whole.low).ravel(), (len(features),))
    else:
        wanted = np.array(scale, np.float64)
        if wanted.size not in (1, len(features)):
            raise ExperimentError(
                f"scale has {wanted.size} numbers, but there are {len(features)} features"
            )
    in_groups = [place for places in features.groups.values() for place in places]
    keeps = (features.scale == 0) | np.isin(np.arange(len(features)), in_groups)
    return dataclasses.replace(features, scale=np.where(keeps, features.scale, wanted))


def checked_inputs(features: Features, dataset: Dataset) -> None:
    """A DataError unless every input has whole numbers and categories where they are described."""
    if not features.is_discrete:
        return
    for row, values in enumerate(dataset.images.reshape(len(dataset), -1).astype(np.float64)):
        if not features.is_valid(values):
            reason = _why(features, values)
            raise DataError(f"{dataset.title}: input {dataset.indices[row]}: {reason}")


def _why(features: Features, values: np.ndarray) -> str:
    for place in np.flatnonzero(features.is_whole).tolist():
        if values[place] != round(values[place]):
            return f"'{features.names[place]}' is an integer, and holds {values[place]:g}"
    for name, places in features.groups.items():
        chosen = values[list(places)]
        if sorted(chosen.tolist()) != [0.0] * (len(places) - 1) + [1.0]:
            return f"category '{name}' needs one 1 and else 0, and holds {chosen.tolist()}"
    return "it has features of another kind"
