"""Certificates that were accepted once although their claims are false, or that raised an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from handmade import dense_model, digest, packed
from onnx import TensorProto, helper, numpy_helper

from radii_check import CertificateError, check

ROOT = {"parent": [-1], "axis": [0], "cut": [0.0], "side": [0]}
TREE = {"parent": [-1], "split_unit": [-1], "split_sign": [0], "spec": [0]}
LEMMA = {"node": [0], "part": [0], "round": [0], "unit": [-1], "side": [0], "bound": [0]}
node = helper.make_node
DOUBLES = TensorProto.DOUBLE


def model(
    nodes: Any, constants: Any, kind: int = TensorProto.FLOAT, functions: Any = ()
) -> onnx.ModelProto:
    """Two inputs and two outputs."""
    ends = [helper.make_tensor_value_info(name, kind, [1, 2]) for name in "xy"]
    stored = [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], stored)
    domains = [helper.make_opsetid("", 18)]
    domains += [helper.make_opsetid(f.domain, 1) for f in functions]
    return helper.make_model(graph, opset_imports=domains, functions=list(functions))


def claim(content: bytes, **other: Any) -> dict[str, Any]:
    requirement = {"kind": "one-to-any", "label": 0}
    return {
        "network": digest(content),
        "norm": "linf",
        "eps": 0.0,
        "requirement": requirement,
        "arithmetic": "float",
    } | other


def is_accepted(file: onnx.ModelProto, x: Any, *, exact: bool = False, **other: Any) -> bool:
    """Whether outputs 0 at x are above outputs 1, by intervals."""
    content = file.SerializeToString(deterministic=True)
    ball = {"input": x, "low": [-99.0] * 2, "high": [99.0] * 2}
    certificate = packed(claim(content, **other), "boxes", ball | ROOT)
    try:
        return check(certificate, content, exact=exact).accepted
    except CertificateError:
        return False


def leaky() -> onnx.FunctionProto:
    """LeakyRelu with a slope of 2 unless another one is given."""
    body = node("LeakyRelu", ["a"], ["b"])
    body.attribute.add(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="alpha")
    given = [helper.make_attribute("alpha", 2.0)]
    opsets = [helper.make_opsetid("", 18)]
    return helper.make_function("own", "S", ["a"], ["b"], [body], opsets, attribute_protos=given)


def test_attributes_that_are_left_out_have_the_functions_default() -> None:
    """onnx's inliner forgets them: y0 is -1.5, not 0.49."""
    nodes = [node("S", ["x"], ["s"], domain="own"), node("Add", ["s", "c"], ["y"])]
    file = model(nodes, {"c": np.array([[0.5, 0.0]], np.float32)}, functions=[leaky()])
    assert not is_accepted(file, [-1.0, 0.0])


@pytest.mark.parametrize("name", ["com.microsoft Gelu", "ai.onnx.ml Binarizer"])
def test_functions_that_a_runtime_has_itself(name: str) -> None:
    """It does not take the model's."""
    domain, kind = name.split()
    body = [node("Identity", ["a"], ["b"])]
    own = helper.make_function(domain, kind, ["a"], ["b"], body, [helper.make_opsetid("", 18)])
    assert not is_accepted(
        model([node(kind, ["x"], ["y"], domain=domain)], {}, functions=[own]), [0.5, 0.25]
    )


def test_sparse_weights_of_the_same_name() -> None:
    """A runtime takes the last one of a name."""
    file = model([node("MatMul", ["x", "w"], ["y"])], {"w": np.eye(2, dtype=np.float32)})
    ones = numpy_helper.from_array(np.ones(2, np.float32), "w")
    at = numpy_helper.from_array(np.array([1, 2]), "at")
    file.graph.sparse_initializer.append(helper.make_sparse_tensor(ones, at, [2, 2]))
    assert not is_accepted(file, [0.5, 0.25])


def test_constants_with_two_values() -> None:
    constant = node("Constant", [], ["c"], value_float=-1.0)
    two = numpy_helper.from_array(np.array(1.0, np.float32))
    constant.attribute.append(helper.make_attribute("value", two))
    assert not is_accepted(model([constant, node("Mul", ["x", "c"], ["y"])], {}), [0.5, 0.25])


COMPUTED = {
    "float64 to float16 rounds twice": (
        node("Cast", ["c"], ["d"], to=TensorProto.FLOAT16),
        [[1 + 2**-11 + 2**-40, 1.0]],
        [1.0, 1.0005],
    ),
    "integers wrap": (
        node("ReduceL1", ["c"], ["d"]),
        np.array([[-(2**31), 1]], np.int32),
        [8.0, 9.0],
    ),
    "axes that do not exist": (node("Shape", ["c"], ["d"], end=-5), np.zeros((3, 2)), [9.0, 8.0]),
}


@pytest.mark.parametrize("what", COMPUTED)
def test_constants_that_runtimes_compute_otherwise(what: str) -> None:
    first, value, x = COMPUTED[what]
    cast = node("Cast", ["d"], ["f"], to=TensorProto.FLOAT)
    with np.errstate(all="ignore"):
        file = model([first, cast, node("Mul", ["x", "f"], ["y"])], {"c": np.asarray(value)})
        assert not is_accepted(file, x)


