"""Options that are declared once; flags, TOML, JSON, identity and limits follow from the field.

A record is a frozen dataclass whose fields are made by `option`, and whose `__post_init__` calls
`read_fields`: so Python, TOML, JSON and flags are read and refused by the same code. Types such as
Grid load when a value is read, never when a field is declared: help needs no numpy.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii import processes  # which loads what is used of it, when it is
from radii.errors import ExperimentError, did_you_mean

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class OptionRefusal(Exception):
    """What a value must be, as the end of a sentence: "must be at least 1"."""


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class OptionForm:
    """How values of one kind are read and written.

    `read` takes what TOML, JSON or Python gives, and returns a value that is typed already as it
    is. It raises an OptionRefusal, or an InputError with a sentence of its own. `parse` reads the
    text of a flag where that differs. `write` makes a value of TOML and JSON. `accepts` is the type
    of what is taken in Python, where `VALUES` stands for the values of the option. The flag of a
    switch has no value: `--name` and `--no-name` are its two.
    """

    metavar: str
    read: Callable[[Any], Any]
    accepts: str
    parse: Callable[[str], Any] | None = None
    write: Callable[[Any], Any] = _same
    is_switch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One thing that can be chosen.

    `name` is its key in TOML and JSON. `flag` is by default made from the name. `comment` stands
    above it in the file that `radii init` writes. `advice` completes "NAME is missing: ..." where
    there is no default. Results with another value `in_identity` are another experiment's. A flag
    `is_of_proofs` where an attack alone has no use for it. `values` are what shells complete.
    """

    name: str
    form: OptionForm
    help: str
    flag: str = ""
    metavar: str = ""
    group: str | None = None
    values: tuple[str, ...] = ()
    is_repeated: bool = False
    in_identity: bool = True
    is_of_proofs: bool = False
    comment: str = ""
    advice: str = ""

    @property
    def accepts(self) -> str:
        """The type of what is taken in Python."""
        values = ", ".join(f'"{value}"' for value in self.values)
        return self.form.accepts.replace("VALUES", f"Literal[{values}]")

    def read(self, value: object) -> Any:
        """A value of TOML, JSON or Python; an InputError of one sentence if it cannot be."""
        try:
            return self.form.read(value)
        except OptionRefusal as refusal:
            raise ExperimentError(f"{self.name} {value!r} {refusal}") from None

    def parse(self, text: str) -> Any:
        """The text of a flag. argparse lets an InputError through, so the sentence is ours."""
        try:
            return (self.form.parse or self.form.read)(text)
        except OptionRefusal as refusal:
            shown = text if _is_number(text) else repr(text)
            raise ExperimentError(f"{self._flag} {shown} {refusal}") from None

    @property
    def _flag(self) -> str:
        return self.flag or f"--{self.name.replace('_', '-')}"

    def add_to(self, parser: Any, is_listed: bool = True, **more: Any) -> None:
        """Add the flag to a parser or a group of one. What is not given is None, or `default`.

        Further keywords are argparse's, or replace what the option says of itself.
        """
        own = {name: more.pop(name) for name in [*more] if name in _CHANGEABLE}
        option = dataclasses.replace(self, **own)
        kind: dict[str, Any] = {
            "type": option.parse,
            "metavar": option.metavar or option.form.metavar,
        }
        if option.form.is_switch:
            kind = {"action": argparse.BooleanOptionalAction}
        elif option.is_repeated:
            kind["action"] = "append"
        action = parser.add_argument(
            option._flag,
            dest=option.name,
            help=option.help.replace("%", "%%") if is_listed else argparse.SUPPRESS,
            **kind,
            **more,
        )
        action.values = option.values


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


_CHANGEABLE = {"form", "help", "flag", "metavar", "is_repeated"}


