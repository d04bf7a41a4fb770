"""mnist_relu_3_50: the native search against binary search with Marabou, at equal budgets."""

from __future__ import annotations

from importlib.util import find_spec

from benchmarks import published
from benchmarks.measuring import NATIVE, Method, is_closed, measured, width
from benchmarks.records import Options
from benchmarks.tables import show
from radii.strategy import Binary
from radii.verifiers import Marabou

NETWORK, IMAGES, BUDGET = "mnist_relu_3_50", 3, 60.0


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
