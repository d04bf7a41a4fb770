"""mnist_nn and mnist_relu_3_50: how many brackets close, and does any proof meet a witness?"""

from __future__ import annotations

from benchmarks import published
from benchmarks.measuring import NATIVE, OTHER_ATTACK, is_closed, mean, measured, width
from benchmarks.records import Options, Record
from benchmarks.tables import show

NETWORKS, IMAGES, BUDGET = ("mnist_nn", "mnist_relu_3_50"), 50, 60.0


def main(options: Options) -> None:
    if not published.is_here():
        return
    images, budget = options.images or IMAGES, options.budget or BUDGET
    rows = []
    for network in NETWORKS:
        records = measured(NATIVE, network, images, budget, options)
        measured(OTHER_ATTACK, network, images, budget, options)
        rest = [width(record) for record in records if not is_closed(record)]
        refuted = [record for record in records if is_refuted(record, options)]
        rows.append(
            (
                network,
                len(records),
                f"{mean([float(is_closed(record)) for record in records]):.0%}",
                mean(rest) if rest else None,
                mean([record.lower for record in records]),
                mean([record.seconds for record in records]),
                len(refuted),
            )
        )
        for record in refuted:
            print(f"WRONG: {network} image {record.case}: {record.lower} is proven and refuted")
    show(
        f"Native search, images 0-{images - 1}, {budget:g} s an instance on one core",
        (
            *("network", "instances", "closed", "mean width of the rest", "mean lower"),
            *("mean seconds", "lower bounds above a witness"),
        ),
        rows,
    )


def is_refuted(record: Record, options: Options) -> bool:
    """A witness of any of our attacks and searches, or a published one, lies within the proof.

    A published witness lies somewhere up to its grid value, so it refutes what reaches that.
    """
    ours = options.log.uppers(record.network, record.case)
    _, published_upper = published.brackets(record.network).get(
        int(record.case), (0.0, float("inf"))
    )
    return any(upper <= record.lower for upper in (*ours, published_upper))
