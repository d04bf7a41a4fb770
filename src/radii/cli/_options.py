"""Flags that commands share, each declared once, and the experiment that they describe."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.errors import DataError, ExperimentError, NetworkError, did_you_mean
from radii.runs import (
    COUNT,
    NUMBER,
    PATH,
    Experiment,
    Option,
    OptionForm,
    OptionRefusal,
    RunBudget,
    add_flags,
    given_flags,
    options_of,
    values_of_file,
)

if TYPE_CHECKING:
    from radii.runs import Cluster


def _level(value: Any) -> float:
    level: float = NUMBER.read(value)
    if not 0.5 <= level < 1:
        raise OptionRefusal("is a confidence of at least 0.5 and below 1")
    return level


def one_of(*names: str) -> OptionForm:
    """A form whose values are these names."""

    def read(value: Any) -> Any:
        if value not in names:
            raise OptionRefusal(f"is not one of {', '.join(names)}")
        return value

    return OptionForm("NAME", read, "str")


OF_EXPERIMENT = options_of(Experiment)
"""Options of an experiment by name; a command that has some of them adds them with `add_to`."""

SAME_OPTIONS = (("eps", "grid"), ("budget_per_input", "budget"))
"""Two ways to write one thing."""

JOBS = Option(name="jobs", form=COUNT, help="worker processes (one per core)")
OUT = Option(name="out", form=PATH, metavar="DIR", help="where the results go")
EPS = Option(name="eps", form=NUMBER, metavar="E", help="the radius")
LEVEL = Option(name="level", form=OptionForm("P", _level, "float"), help="confidence (0.95)")
RAY = (
    Option(
        name="ray",
        form=OF_EXPERIMENT["data"].form,
        metavar="ADDRESS",
        help="on a Ray cluster: HOST:PORT of its head, or auto",
    ),
    Option(name="ray_cpus", form=NUMBER, metavar="N", help="CPUs per query (1)"),
    Option(
        name="ray_gpus",
        form=NUMBER,
        metavar="N",
        help="GPUs per query (1 on --device cuda, else 0)",
    ),
)


def add_options(group: Any, *names: str, **changed: str | dict[str, Any]) -> None:
    """Options of an experiment, by name; those given as keywords have another help, or default."""
    for name in (*names, *changed):
        more = changed.get(name, {})
        OF_EXPERIMENT[name].add_to(group, **({"help": more} if isinstance(more, str) else more))


def add_json_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def add_latex_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--latex", action="store_true", help="print tables for LaTeX (booktabs) instead"
    )


def add_level_flag(parser: argparse.ArgumentParser) -> None:
    LEVEL.add_to(parser, default=0.95)


def add_eps_flag(parser: Any, text: str) -> None:
    """Several radii; without the flag there are none."""
    parser.add_argument("--eps", type=eps_values, default=(), metavar="E[,E...]", help=text)


def add_output_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="the file to write (default: standard output)",
    )


def add_open_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--open", action="store_true", help="show the page in a browser")


def open_if_asked(args: argparse.Namespace, page: Path) -> None:
    if args.open:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


def add_experiment_flags(
    parser: argparse.ArgumentParser,
    *,
    proves: bool = True,
    without: Sequence[str] = (),
    described: str = "an experiment file",
) -> None:
    """All that describes an experiment. Flags win over the file.

    Where nothing is proven the flags of proofs are accepted, too, so that the flags of a run can be
    used, but help does not list them. `without` are options for which the command has its own flag.
    """
    parser.add_argument(
        "experiment", nargs="?", type=Path, metavar="EXPERIMENT.toml", help=described
    )
    groups = add_flags(
        parser,
        Experiment,
        [name for name in OF_EXPERIMENT if name not in without],
        is_listed=lambda option: proves or not option.is_of_proofs,
    )
    JOBS.add_to(groups["how to measure"])
    where = parser.add_argument_group("where to measure")
    for option in RAY:
        option.add_to(where)


def spare_workers(jobs: int | None) -> AbstractContextManager[None]:
    """Workers that start while this process makes its plan, as far as it leaves them cores.

    Those beyond start with their first task, and so do all where this process has loaded already
    what takes the time.
    """
    from radii.processes import has_workers

    if "torch" in sys.modules or not has_workers():
        return nullcontext()
    from radii.processes import ONE_THREAD, spare_children, usable_cores
    from radii.runs import WORKER_MODULES

    cores = usable_cores()
    return spare_children(min(jobs or cores, cores - 1), WORKER_MODULES, ONE_THREAD)


def check_files(args: argparse.Namespace) -> None:
    """Check that what the arguments name exists, before anything loads that takes seconds."""
    from radii.datasets import check_spec

    described = getattr(args, "experiment", None)
    values = values_of_file(described) if described is not None and described.is_file() else {}
    for path in map(Path, args.networks or values.get("networks") or ()):
        if not path.exists():
            beside = [str(path.with_name(each.name)) for each in path.parent.glob("*.onnx*")]
            meant = did_you_mean(str(path), beside)
            raise NetworkError(f"{path}: cannot be read: No such file or directory{meant}")
    if isinstance(data := args.data or values.get("data"), str):
        check_spec(data)


def cluster_from(args: argparse.Namespace) -> Cluster | None:
    """The cluster that the flags describe; None: this machine."""
    from radii.runs import Cluster

    if args.ray is not None:
        cpus = 1.0 if args.ray_cpus is None else args.ray_cpus
        return Cluster(address=args.ray, cpus=cpus, gpus=args.ray_gpus)
    for name in ("ray_cpus", "ray_gpus"):
        if getattr(args, name) is not None:
            flag = name.replace("_", "-")
            raise ExperimentError(f"--{flag} {getattr(args, name):g} has no use without --ray")
    return None


def experiment_from(args: argparse.Namespace, **fixed: Any) -> Experiment:
    """The experiment that the file and the flags describe; `fixed` settings win over both."""
    values = values_of_file(args.experiment) if args.experiment is not None else {}
    flags = experiment_flags(args)
    for name, other in SAME_OPTIONS:
        if flags.keys() & {name, other}:  # the flag is meant, however the file says it
            values = {key: value for key, value in values.items() if key not in (name, other)}
    return Experiment.from_options({**values, **flags, **fixed})


def experiment_flags(args: argparse.Namespace) -> dict[str, Any]:
    """The options of an experiment that were given as flags."""
    flags = given_flags(args, Experiment)
    if isinstance(budget := flags.get("budget"), RunBudget):
        raise ExperimentError(
            f"--budget {budget.text} of the whole is for radii run and radii attack; "
            f"that of each input is --budget-per-input {budget.text}"
        )
    for name, other in SAME_OPTIONS:
        if name in flags and other in flags:
            flag, second = (f"--{each.replace('_', '-')}" for each in (name, other))
            raise ExperimentError(f"{flag} and {second} say the same thing: give one of them")
    return flags


def given(args: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """The named arguments that were given, by their names."""
    return {name: getattr(args, name) for name in names if getattr(args, name) is not None}


def take_run_budget(args: argparse.Namespace) -> float | None:
    """Seconds of the whole run, taken out of the arguments; None without such a budget.

    A plain number stays in them: it is of each input, and a part of the experiment.
    """
    if not isinstance(args.budget, RunBudget):
        return None
    seconds: float = args.budget.seconds
    args.budget = None
    return seconds


def eps_values(text: str) -> tuple[float, ...]:
    """Radii from a flag such as 0.01,0.02 or 8/255."""
    values = []
    for part in text.split(","):
        if not part.strip():
            continue
        value = EPS.parse(part.strip())
        if not 0 <= value < float("inf"):
            raise DataError(f"--eps {part.strip()} must be a finite number >= 0")
        values.append(value)
    return tuple(values)
