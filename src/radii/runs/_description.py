"""What to measure and how: each option is one field, and everything about it stands there."""

# ruff: noqa: RUF009 (the calls in the records make dataclass fields)

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from radii import datasets, problem, strategy  # which load what is used of them, when it is
from radii.errors import ExperimentError, SpecificationError
from radii.runs._fields import (
    CHOICE,
    COUNT,
    NUMBER,
    NUMBERS,
    SECONDS,
    SEED,
    SIZE,
    SWITCH,
    TEXT,
    OptionForm,
    OptionRefusal,
    check_names,
    numbers_of,
    option,
    options_of,
    read_fields,
    seconds_of,
    text_of,
    to_json,
)

if TYPE_CHECKING:
    from radii.attacks import Attack
    from radii.verifiers import Verifier

# --- how values are read and written; the types load when there is a value to read


def _parsed(name: str, text_of: Callable[[object], str] = text_of) -> Any:
    """Reads values of a class of `radii.problem` with `parse`."""

    def read(value: object) -> Any:
        kind = getattr(problem, name)
        return value if isinstance(value, kind) else kind.parse(text_of(value))

    return read


def _registered(module: str, name: str, registry: str, accepts: str) -> OptionForm:
    """A registered name, or in Python an instance or a class of one's own."""

    def read(value: object) -> Any:
        if isinstance(value, str):
            return value
        home = import_module(module)
        kind: Any = value if isinstance(value, type) else type(value)
        if not issubclass(kind, getattr(home, name)):
            return text_of(value)
        own = {each.name: each for each in getattr(home, registry)}
        if own.get(kind.name, kind) is not kind:  # a store would take its answers for radii's own
            raise OptionRefusal(f"is called '{kind.name}', as radii's own is; give it another name")
        return value

    return OptionForm("NAME", read, accepts, write=_spec)


def _spec(chosen: Any) -> str:
    """The text that means the same again: a name, that of a class, or an instance's spec."""
    if isinstance(chosen, str):
        return chosen
    has_spec = not isinstance(chosen, type)
    return str(chosen.spec if has_spec else chosen.name)


def _property(value: object) -> Any:
    if isinstance(value, problem.Property):
        return value
    if isinstance(value, type) and issubclass(value, problem.TargetedProperty):
        return value
    return problem.parse_family(text_of(value))


def _cuts(value: object) -> strategy.Cuts:
    try:
        return strategy.Cuts(text_of(value))
    except ValueError:
        names = ", ".join(strategy.Cuts)
        raise SpecificationError(f"cuts '{value}' are not one of {names}") from None


def _domain(value: object) -> problem.Domain:
    """Text, or a list [LOW, HIGH]: of numbers, or of lists with one a channel."""
    if isinstance(value, problem.Domain):
        return value
    if isinstance(value, list | tuple) and len(value) == 2:
        value = ":".join(",".join(map(repr, numbers_of(side))) for side in value)
    if not isinstance(value, str):
        raise OptionRefusal("must be text such as '0:1', or a list such as [0, 1]")
    return problem.Domain.parse(value)


def _file_names(value: object) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise OptionRefusal("must be a file name, or a list of them")
    return tuple(names)


@dataclass(frozen=True, slots=True)
class RunBudget:
    """Wall seconds of the whole run, as `--budget 2h` gives them: no part of an experiment."""

    seconds: float
    text: str


def _budget(value: object) -> float:
    if isinstance(value, str):
        raise OptionRefusal(
            "must be a number of seconds above 0, for each input, which budget_per_input says "
            f"better; that of the whole run is a flag: --budget {value}"
        )
    return seconds_of(value)


def _budget_flag(text: str) -> float | RunBudget:
    try:
        return seconds_of(float(text))
    except ValueError:
        return RunBudget(seconds_of(text), text)


def _features(value: object) -> Any:
    """What a CSV file says, or what a store holds."""
    if isinstance(value, problem.Features):
        return value
    if isinstance(value, Mapping):
        return problem.Features.from_json(value)
    return datasets.read_features(text_of(str(value) if isinstance(value, Path) else value))


def _classes(value: object) -> tuple[str, ...]:
    """A file, names with commas between them, or a list of names."""
    if isinstance(value, list | tuple) and all(isinstance(name, str) for name in value):
        return datasets.class_names(value)
    return datasets.class_names(value if isinstance(value, Path) else text_of(value))


