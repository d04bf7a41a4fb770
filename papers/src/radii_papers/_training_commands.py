"""`radii study prune` and `bayesian`: single networks as the trade-off study makes them."""

from __future__ import annotations

import argparse
import json
from typing import Any

from radii.cli import (
    OUT,
    ProgressBar,
    TrainingProgress,
    add_options,
    add_training_flags,
    interruptible,
    load_training_data,
    print_json,
    training_data,
    training_options,
    training_summary,
)
from radii.terminal import say

PRUNE_EPILOG = """examples:
  radii study prune --data mnist:train --arch net_256x2 --strength 0.9 --rounds 3 --out pruned
  radii study prune --data digits:train --arch dense:16 --strength 0.5 --epochs 3 --rewind \\
      --out ticket

The same command again continues. DIR holds the last network as of radii train, pruning.json, and
each round in a directory of its own. Regimes and architectures are those of radii train.
"""

BAYESIAN_EPILOG = """examples:
  radii study bayesian --data digits:train[0:300] --arch dense:16 --out bayesian
  radii study bayesian --data mnist:train[0:1000] --arch dense:64 --samples 200 --out bayesian

The same command again continues with the next chain. DIR holds network.onnx, which predicts the
mean softmax of its members, these members, and bayesian.json.
"""

SAMPLING: dict[str, tuple[type, str, str]] = {
    "samples": (int, "N", "samples of each chain (100)"),
    "warmup": (int, "N", "samples before them, which are thrown away (100)"),
    "chains": (int, "N", "chains, each with first weights of its own (2)"),
    "step": (float, "S", "first step size (0.01)"),
    "steps": (int, "N", "steps of a trajectory of hmc (30)"),
    "prior": (float, "P", "width of the prior on what units receive (3)"),
}
"""The flags that are fields of `Hamiltonian`, whose defaults are in brackets."""


def add_prune_arguments(parser: argparse.ArgumentParser) -> None:
    pruning = parser.add_argument_group("how to prune")
    pruning.add_argument(
        "--strength",
        type=float,
        required=True,
        metavar="S",
        help="share of the weights that is removed, such as 0.9",
    )
    pruning.add_argument(
        "--rounds", type=int, default=1, metavar="N", help="rounds, each followed by training (1)"
    )
    pruning.add_argument(
        "--rewind", action="store_true", help="begin each round from the first weights"
    )
    add_training_flags(parser)
    parser.add_argument("--json", action="store_true", help="print the card as JSON")


def run_prune(args: argparse.Namespace) -> int:
    """Prune, write, and say what the last network is worth."""
    from radii_papers.tradeoff import prune

    with interruptible(f"{args.out} keeps it"):
        data, test = training_data(args)
        with TrainingProgress() as progress:
            pruned = prune(
                args.arch,
                data,
                strength=args.strength,
                rounds=args.rounds,
                rewind=args.rewind,
                test=test,
                observer=progress,
                **training_options(args),
            )
    card = pruned.trained.card
    text = card.as_json() if args.json else training_summary(pruned.trained, args.out)
    say(*text.split("\n"))
    return 0


def add_bayesian_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", required=True, metavar="SPEC", help="mnist:train[0:1000]")
    parser.add_argument(
        "--test", metavar="SPEC", help="images to test on (the test split of a train split)"
    )
    parser.add_argument("--arch", required=True, metavar="NAME", help="as of radii train")
    add_options(parser, domain={"default": "0:1", "help": "valid inputs (0:1)"})
    OUT.add_to(parser, required=True, help="where the networks go")
    parser.add_argument("--kernel", default="hmc", metavar="NAME", help="hmc (default) or nuts")
    for name, (kind, metavar, text) in SAMPLING.items():
        parser.add_argument(f"--{name}", type=kind, metavar=metavar, help=text)
    parser.add_argument(
        "--members",
        type=int,
        default=20,
        metavar="N",
        help="sampled networks that a prediction averages (20)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of everything random (0)"
    )
    parser.add_argument("--json", action="store_true", help="print bayesian.json")


def run_bayesian(args: argparse.Namespace) -> int:
    """Sample, write, and say whether the chains converged."""
    from radii_papers.tradeoff import Hamiltonian, train_bayesian

    data, test = load_training_data(args.data, args.test)
    given: dict[str, Any] = {name: getattr(args, name) for name in SAMPLING}
    given = {name: value for name, value in given.items() if value is not None}
    how = Hamiltonian(kernel=args.kernel, **given)
    total, done = how.chains * (how.samples + how.warmup), 0
    with interruptible(f"{args.out} keeps it"), ProgressBar() as bar:

        def advanced() -> None:
            nonlocal done
            done += 1
            bar.counted(done, total)

        sampled = train_bayesian(
            args.arch,
            data,
            test=test,
            how=how,
            members=args.members,
            out=args.out,
            domain=args.domain,
            seed=args.seed,
            advanced=advanced,
        )
    if args.json:
        print_json(json.loads((args.out / "bayesian.json").read_text("utf-8")))
        return 0
    say(
        f"{sampled.network.name}: accuracy {sampled.accuracy:.4f} on "
        f"{'held-out' if sampled.held_out else 'its own training'} inputs, trained on "
        f"{sampled.trained_on}; the mean of {len(sampled.members)} members, in {args.out}"
    )
    say(sampled.convergence)
    return 0
