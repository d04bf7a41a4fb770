"""Network and data set in, instances out: every input in the network's own shape, checked.

The features of an experiment, as a file or the data name them, get their scales here.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from radii import problem
from radii.datasets import Dataset, extent, name_list
from radii.errors import DataError, ExperimentError, NetworkError
from radii.networks import Network
from radii.problem import (
    Array,
    Box,
    Domain,
    Features,
    Instance,
    Norm,
    Property,
    Shard,
    TargetedProperty,
)
from radii.runs._description import Settings

AXIS_ORDERS = ("chw", "hwc")
"""In which order a flat network input lists the values of a coloured image."""

EXCHANGED_ORDERS = {"cwh": "chw", "whc": "hwc"}
"""The same with rows and columns exchanged, as of pictures that were trained on transposed and of
sequences that list time first."""


def select(
    network: Network,
    dataset: Dataset,
    *,
    property: str | Property | type[TargetedProperty],  # noqa: A002
    norm: Norm,
    layout: str | None = None,
    features: Features | None = None,
) -> list[Instance]:
    """One instance for each image and property, in the order of the data set.

    `property` is one, or its text; the class of a targeted property gives one for every target.
    Misclassified images are kept: their radius is 0. `layout` says how a network with a flat input
    lists coloured images, which nothing in the network tells. Raises an InputError unless every
    image fits the network, its label is one of the outputs, and it lies in the domain.
    """
    asked = problem.parse_family(property) if isinstance(property, str) else property
    given, dataset = dataset, dataset.in_units_of(network.domain)
    images = images_for(network, dataset, layout)
    check_labels(network, dataset)
    if features is not None:
        _check_inputs(features, dataset)
    images = _in_domain(network, given, images)
    outputs = network.replay(images)
    _check_outputs(network, dataset, outputs)
    instances: list[Instance] = []
    tried: set[tuple[int, str]] = set()
    for row, label in enumerate(dataset.labels.tolist()):
        for one in problem.property_family(asked, label, network.output_size):
            instance = Instance(
                network=network.fingerprint,
                index=int(dataset.indices[row]),
                input=images[row],
                label=label,
                outputs=outputs[row],
                property=one,
                norm=norm,
                domain=network.domain,
                outputs_are_probabilities=network.outputs_are_probabilities,
                features=features,
            )
            if (label, one.spec) not in tried:
                _ = instance.requirement  # raises now if the property makes no sense here
                tried.add((label, one.spec))
            instances.append(instance)
    if not instances:
        raise DataError(
            f"{dataset.title}: property '{problem.property_family_spec(asked)}' asks nothing "
            "of the selected images, which all have the target as their label"
        )
    return instances


def of_shard(instances: Sequence[Instance], shard: Shard) -> list[int]:
    """The places of a shard's instances among all of them, in order."""
    networks: dict[str, dict[int, int]] = {}
    places = []
    for place, one in enumerate(instances):
        inputs = networks.setdefault(one.network, {})
        # Another network begins with another shard: few inputs of many networks are spread too.
        # What checks a store deals its inputs out in the same way.
        first = list(networks).index(one.network)
        if first + inputs.setdefault(one.index, len(inputs)) in shard:
            places.append(place)
    return places


def inputs_for(network: Network, dataset: Dataset, layout: str | None) -> Array:
    """The images as the network takes them, in the units of its domain, and all in it."""
    images = images_for(network, dataset.in_units_of(network.domain), layout)
    return _in_domain(network, dataset, images)


def images_for(network: Network, dataset: Dataset, layout: str | None) -> Array:
    """The images as the network takes them: shape, order of axes and type."""
    given, taken = dataset.shape, network.input_shape
    images = dataset.images
    if layout in EXCHANGED_ORDERS and len(given) == 3:
        images, layout = np.swapaxes(images, 2, 3), EXCHANGED_ORDERS[layout]
        given = images.shape[1:]
    order = _order(network, dataset, given, layout)
    if order is None:
        raise DataError(
            f"{network.name}: input is {extent(taken)} but dataset '{dataset.name}' "
            f"gives {extent(given)}"
        )
    if order == "hwc":
        images = np.moveaxis(images, 1, -1)
    return np.ascontiguousarray(images.reshape(len(images), *taken), dtype=network.input_dtype)


