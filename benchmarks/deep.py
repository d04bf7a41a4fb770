"""Deep and wide networks: the native search against bounds alone and binary search."""

from __future__ import annotations

from benchmarks import published
from benchmarks.bounds_alone import AlphaCrown, Crown, Upwards
from benchmarks.measuring import BINARY, NATIVE, Method, is_closed, mean, measured
from benchmarks.records import Options
from benchmarks.tables import show

NETWORKS = ("mnist-net_256x4", "mnist_relu_6_100", "mnist_nn_fgsm_02", "convSmallRELU__Point")
IMAGES, BUDGET = 20, 60.0
BASELINES = (
    Method(Crown.name, Upwards, Crown()),
    Method(AlphaCrown.name, Upwards, AlphaCrown()),
    BINARY,
)
DEMANDED = (("mnist-net_256x4", "0", 0.035), ("mnist_nn", "1", 0.057))
"""Lower bounds that the native search must reach within 60 s: network, image, eps."""


def main(options: Options) -> None:
    if not published.is_here():
        return
    images, budget = options.images or IMAGES, options.budget or BUDGET
    for network in NETWORKS:
        found = {
            method.name: measured(method, network, images, budget, options)
            for method in (*BASELINES, NATIVE)
        }
        show(
            f"{network}, images 0-{images - 1}, {budget:g} s an instance on one core",
            ("method", "instances", "mean lower", "mean upper", "closed", "mean seconds"),
            [
                (
                    name,
                    len(records),
                    mean([r.lower for r in records]),
                    mean(uppers) if (uppers := [r.upper for r in records if r.upper]) else None,
                    f"{mean([float(is_closed(r)) for r in records]):.0%}",
                    mean([r.seconds for r in records]),
                )
                for name, records in found.items()
            ],
        )
        best = max(mean([r.lower for r in found[method.name]]) for method in BASELINES)
        ours = mean([r.lower for r in found[NATIVE.name]])
        print(f"  mean lower bound against the best baseline: {ours:.5f} against {best:.5f}")
    for network, image, eps in DEMANDED:
        record = options.log.find(network, image, NATIVE.name, budget)
        if record is not None:
            print(f"  {network} image {image}: {record.lower:.3f} proven; {eps} is demanded")
