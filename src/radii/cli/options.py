"""The flags that `run` and `attack` share, and the experiment they describe."""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.cli.parsing import seconds
from radii.errors import ExperimentError

if TYPE_CHECKING:
    from radii.execution import Cluster
    from radii.experiments import Experiment
    from radii.verdicts import Arithmetic


_SETTINGS = (
    "property",
    "norm",
    "grid",
    "search",
    "cuts",
    "verifier",
    "attack",
    "memory",
    "device",
    "tool",
    "arithmetic",
)
_NUMBERS = ("k", "timeout", "cpu_timeout", "seed")


def add_experiment_flags(parser: argparse.ArgumentParser, *, proves: bool = True) -> None:
    """All that describes an experiment. Flags win over the file.

    Where nothing is proven the flags of proofs are taken, too, so that the flags of a run serve,
    but help does not list them.
    """
    parser.add_argument(
        "experiment", nargs="?", type=Path, metavar="EXPERIMENT.toml", help="a description in TOML"
    )
    what = parser.add_argument_group("what to measure")
    what.add_argument(
        "--network", action="append", metavar="FILE", help="an ONNX file; repeat for several"
    )
    what.add_argument(
        "--data",
        metavar="SPEC",
        help="digits:test[0:100], mnist:train[0:100], file.npz[0:50], file.csv, or a folder",
    )
    what.add_argument(
        "--domain", metavar="LOW:HIGH", help="valid inputs, such as 0:1; or 0,0,0:1,1,1 a channel"
    )
    what.add_argument("--mean", metavar="M[,M...]", help="normalisation: subtracted, per channel")
    what.add_argument("--std", metavar="S[,S...]", help="normalisation: divided by, per channel")
    what.add_argument(
        "--layout",
        metavar="ORDER",
        help="chw or hwc: how a network with a flat input lists coloured images",
    )
    what.add_argument("--norm", metavar="NAME", help="linf (default), l2 or l1")
    what.add_argument(
        "--property",
        metavar="NAME",
        help="one-to-any (default; also cr), one-to-one[:TARGET] (the target's output reaches the "
        "label's), become[:TARGET] (it is taken for the target), cr:of=prediction, scr:eta=0.52, "
        "sr:delta=10[,on=probabilities], lr:L=10; docs/properties.md has them all",
    )
    what.add_argument(
        "--grid",
        metavar="START:STOP:STEP",
        help="eps values, stop excluded (0.001:0.4:0.002); or mnist for these, pixels for "
        "0:0.4:1/255",
    )
    how = parser.add_argument_group("how to measure")
    _add_proof_flags(how if proves else _Unlisted(how))
    how.add_argument(
        "--attack", metavar="NAME", help="minimum-norm (default), apgd, pgd, fgsm, foolbox:NAME"
    )
    how.add_argument(
        "--budget",
        metavar="S|2h",
        help="a number: wall seconds of each input (none); with a unit (30s, 10m, 2h): of the "
        "whole run, spent where it narrows the distribution most",
    )
    how.add_argument(
        "--memory",
        metavar="SIZE",
        help="of each worker, such as 500M or 2G (its share of nine tenths of the machine's)",
    )
    how.add_argument("--jobs", type=int, metavar="N", help="worker processes (one a core)")
    _add_cluster_flags(parser.add_argument_group("where to measure"))
    how.add_argument("--seed", type=int, metavar="N", help="of everything random (0)")


class _Unlisted:
    """A group of flags that are taken, but not listed by help."""

    def __init__(self, group: Any) -> None:
        self._group = group

    def add_argument(self, name: str, **options: Any) -> None:
        self._group.add_argument(name, **{**options, "help": argparse.SUPPRESS})


