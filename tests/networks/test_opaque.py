"""Models that only run: attacked as they are, and never proven anything of."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

import radii
from radii.attacks import MinimumNorm, Pgd, RandomSearch
from radii.bounds import crown_bounds, interval_bounds
from radii.cli import main
from radii.errors import NetworkError, UnsupportedOperator, UnsupportedQuery
from radii.networks import Interval, Network, from_torch, load_network
from radii.problem import Box, Query, Verdict
from radii.testing import Sketch, instance_at
from radii.verifiers import BranchAndBound, Enumeration, Milp

pytestmark = pytest.mark.usefixtures("without_workers")

WEIGHTS = np.array([[1.0, -1.0], [2.0, 0.5], [-0.5, 1.0]], np.float32)


def fused_model() -> bytes:
    """A linear map by an operator of ONNX Runtime alone, which radii will not know."""
    sketch = Sketch([1, 3])
    weights = sketch.constant(WEIGHTS)
    content: bytes = sketch.model(
        sketch.apply("FusedMatMul", "x", weights, domain="com.microsoft")
    ).SerializeToString()
    return content


def opaque(content: bytes, name: str = "net") -> Network:
    return Network.from_bytes(content, domain=(0, 1), name=name, opaque=True)


def lstm_model(batch: int | str) -> bytes:
    """The last state of an LSTM over four steps of one number, times a matrix by an operator that
    radii will not know."""
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.normal(size=(1, 12, 1)),
        "r": rng.normal(size=(1, 12, 3)),
        "b": rng.normal(size=(1, 24)),
        "m": rng.normal(size=(3, 3)),
    }
    nodes = [
        helper.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]),
        helper.make_node("LSTM", ["steps", "w", "r", "b"], ["", "state"], hidden_size=3),
        helper.make_node("Squeeze", ["state", "axes"], ["last"]),
        helper.make_node("FusedMatMul", ["last", "m"], ["y"], domain="com.microsoft"),
    ]
    graph = helper.make_graph(
        nodes,
        "lstm",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 4, 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 3])],
        [numpy_helper.from_array(v.astype(np.float32), n) for n, v in weights.items()]
        + [numpy_helper.from_array(np.array([0]), "axes")],
    )
    opsets = [helper.make_opsetid("", 14), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    content: bytes = model.SerializeToString()
    return content


def test_an_unknown_operator_is_refused_unless_attacks_are_all_that_is_asked(
    tmp_path: Path,
) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(fused_model())
    with pytest.raises(UnsupportedOperator, match="radii attack takes any"):
        load_network(path, domain=(0, 1))
    network = load_network(path, domain=(0, 1), opaque=True)
    assert not network.has_gradient
    assert not network.is_piecewise_linear


def test_what_radii_knows_is_not_opaque() -> None:
    sketch = Sketch([1, 3])
    content = sketch.model(sketch.apply("Relu", "x")).SerializeToString()
    network = opaque(content)
    assert network.graph.opaque is None
    assert network.fingerprint == Network.from_bytes(content, domain=(0, 1), name="n").fingerprint


def test_nothing_is_proven_of_it() -> None:
    network = opaque(fused_model())
    instance = instance_at(network, np.array([0.5, 0.4, 0.5]))
    for verifier in (BranchAndBound(), Milp(), Enumeration()):
        with pytest.raises(
            UnsupportedQuery,
            match=r"'com.microsoft.FusedMatMul' has no bounds.*--search attack-only",
        ):
            verifier.verify(network, Query(instance, 0.001))
    box = Box(np.zeros(3), np.ones(3))
    with pytest.raises(UnsupportedQuery):
        crown_bounds(network, [box])
    with pytest.raises(UnsupportedQuery):
        interval_bounds(network.graph, Interval(torch.zeros(1, 3), torch.ones(1, 3)))


@pytest.mark.parametrize("attack", [RandomSearch(), MinimumNorm()])
def test_its_radius_is_found_without_gradients(attack: RandomSearch | MinimumNorm) -> None:
    """The margin of a linear map over the sum of what its features can change of it."""
    network, point = opaque(fused_model()), np.array([0.5, 0.4, 0.5])
    differences = WEIGHTS[:, 0] - WEIGHTS[:, 1]
    radius = abs(point @ differences) / np.abs(differences).sum()
    (result,) = attack.attack(network, [Query(instance_at(network, point), 0.5)])
    assert result.verdict is Verdict.NOT_ROBUST
    assert result.witness is not None
    assert radius * (1 - 1e-5) <= result.witness.distance <= 1.01 * radius


def test_attacks_that_need_gradients_say_so() -> None:
    network = opaque(fused_model())
    query = Query(instance_at(network, np.array([0.5, 0.4, 0.5])), 0.5)
    with pytest.raises(UnsupportedQuery, match=r"net: attack 'pgd' needs gradients.*random-search"):
        Pgd().attack(network, [query])


class Determinants(nn.Module):
    """Of two matrices: an operator that radii will not know."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.det(x.reshape(-1, 2, 2, 2))


