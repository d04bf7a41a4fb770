"""Which opset a model uses, and the oldest one in which it means the same."""

from __future__ import annotations

import onnx

from radii.errors import NetworkError

__all__ = ["OLDEST_OPSET", "defined_since", "lowered", "opset_of"]

OLDEST_OPSET = 8

REPLAYABLE_OPSET = 21
REPLAYABLE_IR = 10
"""What the oldest ONNX Runtime that radii accepts (1.20) reads."""

DEFAULT_DOMAINS = ("", "ai.onnx")


def opset_of(model: onnx.ModelProto, name: str) -> int:
    """The version of the default domain, checked to be one that radii knows."""
    versions = [o.version for o in model.opset_import if o.domain in DEFAULT_DOMAINS]
    if not versions:
        raise NetworkError(f"{name}: is not an ONNX model, or is truncated: it names no opset")
    newest = onnx.defs.onnx_opset_version()
    if not OLDEST_OPSET <= versions[0] <= newest:
        raise NetworkError(
            f"{name}: uses opset {versions[0]}; opsets {OLDEST_OPSET} to {newest} are supported"
        )
    return int(versions[0])


def defined_since(node: onnx.NodeProto, opset: int) -> int:
    """The opset that gave the node's operator the meaning it has at `opset`."""
    try:
        return int(onnx.defs.get_schema(node.op_type, opset, node.domain).since_version)
    except onnx.defs.SchemaError:
        return opset


def lowered(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """The model, declared in versions that more ONNX Runtimes read wherever that changes nothing.

    Files are written in the newest opset long before a runtime reads it, yet few operators change
    between two opsets; each keeps exactly the definition that the file chose.
    """
    opset = opset_of(model, name)
    needed = max((defined_since(n, opset) for n in model.graph.node if not n.domain), default=opset)
    target = min(opset, max(REPLAYABLE_OPSET, needed))
    if target == opset and model.ir_version <= REPLAYABLE_IR:
        return model
    result = onnx.ModelProto()
    result.CopyFrom(model)
    result.ir_version = min(model.ir_version, REPLAYABLE_IR)
    for entry in result.opset_import:
        if entry.domain in DEFAULT_DOMAINS:
            entry.version = target
    return result
