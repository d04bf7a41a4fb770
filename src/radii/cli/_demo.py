"""`radii demo`: embedded data and networks, a real run from start to report in under a minute."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from radii.cli._options import JOBS, add_json_flag, spare_workers
from radii.cli._output import interruptible
from radii.runs import COUNT, Option
from radii.terminal import say

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from radii.problem import Instance, Witness
    from radii.runs import Plan
    from radii.statistics import Counterexample, Distribution
    from radii.store import Store


SHOWN_INPUTS = 6
"""How many inputs the figure of counterexamples shows, each of another class if possible."""

DEMO_INPUTS = 30
DEMO_GRID = "0.005:0.6:0.005"

DESCRIPTION = (
    "Measure how robust four small digit classifiers are: dense and convolutional, "
    "each with standard and with adversarial training."
)

EPILOG = """examples:
  radii demo                           results, figures and report in ./radii-demo
  radii demo --inputs 3 --out small    fewer inputs
  radii show radii-demo --instances    every bracket of the demo: it is an ordinary experiment
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("radii-demo"),
        metavar="DIR",
        help="where results, figures and report go (./radii-demo); run again to continue there",
    )
    Option(
        name="inputs", form=COUNT, help=f"how many of the 500 test digits ({DEMO_INPUTS})"
    ).add_to(parser, default=DEMO_INPUTS)
    JOBS.add_to(parser)
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    with spare_workers(args.jobs):
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    from radii.cli._progress import ProgressBar

    started = time.perf_counter()
    from radii.cli._show import print_store
    from radii.runs import default_jobs
    from radii.store import Store

    plan = _plan(args.inputs)
    with Store.create_or_open(args.out) as store:
        with interruptible(f"what was found is in {args.out}"), ProgressBar() as bar:
            plan.run(store, jobs=args.jobs or default_jobs(), observer=bar)
        print_store(store, as_json=args.json)
        tabled = time.perf_counter()
        _explain(plan, store, args.out, quiet=args.json)
    if not args.json:
        seconds = tabled - started, time.perf_counter() - started
        say("The table took {:.1f} s, all of it {:.1f} s.".format(*seconds))
    return 0


def _plan(inputs: int) -> Plan:
    from radii import datasets, demo
    from radii.problem import Grid
    from radii.runs import Settings, plan

    networks = [demo.load_network(name) for name in demo.NETWORKS]
    paths = [str(demo.network_path(name)) for name in demo.NETWORKS]
    data = f"digits:test[0:{inputs}]"
    return plan(
        networks,
        datasets.load_spec(data),
        Settings(grid=Grid.parse(DEMO_GRID)),
        paths=paths,
        data=data,
    )


def _explain(plan: Plan, store: Store, directory: Path, *, quiet: bool) -> None:
    """Say what the brackets show, and draw them; `quiet` only draws."""
    from radii.demo import TRAINED_AT
    from radii.statistics import Distribution
    from radii.views import Console, finding_sentences, make_payload, write_report

    distribution = Distribution.from_store(store)
    console = Console(quiet=quiet, highlight=False)
    console.print()
    for sentence in finding_sentences(distribution, eps=TRAINED_AT):
        console.print(sentence)
        console.print()
    names = {network.fingerprint: network.name for network in plan.networks}
    examples = _closest_counterexamples(names, plan.instances, _closest_witnesses(store))
    figures = _write_figures(directory, distribution, examples)
    console.print(f"Figures, as PNG and PDF: {', '.join(str(path) for path in figures)}")
    page = directory / "report.html"
    write_report(make_payload([directory], title="radii demo"), page)
    console.print(f"Interactive report, for any browser: {page}")
    console.print(f"Every bracket: radii show {directory} --instances")
    console.print(f"Every proof and counterexample once more: radii check {directory}")


def _closest_witnesses(store: Store) -> dict[str, Witness]:
    closest: dict[str, Witness] = {}
    for key, answers in store.results().items():
        for _, result in answers:
            known, witness = closest.get(key), result.witness
            if witness is not None and (known is None or witness.distance < known.distance):
                closest[key] = witness
    return closest


def _write_figures(
    directory: Path, distribution: Distribution, examples: Sequence[Counterexample]
) -> list[Path]:
    """Each as PDF for a paper and as PNG for a look; returns the PNG files."""
    from radii import views

    figures: dict[str, Figure] = {
        "ecdf": views.draw_ecdf(distribution),
        "robust-accuracy": views.draw_robust_accuracy(distribution),
        "boxes": views.draw_boxes(distribution),
    }
    if examples:
        figures["counterexamples"] = views.draw_counterexamples(examples)
    for name, figure in figures.items():
        for suffix in (".pdf", ".png"):
            views.save_figure(figure, directory / f"{name}{suffix}")
    return [directory / f"{name}.png" for name in figures]


def _closest_counterexamples(
    names: Mapping[str, str], instances: Sequence[Instance], witnesses: Mapping[str, Witness]
) -> list[Counterexample]:
    """A few inputs that every network gets right, with each network's closest counterexample.

    `names` are the networks' by fingerprint, `witnesses` the closest ones by instance key.
    """
    from radii.statistics import Counterexample

    shown = set(_inputs_for_show(len(names), instances, witnesses))
    return [
        Counterexample(
            network=names[instance.network],
            index=instance.index,
            label=instance.label,
            witness_class=witnesses[instance.key].predicted,
            input=instance.input,
            counterexample=witnesses[instance.key].input,
            distance=witnesses[instance.key].distance,
        )
        for instance in instances
        if instance.index in shown
    ]


def _inputs_for_show(
    networks: int, instances: Sequence[Instance], witnesses: Mapping[str, Witness]
) -> list[int]:
    """Inputs broken on all networks and misclassified by none: the first of each class first."""
    broken: Counter[int] = Counter()
    labels: dict[int, int] = {}
    for instance in instances:
        labels[instance.index] = instance.label
        if instance.correct and instance.key in witnesses:
            broken[instance.index] += 1
    candidates = [index for index, count in broken.items() if count == networks]
    first_of_class = {labels[index]: index for index in reversed(candidates)}
    is_later = {index: first_of_class[labels[index]] != index for index in candidates}
    return sorted(candidates, key=lambda index: (is_later[index], index))[:SHOWN_INPUTS]
