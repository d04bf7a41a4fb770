"""`radii completion`: what a shell needs to complete radii's commands, made from their parsers."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

SHELLS = ("bash", "fish", "zsh")

DESCRIPTION = "Print what bash, zsh or fish needs to complete commands, flags and values."

EPILOG = """examples:
  eval "$(radii completion bash)"                            in ~/.bashrc
  eval "$(radii completion zsh)"                             in ~/.zshrc, after compinit
  radii completion fish > ~/.config/fish/completions/radii.fish
"""

FILES = re.compile(r"FILE|DIR|PATH|SPEC|\.\w+$")
"""In the name of a value: it may be a file."""

SOURCED = ("$zsh_eval_context[-1] == eval", "$zsh_eval_context[-1] == (eval|file)")
"""shtab's script for zsh registers itself only when it is evaluated; sourced, it should, too."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="which shell it is for")


def run(args: argparse.Namespace) -> int:
    import shtab

    from radii.cli._main import build_parser

    parser = build_parser()
    _mark(parser, shtab.FILE)
    script = shtab.complete(parser, shell=args.shell, root_prefix="radii")
    if args.shell == "zsh":
        script = script.replace(*SOURCED)
    sys.stdout.write(script + "\n")
    return 0


def _mark(parser: argparse.ArgumentParser, file: Any) -> None:
    """Say of each argument whether it is a file, and which values are worth completing.

    Fields know values that argparse must not check itself (`Option.values`): `linf`, `l2`, `l1`.
    A command is described by its purpose, as in `radii --help`, not by its longer description.
    """
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            purposes = {command.dest: command.help for command in action._choices_actions}
            for name, command in action.choices.items():
                command.description = purposes[name]
                _mark(command, file)
            continue
        name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
        if action.nargs != 0 and FILES.search(name):
            action.complete = file  # type: ignore[attr-defined]
        elif values := getattr(action, "values", ()):
            action.choices = values
