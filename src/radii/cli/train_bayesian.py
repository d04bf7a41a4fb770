"""`radii train --bayesian`: a sample of the posterior in place of one network."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from radii.errors import TrainingError
from radii.terminal import say

if TYPE_CHECKING:
    from radii.datasets import Dataset


_BAYESIAN_NUMBERS = {"samples": int, "warmup": int, "chains": int, "step": float, "steps": int}
_HELP = {
    "samples": "of each chain (100)",
    "warmup": "samples before them (100)",
    "chains": "with their own first weights (2)",
    "step": "first step size (0.01)",
    "steps": "of a trajectory of hmc (30)",
}
_UNUSED = ("epochs", "batch", "optimizer", "rate", "rate_step", "rate_factor", "momentum")


def add_bayesian_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of a posterior sample."""
    group = parser.add_argument_group("a Bayesian network")
    group.add_argument(
        "--bayesian", metavar="KERNEL", help="sample the weights' posterior: hmc or nuts"
    )
    for name, kind in _BAYESIAN_NUMBERS.items():
        metavar = "N" if kind is int else "S"
        group.add_argument(f"--{name}", type=kind, metavar=metavar, help=_HELP[name])
    group.add_argument("--prior", type=float, metavar="P", help="width of what units receive (3)")
    group.add_argument(
        "--members", type=int, default=20, metavar="N", help="of the prediction's mean (20)"
    )


def run_bayesian(args: argparse.Namespace, data: Dataset, test: Dataset | None) -> int:
    """Sample, write, and say whether the chains converged."""
    from radii.balls import Domain
    from radii.cli.json_output import print_json
    from radii.cli.progress import ProgressBar
    from radii.training import Hamiltonian, train_bayesian

    for name in (*_UNUSED, "weight_decay", "mean", "std", "eps", "prune", "tune"):
        if getattr(args, name) is not None:
            flag = name.replace("_", "-")
            raise TrainingError(f"--{flag} has no meaning with --bayesian, which minimises nothing")
    names = (*_BAYESIAN_NUMBERS, "prior")
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    how = Hamiltonian(kernel=args.bayesian, **given)
    total, done = how.chains * (how.samples + how.warmup), 0
    with ProgressBar() as bar:

        def advanced() -> None:
            nonlocal done
            done += 1
            bar.counted(done, total)

        found = train_bayesian(
            args.arch,
            data,
            test=test,
            how=how,
            members=args.members,
            out=args.out,
            domain=Domain.parse(args.domain),
            seed=args.seed or 0,
            advanced=advanced,
        )
    if args.json:
        print_json(_read_bayesian(args.out))
        return 0
    say(
        f"{found.network.name}: accuracy {found.accuracy:.4f} on "
        f"{'held-out' if found.held_out else 'its own training'} inputs, trained on "
        f"{found.trained_on}; the mean of {len(found.members)} members, in {args.out}"
    )
    say(found.convergence)
    return 0


def _read_bayesian(directory: Path) -> object:
    import json

    return json.loads((directory / "bayesian.json").read_text("utf-8"))
