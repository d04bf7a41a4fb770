"""`radii init`: look at networks and data, and write an experiment file with what was found."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from radii.cli._options import add_options
from radii.errors import ExperimentError
from radii.experiments import COUNT, Experiment, Option, values_of_file
from radii.terminal import say

if TYPE_CHECKING:
    from radii.balls import Domain
    from radii.experiments import Inspection, Preprocessing


EXPERIMENT_FILE = Path("experiment.toml")
SUGGESTED_INPUTS = 100
INPUTS = Option(
    name="inputs",
    form=COUNT,
    help=f"how many of the data, drawn at random ({SUGGESTED_INPUTS})",
)

DESCRIPTION = (
    "Look at networks and data: shapes, classes, the range of values, and how "
    "accurate the networks are under each common way of feeding them. Then write a commented "
    "experiment file for radii run."
)

EPILOG = """examples:
  radii init                                              asks what it needs to know
  radii init --network a.onnx --network b.onnx --data images --yes
  radii init --network net.onnx --data mnist:test --inputs 200 -o mnist.toml
  radii run experiment.toml --out results                 what to do with the file
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(
        parser,
        "networks",
        data="mnist:test, digits, file.npz, file.csv, or a folder",
        domain="valid inputs (a guess from the data's values)",
        mean="subtracted, per channel (a guess)",
        std="divided by, per channel (a guess)",
        layout="of flat coloured inputs: chw or hwc",
    )
    INPUTS.add_to(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=EXPERIMENT_FILE,
        metavar="FILE",
        help=f"where to ({EXPERIMENT_FILE})",
    )
    parser.add_argument("--yes", action="store_true", help="ask nothing")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")


def run(args: argparse.Namespace) -> int:
    _check_flags_of_init(args)
    ask = _silent if args.yes or not sys.stdin.isatty() else _ask
    networks = args.networks or _network_files(ask)
    data = args.data or ask("Data: a set such as mnist:test, a file, or a folder", "--data", None)
    from radii.experiments import experiment_text, findings_lines, inspect

    domain, inspections = inspect(
        networks, data, domain=args.domain, preprocessing=_given_preprocessing(args)
    )
    _print_inspection(domain, inspections, findings_lines)
    text = experiment_text(
        inspections, networks, _selected(data, args.inputs, ask), domain, file=args.output
    )
    _write_experiment(args.output, text, force=args.force)
    say("", f"{args.output}: written. Next: radii run {args.output} --out results")
    return 0


def _check_flags_of_init(args: argparse.Namespace) -> None:
    """What can be known to fail is said before anything is looked at."""
    if (args.mean is None) != (args.std is None):
        raise ExperimentError("--mean and --std are given together, or neither")
    if args.output.exists() and not args.force:
        raise ExperimentError(f"{args.output} is there already: --force replaces it, -o names it")
    if not args.output.resolve().parent.is_dir():
        raise ExperimentError(f"{args.output}: the directory does not exist")


Prompt = Callable[[str, str, str | None], str]


def _ask(question: str, flag: str, default: str | None) -> str:
    """On a terminal; an empty line is the default."""
    try:
        answer = input(f"{question}{f' [{default}]' if default else ''}: ").strip()
    except EOFError:
        answer = ""
    return answer or _silent(question, flag, default)


def _silent(question: str, flag: str, default: str | None) -> str:
    if default is None:
        raise ExperimentError(f"{flag} is missing. {question}")
    return default


def _network_files(ask: Prompt) -> list[str]:
    """The files in this directory, unless others are named."""
    here = sorted(str(path) for path in Path().glob("*.onnx"))
    names = ask(
        "Networks: ONNX files, with commas between them", "--network", ",".join(here) or None
    )
    return [name.strip() for name in names.split(",") if name.strip()]


def _selected(data: str, inputs: int | None, ask: Prompt) -> str:
    """How many of the data, unless the spec says so."""
    from radii.datasets import Spec, load_spec

    if Spec.parse(data).steps and inputs is None:
        return data
    available = len(load_spec(data))
    answer = inputs or ask(f"How many of the {available} inputs", "--inputs", str(SUGGESTED_INPUTS))
    try:
        count = int(answer)
    except ValueError:
        raise ExperimentError(f"'{answer}' is no number of inputs") from None
    if count < 1:
        raise ExperimentError(f"{count} inputs are too few: name at least 1")
    return data if count >= available else f"{data}[random {count} seed 0]"


def _given_preprocessing(args: argparse.Namespace) -> Preprocessing | None:
    from radii.experiments import Preprocessing

    if args.mean is None:
        return None if args.layout is None else Preprocessing("as they are", layout=args.layout)
    return Preprocessing("as given", args.mean, args.std, args.layout)


def _print_inspection(
    domain: Domain, inspections: list[Inspection], lines_of: Callable[[Inspection], list[str]]
) -> None:
    data = inspections[0].data
    shape = "x".join(map(str, data.shape))
    say(
        f"{data.title}: looked at {len(data)} inputs of {shape}, values from "
        f"{data.images.min():g} to {data.images.max():g}; valid inputs: {domain}"
    )
    for one in inspections:
        shape = "x".join(map(str, one.network.input_shape))
        say(f"{one.network.name}: {shape} -> {one.network.output_size} classes, right when fed")
        say(*lines_of(one)[1:])


def _write_experiment(path: Path, text: str, *, force: bool) -> None:
    try:
        with path.open("w" if force else "x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise ExperimentError(f"{path} is there already: --force replaces it") from None
    except OSError as error:
        raise ExperimentError(f"{path}: cannot be written ({error.strerror})") from None
    Experiment.from_options(values_of_file(path))  # a file that cannot be read is our bug
