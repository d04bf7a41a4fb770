"""`radii attack`: upper bounds only. A failed attack proves nothing, so every lower bound is 0."""

from __future__ import annotations

import argparse

from radii.cli._options import OF_EXPERIMENT, OUT, add_experiment_flags, add_json_flag
from radii.cli._run import add_logging_flags, execute
from radii.runs import SECONDS, Option
from radii.terminal import note

FIRST = "networks data domain mean std eps grid norm attack jobs out json"

DESCRIPTION = "The closest counterexample to each input, replayed on ONNX Runtime."

EPILOG = """examples:
  radii attack --network net.onnx --data mnist:train[0:20] --domain 0:1
  radii attack --network net.onnx --data images.npz --domain 0:1 --norm l2 --grid 0.1:5:0.1
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_flags(parser, proves=False)
    OUT.add_to(parser, help="keep the results here")
    add_json_flag(parser)
    add_logging_flags(parser)


def run(args: argparse.Namespace) -> int:
    idle = [option for option in OF_EXPERIMENT.values() if _is_idle(args, option)]
    for option in idle:
        setattr(args, option.name, None)
    if idle:
        flags = ", ".join(f"--{option.name}" for option in idle)
        note(f"{flags} changes nothing here: an attack proves nothing")
    return execute(args, args.out, search="attack-only")


def _is_idle(args: argparse.Namespace, option: Option) -> bool:
    """A flag of proofs, which scripts give to both commands; limits of time hold for an attack."""
    is_given = getattr(args, option.name) is not None
    return is_given and option.is_of_proofs and option.form is not SECONDS
