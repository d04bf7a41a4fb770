"""`radii cycle`: train, attack, verify, retrain with the counterexamples, until it holds."""

from __future__ import annotations

import argparse
import dataclasses
import math
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from radii.cli._options import EPS, JOBS, add_json_flag, add_options, given
from radii.cli._output import interruptible, print_json, print_parts
from radii.cli._train import TRAINING
from radii.errors import ExperimentError, InputError
from radii.runs import COUNT, SECONDS, Option
from radii.terminal import note, say

if TYPE_CHECKING:
    from radii import runs, training
    from radii.training import Cycle, Round
    from radii.views import TableRecord


FIRST = "data test arch require out rounds regime epochs eps json"

DESCRIPTION = "Retrain a network with its own counterexamples until it is robust enough."

EPILOG = """examples:
  radii cycle --data digits:train --test "digits:test[0:50]" --arch dense:30 \\
      --require "robust_accuracy(0.05) >= 0.85" --later-regime pgd:eps=0.08 --out cycle
  radii cycle --data mnist:train --test "mnist:test[random 100]" --arch mnist_nn --epochs 5 \\
      --attacked 2000 --verified 50 --require "robust_accuracy(0.02) >= 0.9 @ 95%" --out cycle

A round trains a network and measures the test images. If a requirement is not met, training
images are attacked, some of those that withstand are given to the verifier, and all
counterexamples join the training images of the next round, which goes on from these weights.
The same command again continues a cycle that was cut off; a larger --rounds adds rounds.
--require is what `radii gate` takes. DIR/round-N holds training, results and card.md.

exit codes:
  0 the last round meets every requirement, 1 the budget ended first, 2 bad input
"""

_TRAINING = ("batch", "optimizer", "rate", "weight_decay", "seed")
LATEST = Option(
    name="seconds", form=SECONDS, help="begin no round after this many seconds (no limit)"
)
LATER_EPOCHS = Option(name="later_epochs", form=COUNT, help="epochs of later rounds (the same)")
_MEASURING = ("property", "norm", "grid", "verifier", "arithmetic", "attack", "timeout", "memory")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what must hold")
    what.add_argument("--data", required=True, metavar="SPEC", help="training images")
    what.add_argument(
        "--test", required=True, metavar="SPEC", help="images on which requirements are judged"
    )
    what.add_argument(
        "--arch", required=True, metavar="NAME", help="architecture, as for radii train"
    )
    what.add_argument(
        "--require",
        action="append",
        required=True,
        metavar="REQUIREMENT",
        help="what must hold; repeat for more",
    )
    what.add_argument("--out", required=True, type=Path, metavar="DIR", help="where the results go")
    what.add_argument("--rounds", type=int, default=5, metavar="N", help="rounds at most (5)")
    LATEST.add_to(what, default=math.inf)
    how = parser.add_argument_group("how to train")
    how.add_argument(
        "--regime",
        default="standard",
        metavar="NAME",
        help="training regime of the first round (standard)",
    )
    how.add_argument(
        "--later-regime", metavar="NAME", help="training regime of later rounds (the same)"
    )
    how.add_argument(
        "--epochs", type=int, default=10, metavar="N", help="epochs of the first round (10)"
    )
    LATER_EPOCHS.add_to(how)
    how.add_argument("--domain", default="0:1", metavar="LOW:HIGH", help="valid inputs (0:1)")
    for option in TRAINING:
        if option.name in _TRAINING:
            option.add_to(how)
    seek = parser.add_argument_group("how to seek counterexamples and to measure")
    EPS.add_to(seek, metavar="EPS", help="how far to seek (as the requirements say)")
    seek.add_argument(
        "--attacked", type=int, metavar="N", help="training images to attack per round (all)"
    )
    seek.add_argument(
        "--verified", type=int, metavar="N", help="images to verify of those that withstand (100)"
    )
    add_options(
        seek,
        "norm",
        "arithmetic",
        property="one-to-any (default), sr:delta=10, ...",
        grid="for test images (around eps)",
        verifier="native (default), milp, ...",
        attack="pgd on training images, minimum-norm",
        timeout="wall seconds per query (60)",
        memory="of each worker (its share of nine tenths)",
    )
    JOBS.add_to(seek)
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    import torch

    from radii.runs import default_jobs
    from radii.training import run_cycle
    from radii.views import make_payload, write_report

    cycle = _cycle_from(args)
    torch.set_num_threads(1)
    with interruptible(f"{args.out} keeps it"):
        rounds = run_cycle(
            cycle,
            args.out,
            rounds=args.rounds,
            seconds=args.seconds,
            jobs=args.jobs or default_jobs(),
            observer=_CycleDisplay(),
        )
    places = [args.out / f"round-{each.number}" / "results" for each in rounds]
    page = args.out / "report.html"
    write_report(make_payload(places, title=f"{args.out.name}: {len(places)} rounds"), page)
    if args.json:
        entries = [{**dataclasses.asdict(each), "is_met": each.is_met} for each in rounds]
        print_json({"met": rounds[-1].is_met, "rounds": entries})
    else:
        print_parts(_cycle_parts(cycle, rounds, places, page))
    return 0 if rounds[-1].is_met else 1


