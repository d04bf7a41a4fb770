"""The checker's curves by their pieces: lines hold every value, products are read as one function,
and proofs of networks with them are accepted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from benchmarks.soundness.operator_models._functions import COMPOSITES, composite_models
from radii.networks import Network
from radii.problem import Query, Verdict
from radii.testing import Sketch, instance_at
from radii.verifiers import BranchAndBound
from radii_check import CertificateError, check
from radii_check import _network as checked
from radii_check._numbers import Numbers
from radii_check._onnx import read_network
from radii_check._piece_curves import PieceCurve
from radii_check.operators._elementary import Atan, Erf, Exp, ExponentialUnit, Softplus
from radii_check.operators._gated import ClippedGate, Gelu, Mish, Silu

CURVES: dict[str, PieceCurve] = {
    "atan": Atan(),
    "celu": ExponentialUnit(1.0, 0.5, 2.0),
    "elu": ExponentialUnit(3.0),
    "erf": Erf(),
    "exp": Exp(),
    "gelu": Gelu(),
    "gelu, scaled": Gelu(3.0, 0.25),
    "hard swish": ClippedGate(1 / 6, 0.5, 0.0, 1.0),
    "clipped gate": ClippedGate(0.5, 1.0, 0.25, 3.0, 2.0),
    "mish": Mish(),
    "silu": Silu(1.702, 1 / 1.702),
    "softplus": Softplus(),
}
SIDES = st.one_of(st.floats(-9, 9), st.floats(-1e-6, 1e-6), st.floats(-500, 500))


@pytest.mark.parametrize("exact", [False, True], ids=["float64", "balls"])
@pytest.mark.parametrize("name", CURVES)
def test_lines_and_ranges_hold_every_value(name: str, exact: bool) -> None:
    curve, num = CURVES[name], Numbers(exact)

    @settings(max_examples=10, deadline=None, database=None, derandomize=True)
    @given(first=SIDES, second=SIDES)
    def run(first: float, second: float) -> None:
        assume(name != "exp" or max(first, second) < 100)
        low, high = min(first, second), max(first, second)
        ends = (np.array([[low]]), np.array([[high]]))
        lines = curve.lines(num.array(ends[0]), num.array(ends[1]), num)
        below, above, down, up, least, most = (float(each[0, 0]) for each in lines)
        z = np.clip(
            np.concatenate([np.linspace(low, high, 300), np.linspace(-6, 6, 300)]), low, high
        )
        values = curve.values(z, Numbers())
        off = 2.0**-50 * (1 + np.abs(values) + np.abs(z) * max(abs(below), abs(above)))
        assert np.all(below * z + down <= values + off) and np.all(above * z + up >= values - off)
        assert np.all(least <= values + off) and np.all(values <= most + off)
        middle = len(z) // 4
        width = max(1e-9, float(np.ptp(values[:300])))
        gap = (above * z[middle] + up) - (below * z[middle] + down)
        assert gap <= 2.1 * width + 1e-6  # lines are no worse than the range, about

    run()


@pytest.mark.parametrize("form", sorted(set(COMPOSITES) - {"gelu by tanh"}))
@settings(max_examples=4, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_products_are_read_as_one_function(form: str, data: st.DataObject) -> None:
    model = data.draw(composite_models(form))
    network = Network.from_bytes(model.SerializeToString(), domain=(-3, 3), name=form)
    _, mine = read_network(network.onnx_bytes, Numbers())
    units = [n for n in mine.nodes if isinstance(n, checked.Unit) and n.kind != "Input"]
    assert [type(unit.curve).__name__ for unit in units] == [
        type(node.operator).__name__ for node in network.graph.nodes if node.kind.name == "SMOOTH"
    ]


def test_other_products_are_unknown() -> None:
    sketch = Sketch([1, 3])
    product = sketch.apply("Mul", sketch.apply("Tanh", "x"), sketch.apply("Sigmoid", "x"))
    with pytest.raises(CertificateError, match="Mul or Div of such values is not known"):
        read_network(sketch.network(product).onnx_bytes, Numbers())


@pytest.mark.parametrize("operator", ["Abs", "Gelu", "Mish", "HardSwish", "Softplus", "silu"])
def test_proofs_are_accepted(operator: str) -> None:
    """Class 0 is f(x0), class 1 is f(x1) for an f that rises on the ball."""
    sketch = Sketch([1, 2], opset=20)
    if operator == "silu":
        value = sketch.apply("Mul", "x", sketch.apply("Sigmoid", "x"))
    else:
        value = sketch.apply(operator, "x")
    product = sketch.apply("MatMul", value, sketch.constant(np.eye(2)))
    network = sketch.network(product, domain=(-2, 2))
    instance = instance_at(network, [0.75, 0.5])
    verifier = BranchAndBound(certificates=True)
    result = verifier.verify(network, Query(instance, 0.12))
    assert result.verdict is Verdict.ROBUST and result.proof is not None
    assert result.proof.certificate is not None
    assert check(result.proof.certificate, network.onnx_bytes).accepted