def _order(
    network: Network, dataset: Dataset, given: tuple[int, ...], layout: str | None
) -> str | None:
    """`chw` to reshape the images as they are, `hwc` to put channels last before; None: no fit."""
    if layout is not None and layout not in AXIS_ORDERS:
        orders = (*AXIS_ORDERS, *EXCHANGED_ORDERS)
        raise DataError(f"layout '{layout}' is not one of {', '.join(orders)}")
    taken = _without_unit_axes(network.input_shape)
    if math.prod(given) != math.prod(taken):
        return None
    if len(given) == 1 and layout not in (None, "chw") and len(taken) > 1:
        raise DataError(
            f"layout '{layout}' tells how networks list coloured images, but dataset "
            f"'{dataset.name}' gives rows of {given[0]} values: reshape them to images"
        )
    if len(given) != 3 or given[0] == 1:
        return "chw"
    channels, height, width = given
    if taken == _without_unit_axes((channels, height, width)):
        return "chw"
    if taken == _without_unit_axes((height, width, channels)):
        return "hwc"
    if len(taken) != 1:
        return None
    if layout is None:
        raise DataError(
            f"{network.name}: input is {extent(network.input_shape)} but dataset '{dataset.name}' "
            f"gives {extent(given)}; say in which layout the network lists them: chw or hwc"
        )
    return layout


def _without_unit_axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape without axes of length 1, which change no order."""
    return tuple(length for length in shape if length != 1)


def check_labels(network: Network, dataset: Dataset) -> None:
    """A DataError unless every label is one of the network's outputs, as far as that is known."""
    outputs, (least, most) = network.output_size, dataset.span
    if dataset.assumes_order and dataset.classes is not None:
        _check_words(network, dataset, dataset.classes)
    if dataset.classes is None and (least, most) == (1, outputs):
        raise DataError(
            f"{dataset.title}: labels run from 1 to {most}, but the {outputs} outputs of "
            f"{network.name} are counted from 0: subtract 1, or name them with --classes 1,2,..."
        )
    beyond = np.flatnonzero((dataset.labels < 0) | (dataset.labels >= network.output_size))
    if beyond.size:
        row = int(beyond[0])
        raise DataError(
            f"{dataset.title}: label {dataset.labels[row]} of image {dataset.indices[row]} "
            f"is not one of the {network.output_size} outputs of {network.name}"
        )


def _check_words(network: Network, dataset: Dataset, words: Sequence[str]) -> None:
    """Words that were numbered in alphabetical order: all of the network's classes have to occur.

    If one is missing, all that follow it in the alphabet would be taken for their neighbours.
    """
    own = network.class_names
    if own and own != tuple(words):
        raise DataError(
            f"{dataset.title}: its labels are the words {name_list(words)}, but the classes of "
            f"{network.name} are {name_list(own)}"
        )
    if len(words) != network.output_size:
        count = f"{len(words)} {'word' if len(words) == 1 else 'words'}"
        raise DataError(
            f"{dataset.title}: its labels are {count} ({name_list(words)}), but {network.name} has "
            f"{network.output_size} outputs: name all classes in the order of the outputs, with "
            "--classes FILE or a list"
        )


def _in_domain(network: Network, dataset: Dataset, images: Array) -> Array:
    """The images, all in the domain; a DataError names the first one that is not.

    A value that is out by no more than the rounding of its type is moved onto the bound: a bound
    such as -0.4242 has no exact float32, and data scaled to it may end one unit beside it.
    """
    low, high = network.domain.box(network.input_shape)
    values = images.astype(np.float64)
    excess = np.maximum(low - values, values - high)
    rounding = np.spacing(np.maximum(np.abs(low), np.abs(high)).astype(images.dtype))
    outside = ~(excess <= rounding)  # also catches NaN
    if not outside.any():
        box, moved = Box(low, high), images.copy()
        for beside in np.flatnonzero((excess > 0).reshape(len(images), -1).any(axis=1)):
            moved[beside] = box.project(images[beside], images.dtype)
        return moved
    row = int(np.flatnonzero(outside.reshape(len(images), -1).any(axis=1))[0])
    worst = np.unravel_index(int(np.argmax(excess[row])), excess[row].shape)
    value = values[row][worst]
    advice = "; divide pixels by 255" if 2.0 < value <= 255.0 and np.all(high == 1.0) else ""
    if dataset.holds_bytes:
        advice = "; bytes are divided by 255 where the domain lies within 0:1, and else stay"
    raise DataError(
        f"{dataset.title}: image {dataset.indices[row]} leaves the domain "
        f"[{low[worst]:g}, {high[worst]:g}] of {network.name} by {excess[row][worst]:g}: "
        f"it holds {value:g}{advice}"
    )


def _check_outputs(network: Network, dataset: Dataset, outputs: npt.NDArray[np.floating]) -> None:
    strange = np.flatnonzero(~np.isfinite(outputs).all(axis=1))
    if strange.size:
        raise NetworkError(
            f"{network.name}: gives outputs that are not finite for image "
            f"{dataset.indices[int(strange[0])]} of {dataset.title}"
        )


# --- features


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


def _check_inputs(features: Features, dataset: Dataset) -> None:
    """A DataError unless every input has whole numbers and categories where they are described."""
    if not features.is_discrete:
        return
    rows = dataset.images.reshape(len(dataset), -1).astype(np.float64)
    for index, values in zip(dataset.indices, rows, strict=True):
        if (flaw := features.flaw(values)) is not None:
            raise DataError(f"{dataset.title}: input {index}: {flaw}")
