"""How many published lower bounds the minimum-norm attack refutes, on one thread."""

from __future__ import annotations

import math
import time

import torch

from benchmarks import published
from benchmarks.measuring import mean
from benchmarks.records import Options
from radii.attacks import MinimumNorm
from radii.problem import Query

NETWORKS = (
    "mnist-net_256x2",
    "mnist-net_256x4",
    "mnist_nn",
    "mnist_relu_3_50",
    "mnist_relu_6_100",
)
CLEARLY = 0.9995
"""A row counts as refuted if the witness is this much closer than the published value."""


def main(options: Options) -> None:
    if not published.is_here():
        return
    torch.set_num_threads(1)
    for name in NETWORKS:
        net = published.network(name)
        asked = published.instances(net, 0, options.images or 50)
        images = {instance.index for instance in asked}
        claimed = {i: known for i, known in published.brackets(name).items() if i in images}
        started = time.process_time()
        results = MinimumNorm().attack(net, [Query(instance, 0.399) for instance in asked])
        seconds = time.process_time() - started
        found = {
            instance.index: result.witness.distance
            for instance, result in zip(asked, results, strict=True)
            if result.witness is not None
        }
        refuted = sum(
            found.get(image, math.inf) < CLEARLY * lower for image, (lower, _) in claimed.items()
        )
        print(
            f"{name:18s} refuted {refuted:2d} of {len(claimed)}, "
            f"mean upper {mean(list(found.values())):.5f}, {seconds:5.1f} s of one core"
        )
