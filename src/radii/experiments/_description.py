"""What to measure and how, as flags and TOML files say it: typed, and checked before any work."""

from __future__ import annotations

import dataclasses
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from radii import attacks, datasets, properties, search, verifiers
from radii.balls import Norm
from radii.errors import ExperimentError
from radii.experiments._durations import parse_seconds
from radii.processes import parse_size
from radii.queries import Grid
from radii.search import Search
from radii.verdicts import Arithmetic


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How radii are measured. Two runs with equal settings on equal instances are the same.

    `memory` limits each process that decides queries: bytes, or a size such as 2G. `device` is
    where a verifier computes that can choose, `tool` what verifier `vnncomp` runs. `search` is by
    default what suits the verifier: the native search where it can certify radii, else
    attack-guided. `k` is how many queries of an instance run at once, for the searches that leave
    it open, and `cuts` where k-binary search cuts the grid. `timeout` is wall seconds a query,
    `cpu_timeout` CPU seconds, `budget` wall seconds an instance. `arithmetic` is what proofs speak
    of: by default `float`, or `real` where the verifier knows no other; None where nothing is
    proven. What is None or infinite is as if it did not exist: stores from before it did go on.
    """

    property: str = "one-to-any"
    norm: str = "linf"
    grid: str = "0.001:0.4:0.002"
    search: str = ""
    verifier: str = "native"
    attack: str = "minimum-norm"
    k: int | None = None
    cuts: str | None = None
    timeout: float = 60.0
    cpu_timeout: float = math.inf
    budget: float = math.inf
    seed: int = 0
    memory: int | str | None = None
    device: str | None = None
    tool: str | None = None
    arithmetic: str | Arithmetic | None = None

    def __post_init__(self) -> None:
        for name in ("timeout", "cpu_timeout", "budget"):
            object.__setattr__(self, name, _seconds(name, getattr(self, name)))
        if not _is_whole(self.seed) or not 0 <= self.seed < 2**63:
            raise ExperimentError(f"seed {self.seed!r} must be a whole number from 0 to 2^63 - 1")
        for name in ("property", "norm", "grid", "search", "verifier", "attack"):
            _check_text(name, getattr(self, name))
        for name in ("cuts", "device", "tool"):
            if getattr(self, name) is not None:
                _check_text(name, getattr(self, name))
        object.__setattr__(self, "grid", str(Grid.parse(self.grid)))
        object.__setattr__(self, "norm", Norm.parse(self.norm).value)
        if self.property not in properties.TARGETED_FAMILIES:
            object.__setattr__(self, "property", properties.parse(self.property).spec)
        if not self.search:
            climbs = isinstance(self.make_verifier(), verifiers.GridVerifier)
            object.__setattr__(self, "search", "native" if climbs else "attack-guided")
        if self.memory is not None:
            object.__setattr__(self, "memory", parse_size(self.memory))
        if self.device is not None:
            if not search.get(self.search).needs_verifier:
                raise ExperimentError(
                    f"device '{self.device}': search '{self.search}' only attacks, on the CPU"
                )
            verifiers.check_device(self.device)
        self._choose_search_options()
        self._choose_arithmetic()
        self.make_verifier()
        attacks.get(self.attack)

    def _choose_search_options(self) -> None:
        if self.k is not None and not _is_whole(self.k):
            raise ExperimentError(f"k {self.k!r} must be a whole number")
        kind = search.get(self.search)
        self.make_search()
        if self.k is None:
            object.__setattr__(self, "k", kind.default_k)
        if self.cuts is None and kind is search.KBinary:
            object.__setattr__(self, "cuts", str(search.Cuts.EQUAL))

    def _choose_arithmetic(self) -> None:
        """As text; None where nothing is proven."""
        given = None if self.arithmetic is None else Arithmetic.parse(str(self.arithmetic))
        is_proven = search.get(self.search).needs_verifier
        chosen = str(verifiers.arithmetic_of(self.verifier, given)) if is_proven else None
        object.__setattr__(self, "arithmetic", chosen)

    def make_search(self) -> Search:
        """A new search for one instance."""
        grid = Grid.parse(self.grid)
        return search.make(
            self.search, grid, k=self.k, cuts=self.cuts, seconds=self.proof_seconds()
        )

    def proof_seconds(self) -> float:
        """Wall seconds that a question may take unless an agenda says otherwise."""
        if search.get(self.search).needs_radius and self.budget < math.inf:
            return self.budget
        return min(self.timeout, self.budget)

    def make_verifier(self) -> verifiers.Verifier:
        """The verifier, with the options that were chosen for it."""
        chosen = {"device": self.device, "tool": self.tool}
        options = {name: value for name, value in chosen.items() if value is not None}
        asked = None if self.arithmetic is None else Arithmetic.parse(str(self.arithmetic))
        return verifiers.get(self.verifier, arithmetic=asked, **options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What to measure: networks, data, the input domain, and how."""

    networks: tuple[str, ...]
    data: str
    domain: str
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    layout: str | None = None
    settings: Settings = field(default_factory=Settings)

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Experiment:
        """From flat options, as flags and TOML files give them. An unknown name raises."""
        own = {f.name for f in dataclasses.fields(cls)} - {"settings"}
        how = {f.name for f in dataclasses.fields(Settings)}
        for name in options:
            if name not in own | how:
                known = ", ".join(sorted(own | how))
                raise ExperimentError(f"option '{name}' is not one of {known}")
        for name in ("networks", "data", "domain"):
            if options.get(name) in (None, "", []):
                raise ExperimentError(f"{name} is missing: {_ADVICE[name]}")
        chosen = {name: options[name] for name in own & options.keys()}
        chosen["networks"] = _file_names(chosen["networks"])
        chosen["domain"] = _domain_text(chosen["domain"])
        for name in ("data", "layout"):
            if chosen.get(name) is not None:
                _check_text(name, chosen[name])
        for name in ("mean", "std"):
            if chosen.get(name) is not None:
                chosen[name] = numbers(name, chosen[name])
        settings = Settings(**{name: options[name] for name in how & options.keys()})
        return cls(**chosen, settings=settings)

    @classmethod
    def options_of(cls, path: Path) -> dict[str, Any]:
        """The options in a TOML file; paths in it are relative to the file."""
        if path.is_dir():
            raise ExperimentError(
                f"{path}: a directory, not an experiment in TOML; radii show {path} prints the "
                "results of a run that are in it"
            )
        if path.name.endswith((".onnx", ".onnx.gz")):
            raise ExperimentError(
                f"{path}: a network, not an experiment in TOML; write --network {path}"
            )
        try:
            options = tomllib.loads(path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not a text file"
            raise ExperimentError(f"{path}: cannot be read ({reason})") from None
        except tomllib.TOMLDecodeError as error:
            raise ExperimentError(f"{path}: not valid TOML ({error})") from None
        here = path.parent
        if "networks" in options:
            names = _file_names(options["networks"])
            options["networks"] = [str(here / network) for network in names]
        if isinstance(data := options.get("data"), str):
            beside = str(here / data)
            if Path(datasets.Spec.parse(beside).location).exists():
                options["data"] = beside
        return options


_ADVICE = {
    "networks": "name at least one ONNX file",
    "data": "name a data set, such as digits:test[0:100], or a file",
    "domain": "say which inputs are valid, such as 0:1 for pixels between 0 and 1",
}


def _file_names(value: object) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ExperimentError(f"networks {value!r} must be a file name, or a list of them")
    return tuple(names)


def _domain_text(value: object) -> str:
    """As text, also where it is a list [LOW, HIGH]: of numbers, or of lists with one a channel."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and len(value) == 2:
        sides = (numbers("domain", side) for side in value)
        return ":".join(",".join(map(repr, side)) for side in sides)
    raise ExperimentError(f"domain {value!r} must be text such as '0:1', or a list such as [0, 1]")


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise ExperimentError(f"{name} {value!r} must be text, in quotes where it is TOML")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _seconds(name: str, value: object) -> float:
    if name == "budget" and isinstance(value, str):
        raise ExperimentError(
            f"budget '{value}' must be a number of seconds above 0, for each input; that of the "
            "whole run is a flag: --budget 2h"
        )
    try:
        return parse_seconds(value)
    except ExperimentError as error:
        raise ExperimentError(f"{name} {error}") from None


def numbers(name: str, value: object) -> tuple[float, ...]:
    """One number or one a channel, from text with commas or from a list."""
    parts = value.split(",") if isinstance(value, str) else value
    try:
        return tuple(float(part) for part in (parts if isinstance(parts, Sequence) else [parts]))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ExperimentError(f"{name} '{value}' must be numbers, one or one a channel") from None