def _features_json(value: Any) -> Any:
    return value if isinstance(value, str) else value.to_json()


def _scale(value: object) -> Any:
    """`std`, `range`, numbers, or a file of features whose scales are taken."""
    if isinstance(value, str) and value in ("std", "range"):
        return value
    if isinstance(value, str) and value.endswith(".csv"):
        return _features(value)
    try:
        return numbers_of(value) if not hasattr(value, "scale") else value
    except OptionRefusal:
        raise OptionRefusal("must be std, range, numbers with commas, or a .csv file") from None


def _grid(value: object) -> Any:
    """A grid, its text, a list of values, or a file that holds some."""
    if isinstance(value, problem.Grid):
        return value
    if isinstance(value, str):
        try:
            return problem.Grid.parse(value)
        except SpecificationError:
            if not Path(value).exists():
                raise
    if isinstance(value, str | Path):
        return datasets.read_grid(Path(value))
    if not isinstance(value, Iterable):
        raise OptionRefusal("must be text such as '0.001:0.4:0.002', or a list of eps values")
    return problem.Grid.of_values(value)


PROPERTY = OptionForm("NAME", _property, "str | Property | type[TargetedProperty]", write=_spec)
NORM = OptionForm("NAME", _parsed("Norm"), "VALUES | Norm", write=str)
GRID = OptionForm("GRID", _grid, "str | Sequence[float] | Path | Grid", write=str)
SHARD = OptionForm("N/M", _parsed("Shard"), "str | Shard", write=str)
ARITHMETIC = OptionForm("NAME", _parsed("Arithmetic", str), "str | Arithmetic", write=str)
DOMAIN = OptionForm("LOW:HIGH", _domain, "str | Sequence[Any] | Domain", write=str)
FILES = OptionForm("FILE", _file_names, "str | Sequence[str]", parse=str, write=list)
CUTS = OptionForm("NAME", _cuts, "VALUES | Cuts", write=str)
FEATURES = OptionForm("FILE", _features, "str | Path | Features", write=_features_json)
CLASSES = OptionForm("FILE|NAME,...", _classes, "str | Path | Sequence[str]", write=list)
SCALE = OptionForm("std|range|S,...|FILE", _scale, "str | Sequence[float] | Features")
BUDGET = OptionForm("2h", _budget, "float", parse=_budget_flag)

FEEDING_FIELDS = ("domain", "mean", "std", "layout", "label", "threshold")
"""Options of an experiment that say how inputs get into a network."""

