"""The parser of all commands, and what runs one of them."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from radii import __version__
from radii.cli._parser import Parser
from radii.errors import InputError, SpecificationError, with_suggestion
from radii.plugins import PluginGroup, load_plugin, package_of, plugin_names
from radii.terminal import note

COMMANDS = {
    "demo": "four small networks on embedded data, in under a minute",
    "init": "write an experiment file for networks and data",
    "run": "compute a robustness distribution",
    "merge": "join results, such as those of the shards of a run",
    "show": "print what an experiment found",
    "compare": "the statistics between distributions",
    "report": "write an interactive page",
    "board": "write a page that ranks many networks",
    "serve": "show runs live in a browser",
    "plot": "draw figures for papers: PDF, SVG or PNG",
    "card": "write a section for a model card",
    "check": "prove it again: every certificate, every counterexample",
    "gate": "exit 1 when a model is less robust than required",
    "export": "write brackets as csv, parquet or verona",
    "import": "read published results: VERONA's and the papers' files",
    "convert": "networks, data, experiments and results in other forms",
    "attack": "find counterexamples: upper bounds only",
    "global": "robustness of all inputs, with a statistical guarantee",
    "metrics": "constraint satisfaction, security and accuracy",
    "audit": "try to refute published lower bounds",
    "verify": "decide a VNN-LIB file: sat, unsat, unknown or timeout",
    "train": "train a network",
    "cycle": "train, attack, verify and retrain until a requirement holds",
    "ensemble": "several classifiers against randomized attacks",
    "data": "put data sets in place, checksummed",
    "doctor": "check this installation, in about ten seconds",
    "completion": "complete radii's commands in your shell",
}
"""Each command's module holds DESCRIPTION, EPILOG, `add_arguments(parser)` and `run(args)`; where
its flags are many, FIRST names those that `--help` shows without `--help-all`.

A command with commands of its own has no `run`: the parser of each of them sets one. Commands that
other packages add, as entry points of the group `radii.commands`, are modules of the same form.
"""

GROUPS = {
    "start": ("demo", "init", "data", "doctor", "completion"),
    "measure": ("run", "merge", "attack", "verify", "global", "metrics", "ensemble"),
    "look": ("show", "compare", "board", "report", "serve", "plot", "export"),
    "require": ("gate", "card"),
    "make": ("train", "cycle"),
    "trust": ("check", "audit", "import", "convert"),
}
"""What a command is for: `radii --help` lists them so."""

EXAMPLES = """examples:
  radii demo
  radii run --network net.onnx --data mnist:test[0:20] --domain 0:1 --out results
  radii show results
  radii run --help      every command has examples; --help-all has every option
"""


def build_parser(only: str | None = None) -> Parser:
    """The parser of the whole command line; with `only`, the flags of that command alone.

    Modules of the other commands are not loaded: their names and purposes are all that help shows.
    Other packages are asked for their commands only if `only` is none of radii's own.
    """
    purposes = COMMANDS if only in COMMANDS else COMMANDS | _added_commands()
    parser = Parser(
        prog="radii",
        usage="radii [--help] [--version] COMMAND ...",
        description="How far is each input from breaking the network? Proven and witnessed radii.",
        epilog=f"{_grouped(purposes)}\n{EXAMPLES}",
    )
    parser.is_grouped = True
    parser.add_argument("--version", action="version", version=f"radii {__version__}")
    subparsers = parser.add_subparsers(
        metavar="COMMAND", required=True, prog="radii", help="see below"
    )
    for name, purpose in purposes.items():
        command = subparsers.add_parser(name, help=purpose)
        if only is None or only == name:
            module = import_module(f"radii.cli._{name}") if name in COMMANDS else _added(name)
            command.description, command.epilog = module.DESCRIPTION, module.EPILOG
            command.first = getattr(module, "FIRST", "").split()
            command.set_defaults(run=getattr(module, "run", None))
            module.add_arguments(command)
    return parser


def _added_commands() -> dict[str, str]:
    """Commands of other packages, and what help says of them before they are loaded."""
    return {
        name: f"of the package {package_of(PluginGroup.COMMANDS, name)}"
        for name in plugin_names(PluginGroup.COMMANDS)
        if name not in COMMANDS
    }


def _added(name: str) -> Any:
    """The module of another package's command, with the names that radii's own have."""
    module = load_plugin(PluginGroup.COMMANDS, name)
    missing = [
        part for part in ("DESCRIPTION", "EPILOG", "add_arguments") if not hasattr(module, part)
    ]
    if missing:
        package = package_of(PluginGroup.COMMANDS, name)
        raise SpecificationError(
            f"command '{name}' of package '{package}' does not define {', '.join(missing)}"
        )
    return module


def _grouped(purposes: dict[str, str]) -> str:
    """The commands and their purposes, group by group; last those of other packages."""
    added = tuple(name for name in purposes if name not in COMMANDS)
    lines = []
    for group, names in {**GROUPS, **({"added": added} if added else {})}.items():
        lines.append(f"{group}:")
        lines += [f"  {name:<12}{purposes[name]}" for name in names]
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    words = sys.argv[1:] if argv is None else argv
    command = next((word for word in words if not word.startswith("-")), "")
    if isinstance(sys.stdout, io.TextIOWrapper):  # names of files need not be text
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        args = build_parser(only=command).parse_args(words)
        return int(args.run(args))
    except InputError as error:
        note(with_suggestion(" ".join(str(error).split())))
        return 2
    except KeyboardInterrupt as stop:
        note("; ".join(["interrupted", *map(str, stop.args)]))
        return 130
    except BrokenPipeError:
        # The reader of our output (head, less) went away; give Python's exit a sink to flush into.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("RADII_DEBUG"):
            raise
        note(
            f"internal error: {type(error).__name__}: {' '.join(str(error).split())} "
            "(RADII_DEBUG=1 shows where)"
        )
        return 3
