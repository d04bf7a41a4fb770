"""VNN-LIB files whose answer is known without the verifier that is measured.

Images: published brackets that took less than 3,100 s, none of which was ever refuted; where there
is none, what CROWN alone proves, and what an attack's replayed witness refutes. Control networks:
what dense sampling and hill climbing reach is sat with a margin below it, and taken to be unsat
with a margin above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks import published
from benchmarks.bounds_alone import Crown
from benchmarks.measuring import GRID
from radii.attacks import MinimumNorm
from radii.bounds import fuse
from radii.networks import Network
from radii.problem import Instance, Query

Float64 = npt.NDArray[np.float64]
Layers = list[tuple[Float64, Float64]]

TRUSTED_SECONDS = 3100.0
CONTROL_INPUTS, CONTROL_LAYERS, CONTROL_WIDTH, CONTROL_OUTPUTS = 5, 6, 50, 5
SAMPLES, CLIMBERS, ROUNDS = 200_000, 500, 200
BEYOND = 1.01
"""How much larger than a witness's distance an eps is that does not hold."""
MARGIN = 0.1
"""Of the range of values that were sampled: how far a threshold stays away from the extremum."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A network, a property, and the answer: sat or unsat."""

    name: str
    network: Path
    file: Path
    expected: str


def image_problems(directory: Path, images: int) -> Iterator[Problem]:
    """For each image the two sides of what is known of it, on 2, 4 and 6 layers of 256."""
    for name, extra in (("mnist-net_256x2", 0), ("mnist-net_256x4", 0), ("mnist-net_256x4", 2)):
        net = published.network(name)
        path = directory / f"{name}_plus_{extra}.onnx"
        onnx.save(_model(_deeper(_layers(net), extra)), path)
        for instance in published.instances(net, 0, images):
            for eps, expected in zip(_known(name, net, instance), ("unsat", "sat"), strict=True):
                title = f"{path.stem}, image {instance.index}, eps {eps:g}"
                file = directory / f"{path.stem}_{instance.index}_{expected}.vnnlib"
                centre = instance.input.astype(np.float64).ravel()
                box = (np.clip(centre - eps, 0, 1), np.clip(centre + eps, 0, 1))
                rivals = [t for t in range(net.output_size) if t != instance.label]
                ways = [[f"(>= Y_{t} Y_{instance.label})"] for t in rivals]
                file.write_text(_text(box, net.output_size, ways))
                yield Problem(title, path, file, expected)


def _known(name: str, net: Network, instance: Instance) -> tuple[float, float]:
    """An eps that holds and one that does not: published, or else by CROWN and by an attack."""
    if published.seconds(name).get(instance.index, TRUSTED_SECONDS) < TRUSTED_SECONDS:
        return published.brackets(name)[instance.index]
    proven = Crown().certify(net, instance, GRID.values)
    (attacked,) = MinimumNorm().attack(net, [Query(instance, GRID[len(GRID) - 1])])
    if proven.proof is None or attacked.witness is None:
        raise RuntimeError(f"too little is known of image {instance.index} on {name}")
    return proven.proof.eps, float(f"{attacked.witness.distance * BEYOND:.6f}")


def control_problems(directory: Path, count: int) -> Iterator[Problem]:
    """Random networks of 5 inputs and 6 layers of 50; three ways to satisfy each property."""
    for seed in range(count):
        rng = np.random.default_rng(seed)
        sizes = [CONTROL_INPUTS, *[CONTROL_WIDTH] * CONTROL_LAYERS, CONTROL_OUTPUTS]
        layers = [
            (rng.normal(size=(o, i)) * np.sqrt(2 / i), 0.1 * rng.normal(size=o))
            for i, o in pairwise(sizes)
        ]
        path = directory / f"control_{seed}.onnx"
        onnx.save(_model(layers), path)
        box = (np.full(CONTROL_INPUTS, -0.5), np.full(CONTROL_INPUTS, 0.5))
        ways = [_Way(rng, pair) for pair in ((0, 1), (2, 3), (4,))]
        reached = [_reached(layers, box, way, rng) for way in ways]
        for expected, shifts in (("unsat", (1, 1, 1)), ("sat", (1, 1, -1))):
            asked = [
                way.rows(best + shift * MARGIN * spread)
                for way, (best, spread), shift in zip(ways, reached, shifts, strict=True)
            ]
            file = directory / f"{path.stem}_{expected}.vnnlib"
            file.write_text(_text(box, CONTROL_OUTPUTS, asked))
            yield Problem(f"control network {seed}, {expected}", path, file, expected)


