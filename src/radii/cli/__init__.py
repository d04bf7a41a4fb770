"""The `radii` command. Heavy packages load only in the command that needs them.

Exit codes: 0 done, 1 a check is negative, 2 bad input, 3 internal error, 130 interrupted,
143 terminated.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from radii import __version__
from radii.cli import (
    attack,
    audit,
    card,
    compare,
    completion,
    convert,
    cycle,
    data,
    demo,
    doctor,
    ensemble,
    export,
    gate,
    global_,
    import_,
    init,
    metrics,
    plot,
    report,
    run,
    serve,
    show,
    study,
    train,
    verify,
)
from radii.cli.parsing import Parser
from radii.errors import InputError
from radii.terminal import say

__all__ = ["main"]

COMMANDS = (
    demo,
    init,
    run,
    show,
    compare,
    report,
    serve,
    plot,
    card,
    gate,
    export,
    import_,
    convert,
    attack,
    global_,
    metrics,
    audit,
    verify,
    train,
    cycle,
    ensemble,
    study,
    data,
    doctor,
    completion,
)

EPILOG = """examples:
  radii demo
  radii run --network net.onnx --data mnist:test[0:20] --domain 0:1 --out results
  radii show results
  radii report results
  radii run --help      every command has examples
"""


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = Parser(
        prog="radii",
        description="How far is each input from breaking the network? Proven and witnessed radii.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"radii {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    args = build_parser().parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):  # names of files need not be text
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return int(args.run(args))
    except InputError as error:
        say(f"radii: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        say("radii: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output (head, less) went away; give Python's exit a sink to flush into.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("RADII_DEBUG"):
            raise
        say(
            f"radii: internal error: {type(error).__name__}: {' '.join(str(error).split())} "
            "(RADII_DEBUG=1 shows where)",
            file=sys.stderr,
        )
        return 3
