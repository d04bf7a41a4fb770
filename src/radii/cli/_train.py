"""`radii train`: a network, its ONNX file and its card; run again to continue."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.cli._options import EPS, OUT, add_options
from radii.cli._output import interruptible, print_json
from radii.errors import DataError, TrainingError
from radii.terminal import note, say

if TYPE_CHECKING:
    from radii.datasets import Dataset
    from radii.training import TrainedNetwork


FIRST = "data test arch regime domain epochs out json"

DESCRIPTION = "Train a network, export it to ONNX and say on a card what came of it."

EPILOG = """examples:
  radii train --data mnist:train --arch mnist_nn --regime pgd:eps=0.1 --epochs 10 --out DIR
  radii train --data digits:train --arch dense:30-clamp --epochs 100 --out small
  radii train --data cifar10:train --arch resnet_4b --regime fgsm:eps=8/255 --epochs 15 \\
      --rate 0.01 --rate-step 3 --rate-factor 0.5 --out resnet
  radii train --data mnist:train --arch net_256x2 --prune 0.9 --rounds 3 --out pruned
  radii train --data digits:train[0:300] --arch dense:16 --bayesian hmc --out bayesian
  radii run --network DIR/network.onnx --data mnist:test[0:20] --domain 0:1 --out results

The same command again continues a run that was cut off, to the same weights. DIR holds
network.onnx, card.json, card.md and checkpoint.pt.

regimes:        standard, augmentation-uniform, augmentation-fgsm, fgsm, pgd, sr, scr, lr, ibp,
                crown-ibp, each with parameters as in pgd:eps=0.1,steps=7; see docs/training.md
architectures:  dense:30, dense:100-50, dense:30-clamp, relu_3_50, net_256x4, mnist_nn, mnist_net,
                convSmall, convMed, conv_big, resnet_4b, resnet:16/2-16-32/2+100, gtsrb_6_256,
                gtsrb_7_1024, gtsrb_cnn_deep_game, gtsrb_cnn_vnncomp23; for images and classes of
                any data set