class _Way:
    """All of some outputs, each relative to another one, are above a threshold."""

    def __init__(self, rng: np.random.Generator, outputs: tuple[int, ...]) -> None:
        self._pairs = [
            (i, int(rng.choice([j for j in range(CONTROL_OUTPUTS) if j != i]))) for i in outputs
        ]

    def height(self, y: Float64) -> Float64:
        """The largest threshold that a point passes."""
        return np.asarray(np.min([y[:, i] - y[:, j] for i, j in self._pairs], axis=0))

    def rows(self, threshold: float) -> list[str]:
        return [f"(>= (- Y_{i} Y_{j}) {threshold!r})" for i, j in self._pairs]


def _reached(
    layers: Layers, box: tuple[Float64, Float64], way: _Way, rng: np.random.Generator
) -> tuple[float, float]:
    """The greatest height that was found, and the spread of all that were sampled."""
    low, high = box
    points = rng.uniform(low, high, (SAMPLES, len(low)))
    heights = way.height(_forward(layers, points))
    order = np.argsort(heights)[-CLIMBERS:]
    points, best = points[order], heights[order]
    for turn in range(ROUNDS):
        size = 0.3 * (high - low) * 0.97**turn
        moved = np.clip(points + size * rng.normal(size=points.shape), low, high)
        found = way.height(_forward(layers, moved))
        is_better = found > best
        points[is_better], best[is_better] = moved[is_better], found[is_better]
    return float(best.max()), float(best.max() - heights.min())


def _forward(layers: Layers, x: Float64) -> Float64:
    for weights, bias in layers[:-1]:
        x = np.maximum(x @ weights.T + bias, 0)
    weights, bias = layers[-1]
    return np.asarray(x @ weights.T + bias)


def _layers(net: Network) -> Layers:
    """The dense layers of a chain of them."""
    stages = (*fuse(net).stages, fuse(net).output)
    return [(next(iter(stage.matrices.values())).toarray(), stage.offset) for stage in stages]


def _deeper(layers: Layers, extra: int) -> Layers:
    """The same function with more layers: values above 0 pass a permutation and a ReLU unchanged.

    The next layer undoes the permutation.
    """
    deep = list(layers)
    for seed in range(extra):
        weights, bias = deep[-1]
        order = np.random.default_rng(seed).permutation(weights.shape[1])
        moved = np.eye(len(order))[order]
        deep[-1:] = [(moved, np.zeros(len(order))), (weights[:, order], bias)]
    return deep


def _model(layers: Layers) -> onnx.ModelProto:
    nodes, constants, value = [], [], "x"
    for place, (weights, bias) in enumerate(layers):
        for name, array in (("w", weights), ("b", bias)):
            constants.append(numpy_helper.from_array(array.astype(np.float32), f"{name}{place}"))
        read = [value, f"w{place}", f"b{place}"]
        nodes.append(helper.make_node("Gemm", read, [f"z{place}"], transB=1))
        value = f"z{place}"
        if place < len(layers) - 1:
            nodes.append(helper.make_node("Relu", [value], [f"h{place}"]))
            value = f"h{place}"
    shapes = [1, layers[0][0].shape[1]], [1, layers[-1][0].shape[0]]
    graph = helper.make_graph(
        nodes,
        "dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shapes[0])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, shapes[1])],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def _text(box: tuple[Float64, Float64], outputs: int, ways: list[list[str]]) -> str:
    """VNN-LIB 1.0 as the competition's generators write it."""
    low, high = (side.tolist() for side in box)
    lines = [f"(declare-const X_{i} Real)" for i in range(len(low))]
    lines += [f"(declare-const Y_{j} Real)" for j in range(outputs)]
    for i, (least, most) in enumerate(zip(low, high, strict=True)):
        lines += [f"(assert (>= X_{i} {least!r}))", f"(assert (<= X_{i} {most!r}))"]
    lines += ["(assert (or", *(f"    (and {' '.join(way)})" for way in ways), "))"]
    return "\n".join(lines) + "\n"