def test_a_torch_module_gives_its_gradients() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 8), Determinants(), nn.Linear(2, 3))
    network = from_torch(module, input_shape=(4,), domain=(0, 1), std=0.5, opaque=True)
    assert network.graph.opaque is not None
    assert network.has_gradient
    points = torch.rand(5, 4)
    assert np.abs(network(points).detach().numpy() - network.replay(points.numpy())).max() < 1e-5
    query = Query(instance_at(network, np.full(4, 0.5)), 1.0)
    results = [attack.attack(network, [query])[0] for attack in (MinimumNorm(), RandomSearch())]
    found = [result.witness.distance for result in results if result.witness is not None]
    assert len(found) in (0, 2)
    assert not found or found[1] == pytest.approx(found[0], rel=0.2)
    again = pickle.loads(pickle.dumps(network))
    assert again.has_gradient
    assert torch.equal(again(points), network(points))


@pytest.mark.parametrize(("batch", "is_batched"), [("n", True), (1, False)])
def test_recurrent_networks_run_in_batches_where_they_may(
    batch: int | str, is_batched: bool
) -> None:
    network = opaque(lstm_model(batch))
    whole = network.graph.opaque
    assert whole is not None
    assert whole.takes_batches is is_batched
    points = np.random.default_rng(1).uniform(size=(6, 4, 1)).astype(np.float32)
    outputs = network(torch.from_numpy(points)).numpy()
    assert np.abs(outputs - network.replay(points)).max() < 1e-6
    again = pickle.loads(pickle.dumps(network))
    assert again.fingerprint == network.fingerprint
    other = opaque(lstm_model(batch).replace(b"state", b"stats"))
    assert other.fingerprint != network.fingerprint, "all of the file counts"


def test_random_models_are_refused() -> None:
    sketch = Sketch([1, 3])
    drawn = sketch.apply("Add", "x", sketch.apply("RandomNormal", shape=[3]))
    with pytest.raises(NetworkError, match="'RandomNormal' draws random numbers"):
        opaque(sketch.model(drawn).SerializeToString())


def test_a_forest_is_attacked(tmp_path: Path) -> None:
    """Outputs that are constant in pieces, and a label beside the scores."""
    pytest.importorskip("skl2onnx")
    pytest.importorskip("sklearn")
    from skl2onnx import to_onnx
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng(0)
    inputs = rng.uniform(size=(300, 4)).astype(np.float32)
    forest = RandomForestClassifier(10, max_depth=4, random_state=0)
    forest.fit(inputs, (inputs[:, 0] > 0.5).astype(int))
    model = to_onnx(forest, inputs[:1], options={"zipmap": False}, target_opset=15)
    network = opaque(model.SerializeToString(), "forest")
    assert network.output_size == 2
    point = np.array([0.8, 0.5, 0.5, 0.5])
    (result,) = RandomSearch().attack(network, [Query(instance_at(network, point), 0.5)])
    assert result.witness is not None
    assert result.witness.distance == pytest.approx(0.3, abs=0.05)


def test_the_command_line_says_that_nothing_can_be_proven(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, data = tmp_path / "net.onnx", tmp_path / "data.npz"
    path.write_bytes(fused_model())
    points = np.array([[0.5, 0.4, 0.5], [0.2, 0.1, 0.9]], np.float32)
    np.savez(data, images=points, labels=(points @ WEIGHTS).argmax(axis=1))
    flags = ["--network", str(path), "--data", str(data), "--domain", "0:1", "--jobs", "1"]
    assert main(["run", *flags, "--out", str(tmp_path / "out")]) == 2
    assert "operator 'com.microsoft.FusedMatMul'" in capsys.readouterr().err
    assert main(["attack", *flags, "--json"]) == 0
    said = capsys.readouterr()
    assert "it is only attacked, nothing can be proven" in said.err
    (shown,) = json.loads(said.out)["networks"]
    assert [instance["lower"] for instance in shown["instances"]] == [0, 0]
    assert all(instance["upper"] for instance in shown["instances"])


def test_a_damaged_model_is_one_sentence(tmp_path: Path) -> None:
    model = onnx.load_model_from_string(fused_model())
    model.graph.node[0].op_type = "NoSuchOperator"
    with pytest.raises(NetworkError, match="cannot load it"):
        opaque(model.SerializeToString())


class _Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell, self.last = nn.GRU(2, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        outputs: torch.Tensor = self.last(self.cell(x)[0][:, -1])
        return outputs


def test_python_attacks_a_module_that_only_runs() -> None:
    torch.manual_seed(0)
    module = _Recurrent()
    network = from_torch(module, input_shape=(3, 2), domain=(0, 1), opaque=True)
    inputs = np.random.default_rng(0).uniform(size=(2, 3, 2)).astype(np.float32)
    labels = network.replay(inputs).argmax(axis=1)
    found = radii.robustness_distribution(
        network, (inputs, labels), search="attack-only", grid="0.1:1:0.1", jobs=0
    )
    assert (found.lower == 0).all()