def _cycle_from(args: argparse.Namespace) -> Cycle:
    from radii.training import Cycle

    if args.eps is not None and not args.eps > 0:
        raise ExperimentError(f"--eps {args.eps:g} must be above 0")
    return Cycle(
        architecture=args.arch,
        data=args.data,
        test=args.test,
        requirements=tuple(args.require),
        regime=args.regime,
        epochs=args.epochs,
        domain=args.domain,
        training=given(args, _TRAINING),
        measuring=given(args, _MEASURING),
        **given(args, ("later_regime", "later_epochs", "eps", "attacked", "verified")),
    )


class _CycleDisplay:
    """Sentences and progress bars on standard error."""

    def said(self, sentence: str) -> None:
        say(sentence, file=sys.stderr, flush=True)

    def training(self) -> AbstractContextManager[training.TrainingObserver | None]:
        from radii.cli._progress import TrainingProgress

        return TrainingProgress()

    def measuring(self) -> AbstractContextManager[runs.Observer | None]:
        from radii.cli._progress import ProgressBar

        return ProgressBar()


def _cycle_parts(
    cycle: Cycle, rounds: Sequence[Round], places: Sequence[Path], page: Path
) -> Iterator[TableRecord | str]:
    """The rounds in a table, and how they compare."""
    yield _rounds_table(cycle, rounds)
    if len(rounds) > 1:
        yield from _dominance((places[0], places[-1]))
    yield f"All rounds: {page}"
    if len(rounds) > 1:
        named = " ".join(shlex.quote(str(place)) for place in places)
        yield f"Statistics between them: radii compare {named}"
    for outcome in rounds[-1].outcomes:
        yield f"{'met' if outcome.is_met else 'NOT MET'}: {outcome.reason}"


def _rounds_table(cycle: Cycle, rounds: Sequence[Round]) -> TableRecord:
    from radii.views import TableColumn, TableRecord

    columns = [
        TableColumn("round", lambda each: each.number),
        TableColumn("trained on", lambda each: each.images),
        TableColumn("counterexamples", lambda each: each.counterexamples),
        TableColumn("accuracy", lambda each: each.accuracy, ".1%"),
        TableColumn("proven", lambda each: each.proven, ".1%"),
        TableColumn("not refuted", lambda each: each.not_refuted, ".1%"),
        TableColumn("", lambda each: "met" if each.is_met else "not met"),
        TableColumn("seconds", lambda each: each.seconds, ".1f"),
    ]
    return TableRecord(title=f"{cycle.test}, eps {cycle.eps:g}", columns=columns, rows=rounds)


def _dominance(places: Sequence[Path]) -> list[str]:
    """The first round against the last, input by input."""
    from radii.cli._sources import brackets_of, read_runs
    from radii.statistics import ComparisonOptions, compare_groups

    options = ComparisonOptions(by="network", inputs="all")
    try:
        compared = compare_groups(brackets_of(read_runs(places)), options, note=note)
    except InputError as error:  # as when a round classifies no image correctly
        return [f"The first and the last round are not compared: {error}."]
    return [f"{pair.dominance}" for pair in compared.comparisons]