def test_sums_of_coefficients_on_one_value() -> None:
    """With many readers of one value they round as often: the true y0 - y1 is -1024 units."""
    count = 4096
    each = [1.0] + [2.0**-53 * (1 + 2.0**-20)] * count
    last = 1 + 0.75 * count * 2.0**-52
    factors = {f"c{k}": [[w, last * (k == 0)]] for k, w in enumerate(each)}
    nodes = [node("Mul", ["x", name], [f"m{name}"]) for name in factors]
    left = [f"m{name}" for name in factors]
    while len(left) > 1:
        pairs = list(zip(left[::2], left[1::2], strict=False))
        names = [f"s{len(nodes) + k}" if len(left) > 2 else "y" for k in range(len(pairs))]
        nodes += [node("Add", pair, [name]) for pair, name in zip(pairs, names, strict=True)]
        left = names + left[2 * len(pairs) :]
    assert not is_accepted(model(nodes, factors, DOUBLES), [1.0, 1.0], arithmetic="real")


def test_real_numbers_are_clipped_at_the_largest_float() -> None:
    factors = {"a": [[1e30, 1]], "b": [[1e10, 1]], "c": [[1e-38, 1]]}
    constants = {name: np.array(each, np.float32) for name, each in factors.items()}
    nodes = [
        node("Mul", ["x", "a"], ["p"]),
        node("Mul", ["p", "b"], ["q"]),
        node("Clip", ["q", "", "most"], ["r"]),
        node("Mul", ["r", "c"], ["y"]),
    ]
    file = model(nodes, constants | {"most": np.finfo(np.float32).max})
    assert not is_accepted(file, [1.0, 50.0], arithmetic="real")


def test_exactly_a_coefficient_near_0_is_none() -> None:
    """y = (-2, 2) breaks all rows, whose sum is y0 + 1 and nothing else."""
    pytest.importorskip("flint")
    content = dense_model(
        [(np.eye(1), np.zeros(1)), (np.array([[8.0], [0.0]]), np.array([-4.0, 2]))]
    )
    large = 2.0**500
    rows = {"violation_matrix": [[large, large], [1, 0], [-large, -large]]}
    arrays = rows | {"violation_offset": [0, 1, 0], "input": [0.25], "low": [0], "high": [1]}
    arrays |= {"eps": [0.25], "lower": [[-1]], "upper": [[2]], "gamma": [1, 1, 1], "slopes": [0]}
    stated = claim(content, eps=0.25, requirement={"kind": "violations", "rows": [3]})
    certificate = packed(stated, "units", arrays | TREE | LEMMA | {"beta": []})
    assert not check(certificate, content, exact=True).accepted


def test_exactly_a_knee_is_added_without_rounding() -> None:
    """The argument of unit 1 is -2^-54, which is not 0 or more."""
    pytest.importorskip("flint")
    nodes = [
        node("MatMul", ["x", "w"], ["z"]),
        node("Clip", ["z", "one"], ["v"]),
        node("Sub", ["v", "c"], ["s"]),
        node("Add", ["s", "k"], ["t"]),
        node("Relu", ["t"], ["r"]),
        node("Sub", ["t", "r"], ["d"]),
        node("MatMul", ["d", "p"], ["e"]),
        node("Add", ["e", "o"], ["y"]),
    ]
    constants: dict[str, Any] = {
        "w": [[1.0], [1.0]],
        "one": 1.0,
        "c": [1 + 2.0**-52],
        "k": [2.0**-60],
        "p": [[1.0, 0.0]],
        "o": [2.0**-55, 0.0],
    }
    content = model(nodes, constants, DOUBLES).SerializeToString(deterministic=True)
    least = 1.5 * 2.0**-53
    arrays: dict[str, Any] = {
        "low": [1.0, least * (1 + 2.0**-20)],
        "high": [1.5, least * (1 + 2.0**-20)],
    }
    arrays |= {"eps": [0], "lower": [[least, 0]], "upper": [[1, 1]], "gamma": [1.0], "slopes": []}
    stated = claim(content, norm="box", arithmetic="real")
    del stated["eps"]
    certificate = packed(stated, "units", arrays | TREE | LEMMA | {"beta": []})
    assert not check(certificate, content, exact=True).accepted


@pytest.mark.parametrize("exact", [False, True])
def test_odd_claims_are_refused_in_one_sentence(exact: bool) -> None:
    one = dense_model([(np.eye(2), np.zeros(2)), (np.ones((1, 2)), np.zeros(1))])
    two = dense_model([(np.eye(2), np.zeros(2)), (np.eye(2), np.zeros(2))])
    nameless = claim(two)
    del nameless["network"]
    odd = [
        (one, claim(one, requirement={"kind": "become", "target": 0})),
        (two, claim(two, eps=10**20 + 1)),
        (two, nameless),
    ]
    if exact:
        pytest.importorskip("flint")
    for content, stated in odd:
        ball = {"input": [0.5, 0.5], "low": [0, 0], "high": [1, 1]}
        with pytest.raises(CertificateError):
            check(packed(stated, "boxes", ball | ROOT), content, exact=exact)
