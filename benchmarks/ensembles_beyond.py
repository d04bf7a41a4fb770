"""Ensembles beyond the paper: five published networks on 28x28 MNIST, twelve classifiers on 8x8.

The first asks for the value over eps with brackets, multi-class, in Linf; the second for values by
column generation, where no list of all sets is ever made.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from benchmarks import published
from benchmarks.ensembles_training import KEPT, dense, trained
from benchmarks.records import Options, Record
from benchmarks.tables import show
from radii import datasets
from radii.ensembles import EnsembleStudy, GameValue, Point
from radii.networks import Network, from_torch, load_network

FIVE = (
    "mnist-net_256x2",
    "mnist-net_256x4",
    "mnist_nn",
    "mnist_nn_fgsm_02",
    "convSmallRELU__Point",
)
EPS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25)
"""From where the strongest of the five is nearly never fooled to where nearly all are."""
POINTS = 50
BUDGET, TIMEOUT = 200.0, 10.0
"""Wall seconds an eps and a question: what is undecided by then leaves a bracket."""

TWELVE = tuple((8 + 2 * number,) if number % 2 else (6 + number, 8) for number in range(12))
"""Widths of the hidden layers of twelve different classifiers."""
EPS_OF_TWELVE = (0.02, 0.05, 0.1, 0.15)
POINTS_OF_TWELVE = 20


def main(options: Options) -> None:
    torch.set_num_threads(1)
    budget = options.budget or BUDGET
    if published.is_here():
        networks = [published.network(name) for name in FIVE]
        _measure(
            "five", networks, _mnist(networks[0], options.images or POINTS), EPS, budget, options
        )
    points = _digits(options.images or POINTS_OF_TWELVE)
    _measure("twelve", _twelve(), points, EPS_OF_TWELVE, budget, options)


def _mnist(network: Network, count: int) -> list[Point]:
    held = np.load(published.DATA / "mnist_train_0_49.npz")
    images = held["images"][:count].astype(np.float32) / np.float32(255)
    inputs = images.reshape(-1, *network.input_shape)
    return [Point(i, int(held["labels"][i]), inputs[i]) for i in range(len(inputs))]


def _digits(count: int) -> list[Point]:
    data = datasets.load("digits", "test").first(count)
    return [
        Point(i, int(label), image.astype(np.float32))
        for i, (image, label) in enumerate(zip(data.images, data.labels, strict=True))
    ]


def _twelve() -> list[Network]:
    data = datasets.load("digits", "train")
    images, labels = data.images.astype(np.float32), data.labels.astype(np.int64)
    found = []
    for number, widths in enumerate(TWELVE):
        path = KEPT / f"digits_{number}.onnx"
        if not path.exists():
            module = trained(dense(*widths)(8, 10), images, labels, seed=number)
            network = from_torch(module, input_shape=images.shape[1:], domain=(0, 1))
            KEPT.mkdir(exist_ok=True)
            path.write_bytes(network.onnx_bytes)
        found.append(load_network(path, domain=(0, 1)))
    return found


def _measure(
    name: str,
    networks: Sequence[Network],
    points: Sequence[Point],
    values: Sequence[float],
    budget: float,
    options: Options,
) -> None:
    """The curve; facts are kept beside the log, so that a run that is cut off goes on, and
    `radii report` shows them."""
    out = None if options.log.path is None else Path(f"{options.log.path}.{name}")
    with EnsembleStudy.open(
        networks, points, timeout=TIMEOUT, jobs=options.jobs if options.jobs > 1 else 0, out=out
    ) as study:
        curve = study.curve(values, budget=budget)
        for found in curve:
            options.log.add(_record(name, found, budget))
        show(
            f"{len(networks)} classifiers, {len(points)} points, Linf, {budget:g} s an eps",
            ("eps", "attained", "at most", "exact", "attacks", "questions", "seconds"),
            [
                (
                    found.eps,
                    float(found.lower),
                    float(found.upper),
                    str(found.is_exact),
                    len(study.attack(found).probabilities),
                    found.questions,
                    found.seconds,
                )
                for found in curve
            ],
        )


def _record(name: str, found: GameValue, budget: float) -> Record:
    return Record(
        network=name,
        case=f"{found.eps:g}",
        method="value",
        budget=budget,
        seconds=found.seconds,
        lower=float(found.lower),
        upper=float(found.upper),
        queries=found.questions,
    )
