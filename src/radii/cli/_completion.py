"""`radii completion`: what a shell needs to complete radii's commands, made from their parsers."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

DESCRIPTION = "Print what bash, zsh or fish needs to complete commands, flags and values."

EPILOG = """examples:
  eval "$(radii completion bash)"                            in ~/.bashrc
  eval "$(radii completion zsh)"                             in ~/.zshrc, after compinit
  radii completion fish > ~/.config/fish/completions/radii.fish
"""

FILES = re.compile(r"FILE|DIR|PATH|SPEC|\.\w+$")
"""In the name of a value: it may be a file."""

VALUES: dict[str, tuple[str, ...]] = {
    "--norm": ("linf", "l2", "l1"),
    "--property": ("one-to-any", "one-to-one", "become"),
}
VALUES |= {"--search": ("native", "attack-guided", "k-binary", "binary", "linear")}
"""Values that parsers leave to others to check, and that are worth completing."""


@dataclass(frozen=True, slots=True)
class Option:
    """A flag with its spellings. `values` are what may follow; None: nothing does."""

    names: tuple[str, ...]
    help: str
    values: tuple[str, ...] | None
    is_file: bool


@dataclass(frozen=True, slots=True)
class Command:
    """A command by its words, such as ("data", "get"); () is radii itself."""

    words: tuple[str, ...]
    options: tuple[Option, ...]
    commands: dict[str, str]
    takes_files: bool

    @property
    def place(self) -> str:
        return "".join(f" {word}" for word in self.words)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=sorted(SHELL_SCRIPTS), help="which shell it is for")


def run(args: argparse.Namespace) -> int:
    from radii.cli import build_parser

    sys.stdout.write(SHELL_SCRIPTS[args.shell](list(commands_of(build_parser()))))
    return 0


# --- what there is to complete


def commands_of(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[Command]:
    """A parser's own command and all below it."""
    below: dict[str, str] = {}
    parsers: dict[str, argparse.ArgumentParser] = {}
    options, takes_files = [], False
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            told = {choice.dest: choice.help or "" for choice in action._choices_actions}
            below |= {name: told.get(name, "") for name in action.choices}
            parsers |= action.choices
        elif action.option_strings:
            options.append(_option(action))
        elif action.choices is not None:
            below |= dict.fromkeys(map(str, action.choices), "")
        else:
            takes_files = takes_files or _is_file(action)
    yield Command(words, tuple(options), below, takes_files)
    for name, child in parsers.items():
        yield from commands_of(child, (*words, name))


def _option(action: argparse.Action) -> Option:
    values: tuple[str, ...] | None = None
    if action.nargs != 0:
        known = tuple(map(str, action.choices)) if action.choices is not None else ()
        values = known or VALUES.get(action.option_strings[-1], ())
    text = re.sub(r"%\((\w+)\)s", "", action.help or "")
    return Option(tuple(action.option_strings), text, values, _is_file(action))


def _is_file(action: argparse.Action) -> bool:
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return action.nargs != 0 and bool(FILES.search(name))


# --- shells


def _bash(commands: list[Command]) -> str:
    """Also for the bash 3.2 of macOS."""
    body = _cases(
        commands,
        files='radii_files "$cur"; return',
        words='COMPREPLY=($(compgen -W "{words}" -- "$cur")); return',
        nothing="return",
    )
    return f"""radii_files() {{
    local IFS=$'\\n'
    COMPREPLY=($(compgen -f -- "$1"))
    type compopt >/dev/null 2>&1 && compopt -o filenames
}}
_radii() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" place="" i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "$place ${{COMP_WORDS[i]}}" in
            {_places(commands)}) place="$place ${{COMP_WORDS[i]}}" ;;
        esac
    done
{body}}}
complete -F _radii radii
"""


def _zsh(commands: list[Command]) -> str:
    """Loaded by eval, or as a file `_radii` in fpath."""
    body = _cases(
        commands, files="_files; return", words="compadd -- {words}; return", nothing="return"
    )
    return f"""#compdef radii
_radii() {{
    local cur="${{words[CURRENT]}}" before="${{words[CURRENT-1]}}" place="" i
    for ((i = 2; i < CURRENT; i++)); do
        case "$place ${{words[i]}}" in
            {_places(commands)}) place="$place ${{words[i]}}" ;;
        esac
    done
{body}}}
if [ "${{funcstack[1]}}" = "_radii" ]; then _radii "$@"; else compdef _radii radii; fi
"""


def _cases(commands: list[Command], *, files: str, words: str, nothing: str) -> str:
    """First the value of the flag before the cursor, then flags, commands and files."""
    lines = ['    case "$place $before" in']
    for command in commands:
        for option in command.options:
            if option.values is None:
                continue
            names = "|".join(f'"{command.place} {name}"' for name in option.names)
            shown = words.format(words=" ".join(option.values)) if option.values else nothing
            lines.append(f"        {names}) {files if option.is_file else shown} ;;")
    lines += ["    esac", '    case "$place" in']
    for command in commands:
        flags = words.format(words=" ".join(n for o in command.options for n in o.names))
        below = words.format(words=" ".join(command.commands)) if command.commands else nothing
        rest = files if command.takes_files else below
        lines.append(f'        "{command.place}") case "$cur" in')
        lines += [f"            -*) {flags} ;;", f"            *) {rest} ;;", "        esac ;;"]
    return "\n".join([*lines, "    esac", ""])


def _places(commands: list[Command]) -> str:
    return "|".join(f'"{command.place}"' for command in commands if command.words)


def _fish(commands: list[Command]) -> str:
    places = " ".join(f"'{command.place}'" for command in commands if command.words)
    lines = [
        "function __radii_at",
        "    set -l place ''",
        "    for word in (commandline -opc)[2..-1]",
        f'        if contains -- "$place $word" {places}',
        '            set place "$place $word"',
        "        end",
        "    end",
        '    test "$place" = "$argv[1]"',
        "end",
        "complete -c radii -f",
    ]
    for command in commands:
        start = f"complete -c radii -n \"__radii_at '{command.place}'\""
        if command.takes_files:
            lines.append(f"{start} -F")
        lines += [
            f"{start} -a {name} -d {_fish_text(text)}" for name, text in command.commands.items()
        ]
        for option in command.options:
            spelled = " ".join(_fish_flag(name) for name in option.names)
            value = ""
            if option.values is not None:
                value = " -r -F" if option.is_file else f" -x -a '{' '.join(option.values)}'"
            lines.append(f"{start} {spelled} -d {_fish_text(option.help)}{value}")
    return "\n".join(lines) + "\n"


def _fish_flag(name: str) -> str:
    return f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"


def _fish_text(text: str) -> str:
    plain = " ".join(text.split()).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{plain}'"


SHELL_SCRIPTS: dict[str, Callable[[list[Command]], str]] = {
    "bash": _bash,
    "fish": _fish,
    "zsh": _zsh,
}