_what = partial(option, group="what to measure")
_source = partial(_what, in_identity=False)
_how = partial(option, group="how to measure")
_proof = partial(_how, is_of_proofs=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How radii are measured. Two runs with equal settings on equal instances are the same.

    Each value is read and checked when the record is made; `resolved` settles what depends on
    several. Verifier, attack and search are registered names, or in Python an instance (of a
    search: its class). The order of the fields is that of stored settings. What is None or infinite
    is as if it did not exist: stores from before it did go on.
    """

    property: problem.Property | type[problem.TargetedProperty] = _what(
        PROPERTY,
        "one-to-any (default; also cr), one-to-one[:TARGET] (the target's output reaches the "
        "label's), become[:TARGET] (it is taken for the target), cr:of=prediction, top:k=2, "
        "scr:eta=0.52, sr:delta=10[,on=probabilities], lr:L=10; docs/properties.md has them all",
        default="one-to-any",
        values=("one-to-any", "one-to-one", "become"),
        comment="\nWhat must stay true: the class (one-to-any), or that it is not a certain other "
        "one.",
    )
    norm: problem.Norm = _what(
        NORM,
        "linf (default), l2 or l1",
        default="linf",
        values=("linf", "l2", "l1"),
        comment="How distance is measured: linf (the largest change of a value), l2 or l1.",
    )
    grid: problem.Grid = _what(
        GRID,
        "eps values: 0.001:0.4:0.002 (stop excluded; the default), 0.001,0.01,0.1, "
        "log:0.001:0.1:20, or a file of them",
        default="0.001:0.4:0.002",
        comment="The radii that are asked about: start:stop:step (stop excluded), a list, "
        "log:start:stop:count, or a file.",
    )
    eps: float | None = _what(
        NUMBER,
        "one eps instead of a grid: quick robust accuracy",
        metavar="E",
        in_identity=False,
    )
    search: type[strategy.Search] | str = _proof(
        _registered("radii.strategy", "Search", "SEARCHES", "str | type[Search]"),
        "native (default with --verifier native), attack-guided (default otherwise), k-binary, "
        "binary, linear, or attack-only, which proves nothing",
        default="",
        values=("native", "attack-guided", "k-binary", "binary", "linear"),
    )
    verifier: Verifier | str = _proof(
        _registered("radii.verifiers", "Verifier", "VERIFIERS", "str | Verifier"),
        "native (default), milp, enumeration, marabou, gurobi, vnncomp, portfolio:NAME,NAME",
        default="native",
        comment="\nThe verifier (radii doctor lists who is installed), and wall seconds per input.",
    )
    attack: Attack | str = _how(
        _registered("radii.attacks", "Attack", "ATTACKS", "str | Attack"),
        "minimum-norm (default), pgd, apgd, fgsm, autoattack, random-search, foolbox:NAME",
        default="minimum-norm",
    )
    k: int | None = _proof(COUNT, "queries of an input at once: k-binary (2), linear (1)")
    cuts: strategy.Cuts | None = _proof(
        CUTS, "of k-binary: in equal parts (default), or golden", values=("equal", "golden")
    )
    timeout: float = _proof(
        SECONDS,
        "wall seconds per query; of native: for all proofs of an input (60)",
        default=60.0,
    )
    cpu_timeout: float = _proof(SECONDS, "CPU seconds per query (no limit)", default=math.inf)
    budget: float = _how(
        BUDGET,
        "time for the whole run (30s, 10m, 2h), spent where it narrows the distribution most",
        default=math.inf,
    )
    budget_per_input: float | None = _how(
        SECONDS,
        "wall seconds for each input, attack and proofs together (no limit)",
        in_identity=False,
    )
    seed: int = _how(SEED, "seed of everything random (0)", default=0)
    memory: int | None = _how(
        SIZE,
        "memory of each worker, such as 500M or 2G (its share of nine tenths of the machine's)",
    )
    device: str | None = _proof(
        CHOICE,
        "where the verifier computes, if it can choose: cpu, cuda, mps",
        values=("cpu", "cuda", "mps"),
    )
    tool: str | None = _proof(
        TEXT,
        "what --verifier vnncomp runs: a command with {onnx} {vnnlib} {out} {timeout}, a "
        "run_instance.sh, or alpha-beta-crown:FOLDER, nnenum:FOLDER, oval-bab:FOLDER",
        metavar="COMMAND",
    )
    arithmetic: problem.Arithmetic | None = _proof(
        ARITHMETIC,
        "what proofs speak of: float (default), the network as it runs, in its own number type and "
        "any order of summation (float:8 for 8 times the rounding errors); or real, the network "
        "without rounding",
        values=("float", "real"),
        comment="What proofs speak of: the network as it runs (float), or without rounding (real).",
    )

    features: problem.Features | None = _what(
        FEATURES,
        "what each column is, as a CSV file: feature, kind, low, high, scale, group; "
        "docs/tabular.md describes it",
        comment="\nWhat each column is: number, integer, fixed or one-hot, its bounds and scale.",
    )
    threshold: float | None = _what(
        NUMBER,
        "for networks with one output: class 1 above it, 0 below (0.5 after a sigmoid, else 0)",
        in_identity=False,
    )
    scale: str | tuple[float, ...] | problem.Features | None = _what(
        SCALE,
        "the unit of eps for each feature: std (its deviation in the data), range (the width of "
        "its domain), numbers, or a CSV file of features",
        values=("std", "range"),
        in_identity=False,
        comment="By how much a feature moves at eps 1: std, range, or a number each.",
    )
    shard: problem.Shard | None = _what(
        SHARD,
        "one of M equal parts of the inputs, such as 3/20, each in a directory of its own; "
        "radii merge joins them",
    )
    certificates: bool = _proof(
        SWITCH,
        "keep what shows each proof, for radii check (default)",
        default=True,
        in_identity=False,
    )

    def __post_init__(self) -> None:
        read_fields(self)
        self._take("eps", "grid", lambda eps: problem.Grid.of_one(eps))
        self._take("budget_per_input", "budget", float)

    def _take(self, name: str, home: str, convert: Callable[[Any], Any]) -> None:
        """A value that is another way to write `home` is kept there alone."""
        value = getattr(self, name)
        if value is None:
            return
        default = next(one.default for one in dataclasses.fields(self) if one.name == home)
        if getattr(self, home) != options_of(Settings)[home].read(default):
            raise ExperimentError(f"{name} and {home} say the same thing: give one of them")
        object.__setattr__(self, home, convert(value))
        object.__setattr__(self, name, None)

    @classmethod
    def from_options(cls, values: Mapping[str, Any]) -> Self:
        """From flat options, as flags and TOML files give them. An unknown name raises."""
        check_names(cls, values)
        return cls(**values)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """As a store holds them; what it does not know, or holds as null, is as by default."""
        known = {one.name for one in dataclasses.fields(cls)}
        return cls(**{n: v for n, v in stored.items() if n in known and v is not None})

    def to_json(self) -> dict[str, Any]:
        """What makes results comparable, as a store holds it."""
        return to_json(self)

    def resolved(self) -> Self:
        """With search, k, cuts and arithmetic chosen as suits the others. Refuses contradictions.

        Reading stored settings needs none of this: the verifier may not be installed here.
        """
        from radii import verifiers

        kind = self.search_class()
        if self.device is not None:
            if not kind.needs_verifier:
                raise ExperimentError(
                    f"device '{self.device}': search '{kind.name}' only attacks, on the CPU"
                )
            verifiers.check_device(self.device)
        has_cuts = "cuts" in inspect.signature(kind).parameters
        chosen = dataclasses.replace(
            self,
            search=self.search or kind.name,
            k=kind.default_k if self.k is None else self.k,
            cuts=strategy.Cuts.EQUAL if self.cuts is None and has_cuts else self.cuts,
            arithmetic=self._proven_arithmetic() if kind.needs_verifier else None,
        )
        chosen.make_verifier()
        chosen.make_attack()
        chosen.make_search()
        return chosen

    def search_class(self) -> type[strategy.Search]:
        """What makes the searches; by default what suits the verifier."""
        from radii import verifiers

        if not self.search:
            climbs = isinstance(self.make_verifier(), verifiers.GridVerifier)
            return strategy.Native if climbs else strategy.AttackGuided
        return strategy.get(self.search) if isinstance(self.search, str) else self.search

    def _proven_arithmetic(self) -> problem.Arithmetic:
        """What is asked for; else what the verifier proves in: float, if it may choose."""
        from radii import verifiers

        if isinstance(self.verifier, str):
            return verifiers.arithmetic_of(self.verifier, self.arithmetic)
        return self.arithmetic or self.verifier.arithmetic

    def make_search(self) -> strategy.Search:
        """A new search for one instance."""
        seconds = self.proof_seconds()
        probes = self.make_attack().quick() is not None
        return strategy.make(
            self.search_class(),
            self.grid,
            k=self.k,
            cuts=self.cuts,
            seconds=seconds,
            probes=probes,
        )

    def proof_seconds(self) -> float:
        """Wall seconds that a question may take unless an agenda says otherwise."""
        if self.search_class().needs_radius and self.budget < math.inf:
            return self.budget
        return min(self.timeout, self.budget)

    def make_attack(self) -> Attack:
        """The attack that was given, or the one of that name."""
        from radii import attacks

        return attacks.get(self.attack) if isinstance(self.attack, str) else self.attack

    def make_verifier(self) -> Verifier:
        """The verifier that was given, or the one of that name with the options chosen for it."""
        from radii import verifiers

        options: dict[str, Any] = {"device": self.device, "tool": self.tool}
        options = {name: value for name, value in options.items() if value is not None}
        if isinstance(self.verifier, str):
            if verifiers.has_option(self.verifier, "certificates"):
                options["certificates"] = self.certificates
            return verifiers.get(self.verifier, arithmetic=self.arithmetic, **options)
        if self.arithmetic not in (None, self.verifier.arithmetic):
            options["arithmetic"] = str(self.arithmetic)
        for name, value in options.items():
            raise ExperimentError(
                f"{name} '{value}': give it to the verifier '{self.verifier.name}' itself, which "
                "is an instance"
            )
        return self.verifier


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment(Settings):
    """What to measure and how: flat, as in TOML.

    What it adds to Settings is no part of the identity: a plan writes the networks' fingerprints,
    their domains and the instances instead, which are the same in every folder.
    """

    networks: tuple[str, ...] = _source(
        FILES,
        "an ONNX file; repeat for several",
        flag="--network",
        is_repeated=True,
        comment="\nThe networks, as ONNX files; paths are relative to this file.",
        advice="name at least one ONNX file",
    )
    data: str = _source(
        TEXT,
        "digits:test[0:100], mnist:train[0:100], file.npz[0:50], file.csv, or a folder",
        metavar="SPEC",
        comment="\nThe inputs. Other selections: [0:100], [stratified 100 seed 1], [per-class 10].",
        advice="name a data set, such as digits:test[0:100], or a file",
    )
    domain: problem.Domain = _source(
        DOMAIN,
        "valid input values, such as 0:1; per channel: 0,0,0:1,1,1",
        comment="\nWhich inputs are valid at all; counterexamples outside of it do not count.",
        advice="say which inputs are valid, such as 0:1 for pixels between 0 and 1",
    )
    mean: tuple[float, ...] | None = _source(
        NUMBERS,
        "normalisation: mean to subtract, per channel",
        metavar="M[,M...]",
        comment="\nHow the networks are fed: (x - mean) / std. What was tried, on the inputs "
        "above:",
    )
    std: tuple[float, ...] | None = _source(
        NUMBERS, "normalisation: deviation to divide by, per channel", metavar="S[,S...]"
    )
    layout: str | None = _source(
        TEXT,
        "chw or hwc: how a network with a flat input lists coloured images; cwh or whc: the same "
        "with rows and columns exchanged",
        metavar="ORDER",
        values=("chw", "hwc", "cwh", "whc"),
    )
    label: str | None = _source(
        TEXT,
        "the column of a CSV file that holds the label (label, or else the first)",
        metavar="COLUMN",
    )
    classes: tuple[str, ...] | None = _source(
        CLASSES,
        "names of the classes in the order of the network's outputs, with commas or as a file with "
        "one a line; needed where labels are words and not all of them occur",
        comment="What the network's outputs are called, in their order.",
    )

    @classmethod
    def from_options(cls, values: Mapping[str, Any]) -> Self:
        """As of Settings; features that all have bounds need no domain beside them."""
        if values.get("features") is not None and values.get("domain") in (None, ""):
            features = options_of(Experiment)["features"].read(values["features"])
            values = {**values, "features": features, "domain": features.domain(None)}
        return super(Experiment, cls).from_options(values)

    def feeding(self) -> dict[str, Any]:
        """How inputs get into the networks, as a store keeps it and the options read it."""
        options, values = options_of(Experiment), {}
        for name in FEEDING_FIELDS:
            value = getattr(self, name)
            values[name] = None if value is None else options[name].form.write(value)
        return values


def values_of_file(path: Path) -> dict[str, Any]:
    """The options in a TOML file; paths in it are relative to the file."""
    import tomllib

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
        values = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise ExperimentError(f"{path}: cannot be read ({reason})") from None
    except tomllib.TOMLDecodeError as error:
        raise ExperimentError(f"{path}: not valid TOML ({error})") from None
    return _beside(path.parent, values)


def _beside(here: Path, values: dict[str, Any]) -> dict[str, Any]:
    if "networks" in values:
        names = options_of(Experiment)["networks"].read(values["networks"])
        values["networks"] = [str(here / name) for name in names]
    for name in ("features", "scale"):
        if isinstance(file := values.get(name), str) and file.endswith(".csv"):
            values[name] = str(here / file)
    if isinstance(file := values.get("classes"), str) and datasets.exists(here / file):
        values["classes"] = str(here / file)
    if isinstance(grid := values.get("grid"), str) and datasets.exists(here / grid):
        values["grid"] = str(here / grid)
    if isinstance(data := values.get("data"), str):
        beside = str(here / data)
        if Path(datasets.Spec.parse(beside).location).exists():
            values["data"] = beside
    return values
