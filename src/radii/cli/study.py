"""`radii study`: many networks made and measured, and what they have in common."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.cli.parsing import seconds
from radii.errors import DataError, ExperimentError
from radii.terminal import say

if TYPE_CHECKING:
    from radii.training import StudyMember


DESCRIPTION = "Make and measure many networks, and say what they have in common."

EPILOG = """examples:
  radii study tradeoff --data digits:train[0:300] --test digits:test --eps 0.05 --samples 20 \\
      --proof-inputs 5 --grid "deterministic width=8,16 activation=relu,tanh epochs=3" \\
      --grid "pruned width=16 strength=0.5 epochs=2" --out small
  radii study tradeoff --description study.toml --out study
  radii study show small
  radii study show small --measure 1-D --csv networks.csv --figures figures
  radii study show small --least-accuracy 0.1            without those that learned nothing

The same command again continues a study that was cut off; `show` also reads one that still runs.

presets:  mnist-small, fashion-small: hours, as in --preset mnist-small --jobs 2 --out mnist
grids:    deterministic, pruned, bayesian, each with depth, width, activation (relu, tanh,
          sigmoid), convolutions, filters, kernel, seed; rate and epochs; strength and rounds
          (pruned); step, steps and samples (bayesian); all combinations, or count=N of them
"""

_STUDY_SETTINGS: dict[str, tuple[Callable[[str], Any], str, str]] = {
    "data": (str, "SPEC", "images to train on, such as mnist:train[0:5000]"),
    "test": (str, "SPEC", "images to measure on, such as mnist:test"),
    "eps": (str, "EPS", "radius of the balls, such as 0.05 or 8/255"),
    "error": (float, "E", "of R and D as attacked (0.05)"),
    "samples": (int, "N", "inputs attacked, in place of an error"),
    "confidence": (float, "C", "of all intervals (0.95)"),
    "attack": (str, "NAME", "fgsm (default) or pgd"),
    "proof_inputs": (int, "N", "inputs given to the verifier (50); 0: no proofs"),
    "proof_timeout": (seconds, "S", "seconds of the verifier an input (1)"),
    "verifier": (str, "NAME", "native"),
    "seed": (int, "N", "of all that is drawn (0)"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_tradeoff(commands)
    show = commands.add_parser(
        "show",
        help="tables and figures of a study, finished or not",
        epilog=EPILOG,
    )
    show.add_argument("directory", type=Path, metavar="DIR", help="where a study is kept")
    show.add_argument("--confidence", type=float, metavar="C", help="of correlations (0.95)")
    show.add_argument(
        "--least-accuracy", type=float, metavar="A", help="leave out networks that learned less"
    )
    _add_output(show)
    show.set_defaults(run=_show)


def _add_tradeoff(commands: Any) -> None:
    tradeoff = commands.add_parser(
        "tradeoff",
        help="robustness against accuracy",
        description="Train the networks of a grid and measure accuracy, R and D of each.",
        epilog=EPILOG,
    )
    tradeoff.add_argument("--preset", metavar="NAME", help="mnist-small or fashion-small")
    tradeoff.add_argument("--description", type=Path, metavar="FILE", help="a study in TOML")
    tradeoff.add_argument(
        "--grid", action="append", default=[], metavar="GRID", help="networks to add; see below"
    )
    for name, (kind, metavar, text) in _STUDY_SETTINGS.items():
        flag = f"--{name.replace('_', '-')}"
        tradeoff.add_argument(flag, type=kind, metavar=metavar, help=text)
    tradeoff.add_argument("--jobs", type=int, metavar="N", help="networks at once (all cores)")
    tradeoff.add_argument("--out", required=True, type=Path, metavar="DIR", help="where it is kept")
    _add_output(tradeoff)
    tradeoff.set_defaults(run=_tradeoff)


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--measure", metavar="NAME", default="R", help="of effects: R (default), 1-D or 'proven R'"
    )
    parser.add_argument("--csv", type=Path, metavar="FILE", help="a line a network")
    parser.add_argument("--figures", type=Path, metavar="DIR", help="draw all figures there")
    parser.add_argument("--format", default="png", metavar="SUFFIX", help="png (default), pdf, svg")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def _tradeoff(args: argparse.Namespace) -> int:
    from radii.cli import study_tables
    from radii.cli.progress import ProgressBar
    from radii.processes import usable_cores
    from radii.training import Study, run_study

    study_tables.check_output(args)
    study = Study.from_tables(_tables(args))
    jobs = usable_cores() if args.jobs is None else args.jobs
    try:
        with ProgressBar() as bar:
            members = run_study(study, args.out, jobs=jobs, progress=bar.counted)
    except KeyboardInterrupt:
        say(f"radii: interrupted; {args.out} keeps it, run again to continue", file=sys.stderr)
        return 130
    study_tables.show_study(args, study, members, study.confidence)
    return 0


def _show(args: argparse.Namespace) -> int:
    from radii.cli import study_tables
    from radii.training import Study, read_members

    study_tables.check_output(args)
    study = Study.read(args.directory)
    confidence = study.confidence if args.confidence is None else args.confidence
    members = _accurate_members(read_members(args.directory), args.least_accuracy)
    study_tables.show_study(args, study, members, confidence)
    return 0


def _accurate_members(members: Sequence[StudyMember], least: float | None) -> Sequence[StudyMember]:
    """Those with this accuracy; how many are left out is said."""
    if least is None:
        return members
    if not 0 <= least <= 1:
        raise DataError(f"--least-accuracy {least:g} must be between 0 and 1")
    kept = [member for member in members if (member.accuracy or 0.0) >= least]
    if not kept:
        raise DataError(f"no network of the study has an accuracy of {least:g}")
    if len(kept) < len(members):
        left = len(members) - len(kept)
        say(f"radii: {left} networks below accuracy {least:g} are left out", file=sys.stderr)
    return kept


def _tables(args: argparse.Namespace) -> dict[str, Any]:
    """A preset or a file, with flags in place of its settings and beside its grids."""
    from radii.training import preset_tables, read_tables

    if args.preset is not None and args.description is not None:
        raise ExperimentError("--preset and --description: a study is one of them")
    tables: dict[str, Any] = {}
    if args.preset is not None:
        tables = preset_tables(args.preset)
    elif args.description is not None:
        tables = read_tables(args.description)
    for name in _STUDY_SETTINGS:
        if getattr(args, name) is not None:
            tables[name] = getattr(args, name)
    for text in args.grid:
        kind, grid = _grid(text)
        held = tables.setdefault(kind, [])
        if not isinstance(held, list):
            raise ExperimentError(f"'{kind}' must be a list of tables: [[{kind}]]")
        held.append(grid)
    return tables


def _grid(text: str) -> tuple[str, dict[str, Any]]:
    """`KIND name=value,value ...`."""
    from radii.training import RECIPE_KINDS

    kind, *words = text.split() or [""]
    if kind not in RECIPE_KINDS:
        raise ExperimentError(f"--grid '{text}' must begin with one of {', '.join(RECIPE_KINDS)}")
    grid: dict[str, Any] = {}
    for word in words:
        name, equals, values = word.partition("=")
        if not equals or not values or name in grid:
            raise ExperimentError(
                f"--grid '{text}': '{word}' is not of the form name=value,value, once for a name"
            )
        parsed = [_parse_value(value) for value in values.split(",")]
        grid[name] = parsed[0] if name == "count" and len(parsed) == 1 else parsed
    return kind, grid


def _parse_value(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
