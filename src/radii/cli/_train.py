"""`radii train`: a network, its ONNX file and its card; run again to continue."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.cli._options import EPS, OUT, add_options, given
from radii.cli._output import interruptible
from radii.errors import DataError, TrainingError
from radii.runs import COUNT, NUMBER, SEED, TEXT, Option, whole
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

TRAINING = (
    Option(name="epochs", form=COUNT, help="passes over the data (10)"),
    Option(name="batch", form=COUNT, help="images per step (128)"),
    Option(name="optimizer", form=TEXT, help="adam (default) or sgd"),
    Option(name="rate", form=NUMBER, metavar="R", help="learning rate (0.001)"),
    Option(name="rate_step", form=whole(least=0), help="epochs after which the rate falls (never)"),
    Option(
        name="rate_factor",
        form=NUMBER,
        metavar="F",
        help="factor by which the rate then falls (0.1)",
    ),
    Option(name="momentum", form=NUMBER, metavar="M", help="momentum of sgd (0.9)"),
    Option(name="weight_decay", form=NUMBER, metavar="W", help="L2 penalty (0)"),
    Option(
        name="class_weights",
        form=TEXT,
        metavar="WEIGHTS",
        help="weights of classes in the loss: 3=2,8=1.5, or balanced-robustness (all 1)",
    ),
    Option(name="seed", form=SEED, help="seed of everything random (0)"),
)
"""Settings of a training; radii cycle has some of them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_training_flags(parser)
    search = parser.add_argument_group("how to find the settings")
    search.add_argument(
        "--tune",
        type=int,
        metavar="N",
        help="first try N combinations of rates and weights, kept in DIR/tuning",
    )
    search.add_argument(
        "--objective",
        metavar="NAME",
        help="what is best on held-out training images: accuracy and pgd (default) or crown",
    )
    parser.add_argument("--json", action="store_true", help="print the card as JSON")


def add_training_flags(parser: argparse.ArgumentParser) -> None:
    """What to train and how, for every command that trains one network."""
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
    for option in TRAINING:
        option.add_to(how)
    EPS.add_to(
        how,
        metavar="EPS",
        help="radius of the robust accuracy shown (the regime's; 0.1 for grey, 8/255 for colour)",
    )
    how.add_argument("--device", metavar="NAME", help="where it is trained: cpu, cuda, mps (cpu)")
    how.add_argument(
        "--threads",
        type=int,
        default=1,
        metavar="N",
        help="threads of torch (1); another number rounds differently",
    )


def run(args: argparse.Namespace) -> int:
    with interruptible(f"{args.out} keeps it"):
        return _train_network(args)


def _train_network(args: argparse.Namespace) -> int:
    from radii.cli._progress import TrainingProgress
    from radii.training import train

    if args.objective is not None and args.tune is None:
        raise TrainingError("--objective has no use without --tune")
    data, test = training_data(args)
    options = training_options(args)
    if args.tune is not None:
        regime, best = _tune_regime(args, data)
        options |= {"regime": regime, **best}
    _warn(options["regime"])
    with TrainingProgress() as progress:
        trained = train(args.arch, data, test=test, observer=progress, **options)
    text = trained.card.as_json() if args.json else training_summary(trained, args.out)
    say(*text.split("\n"))
    return 0


def training_data(args: argparse.Namespace) -> tuple[Dataset, Dataset | None]:
    """The data to train and to test on, loaded once the other flags are known to make sense."""
    import torch

    if not 1 <= args.threads <= MOST_THREADS:
        raise TrainingError(f"--threads {args.threads} must be from 1 to {MOST_THREADS}")
    if args.device is not None:
        from radii.verifiers import check_device

        check_device(args.device)
    torch.set_num_threads(args.threads)
    return load_training_data(args.data, args.test)


def training_options(args: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of `radii.training.train` that the flags give."""
    names = ("regime", "out", "domain", "mean", "std", "eps", "device")
    return {name: getattr(args, name) for name in names} | _settings(args)


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    return given(args, (one.name for one in TRAINING))


def _warn(regime: str) -> None:
    """Tell what a property in the loss does not promise."""
    from radii.training import parse_regime

    stated = getattr(parse_regime(regime), "property", None)
    if stated is not None and stated.warning is not None:
        note(stated.warning)


def _tune_regime(args: argparse.Namespace, data: Dataset) -> tuple[str, dict[str, Any]]:
    """The best regime and rates that a search finds; flags that it searches over are refused."""
    from radii.training import Trial, tune

    settings = _settings(args)
    searched = [name for name in ("rate", "rate_step", "rate_factor") if name in settings]
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
        **settings,
    )
    return best.regime, dict(best.settings)


def load_training_data(spec: str, test: str | None) -> tuple[Dataset, Dataset | None]:
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


def training_summary(trained: TrainedNetwork, out: Path) -> str:
    card = trained.card
    where = card.tested.title + (f", {card.overlap}" if card.overlap else "")
    return (
        f"{out / card.network}: accuracy {card.accuracy:.4f} on {card.tested.images} images of "
        f"{where}; {card.robust_accuracy:.4f} under PGD at eps {card.settings.eps:.4g} "
        f"(first {card.attacked}; an upper bound); {card.seconds:.1f} s"
    )
