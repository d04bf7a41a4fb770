"""Networks of smooth functions: proofs up to the radius that is known, with certificates."""

from __future__ import annotations

import numpy as np
import pytest

from radii.networks import Network
from radii.problem import FLOAT, REAL, Arithmetic, Query, Verdict
from radii.testing import Sketch, instance_at
from radii.verifiers import BranchAndBound
from radii_check import check

WEIGHTS = np.array([[1.0, -0.75], [0.5, 1.25]])
POINT = np.array([0.25, -0.5])


def monotone(activation: str, **attributes: float) -> tuple[Network, float]:
    """f(f(x) W), whose entries are in the order of f(x) W; and the distance at which both tie.

    That is where both inputs have moved against the label, each by eps: f(x) W has the label's
    entry ahead by 0.5 f(x_0) - 2 f(x_1).
    """
    sketch = Sketch([1, 2])
    inner = sketch.apply(activation, "x", **attributes)
    product = sketch.apply("MatMul", inner, sketch.constant(WEIGHTS.T))
    network = sketch.network(sketch.apply(activation, product, **attributes), domain=(-3, 3))
    alpha = attributes.get("alpha", 1.0)

    def lead(eps: float) -> float:
        first, second = POINT + np.array([-eps, eps])
        values = [z if z >= 0 else alpha * np.expm1(z) for z in (first, second)]
        return float((WEIGHTS[0] - WEIGHTS[1]) @ values)

    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if lead(middle) > 0 else (low, middle)
    return network, low


@pytest.mark.parametrize("arithmetic", [FLOAT, REAL], ids=str)
@pytest.mark.parametrize("alpha", [0.25, 1.0, 4.0])
def test_elu_is_decided_at_its_radius(alpha: float, arithmetic: Arithmetic) -> None:
    network, radius = monotone("Elu", alpha=alpha)
    assert 0.01 < radius < 0.9
    instance = instance_at(network, POINT)
    verifier = BranchAndBound(arithmetic=arithmetic, certificates=True)
    result = verifier.verify(network, Query(instance, 0.999 * radius))
    assert result.verdict is Verdict.ROBUST
    assert result.proof is not None and result.proof.certificate is not None
    assert check(result.proof.certificate, network.onnx_bytes).accepted
    beyond = verifier.verify(network, Query(instance, 1.001 * radius))
    assert beyond.verdict is not Verdict.ROBUST
