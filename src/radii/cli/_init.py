"""`radii init`: look at networks and data, and write an experiment file with what was found."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from radii.cli._options import add_options, check_files
from radii.cli._output import write_file
from radii.errors import ExperimentError
from radii.runs import COUNT, Experiment, Option, values_of_file
from radii.terminal import say

if TYPE_CHECKING:
    from radii.problem import Domain
    from radii.runs import Inspection, Preprocessing


EXPERIMENT_FILE = Path("experiment.toml")
SUGGESTED_INPUTS = 100
INPUTS = Option(
    name="inputs",
    form=COUNT,
    help=f"how many inputs to measure, drawn at random ({SUGGESTED_INPUTS})",
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
        domain="range of valid input values (default: guessed from the data)",
        mean="normalisation: mean to subtract, per channel (default: found by trying)",
        std="normalisation: deviation to divide by, per channel (default: found by trying)",
        layout="order of values in flat colour images: chw or hwc; cwh, whc: rows and columns "
        "exchanged",
        label="the column of a CSV file that holds the label",
        classes="names of the classes in the order of the network's outputs, or a file of them",
    )
    INPUTS.add_to(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=EXPERIMENT_FILE,
        metavar="FILE",
        help=f"the file to write ({EXPERIMENT_FILE})",
    )
    parser.add_argument("--yes", action="store_true", help="ask nothing")
    parser.add_argument("--force", action="store_true", help="replace an existing file")


def run(args: argparse.Namespace) -> int:
    _check_flags_of_init(args)
    check_files(args)
    ask = _silent if args.yes or not sys.stdin.isatty() else _ask
    networks = args.networks or _network_files(ask)
    data = args.data or ask("Data: a set such as mnist:test, a file, or a folder", "--data", None)
    from radii.runs import experiment_text, findings_lines, inspect

    given = _given_preprocessing(args)
    domain, inspections = inspect(
        networks,
        data,
        domain=args.domain,
        preprocessing=given,
        label=args.label,
        classes=args.classes,
    )
    _print_inspection(domain, inspections, findings_lines)
    if given is None:
        _refuse_doubt(inspections)
    table = _features_file(args, data)
    text = experiment_text(
        inspections,
        networks,
        _selected(data, args.inputs, ask, args.label),
        domain,
        file=args.output,
        label=args.label,
        classes=args.classes,
        features=None if table is None else table[0].name,
    )
    if table is not None and table[0].exists() and not args.force:
        say("", f"{table[0]}: exists already and is used as it is")
    elif table is not None:
        write_file(*table)
        say(
            "",
            f"{table[0]}: what each column seems to be; edit it to say which features stay fixed "
            "and how far the others may move",
        )
    write_file(args.output, text)
    Experiment.from_options(values_of_file(args.output))  # what cannot be read is our bug
    say("", f"{args.output}: written. Next: radii run {args.output} --out results")
    return 0


def _refuse_doubt(inspections: list[Inspection]) -> None:
    """Nothing is chosen for the user where nothing fits."""
    for one in inspections:
        if one.is_doubtful:
            best = one.best
            raise ExperimentError(
                f"{one.network.name}: none of {len(one.findings)} ways to feed it is surely better "
                f"than guessing (the best, {best.preprocessing}: {best.accuracy:.1%}), so none is "
                "chosen; check the labels, or say how with --mean and --std (0 and 1 for as they "
                "are) or --layout"
            )


def _features_file(args: argparse.Namespace, data: str) -> tuple[Path, str] | None:
    """Of a table with a header: a file that says what its columns look like, and its text."""
    from radii.datasets import Spec, features_text, guessed_features, load_spec

    whole = dataclasses.replace(Spec.parse(data), steps=())
    dataset = load_spec(whole, label=args.label)
    if dataset.features is None or args.domain is not None:
        return None
    guessed = guessed_features(dataset.features, dataset.images)
    return args.output.with_name(f"{args.output.stem}_features.csv"), features_text(guessed)


def _check_flags_of_init(args: argparse.Namespace) -> None:
    """What can be known to fail is said before anything is looked at."""
    if (args.mean is None) != (args.std is None):
        raise ExperimentError("--mean and --std are given together, or neither")
    if args.output.exists() and not args.force:
        raise ExperimentError(
            f"{args.output} exists already: --force replaces it, -o FILE writes another"
        )
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


def _selected(data: str, inputs: int | None, ask: Prompt, label: str | None) -> str:
    """How many of the data, unless the spec says so."""
    from radii.datasets import Spec, load_spec

    if Spec.parse(data).steps and inputs is None:
        return data
    available = len(load_spec(data, label=label))
    count = inputs or INPUTS.parse(
        ask(f"How many of the {available} inputs", "--inputs", str(SUGGESTED_INPUTS))
    )
    return data if count >= available else f"{data}[random {count} seed 0]"


def _given_preprocessing(args: argparse.Namespace) -> Preprocessing | None:
    from radii.runs import Preprocessing

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
