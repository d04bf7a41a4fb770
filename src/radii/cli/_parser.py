"""The parser of every command: flags in full, help in two lengths, and what was probably meant."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from radii.errors import did_you_mean
from radii.terminal import plain

NEGATIVE_NUMBER = re.compile(r"-\.?\d")


class Parser(argparse.ArgumentParser):
    """Parses the command line; those of its commands are of this class, too.

    Flags are never shortened: `--network` must not mean `--networks` where that is the flag. What
    begins as a negative number is a value and no flag, as in `--domain -1:1` or `--mean -0.5,-1`.
    Epilogs are shown as they are written. With `first`, names of arguments, `--help` shows only
    these and the examples, and `--help-all` everything. If it `is_grouped`, the epilog lists its
    commands.
    """

    first: Sequence[str] = ()
    is_grouped = False

    def __init__(self, *args: Any, **options: Any) -> None:
        formatter = argparse.RawDescriptionHelpFormatter
        fixed = {"allow_abbrev": False, "formatter_class": formatter, "add_help": False}
        super().__init__(*args, **{**fixed, **options})
        self._negative_number_matcher = NEGATIVE_NUMBER
        self.add_argument("-h", "--help", action=_Help, help="show this help and exit")
        self.add_argument("--help-all", action=_Help, help=argparse.SUPPRESS)

    def error(self, message: str) -> NoReturn:
        """One line of usage and one of what is wrong, which may hold names of files."""
        self.usage = self.usage or self._short_usage()
        super().error(plain(message))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Unknown flags are reported before anything else: what is missing may follow from them."""
        commands = self._commands()
        for word in () if commands or args is None else args:
            if word == "--":
                break
            flag = word.partition("=")[0]
            is_flag = flag.startswith("--") and " " not in flag
            if is_flag and flag not in self._option_string_actions:
                known = [name for name in self._option_string_actions if name.startswith("--")]
                self.error(f"unrecognized arguments: {flag}{did_you_mean(flag, known)}")
        return super().parse_known_args(args, namespace)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """The names of commands are many: the one that was meant is enough."""
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            meant = did_you_mean(str(value), list(action.choices))
            self.error(f"'{value}' is not a command; {self.prog} --help lists them{meant}")
        super()._check_value(action, value)

    def _commands(self) -> list[argparse.Action]:
        return [each for each in self._actions if isinstance(each, argparse._SubParsersAction)]

    def format_help(self) -> str:
        written, self.description = self.description, self._wrapped(self.description)
        with self._without(self._commands() if self.is_grouped else ()):
            text = super().format_help()
        self.description = written
        return text

    def _wrapped(self, description: str | None) -> str | None:
        """In lines that fit the terminal, which the epilog's examples are not broken into."""
        width = self._get_formatter()._width
        return None if description is None else textwrap.fill(description, width)

    def first_help(self) -> str:
        """What a reader needs at first; all of it where nothing is left for later."""
        later = [
            action
            for action in self._actions
            if action.help != argparse.SUPPRESS
            and action.option_strings
            and action.dest not in ("help", *self.first)
        ]
        if not self.first or not later:
            return self.format_help()
        examples = re.search(r"examples:\n(?:  .*\n)+", self.epilog or "")
        kept = self.epilog, self.usage
        self.epilog = examples.group() if examples else self.epilog
        self.usage = self._short_usage()
        with self._without(later):
            text = self.format_help()
        self.epilog, self.usage = kept
        return f"{text}\n{self.prog} --help-all has {len(later)} more options.\n"

    def _short_usage(self) -> str:
        """With what must be given; the options are listed below it."""
        needed = [one for one in self._actions if one.required or not one.option_strings]
        formatter = self._get_formatter()
        formatter.add_usage(None, needed, [], "")
        words = " ".join(formatter.format_help().split())
        return words.replace(self.prog, f"{self.prog} [options]", 1)

    @contextmanager
    def _without(self, actions: Sequence[argparse.Action]) -> Iterator[None]:
        """A context in which these are hidden from the help."""
        helps = [action.help for action in actions]
        for action in actions:
            action.help = argparse.SUPPRESS
        try:
            yield
        finally:
            for action, text in zip(actions, helps, strict=True):
                action.help = text


class _Help(argparse.Action):
    """`--help` and `--help-all`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "nargs": 0, "default": argparse.SUPPRESS})

    def __call__(
        self, parser: argparse.ArgumentParser, _space: Any, _values: Any, flag: str | None = None
    ) -> None:
        assert isinstance(parser, Parser)
        text = parser.format_help() if flag == "--help-all" else parser.first_help()
        parser._print_message(text, sys.stdout)
        parser.exit()