"""

MOST_THREADS = 1024

_TRAINING_SETTINGS = (
    "epochs",
    "batch",
    "optimizer",
    "rate",
    "rate_step",
    "rate_factor",
    "momentum",
    "weight_decay",
    "class_weights",
    "seed",
)

_BAYESIAN_NUMBERS = {"samples": int, "warmup": int, "chains": int, "step": float, "steps": int}
_HELP = {
    "samples": "of each chain (100)",
    "warmup": "samples before them (100)",
    "chains": "with their own first weights (2)",
    "step": "first step size (0.01)",
    "steps": "of a trajectory of hmc (30)",
}
_UNUSED = ("epochs", "batch", "optimizer", "rate", "rate_step", "rate_factor", "momentum")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what to train")
    what.add_argument("--data", required=True, metavar="SPEC", help="mnist:train, file.npz:train")
    what.add_argument(
        "--test", metavar="SPEC", help="images to test on (the test split of a train split)"
    )
    what.add_argument("--arch", required=True, metavar="NAME", help="see below")
    what.add_argument("--regime", default="standard", metavar="NAME", help="see below (standard)")
    add_options(
        what,
        domain={"default": "0:1", "help": "valid inputs (0:1)"},
        mean="normalisation inside the network",
        std="normalisation inside the network",
    )
    OUT.add_to(what, required=True, help="where the network and its card go")
    how = parser.add_argument_group("how to train")
    how.add_argument("--epochs", type=int, metavar="N", help="passes over the data (10)")
    how.add_argument("--batch", type=int, metavar="N", help="images per step (128)")
    how.add_argument("--optimizer", metavar="NAME", help="adam (default) or sgd")
    how.add_argument("--rate", type=float, metavar="R", help="learning rate (0.001)")
    how.add_argument(
        "--rate-step", type=int, metavar="N", help="epochs after which the rate falls (never)"
    )
    how.add_argument(
        "--rate-factor", type=float, metavar="F", help="factor by which the rate then falls (0.1)"
    )
    how.add_argument("--momentum", type=float, metavar="M", help="momentum of sgd (0.9)")
    how.add_argument("--weight-decay", type=float, metavar="W", help="L2 penalty (0)")
    how.add_argument(
        "--class-weights",
        metavar="WEIGHTS",
        help="weights of classes in the loss: 3=2,8=1.5, or balanced-robustness (all 1)",
    )
    EPS.add_to(
        how,
        metavar="EPS",
        help="radius of the robust accuracy shown (the regime's; 0.1 for grey, 8/255 for colour)",
    )
    how.add_argument("--seed", type=int, metavar="N", help="seed of everything random (0)")
    how.add_argument("--device", metavar="NAME", help="where it is trained: cpu, cuda, mps (cpu)")
    how.add_argument(
        "--threads",
        type=int,
        default=1,
        metavar="N",
        help="threads of torch (1); another number rounds differently",
    )
    search = parser.add_argument_group("how to find the settings")
    search.add_argument(
        "--tune",
        type=int,
        metavar="N",
        help="first try N combinations of rates and weights, kept in DIR/tuning; needs optuna",
    )
    search.add_argument(
        "--objective",
        metavar="NAME",
        help="what is best on held-out training images: accuracy and pgd (default) or crown",
    )
    pruning = parser.add_argument_group("a pruned network")
    pruning.add_argument(
        "--prune", type=float, metavar="S", help="remove this share of the weights, such as 0.9"
    )
    pruning.add_argument(
        "--rounds", type=int, metavar="N", help="rounds of pruning, each followed by training (1)"
    )
    pruning.add_argument(
        "--rewind", action="store_true", help="begin each round from the first weights"
    )
    _add_bayesian_flags(parser)
    parser.add_argument("--json", action="store_true", help="print the card as JSON")


def _add_bayesian_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of a posterior sample."""
    group = parser.add_argument_group("a Bayesian network")
    group.add_argument(
        "--bayesian", metavar="KERNEL", help="sample the weights' posterior: hmc or nuts"
    )
    for name, kind in _BAYESIAN_NUMBERS.items():
        metavar = "N" if kind is int else "S"
        group.add_argument(f"--{name}", type=kind, metavar=metavar, help=_HELP[name])
    group.add_argument(
        "--prior", type=float, metavar="P", help="width of the prior on what units receive (3)"
    )
    group.add_argument(
        "--members",
        type=int,
        default=20,
        metavar="N",
        help="sampled networks that a prediction averages (20)",
    )


def run(args: argparse.Namespace) -> int:
    with interruptible(f"{args.out} keeps it"):
        return _train_network(args)


def _train_network(args: argparse.Namespace) -> int:
    import torch

    from radii.cli._progress import TrainingProgress
    from radii.training import prune, train

    _check_flags(args)
    data, test = _data(args.data, args.test)
    torch.set_num_threads(args.threads)
    if args.bayesian is not None:
        return _train_bayesian(args, data, test)
    given = {
        name: getattr(args, name) for name in _TRAINING_SETTINGS if getattr(args, name) is not None
    }
    regime = args.regime
    if args.tune is not None:
        regime, best = _tune_regime(args, data, given)
        given |= best
    _warn(regime)
    with TrainingProgress() as progress:
        options: dict[str, Any] = {
            "regime": regime,
            "test": test,
            "out": args.out,
            "domain": args.domain,
            "mean": args.mean,
            "std": args.std,
            "eps": args.eps,
            "observer": progress,
            "device": args.device,
            **given,
        }
        if args.prune is None:
            trained = train(args.arch, data, **options)
        else:
            rounds = 1 if args.rounds is None else args.rounds
            how = {"strength": args.prune, "rounds": rounds, "rewind": args.rewind}
            trained = prune(args.arch, data, **how, **options).trained
    text = trained.card.as_json() if args.json else _training_summary(trained, args.out)
    say(*text.split("\n"))
    return 0


