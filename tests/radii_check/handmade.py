"""A small writer of certificates for tests: hand-made proofs of small networks."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]

DTYPES = {
    "input": "<f8", "low": "<f8", "high": "<f8", "scale": "<f8", "eps": "<f8",
    "violation_matrix": "<f8", "violation_offset": "<f8", "lower": "<f4", "upper": "<f4",
    "ground_part": "<i4", "ground_unit": "<i4", "ground_side": "|i1", "ground_slopes": "|u1",
    "parent": "<i4", "split_unit": "<i4", "split_sign": "|i1", "spec": "<i4",
    "node": "<i4", "part": "<i4", "round": "<i4", "unit": "<i4", "side": "|i1", "bound": "<f4",
    "gamma": "<f8", "slopes": "|u1", "beta": "<f2", "axis": "<i4", "cut": "<f8",
}  # fmt: skip


def packed(claim: Mapping[str, Any], mode: str, arrays: Mapping[str, Any]) -> bytes:
    """The bytes of a certificate."""
    held = {name: np.ascontiguousarray(value, DTYPES[name]) for name, value in arrays.items()}
    listed = [{"name": n, "dtype": DTYPES[n], "shape": list(v.shape)} for n, v in held.items()]
    header = {"claim": claim, "proof": {"mode": mode}, "arrays": listed, "made_by": "a test"}
    text = json.dumps(header).encode()
    data = zlib.compress(b"".join(value.tobytes() for value in held.values()))
    return b"RADIICRT" + struct.pack("<II", 1, len(text)) + text + data


def dense_model(weights: Sequence[tuple[Array, Array]], dtype: Any = np.float32) -> bytes:
    """Gemm layers with ReLU between them; each weight is (outputs, inputs)."""
    kind = TensorProto.FLOAT if dtype == np.float32 else TensorProto.DOUBLE
    nodes, stored, value = [], [], "x"
    for place, (weight, bias) in enumerate(weights):
        stored.append(numpy_helper.from_array(weight.astype(dtype), f"w{place}"))
        stored.append(numpy_helper.from_array(bias.astype(dtype), f"b{place}"))
        nodes.append(
            helper.make_node("Gemm", [value, f"w{place}", f"b{place}"], [f"z{place}"], transB=1)
        )
        value = f"z{place}"
        if place < len(weights) - 1:
            nodes.append(helper.make_node("Relu", [value], [f"v{place}"]))
            value = f"v{place}"
    inputs = [helper.make_tensor_value_info("x", kind, [1, weights[0][0].shape[1]])]
    outputs = [helper.make_tensor_value_info(value, kind, None)]
    graph = helper.make_graph(nodes, "dense", inputs, outputs, stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    return bytes(model.SerializeToString(deterministic=True))


def digest(model: bytes) -> str:
    held = onnx.load_model_from_string(model)
    return hashlib.sha256(held.SerializeToString(deterministic=True)).hexdigest()