def _add_proof_flags(how: Any) -> None:
    """What is asked, and of which verifier."""
    how.add_argument(
        "--search",
        metavar="NAME",
        help="native (default with --verifier native), attack-guided (default otherwise), "
        "k-binary, binary, linear, or attack-only, which proves nothing",
    )
    how.add_argument(
        "--k", type=int, metavar="N", help="queries of an input at once: k-binary (2), linear (1)"
    )
    how.add_argument(
        "--cuts", metavar="NAME", help="of k-binary: in equal parts (default), or golden"
    )
    how.add_argument(
        "--verifier",
        metavar="NAME",
        help="native (default), milp, enumeration, marabou, gurobi, vnncomp, portfolio:NAME,NAME",
    )
    add_arithmetic_flag(how)
    how.add_argument(
        "--timeout",
        type=seconds,
        metavar="S",
        help="wall seconds a query; native: all proofs of an input (60)",
    )
    how.add_argument(
        "--cpu-timeout", type=seconds, metavar="S", help="CPU seconds a query (no limit)"
    )
    _add_verifier_flags(how)


def _add_cluster_flags(group: Any) -> None:
    """Where queries run, which changes no result: no part of the experiment."""
    group.add_argument(
        "--ray", metavar="ADDRESS", help="on a Ray cluster: HOST:PORT of its head, or auto"
    )
    group.add_argument("--ray-cpus", type=float, metavar="N", help="of a node, a query (1)")
    group.add_argument(
        "--ray-gpus",
        type=float,
        metavar="N",
        help="of a node, a query (1 on --device cuda, else 0)",
    )


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


def add_machine_flags(group: Any) -> None:
    """What a process that decides queries may use of the machine."""
    group.add_argument(
        "--memory",
        metavar="SIZE",
        help="of each process that proves, such as 500M or 2G (no limit)",
    )
    _add_verifier_flags(group)


def _add_verifier_flags(group: Any) -> None:
    group.add_argument(
        "--device", metavar="NAME", help="where a verifier that can choose computes: cpu, cuda, mps"
    )
    group.add_argument(
        "--tool",
        metavar="COMMAND",
        help="what --verifier vnncomp runs: a command with {onnx} {vnnlib} {out} {timeout}, "
        "a run_instance.sh, or alpha-beta-crown:FOLDER, nnenum:FOLDER, oval-bab:FOLDER",
    )


def add_arithmetic_flag(group: Any) -> None:
    group.add_argument(
        "--arithmetic",
        metavar="NAME",
        help="what proofs speak of: float (default), the network as it runs, in its own number "
        "type and any order of summation (float:8 for 8 times the rounding errors); or real, "
        "the network without rounding",
    )


def arithmetic_from(args: argparse.Namespace) -> Arithmetic | None:
    """The arithmetic that the flag names; None without it: what suits the verifier."""
    from radii.verdicts import Arithmetic

    return None if args.arithmetic is None else Arithmetic.parse(args.arithmetic)


def add_json_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def experiment_from(args: argparse.Namespace, **fixed: str) -> Experiment:
    """The experiment that the file and the flags describe; `fixed` settings win over both."""
    from radii.experiments import Experiment

    options = Experiment.options_of(args.experiment) if args.experiment is not None else {}
    if args.network is not None:
        options["networks"] = args.network
    for name in ("data", "domain", "mean", "std", "layout", *_SETTINGS, *_NUMBERS):
        value = getattr(args, name, None)  # not every command has every flag
        if value is not None:
            options[name] = value
    if args.budget is not None:
        options["budget"] = _seconds_of_an_input(args.budget)
    return Experiment.from_options({**options, **fixed})


def _seconds_of_an_input(budget: str) -> float:
    try:
        return float(budget)
    except ValueError:
        raise ExperimentError(
            f"--budget {budget} must be a number of wall seconds for each input; "
            "a budget of the whole is for radii run and radii attack"
        ) from None


def take_run_budget(args: argparse.Namespace) -> float | None:
    """Seconds of the whole run, taken out of the arguments; None without such a budget.

    A plain number stays in them: it is of each input, and a part of the experiment.
    """
    from radii.experiments import parse_duration

    if args.budget is None:
        return None
    with suppress(ValueError):
        float(args.budget)
        return None
    try:
        seconds = parse_duration(args.budget)
    except ExperimentError as error:
        raise ExperimentError(f"--budget {error}") from None
    args.budget = None
    return seconds
