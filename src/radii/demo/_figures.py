"""The figures of the demo: each as PDF for a paper and as PNG for a look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from radii.distributions import Distribution
from radii.plots import (
    Counterexample,
    as_picture,
    draw_boxes,
    draw_counterexamples,
    draw_ecdf,
    draw_robust_accuracy,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from radii.queries import Instance
    from radii.verdicts import Witness


SHOWN_INPUTS = 6
"""How many inputs the figure of counterexamples shows, each of another class if possible."""


def write_figures(
    directory: Path, distribution: Distribution, examples: Sequence[Counterexample]
) -> list[Path]:
    """Draw all figures into an existing directory; returns the PNG files."""
    figures: dict[str, Figure] = {
        "ecdf": draw_ecdf(distribution),
        "robust-accuracy": draw_robust_accuracy(distribution),
        "boxes": draw_boxes(distribution),
    }
    if examples:
        figures["counterexamples"] = draw_counterexamples(examples)
    written = []
    for name, figure in figures.items():
        for suffix in (".pdf", ".png"):
            save_figure(figure, directory / f"{name}{suffix}")
        written.append(directory / f"{name}.png")
    return written


def closest_counterexamples(
    names: Mapping[str, str], instances: Sequence[Instance], witnesses: Mapping[str, Witness]
) -> list[Counterexample]:
    """A few inputs that every network gets right, with each network's closest counterexample.

    `names` are the networks' by fingerprint, `witnesses` the closest ones by instance key.
    """
    shown = set(_inputs_for_show(names, instances, witnesses))
    return [
        _counterexample(names[instance.network], instance, witnesses[instance.key])
        for instance in instances
        if instance.index in shown
    ]


def _inputs_for_show(
    names: Mapping[str, str], instances: Sequence[Instance], witnesses: Mapping[str, Witness]
) -> Iterator[int]:
    """Inputs broken on all networks and misclassified by none: the first of each class first."""
    broken: dict[int, int] = {}
    labels: dict[int, int] = {}
    for instance in instances:
        labels[instance.index] = instance.label
        if instance.correct and instance.key in witnesses:
            broken[instance.index] = broken.get(instance.index, 0) + 1
    candidates = [index for index, count in broken.items() if count == len(names)]
    first_of_class = {labels[index]: index for index in reversed(candidates)}
    is_later = {index: first_of_class[labels[index]] != index for index in candidates}
    yield from sorted(candidates, key=lambda index: (is_later[index], index))[:SHOWN_INPUTS]


def _counterexample(name: str, instance: Instance, witness: Witness) -> Counterexample:
    return Counterexample(
        network=name,
        index=instance.index,
        label=str(instance.label),
        original=as_picture(instance.input),
        broken=as_picture(witness.input),
        seen_as=str(witness.predicted),
        distance=witness.distance,
    )