def _check_flags(args: argparse.Namespace) -> None:
    """Refuse what would be ignored."""
    if not 1 <= args.threads <= MOST_THREADS:
        raise TrainingError(f"--threads {args.threads} must be from 1 to {MOST_THREADS}")
    for flag, needed in (("objective", "tune"), ("rounds", "prune"), ("rewind", "prune")):
        if getattr(args, flag) not in (None, False) and getattr(args, needed) is None:
            raise TrainingError(f"--{flag} has no use without --{needed}")
    if args.device is not None:
        from radii.verifiers import check_device

        if args.bayesian is not None:
            raise TrainingError("--device has no use with --bayesian, which samples on the CPU")
        check_device(args.device)


def _warn(regime: str) -> None:
    """Tell what a property in the loss does not promise."""
    from radii.training import parse_regime

    stated = getattr(parse_regime(regime), "property", None)
    if stated is not None and stated.warning is not None:
        note(stated.warning)


def _tune_regime(
    args: argparse.Namespace, data: Dataset, given: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """The best regime and rates that a search finds; flags that it searches over are refused."""
    from radii.training import Trial, tune

    searched = [name for name in ("rate", "rate_step", "rate_factor") if name in given]
    if searched:
        flag = searched[0].replace("_", "-")
        raise TrainingError(f"--{flag} is what --tune searches: leave one of them out")

    def show(trial: Trial) -> None:
        settings = ", ".join(f"{name} {value:.3g}" for name, value in trial.settings.items())
        say(f"trial {trial.number}: score {trial.score:.4f} ({settings})", file=sys.stderr)

    best = tune(
        args.arch,
        data,
        out=args.out / "tuning",
        trials=args.tune,
        regime=args.regime,
        objective=args.objective or "pgd",
        eps=args.eps,
        domain=args.domain,
        mean=args.mean,
        std=args.std,
        on_trial=show,
        device=args.device,
        **given,
    )
    return best.regime, dict(best.settings)


def _data(spec: str, test: str | None) -> tuple[Dataset, Dataset | None]:
    """Without a spec for the test, the whole test split beside a train split, if there is one."""
    from radii.datasets import Spec, load_spec

    parsed = Spec.parse(spec)
    data = load_spec(parsed)
    if test is not None:
        return data, _numbered_alike(load_spec(test), data)
    if data.split != "train":
        return data, None
    try:
        held_out = load_spec(dataclasses.replace(parsed, split="test", steps=()))
    except DataError:
        return data, None
    return data, _numbered_alike(held_out, data)


def _numbered_alike(test: Dataset, data: Dataset) -> Dataset:
    """Where labels are words, some may be missing in the test."""
    return test if data.classes is None else test.with_classes(data.classes)


def _training_summary(trained: TrainedNetwork, out: Path) -> str:
    card = trained.card
    where = card.tested.title + (f", {card.overlap}" if card.overlap else "")
    return (
        f"{out / card.network}: accuracy {card.accuracy:.4f} on {card.tested.images} images of "
        f"{where}; {card.robust_accuracy:.4f} under PGD at eps {card.settings.eps:.4g} "
        f"(first {card.attacked}; an upper bound); {card.seconds:.1f} s"
    )


def _train_bayesian(args: argparse.Namespace, data: Dataset, test: Dataset | None) -> int:
    """Sample, write, and say whether the chains converged."""
    from radii.cli._progress import ProgressBar
    from radii.training import Hamiltonian, train_bayesian

    for name in (*_UNUSED, "weight_decay", "class_weights", "mean", "std", "eps", "prune", "tune"):
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

        sampled = train_bayesian(
            args.arch,
            data,
            test=test,
            how=how,
            members=args.members,
            out=args.out,
            domain=args.domain,
            seed=args.seed or 0,
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
