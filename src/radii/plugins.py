"""What other packages add to radii: they declare it as entry points, and names find it.

A package that brings a verifier of its own says so in its pyproject.toml,

    [project.entry-points."radii.verifiers"]
    mine = "their_package:Mine"

and `--verifier mine` works wherever both packages are installed, in worker processes and on Ray as
well. Entry points are looked up only for a name that is none of radii's own, so nothing loads more
slowly because of them; and radii's own names always mean radii's own.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Mapping
from enum import Enum, StrEnum
from functools import cache
from hashlib import sha256
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from radii.errors import SpecificationError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

SHORT_DIGEST = 8
"""Hexadecimal digits that stand for an option which has no short text."""


class PluginGroup(StrEnum):
    """The groups of entry points, one for each family; `word` is what one member is called."""

    VERIFIERS = "radii.verifiers"
    ATTACKS = "radii.attacks"
    SEARCHES = "radii.searches"
    PROPERTIES = "radii.properties"
    DATASETS = "radii.datasets"
    OPERATORS = "radii.operators"
    COMMANDS = "radii.commands"

    @property
    def word(self) -> str:
        return {"SEARCHES": "search", "PROPERTIES": "property", "DATASETS": "data set"}.get(
            self.name, self.name.lower().removesuffix("s")
        )


class _Scout(pickle.Pickler):
    """Pickles to nowhere, and notes which classes and functions no other process can import."""

    def __init__(self) -> None:
        super().__init__(self)
        self.names: dict[str, None] = {}

    def write(self, data: object) -> None:
        """The file that this pickler writes to."""

    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, type | FunctionType):
            return NotImplemented
        if value.__module__ != "__main__" and "<" not in value.__qualname__:
            return NotImplemented
        self.names[value.__name__] = None
        return str, ()


def sending_obstacle(*parts: object) -> str | None:
    """Why these objects cannot travel to other processes, in words; None if they can.

    A process that receives them imports the modules of their classes and functions. It does not run
    the script that started it, so what that defines stays there.
    """
    scout = _Scout()
    try:
        scout.dump(parts)
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        return f"they cannot be pickled ({error})"
    if not scout.names:
        return None
    verb = "is" if len(scout.names) == 1 else "are"
    return f"{' and '.join(scout.names)} {verb} defined in a script, a notebook or a function"


class Plugin:
    """What verifiers and attacks share: a name, and the options that they were made with.

    `spec` tells two instances of one class with other options apart. It is what a store keeps.
    """

    name: ClassVar[str]
    unnamed_options: ClassVar[frozenset[str]] = frozenset()
    """Options that `spec` leaves out, because a store keeps them by themselves."""
    _options: dict[str, Any]

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Notes the options that differ from their defaults. Unpickling brings its own."""
        made = super().__new__(cls)
        object.__setattr__(made, "_options", _chosen_options(cls, args, options))
        return made

    @property
    def spec(self) -> str:
        """The name, and the options that are not as by default: `pgd:steps=100,restarts=5`."""
        options = ",".join(
            f"{option}={_option_text(value)}"
            for option, value in self._options.items()
            if option not in self.unnamed_options
        )
        return f"{self.name}:{options}" if options else self.name


