"""Operators from outside: handed to `load_network`, or declared by another installed package."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import outside_operators as outside
import pytest
import torch

from radii import plugins
from radii.bounds import FloatErrors, crown_bounds, interval_bounds
from radii.errors import NetworkError, SpecificationError, UnsupportedOperator, UnsupportedQuery
from radii.networks import (
    Graph,
    Input,
    Interval,
    Network,
    Node,
    NumberType,
    Operator,
    OperatorKind,
    OperatorLike,
    Relu,
    SumOfProducts,
    load_network,
)
from radii.problem import FLOAT, Box
from radii.testing import Sketch

REPLAYS = 64


def model_of(operator: str, shape: list[int], *constants: Any, **attributes: Any) -> bytes:
    """Two products with the operator between them."""
    sketch, size = Sketch([1, 4], opset=18), int(np.prod(shape))
    rng = np.random.default_rng(0)
    hidden = sketch.apply("MatMul", "x", sketch.constant(rng.normal(size=(4, size))))
    shaped = sketch.apply("Reshape", hidden, sketch.constant(np.array(shape)))
    names = [sketch.constant(np.array(constant)) for constant in constants]
    changed = sketch.apply(operator, shaped, *names, **attributes)
    flat = sketch.apply("Reshape", changed, sketch.constant(np.array([1, size])))
    end = sketch.apply("MatMul", flat, sketch.constant(rng.normal(size=(size, 3))))
    content: bytes = sketch.model(end).SerializeToString()
    return content


CASES: dict[str, tuple[OperatorLike, bytes]] = {
    "translator": (outside.absolute, model_of("Abs", [1, 6])),
    "piecewise linear": (outside.Abs, model_of("Abs", [1, 6])),
    "affine": (outside.CumulativeSum, model_of("CumSum", [1, 6], 1)),
    "exact": (
        outside.DepthToSpace,
        model_of("DepthToSpace", [1, 4, 1, 2], blocksize=2, mode="CRD"),
    ),
    "smooth": (outside.Cosh, model_of("Cosh", [1, 6])),
}
NAMES = {"affine": "CumSum", "exact": "DepthToSpace", "smooth": "Cosh"}


@pytest.fixture(params=list(CASES))
def network(request: pytest.FixtureRequest) -> Network:
    operator, model = CASES[request.param]
    name = NAMES.get(request.param, "Abs")
    return Network.from_bytes(model, domain=(-1, 1), name="outside", operators={name: operator})


def test_what_it_computes_is_bounded(network: Network) -> None:
    """In both arithmetics, at random inputs of a box, by ONNX Runtime's own results."""
    rng = np.random.default_rng(1)
    low, high = np.full((1, 4), -0.2), np.full((1, 4), 0.3)
    inputs = rng.uniform(low, high, (REPLAYS, 1, 4)).astype(np.float32)
    outputs = network.replay(inputs.reshape(REPLAYS, *network.input_shape))
    box = Box(low.reshape(network.input_shape), high.reshape(network.input_shape))
    bounds = crown_bounds(network, [box])
    plain = interval_bounds(network.graph, Interval.around(low, high))[network.graph.output]
    for held in (bounds, Interval(plain.low.reshape(1, -1), plain.high.reshape(1, -1))):
        assert held.low.isfinite().all() and held.high.isfinite().all()
        assert (held.low.numpy() <= outputs + 1e-5).all()
        assert (outputs <= held.high.numpy() + 1e-5).all()


def test_it_travels_to_other_processes(network: Network) -> None:
    copy = pickle.loads(pickle.dumps(network))
    x = torch.rand(2, *network.input_shape)
    torch.testing.assert_close(copy(x), network(x), rtol=0, atol=0)
    assert copy.fingerprint == network.fingerprint


def test_what_it_does_not_state_is_refused() -> None:
    class Unsaid(Operator):
        kind = OperatorKind.PIECEWISE_LINEAR
        forward = outside.Abs.forward
        enclosure = outside.Abs.enclosure

    network = Network.from_bytes(
        model_of("Abs", [1, 6]), domain=(-1, 1), name="unsaid", operators={"Abs": Unsaid}
    )
    with pytest.raises(UnsupportedQuery, match="'Unsaid' does not state how far"):
        crown_bounds(network, [Box(np.zeros(network.input_shape), np.ones(network.input_shape))])


def test_rules_are_not_inherited_by_another_function() -> None:
    """The hinges of a Relu would prove things about |x| that are wrong."""
    with pytest.raises(TypeError, match="'Bent' replaces the forward of 'Relu'"):
        type("Bent", (Relu,), {"forward": outside.Abs.forward})
    with pytest.raises(TypeError, match="'Mixed' replaces the forward of 'Relu'"):
        type("Mixed", (torch.nn.GELU, Relu), {})
    type("Same", (Relu,), {"translate": classmethod(lambda cls, call: call.emit(cls()))})


@pytest.mark.parametrize("base", [Operator, SumOfProducts])
def test_what_is_not_affine_must_say_so(base: type[Operator]) -> None:
    """AFFINE is the default: fused maps are gradients at 0, which say nothing about |x|."""
    unsaid = type("Unsaid", (base,), {"is_exact": True, "forward": outside.Abs.forward})
    with pytest.raises(NetworkError, match="'Unsaid' says that it is affine, but is not"):
        Network.from_bytes(
            model_of("Abs", [1, 6]), domain=(-1, 1), name="unsaid", operators={"Abs": unsaid}
        )


def test_constants_that_are_no_buffers_count_by_their_size() -> None:
    """An exact operator may hold them: they are added up as any others."""

    def forward(_: Operator, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, torch.full_like(x[..., :1], -5.0)], -1)

    shape = staticmethod(lambda given: (*given[:-1], given[-1] + 1))
    fill = type("Fill", (Operator,), {"is_exact": True, "forward": forward, "result_shape": shape})
    graph = Graph([Node("x", Input(), (), (1, 2)), Node("y", fill(), (0,), (1, 3))], 1)
    errors = FloatErrors(graph, NumberType.of(np.dtype(np.float32)), FLOAT)
    ones = torch.ones(1, 2, dtype=torch.float64)
    assert (errors.of_arguments(1, (1,), {0: ones}, {0: ones * 1e-3}) >= 0).all()


def test_without_it_the_operator_is_unknown() -> None:
    with pytest.raises(UnsupportedOperator, match="Cosh"):
        Network.from_bytes(model_of("Cosh", [1, 6]), domain=(-1, 1), name="plain")


@pytest.fixture
def declare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Puts a package with these entry points on the path."""

    def install(lines: str) -> None:
        info = tmp_path / "theirs-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[radii.operators]\n{lines}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        plugins._entry_points.cache_clear()

    yield install
    plugins._entry_points.cache_clear()


def test_an_installed_package_brings_it(declare: Callable[[str], None], tmp_path: Path) -> None:
    declare("Cosh = outside_operators:Cosh")
    path = tmp_path / "cosh.onnx"
    path.write_bytes(model_of("Cosh", [1, 6]))
    network = load_network(path, domain=(-1, 1))
    assert OperatorKind.SMOOTH in {node.kind for node in network.graph.nodes}


def test_a_package_that_does_not_load_is_named(declare: Callable[[str], None]) -> None:
    declare("Cosh = no_such_module:Cosh")
    with pytest.raises(SpecificationError, match="operator 'Cosh' of package 'theirs'"):
        Network.from_bytes(model_of("Cosh", [1, 6]), domain=(-1, 1), name="broken")
