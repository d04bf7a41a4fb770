"""Linear networks, whose radius has a closed form: accepted below it, rejected above it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from handmade import dense_model, digest, packed

from radii_check import check

WEIGHT = np.array([[1.0, 2.0, -1.0], [0.5, -1.0, 1.0]])
BIAS = np.array([0.25, -0.125])
MODEL = dense_model([(WEIGHT, BIAS)])
INPUT = np.array([0.5, 0.5, 0.5])
DUAL = {"linf": 1, "l2": 2, "l1": np.inf}


def radius(norm: str) -> float:
    """The margin divided by the dual norm of its gradient."""
    gradient = WEIGHT[0] - WEIGHT[1]
    margin = gradient @ INPUT + BIAS[0] - BIAS[1]
    return float(margin / np.linalg.norm(gradient, DUAL[norm]))


def certificate(eps: float, norm: str, arithmetic: str, **changed: Any) -> bytes:
    claim = {
        "network": digest(MODEL),
        "norm": norm,
        "eps": eps,
        "requirement": {"kind": "one-to-any", "label": 0},
        "arithmetic": arithmetic,
    }
    none = np.zeros((1, 0))
    arrays = {"input": INPUT, "low": [-9.0] * 3, "high": [9.0] * 3, "eps": [eps]}
    arrays |= {"lower": none, "upper": none}
    arrays |= {"parent": [-1], "split_unit": [-1], "split_sign": [0], "spec": [0]}
    arrays |= {"node": [0], "part": [0], "round": [0], "unit": [-1], "side": [0], "bound": [0]}
    arrays |= {"gamma": [1.0], "slopes": [], "beta": []}
    return packed(claim, "units", arrays | changed)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("norm", ["linf", "l1", "l2"])
def test_real_arithmetic_is_sharp(norm: str, exact: bool) -> None:
    true = radius(norm)
    below = check(certificate(true * (1 - 1e-8), norm, "real"), MODEL, exact=exact)
    above = check(certificate(true * (1 + 1e-12), norm, "real"), MODEL, exact=exact)
    assert below.accepted, below.reason
    assert not above.accepted
    assert "fails by" in above.reason


@pytest.mark.parametrize("arithmetic", ["float", "float:64"])
def test_floating_point_costs_some_units(arithmetic: str) -> None:
    true = radius("linf")
    assert check(certificate(true * (1 - 1e-3), "linf", arithmetic), MODEL).accepted
    assert not check(certificate(true * (1 - 1e-7), "linf", arithmetic), MODEL).accepted
