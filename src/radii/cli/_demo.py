"""`radii demo`: embedded data and networks, a real run from start to report in under a minute."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from radii.cli._options import JOBS, add_json_flag, spare_workers
from radii.cli._output import interruptible
from radii.runs import COUNT, Option
from radii.terminal import say

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
        _explain(store, args.out, quiet=args.json)
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


def _explain(store: Store, directory: Path, *, quiet: bool) -> None:
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
    figures = _write_figures(directory, distribution)
    console.print(f"Figures, as PNG and PDF: {', '.join(str(path) for path in figures)}")
    page = directory / "report.html"
    write_report(make_payload([directory], title="radii demo"), page)
    console.print(f"Interactive report, for any browser: {page}")
    console.print(f"Every bracket: radii show {directory} --instances")
    console.print(f"Every proof and counterexample once more: radii check {directory}")


def _write_figures(directory: Path, distribution: Distribution) -> list[Path]:
    """Each as PDF for a paper and as PNG for a look; returns the PNG files."""
    from radii import views

    figures: dict[str, Figure] = {
        "ecdf": views.draw_ecdf(distribution),
        "robust-accuracy": views.draw_robust_accuracy(distribution),
        "boxes": views.draw_boxes(distribution),
    }
    if examples := _examples(distribution):
        figures["counterexamples"] = views.draw_counterexamples(examples)
    for name, figure in figures.items():
        for suffix in (".pdf", ".png"):
            views.save_figure(figure, directory / f"{name}{suffix}")
    return [directory / f"{name}.png" for name in figures]


def _examples(distribution: Distribution) -> list[Counterexample]:
    """Counterexamples of a few inputs that every network classifies correctly and that are broken
    on each: the first input of each class before others."""
    import numpy as np

    indices = distribution.column("input")
    is_broken = distribution.correct & np.isfinite(distribution.upper)
    broken = Counter(indices[is_broken].tolist())
    labels = dict(zip(indices.tolist(), distribution.label.tolist(), strict=True))
    candidates = [i for i, count in broken.items() if count == len(distribution.networks)]
    first_of_class = {labels[index]: index for index in reversed(candidates)}
    candidates.sort(key=lambda index: (first_of_class[labels[index]] != index, index))
    rows = np.flatnonzero(np.isin(indices, candidates[:SHOWN_INPUTS]))
    return [distribution.counterexample(row) for row in rows.tolist()]
