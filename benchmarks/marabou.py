"""mnist_relu_3_50: the native search against binary search with Marabou, at equal budgets."""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks import published
from benchmarks.measuring import NATIVE, Method, is_closed, measured, width
from benchmarks.records import Options
from benchmarks.tables import show
from radii.bounds import fuse
from radii.errors import UnsupportedQuery
from radii.networks import Network
from radii.networks.operators import Relu
from radii.properties import Halfspaces
from radii.queries import Specification
from radii.search import Binary
from radii.verdicts import Array, Verdict
from radii.verifiers import Answer, Limits, Verifier
from radii.witnesses import check_witness

NETWORK, IMAGES, BUDGET = "mnist_relu_3_50", 3, 60.0
DEPTHS = (0.0, 1e-4)
"""How deep a violation to ask for: Marabou's counterexamples lie on the boundary, up to 1e-6 on the
wrong side of it, and one that does not replay is asked for again, a little deeper."""


def main(options: Options) -> None:
    if not published.is_here():
        return
    if find_spec("maraboupy") is None:
        print("skipped: maraboupy is not installed (pip install 'radii[marabou]')")
        return
    images, budget = options.images or IMAGES, options.budget or BUDGET
    theirs = measured(Method("Marabou", Binary, Marabou()), NETWORK, images, budget, options)
    ours = measured(NATIVE, NETWORK, images, budget, options)
    show(
        f"{NETWORK}, images 0-{images - 1}, {budget:g} s an instance on one core",
        (
            *("image", "native lower", "upper", "seconds", "Marabou lower", "upper", "seconds"),
            *("times faster", "tighter"),
        ),
        [
            (
                own.case,
                own.lower,
                own.upper,
                own.seconds,
                other.lower,
                other.upper,
                other.seconds,
                other.seconds / own.seconds if is_closed(other) else None,
                "yes" if width(own) < width(other) else "no",
            )
            for own, other in zip(ours, theirs, strict=True)
        ],
    )
    print("  times faster: where Marabou closed the bracket as well")
    for record in theirs:
        if record.answer:
            print(f"  Marabou on image {record.case}: {record.answer}")


class Marabou(Verifier):
    """maraboupy with its default options and one worker.

    Each way to break the property is a query with an equal part of the time that is left.
    """

    name: ClassVar[str] = "marabou"
    is_complete: ClassVar[bool] = True

    @property
    def version(self) -> str:
        from importlib.metadata import version

        return version("maraboupy")

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        polyhedra = specification.requirement.violations or ()
        answer = Answer(Verdict.ROBUST, margin=0.0)
        for done, polyhedron in enumerate(polyhedra):
            share = limits.within(limits.remaining / (len(polyhedra) - done))
            for depth in DEPTHS:
                deeper = Halfspaces(polyhedron.matrix, polyhedron.offset + depth)
                verdict, candidate = self._solved(network, specification, deeper, share)
                if check_witness(network, specification, candidate) is not None:
                    return Answer(verdict, candidate)
                if depth == 0 and verdict is Verdict.ROBUST:
                    break
            else:
                answer = Answer(Verdict.UNKNOWN if verdict is Verdict.ROBUST else verdict)
        return answer

    def _solved(
        self, network: Network, specification: Specification, polyhedron: Halfspaces, limits: Limits
    ) -> tuple[Verdict, Array | None]:
        if limits.remaining < 1:
            return Verdict.TIMEOUT, None
        with _quiet():
            marabou, net = _read(network)
            inputs, outputs = net.inputVars[0].ravel(), net.outputVars[0].ravel()
            for variable, low, high in zip(
                inputs, *(side.ravel() for side in specification.region.box()), strict=True
            ):
                net.setLowerBound(variable, float(low))
                net.setUpperBound(variable, float(high))
            for row, offset in zip(polyhedron.matrix, polyhedron.offset, strict=True):
                net.addInequality(list(outputs), [float(c) for c in row], -float(offset))
            seconds = 0 if math.isinf(limits.remaining) else math.floor(limits.remaining)
            options = marabou.createOptions(verbosity=0, timeoutInSeconds=seconds)
            answer, values, _ = net.solve(verbose=False, options=options)
        if answer == "sat":
            return Verdict.NOT_ROBUST, np.array([values[i] for i in inputs]).reshape(
                network.input_shape
            )
        known = {"unsat": Verdict.ROBUST, "TIMEOUT": Verdict.TIMEOUT}
        return known.get(answer, Verdict.UNKNOWN), None


def _read(network: Network) -> tuple[Any, Any]:
    """maraboupy, and the network as it reads it: it stumbles over normalisation in ONNX files."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from maraboupy import Marabou as marabou
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "plain.onnx"
        onnx.save(plain_model(network), path)
        return marabou, marabou.read_onnx(str(path))


def plain_model(network: Network) -> onnx.ModelProto:
    """A dense ReLU network as nothing but Gemm and Relu."""
    fusion = fuse(network)
    nodes, constants, value, before = [], [], "x", 0
    for place, stage in enumerate((*fusion.stages, fusion.output)):
        is_hidden = stage is not fusion.output
        if set(stage.maps) != {before} or (is_hidden and not isinstance(stage.operator, Relu)):
            raise UnsupportedQuery(f"{network.name} is not a chain of dense layers and ReLUs")
        for name, array in (("w", stage.maps[before].toarray()), ("b", stage.offset)):
            constants.append(numpy_helper.from_array(array.astype(np.float32), f"{name}{place}"))
        gemm = [value, f"w{place}", f"b{place}"]
        nodes.append(helper.make_node("Gemm", gemm, [f"z{place}"], transB=1))
        value = f"z{place}"
        if is_hidden:
            nodes.append(helper.make_node("Relu", [value], [f"h{place}"]))
            value, before = f"h{place}", stage.node
    size = int(np.prod(network.input_shape))
    graph = helper.make_graph(
        nodes,
        "plain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, size])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, [1, network.output_size])],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Marabou prints from C++: its standard output goes nowhere."""
    kept = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)