def option(form: OptionForm, help: str, *, default: Any = None, **about: Any) -> Any:  # noqa: A002
    """A field of a record; `default` may be a function that makes it. See Option for the rest."""
    metadata = {"option": {"form": form, "help": help, **about}}
    if about.get("advice"):
        return dataclasses.field(metadata=metadata)
    given: dict[str, Any] = {"default_factory" if callable(default) else "default": default}
    return dataclasses.field(metadata=metadata, **given)


@cache
def options_of(record: Any) -> dict[str, Option]:
    """The options of a record, its own before those that it inherits."""
    fields = {one.name: one.metadata for one in dataclasses.fields(record)}
    names = [name for kind in record.__mro__ for name in inspect.get_annotations(kind)]
    return {
        name: Option(name=name, **fields[name]["option"])
        for name in dict.fromkeys(names)
        if "option" in fields.get(name, ())
    }


def read_fields(record: DataclassInstance) -> None:
    """Every field of a frozen record as a typed value; what has no default but None may be None."""
    options = options_of(type(record))
    for one in dataclasses.fields(record):
        value = getattr(record, one.name)
        if one.name in options and not (value is None and one.default is None):
            object.__setattr__(record, one.name, options[one.name].read(value))


def check_names(record: type[DataclassInstance], values: Mapping[str, object]) -> None:
    """An ExperimentError if a value is of no option, or one is missing that has no default."""
    options = options_of(record)
    for name in values:
        if name not in options:
            names = ", ".join(sorted(options))
            raise ExperimentError(
                f"option '{name}' is not one of {names}{did_you_mean(name, options)}"
            )
    for name, one in options.items():
        if one.advice and values.get(name) in (None, "", [], ()):
            raise ExperimentError(f"{name} is missing: {one.advice}")


# --- flags


def add_flags(
    parser: argparse.ArgumentParser,
    record: type[DataclassInstance],
    only: Iterable[str] | None = None,
    *,
    is_listed: Callable[[Option], bool] = lambda _: True,
) -> dict[str, Any]:
    """A flag for each option, or each of those named, in its group; returns the groups."""
    groups: dict[str, Any] = {}
    options = options_of(record)
    for name in options if only is None else only:
        group = options[name].group
        if group is not None and group not in groups:
            groups[group] = parser.add_argument_group(group)
        place = parser if group is None else groups[group]
        options[name].add_to(place, is_listed=is_listed(options[name]))
    return groups


def given_flags(args: argparse.Namespace, record: type[DataclassInstance]) -> dict[str, Any]:
    """The record's options that were given as flags, as typed values."""
    values = {name: getattr(args, name, None) for name in options_of(record)}
    return {name: value for name, value in values.items() if value is not None}


# --- JSON and TOML


def to_json(record: DataclassInstance) -> dict[str, Any]:
    """What makes results comparable, as a store holds it, in the order of the fields.

    What is infinite or not given is None: so an option that is added later changes no store.
    """
    options = options_of(type(record))
    values = {
        one.name: getattr(record, one.name)
        for one in dataclasses.fields(record)
        if one.name in options and options[one.name].in_identity
    }
    return {
        name: None if value is None or value == math.inf else options[name].form.write(value)
        for name, value in values.items()
    }


def differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """How one identity differs from a stored one, in words."""
    return [
        f"{name} was {_shown(was.get(name))}, is {_shown(now[name])}"
        for name in now
        if now[name] != was.get(name)
    ]


def _shown(value: object) -> str:
    text = "not given" if value in (None, "") else str(value)
    if isinstance(value, float):
        text = f"{value:g}"
    return text if len(text) <= 60 else f"{text[:60]}..."


def to_toml(
    record: type[DataclassInstance],
    values: Mapping[str, object],
    notes: Mapping[str, Sequence[str]],
    examples: Collection[str] = (),
) -> str:
    """Typed values, each below the comment of its option.

    `notes` are further lines of comment, such as what was found in the data. Values named in
    `examples` are commented out.
    """
    lines: list[str] = []
    for name, value in values.items():
        one = options_of(record)[name]
        lines += [f"# {line}" if line else "" for line in one.comment.splitlines()]
        lines += [f"#   {printable(line)}" for line in notes.get(name, ())]
        start = "# " if name in examples else ""
        lines.append(f"{start}{name} = {_toml(one.form.write(value))}")
    return "\n".join(lines) + "\n"