def _chosen_options(kind: type, args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    signature = inspect.signature(kind.__init__)  # type: ignore[misc]
    try:
        arguments = signature.bind_partial(None, *args, **options).arguments
    except TypeError:  # `__init__` is about to say what is wrong
        return {}
    chosen: dict[str, Any] = {}
    for name, value in list(arguments.items())[1:]:
        parameter = signature.parameters[name]
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            chosen |= value
        elif not _is_same(value, parameter.default):
            chosen[name] = value
    return chosen


def _is_same(value: object, default: object) -> bool:
    try:
        return value is default or bool(value == default)
    except (TypeError, ValueError):  # arrays
        return False


def _option_text(value: object) -> str:
    """Text that `option_value` reads back; a digest of what has no such text."""
    if isinstance(value, Enum):
        value = value.value
    text = str(value)
    is_short = isinstance(value, str | int | float | None) and not {",", "=", "#"} & set(text)
    if is_short and (not isinstance(value, str) or option_value(text.strip()) == value):
        return text
    try:
        content = pickle.dumps(value)
    except (TypeError, AttributeError, pickle.PicklingError):
        content = repr(value).encode()
    return f"#{sha256(content).hexdigest()[:SHORT_DIGEST]}"


def option_value(text: str) -> Any:
    """The value of an option that was given as text: a number, True, False, None, or the text."""
    words = {"True": True, "False": False, "None": None}
    if text in words:
        return words[text]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def options_from_text(owner: str, text: str) -> dict[str, Any]:
    """`name=value,name=value` as keyword arguments; `owner` is who they are for, in errors."""
    options: dict[str, Any] = {}
    for part in text.split(",") if text else ():
        name, is_given, value = (piece.strip() for piece in part.partition("="))
        if not is_given or not name.isidentifier() or name in options:
            raise SpecificationError(
                f"{owner}: '{part}' is not an option of the form name=value, given once"
            )
        if value.startswith("#"):
            raise SpecificationError(
                f"{owner}: {name}={value} stands for a value that was made in Python and cannot "
                "be given as text"
            )
        options[name] = option_value(value)
    return options


def parameters_of(kind: type) -> Mapping[str, inspect.Parameter]:
    """What a class can be made with. `Plugin.__new__` takes anything, but only notes it."""
    if kind.__init__ is object.__init__:  # type: ignore[misc]
        return {}
    return dict(list(inspect.signature(kind.__init__).parameters.items())[1:])  # type: ignore[misc]


def made_with_options(owner: str, kind: type[T], options: dict[str, Any]) -> T:
    """`kind(**options)`; an option that it does not have, or needs, is named."""
    parameters = parameters_of(kind).values()
    takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
    known = {each.name for each in parameters}
    for option in () if takes_any else options:
        if option not in known:
            raise SpecificationError(f"{owner} has no option '{option}'")
    for each in parameters:
        is_variadic = each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
        if each.default is each.empty and not is_variadic and each.name not in options:
            raise SpecificationError(f"{owner} needs the option '{each.name}'")
    return kind(**options)


@cache
def _entry_points(group: PluginGroup) -> tuple[EntryPoint, ...]:
    """Those of one group, by name; a package that is found twice on the path counts once."""
    from importlib import metadata  # slow to load, and few commands look for plugins

    found = {(point.name, point.value): point for point in metadata.entry_points(group=group)}
    return tuple(point for _, point in sorted(found.items()))


def plugin_names(group: PluginGroup) -> tuple[str, ...]:
    """What other packages declare. Nothing of theirs is imported."""
    return tuple(dict.fromkeys(point.name for point in _entry_points(group)))


def load_plugin(group: PluginGroup, name: str) -> Any:
    """What another package declares under this name; None if none does."""
    points = [point for point in _entry_points(group) if point.name == name]
    if not points:
        return None
    if len(points) > 1:
        packages = " and ".join(sorted(_package(point) for point in points))
        raise SpecificationError(
            f"{group.word} '{name}' is declared by several packages, {packages}: uninstall all "
            "but one"
        )
    try:
        return points[0].load()
    except Exception as error:  # whatever importing somebody else's code may raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise SpecificationError(
            f"{group.word} '{name}' of package '{_package(points[0])}' cannot be loaded: {reason}"
        ) from error


def load_plugin_class(group: PluginGroup, name: str, base: type[T]) -> type[T] | None:
    """As `load_plugin`, for a family whose members are classes, which are called what they are."""
    kind = load_plugin(group, name)
    if kind is None:
        return None
    origin = f"{group.word} '{name}' of package '{package_of(group, name)}'"
    if not (isinstance(kind, type) and issubclass(kind, base)):
        raise SpecificationError(
            f"{origin} must be a subclass of radii's {base.__name__}, not {kind!r}"
        )
    if inspect.isabstract(kind):
        missing = ", ".join(sorted(kind.__abstractmethods__))  # type: ignore[attr-defined]
        raise SpecificationError(f"{origin} does not define {missing}")
    own_name = getattr(kind, "name", name)
    if own_name != name:
        raise SpecificationError(f"{origin} calls itself {own_name!r}; both names must be the same")
    return kind


def package_of(group: PluginGroup, name: str) -> str:
    """The package that declares a plugin; empty if none does."""
    return next((_package(point) for point in _entry_points(group) if point.name == name), "")


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.module
