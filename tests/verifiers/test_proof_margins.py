"""How near to a violation a proof may come: to 0 in real arithmetic, to rounding in floats."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch import nn

from radii.bounds import fuse
from radii.networks import Network, from_torch
from radii.problem import (
    FLOAT,
    REAL,
    Arithmetic,
    Ball,
    Domain,
    Halfspaces,
    LinearRequirement,
    Norm,
    Specification,
    Verdict,
)
from radii.verifiers import Limits
from radii.verifiers.native._attempts import prove_by_units
from radii.verifiers.native._form import unwrapped
from radii.verifiers.native._session import ProofSession

INPUTS, UNITS, EPS = 14, 5, 0.3
FIRST_IS_LARGER = LinearRequirement((Halfspaces(np.array([1.0, -1.0]), np.zeros(1)),))


class Layer:
    """v max(0, W x + b) over the cube of side 2 EPS, and its least value by one LP a sign."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.weights = (rng.normal(size=(UNITS, INPUTS)) / 3).astype(np.float32).astype(float)
        self.biases = (0.2 * rng.normal(size=UNITS)).astype(np.float32).astype(float)
        self.values = rng.normal(size=UNITS).astype(np.float32).astype(float)

    def least(self) -> float:
        found: list[float] = []
        for signs in itertools.product((0.0, 1.0), repeat=UNITS):
            active = np.array(signs)
            direction = (2 * active - 1)[:, None]
            solved = linprog(
                (self.values * active) @ self.weights,
                A_ub=-direction * self.weights,
                b_ub=direction[:, 0] * self.biases,
                bounds=[(-EPS, EPS)] * INPUTS,
            )
            if solved.status == 0:
                found.append(solved.fun + float((self.values * active) @ self.biases))
        return min(found)

    def network(self, constant: float, common: float = 0.0) -> Network:
        """Two outputs that differ by the layer's value, both plus something as large as `common`,
        so that float32 rounds the difference."""
        hidden, last = nn.Linear(INPUTS, UNITS + 1), nn.Linear(UNITS + 1, 2)
        with torch.no_grad():
            hidden.weight[:UNITS] = torch.tensor(self.weights)
            hidden.bias[:UNITS] = torch.tensor(self.biases)
            hidden.weight[UNITS] = common * torch.linspace(-1, 1, INPUTS)
            hidden.bias[UNITS] = 20 * common
            last.weight.zero_()
            last.weight[0, :UNITS] = torch.tensor(self.values)
            last.weight[:, UNITS] = 1
            last.bias[:] = torch.tensor([constant, 0.0])
        module = nn.Sequential(hidden, nn.ReLU(), last)
        return from_torch(module, input_shape=(INPUTS,), domain=(-1, 1))


def verdict(network: Network, arithmetic: Arithmetic) -> Verdict:
    ball = Ball(np.zeros(INPUTS), EPS, Norm.LINF, Domain(-1, 1))
    specification = Specification(ball, FIRST_IS_LARGER)
    session = ProofSession(network, arithmetic)
    return prove_by_units(session, specification, Limits(20.0)).answer.verdict


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(4))
def test_a_tree_proves_exactly_what_is_above_zero(seed: int) -> None:
    layer = Layer(seed)
    least = layer.least()
    for above in (1e-3, 1e-4):
        for arithmetic in (FLOAT, REAL):
            assert verdict(layer.network(above - least), arithmetic) is Verdict.ROBUST
            assert verdict(layer.network(-above - least), arithmetic) is not Verdict.ROBUST


@pytest.mark.parametrize("seed", range(4))
def test_outputs_that_float32_cannot_tell_apart_are_proven_in_real_arithmetic_only(
    seed: int,
) -> None:
    """The exact difference is above 0 everywhere, but far below a rounding of the outputs."""
    layer = Layer(seed)
    network = layer.network(0.9 - layer.least(), common=1e6)
    assert verdict(network, REAL) is Verdict.ROBUST
    assert verdict(network, FLOAT) is not Verdict.ROBUST


def test_moving_a_final_relu_keeps_the_scale_of_a_comparison() -> None:
    module = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    fusion = fuse(from_torch(module, input_shape=(2,), domain=(0, 1)))
    compared = Halfspaces(np.array([1e-3, -1e-3]), np.zeros(1))
    bare, violations = unwrapped(fusion, [compared])
    rows = np.vstack([polyhedron.matrix for polyhedron in violations])
    np.testing.assert_array_equal(rows, [[1e-3, -1e-3], [1e-3, 0.0]])
    assert not bare.stages and bare.output.maps is fusion.stages[-1].maps