def printable(text: str) -> str:
    """Names of files may hold anything; a comment ends at the end of its line."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _toml(value: object) -> str:
    """Text, numbers and lists of them are as in JSON, but for one character."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


# --- plain values

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0}
_DURATION = re.compile("".join(rf"(?:(\d+(?:\.\d+)?){unit})?" for unit in _UNITS))


def text_of(value: object) -> str:
    if not isinstance(value, str):
        raise OptionRefusal("must be text, in quotes where it is TOML")
    return value


def whole(least: int | None = None, below: int | None = None) -> OptionForm:
    """Whole numbers, from `least` on and below a power of two."""
    must = "must be a whole number"
    if below is not None:
        must += f" from {least} to 2^{below.bit_length() - 1} - 1"

    def read(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise OptionRefusal(must)
        if below is not None and not (least or 0) <= value < below:
            raise OptionRefusal(must)
        if least is not None and value < least:
            raise OptionRefusal(f"must be at least {least}")
        return value

    def parse(text: str) -> int:
        try:
            return read(int(text))
        except ValueError:
            raise OptionRefusal(must) from None

    return OptionForm("N", read, "int", parse)


def _number(value: object) -> float:
    try:
        if isinstance(value, str) and "/" in value:
            return float(Fraction(value.replace(" ", "")))
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            return float(value)
    except (ValueError, ZeroDivisionError):
        pass
    raise OptionRefusal("is not a number, such as 0.02 or 8/255")


def numbers_of(value: object) -> tuple[float, ...]:
    """One number, or one per channel, from text with commas or from a list."""
    parts = value.split(",") if isinstance(value, str) else value
    try:
        return tuple(map(_number, parts if isinstance(parts, list | tuple) else [parts]))
    except OptionRefusal:
        raise OptionRefusal("must be a number, or one number per channel") from None


def duration_of(text: str) -> float:
    """Seconds, from 30s, 10m, 2h or 1h30m."""
    parts = _DURATION.fullmatch(text.strip().lower().replace(" ", ""))
    amounts = zip(parts.groups() if parts else (), _UNITS.values(), strict=False)
    seconds = sum(float(amount) * unit for amount, unit in amounts if amount)
    if not 0 < seconds < math.inf:
        raise OptionRefusal("must be a length of time such as 30s, 10m, 2h or 1h30m")
    return seconds


def seconds_of(value: object) -> float:
    """A number of seconds above 0, as a number or as text, or a length of time such as 10m."""
    must = "must be a number of seconds above 0, or a length of time such as 30s, 10m or 1h30m"
    seconds = value
    if isinstance(value, str):
        try:
            seconds = float(value)
        except ValueError:
            try:
                return duration_of(value)
            except OptionRefusal:
                raise OptionRefusal(must) from None
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds > 0:
        raise OptionRefusal(must)
    return float(seconds)


def show_duration(seconds: float) -> str:
    """Seconds with two digits that matter: 0.4 s, 35 s, 12 min, 1 h 40 min, 3 d 4 h."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{hours // 24} d {hours % 24} h"


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise OptionRefusal("must be true or false")
    return value


COUNT = whole(least=1)
SEED = whole(least=0, below=2**63)
NUMBER = OptionForm("X", _number, "float")
NUMBERS = OptionForm("X[,X...]", numbers_of, "str | Sequence[float]", write=list)
SECONDS = OptionForm("S", seconds_of, "float | str")
SIZE = OptionForm("SIZE", lambda value: processes.parse_size(value), "int | str")
TEXT = OptionForm("NAME", text_of, "str")
CHOICE = OptionForm("NAME", text_of, "VALUES")
PATH = OptionForm("FILE", Path, "str | Path", write=str)
SWITCH = OptionForm("", _switch, "bool", is_switch=True)
