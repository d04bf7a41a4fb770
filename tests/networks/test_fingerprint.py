"""Fingerprints: the same for the same content, another for any other."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from radii.networks import Network
from radii.testing import Sketch


def model(*, inline: bool = False, opset: int = 13, slope: float = 0.1) -> onnx.ModelProto:
    sketch = Sketch([1, 2, 4, 4], inline=inline, opset=opset)
    weight = np.arange(36, dtype=np.float32).reshape(2, 2, 3, 3) / 36
    value = sketch.apply("Conv", "x", sketch.constant(weight), pads=[1, 1, 1, 1])
    value = sketch.apply("LeakyRelu", value, alpha=slope)
    return sketch.model(sketch.apply("Add", value, "x"))


def fingerprint(changed: onnx.ModelProto, **options: Any) -> str:
    content = changed.SerializeToString()
    options = {"domain": (0, 1), "name": "n", **options}
    return Network.from_bytes(content, **options).fingerprint


def rename(given: onnx.ModelProto) -> None:
    for node in given.graph.node:
        node.name, node.doc_string = f"other {node.name}", "words"
        node.input[:] = [f"other {name}" for name in node.input]
        node.output[:] = [f"other {name}" for name in node.output]
    for value in (*given.graph.input, *given.graph.output, *given.graph.initializer):
        value.name = f"other {value.name}"
    given.producer_name, given.doc_string, given.graph.name = "someone", "words", "g"


def add_unused(given: onnx.ModelProto) -> None:
    given.graph.initializer.append(numpy_helper.from_array(np.ones(3), "unused"))
    given.graph.node.append(onnx.helper.make_node("Relu", ["x"], ["dead end"]))


def store_as_numbers(given: onnx.ModelProto) -> None:
    tensor = given.graph.initializer[0]
    values = numpy_helper.to_array(tensor).ravel().tolist()
    tensor.ClearField("raw_data")
    tensor.float_data.extend(values)


def swap_attributes(given: onnx.ModelProto) -> None:
    node = given.graph.node[0]
    node.attribute.append(onnx.helper.make_attribute("group", 1))
    attributes = list(reversed(node.attribute))
    del node.attribute[:]
    node.attribute.extend(attributes)


@pytest.mark.parametrize("change", [rename, add_unused, store_as_numbers])
def test_what_does_not_matter(change: Callable[[onnx.ModelProto], None]) -> None:
    changed = model()
    change(changed)
    assert fingerprint(changed) == fingerprint(model())


def test_the_order_of_attributes_does_not_matter() -> None:
    given, changed = model(), model()
    given.graph.node[0].attribute.append(onnx.helper.make_attribute("group", 1))
    swap_attributes(changed)
    assert fingerprint(changed) == fingerprint(given)


def test_where_weights_are_stored_does_not_matter() -> None:
    assert fingerprint(model(inline=True)) == fingerprint(model())


def test_opsets_between_which_nothing_changed_do_not_matter() -> None:
    assert fingerprint(model(opset=14)) == fingerprint(model(opset=15))


def change_weight(given: onnx.ModelProto) -> None:
    tensor = given.graph.initializer[0]
    values = numpy_helper.to_array(tensor).copy()
    values.flat[7] = np.nextafter(values.flat[7], np.float32(1))
    tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))


def change_operator(given: onnx.ModelProto) -> None:
    given.graph.node[2].op_type = "Sub"


def change_topology(given: onnx.ModelProto) -> None:
    given.graph.node[2].input[1] = given.graph.node[0].output[0]


def swap_operands(given: onnx.ModelProto) -> None:
    first, second = given.graph.node[2].input
    given.graph.node[2].input[:] = [second, first]


@pytest.mark.parametrize("change", [change_weight, change_operator, change_topology, swap_operands])
def test_what_matters(change: Callable[[onnx.ModelProto], None]) -> None:
    changed = model()
    change(changed)
    assert fingerprint(changed) != fingerprint(model())


def test_attributes_and_normalisation_matter() -> None:
    seen = {
        fingerprint(model()),
        fingerprint(model(slope=0.2)),
        fingerprint(model(), mean=0.5),
        fingerprint(model(), mean=0.5, std=0.5),
        fingerprint(model(), mean=(0.5, 0.25), std=0.5),
    }
    assert len(seen) == 5


def test_domain_and_name_do_not_matter() -> None:
    assert fingerprint(model(), domain=(-1, 2), name="other") == fingerprint(model())


def test_stable_between_processes(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(model().SerializeToString())
    code = (
        "import sys; from radii.networks import load_network;"
        "print(load_network(sys.argv[1], domain=(0, 1)).fingerprint)"
    )
    command = [sys.executable, "-c", code, str(path)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == fingerprint(model())


def test_definition() -> None:
    """Stored results are found by fingerprint, so that its definition must never change."""
    sketch = Sketch([1, 2], opset=20)
    given = sketch.model(sketch.apply("Relu", sketch.apply("Add", "x", sketch.constant(1.0))))
    one = sha256(b"tensor\nfloat32\n()\n" + np.float32(1.0).tobytes()).hexdigest()
    start = digest("input", "float32", "(1, 2)")
    total = digest("output", digest("node", "", "Add", "14", start, one), "0")
    result = digest("output", digest("node", "", "Relu", "14", total), "0")
    assert fingerprint(given) == digest("network", result)


def digest(*parts: str) -> str:
    return sha256("\n".join(parts).encode()).hexdigest()
