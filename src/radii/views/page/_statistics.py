"""Tests and fits for the page: the numbers of `radii compare`, as far as they are quick."""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations
from typing import Any

import numpy as np

from radii.errors import DataError, InputError
from radii.statistics import (
    ComparisonOptions,
    Distribution,
    compare_groups,
    dominance,
    family_named,
    fit_all,
    goodness_of_fit,
    ks_matrix,
    spearman_matrix,
)
from radii.views._json import finite_or_none, plain_json

MOST_COMPARED = 400_000
"""Inputs times pairs of networks: beyond, permutation tests take minutes."""

MOST_CLASSES = 24
"""A matrix with more rows is hard to read, and has hundreds of tests."""

MOST_TESTED = 8
"""Networks whose best fit is tested: each takes about half a second."""

SIMULATIONS = 99
"""Of the test of a fit: p-values are then multiples of 0.01."""

FIT_POINTS = 121


def pair_objects(counted: Distribution, level: float) -> list[dict[str, str]]:
    """Who is more robust where, for every two networks: on these inputs, and with confidence."""
    parts = counted.by_network()
    return [
        {
            "a": one,
            "b": two,
            "here": str(dominance(parts[one], parts[two])),
            "everywhere": str(dominance(parts[one], parts[two], level=level)),
        }
        for one, two in combinations(parts, 2)
    ]


def correlation_rows(measured: Distribution) -> list[list[float | None]]:
    """Spearman's, between all networks; none with fewer than two."""
    if len(measured.networks) < 2:
        return []
    rows: list[list[float | None]] = plain_json(spearman_matrix(measured).coefficients)
    return rows


def test_objects(counted: Distribution) -> list[dict[str, Any]]:
    """Every two networks: do their radii differ? None where that takes long."""
    count = len(counted.networks)
    if count * (count - 1) / 2 * len(counted) / max(count, 1) > MOST_COMPARED:
        return []
    try:
        pairs = compare_groups(counted, ComparisonOptions(by="network")).pairs()
    except DataError:
        return []  # fewer than two networks have radii
    objects = []
    for pair in pairs:
        plain, *_, permuted, _ = pair["tests"]
        objects.append(
            {
                "a": pair["first"],
                "b": pair["second"],
                "statistic": finite_or_none(plain["statistic"]),
                "adjusted": finite_or_none(plain["adjusted"]),
                "permutation": finite_or_none(permuted["adjusted"]),
                "delta": [pair["cliffs_delta"][side] for side in ("least", "most")],
                "verdict": pair["verdict"],
            }
        )
    return objects


def class_test_objects(counted: Distribution) -> list[dict[str, Any]]:
    """For each network the Kolmogorov-Smirnov matrix of its classes, as in the per-class paper."""
    objects = []
    for name, part in counted.by_network().items():
        if not 2 <= len(part.labels) <= MOST_CLASSES:
            continue
        try:
            matrix = ks_matrix(part, "class")
        except DataError:
            continue  # at most one class has radii
        has_both = len(set(part.column("split").tolist())) > 1
        known = [matrix.statistics, matrix.adjusted]
        if not has_both:  # only one triangle is known: both show it
            known = [np.where(np.isnan(one), one.T, one) for one in known]
        objects.append(
            {
                "network": name,
                "classes": [int(key) for key in matrix.keys],
                "statistics": plain_json(known[0]),
                "adjusted": plain_json(known[1]),
                "sides": "training inputs below the diagonal, testing above" if has_both else "",
            }
        )
    return objects


def fit_objects(counted: Distribution, top: float) -> list[dict[str, Any]]:
    """For each network all families, the best one first with its test and its curve up to `top`."""
    parts = counted.by_network()
    objects = []
    for name, part in parts.items():
        try:
            fits = fit_all(part)
        except InputError:
            continue  # too few brackets, or none that says anything
        p_value = None
        with suppress(InputError):
            if len(parts) <= MOST_TESTED:
                p_value = goodness_of_fit(part, fits[0].family, simulations=SIMULATIONS).p_value
        for one in fits:
            numbers = (
                f"{parameter} {value:.4g} ± {one.standard_errors[parameter]:.2g}"
                for parameter, value in one.parameters.items()
            )
            objects.append(
                {
                    "network": name,
                    "family": one.family,
                    "title": family_named(one.family).title,
                    "parameters": ", ".join(numbers),
                    "aic": finite_or_none(one.aic),
                    "is_best": False,
                    "p_value": None,
                }
            )
        objects[-len(fits)] |= {
            "is_best": True,
            "p_value": plain_json(p_value),
            "broken": plain_json(fits[0].broken(np.linspace(0, top, FIT_POINTS))),
        }
    return objects
