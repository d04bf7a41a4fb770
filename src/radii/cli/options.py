"""Flags that commands share, each declared once, and the experiment that they describe."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.errors import ExperimentError
from radii.experiments import (
    COUNT,
    NUMBER,
    PATH,
    Experiment,
    Option,
    RunBudget,
    add_flags,
    given_flags,
    options_of,
    values_of_file,
)

if TYPE_CHECKING:
    from radii.execution import Cluster
    from radii.verdicts import Arithmetic

OF_EXPERIMENT = options_of(Experiment)
"""Options of an experiment by name; a command that has some of them adds them with `add_to`."""

JOBS = Option(name="jobs", form=COUNT, help="worker processes (one a core)")
OUT = Option(name="out", form=PATH, metavar="DIR", help="where the results go")
EPS = Option(name="eps", form=NUMBER, metavar="E", help="the radius")
RAY = (
    Option(
        name="ray",
        form=OF_EXPERIMENT["data"].form,
        metavar="ADDRESS",
        help="on a Ray cluster: HOST:PORT of its head, or auto",
    ),
    Option(name="ray_cpus", form=NUMBER, metavar="N", help="of a node, a query (1)"),
    Option(
        name="ray_gpus",
        form=NUMBER,
        metavar="N",
        help="of a node, a query (1 on --device cuda, else 0)",
    ),
)


def add_options(group: Any, *names: str, **helps: str) -> None:
    """Options of an experiment, by name; for those given as keywords help says this instead."""
    for name in (*names, *helps):
        option = OF_EXPERIMENT[name]
        option.add_to(group, help=helps.get(name, option.help))


def add_machine_flags(group: Any) -> None:
    """What a process that decides queries may use of the machine."""
    add_options(group, memory="of each process that proves, such as 500M or 2G (no limit)")
    add_options(group, "device", "tool")


def add_arithmetic_flag(group: Any) -> None:
    add_options(group, "arithmetic")


def arithmetic_from(args: argparse.Namespace) -> Arithmetic | None:
    """The arithmetic that the flag names; None without it: what suits the verifier."""
    chosen: Arithmetic | None = args.arithmetic
    return chosen


def add_json_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def add_experiment_flags(parser: argparse.ArgumentParser, *, proves: bool = True) -> None:
    """All that describes an experiment. Flags win over the file.

    Where nothing is proven the flags of proofs are taken, too, so that the flags of a run serve,
    but help does not list them.
    """
    parser.add_argument(
        "experiment", nargs="?", type=Path, metavar="EXPERIMENT.toml", help="a description in TOML"
    )
    groups = add_flags(
        parser, Experiment, is_listed=lambda option: proves or not option.is_of_proofs
    )
    JOBS.add_to(groups["how to measure"])
    where = parser.add_argument_group("where to measure")
    for option in RAY:
        option.add_to(where)


def cluster_from(args: argparse.Namespace) -> Cluster | None:
    """The cluster that the flags describe; None: this machine."""
    from radii.execution import Cluster

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
    flags = given_flags(args, Experiment)
    if isinstance(budget := flags.get("budget"), RunBudget):
        raise ExperimentError(
            f"--budget {budget.text} must be a number of wall seconds for each input; "
            "a budget of the whole is for radii run and radii attack"
        )
    return Experiment.from_options({**values, **flags, **fixed})


def take_run_budget(args: argparse.Namespace) -> float | None:
    """Seconds of the whole run, taken out of the arguments; None without such a budget.

    A plain number stays in them: it is of each input, and a part of the experiment.
    """
    if not isinstance(args.budget, RunBudget):
        return None
    seconds: float = args.budget.seconds
    args.budget = None
    return seconds
