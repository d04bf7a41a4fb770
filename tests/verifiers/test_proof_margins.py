"""A margin is kept by every way of proving: by bounds, by nodes that are empty, behind a ReLU."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from scipy.sparse import csr_array
from torch import nn

from radii.balls import Ball, Box, Domain, Norm
from radii.bounds.relu_form import ReluForm
from radii.networks import Network, from_torch
from radii.properties import Halfspaces, LinearRequirement
from radii.queries import Specification
from radii.verdicts import Verdict
from radii.verifiers import Limits
from radii.verifiers.branch_and_bound.proving import by_units
from radii.verifiers.branch_and_bound.reduction import reduce
from radii.verifiers.branch_and_bound.tree import Tree
from radii.verifiers.branch_and_bound.unwrapping import unwrapped

INPUTS, UNITS, EPS = 14, 5, 0.3


class Layer:
    """v max(0, W x + b) over the cube of side 2 EPS, and its least value by one LP a sign."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.weights = (rng.normal(size=(UNITS, INPUTS)) / 3).astype(np.float32).astype(float)
        self.biases = (0.2 * rng.normal(size=UNITS)).astype(np.float32).astype(float)
        self.values = rng.normal(size=UNITS).astype(np.float32).astype(float)

    def least(self) -> float:
        found = []
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

    def form(self, constant: float) -> ReluForm:
        output = np.concatenate([np.zeros(INPUTS), [constant], self.values])
        layer = csr_array(np.column_stack([self.weights, self.biases]))
        return ReluForm(INPUTS, (layer,), csr_array(output[None]))

    def network(self, constant: float, common: float) -> Network:
        """Two outputs that differ by the layer's value, both plus something as large as `common`,
        so that float32 rounds the difference."""
        module = nn.Sequential(nn.Linear(INPUTS, UNITS + 1), nn.ReLU(), nn.Linear(UNITS + 1, 2))
        with torch.no_grad():
            module[0].weight[:UNITS] = torch.tensor(self.weights)
            module[0].bias[:UNITS] = torch.tensor(self.biases)
            module[0].weight[UNITS] = common * torch.linspace(-1, 1, INPUTS)
            module[0].bias[UNITS] = 20 * common
            module[2].weight.zero_()
            module[2].weight[0, :UNITS] = torch.tensor(self.values)
            module[2].weight[:, UNITS] = 1
            module[2].bias[:] = torch.tensor([constant, 0.0])
        return from_torch(module, input_shape=(INPUTS,), domain=(-1, 1))


@pytest.mark.parametrize("margin", [0.03, 0.1, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_a_tree_proves_exactly_what_exceeds_the_margin(seed: int, margin: float) -> None:
    layer = Layer(seed)
    least = layer.least()
    for share, is_above in ((0.5, False), (0.95, False), (1.05, True)):
        form = layer.form(share * margin - least)
        cube = Box(np.full(INPUTS, -EPS), np.full(INPUTS, EPS))
        violation = Halfspaces(np.eye(1), np.zeros(1))
        reduction = reduce(form, cube, [violation], margin=margin)
        tree = Tree(reduction, is_over=lambda: False, check=lambda _: False)
        tree.start()
        tree.grow()
        assert tree.is_proven is is_above


@pytest.mark.parametrize("seed", range(4))
def test_outputs_that_float32_cannot_tell_apart_are_not_proven(seed: int) -> None:
    """The exact difference is above 0 everywhere, but far below a rounding of the outputs."""
    layer = Layer(seed)
    network = layer.network(0.9 - layer.least(), common=1e6)
    ball = Ball(np.zeros(INPUTS), EPS, Norm.LINF, Domain(-1, 1))
    requirement = LinearRequirement((Halfspaces(np.array([1.0, -1.0]), np.zeros(1)),))
    answer = by_units(network, Specification(ball, requirement), Limits(20.0)).answer
    assert answer.verdict is not Verdict.ROBUST


def test_moving_a_final_relu_keeps_the_scale_of_a_comparison() -> None:
    arguments = csr_array(np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]]))
    output = csr_array(np.array([[0.0, 0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]]))
    compared = Halfspaces(np.array([1e-3, -1e-3]), np.zeros(1))
    _, violations = unwrapped(ReluForm(2, (arguments,), output), [compared])
    rows = np.vstack([polyhedron.matrix for polyhedron in violations])
    np.testing.assert_array_equal(rows, [[1e-3, -1e-3], [1e-3, 0.0]])
