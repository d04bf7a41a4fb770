"""`radii attack`: upper bounds only. A failed attack proves nothing, so every lower bound is 0."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from radii.cli._run import execute
from radii.cli.events import add_logging_flags
from radii.cli.options import add_experiment_flags, add_json_flag
from radii.terminal import say

DESCRIPTION = "The closest counterexample to each input, replayed on ONNX Runtime."

EPILOG = """examples:
  radii attack --network net.onnx --data mnist:train[0:20] --domain 0:1
  radii attack --network net.onnx --data images.npz --domain 0:1 --norm l2 --grid 0.1:5:0.1
"""

PROOF_FLAGS = ("search", "verifier", "k", "cuts", "device", "tool", "arithmetic")
"""Flags of a run that are taken, since scripts give both commands the same ones."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_flags(parser, proves=False)
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep the results here")
    add_json_flag(parser)
    add_logging_flags(parser)


def run(args: argparse.Namespace) -> int:
    idle = [name for name in PROOF_FLAGS if getattr(args, name) is not None]
    for name in idle:
        setattr(args, name, None)
    if idle:
        flags = ", ".join(f"--{name}" for name in idle)
        say(f"radii: {flags} changes nothing here: an attack proves nothing", file=sys.stderr)
    return execute(args, args.out, search="attack-only")
