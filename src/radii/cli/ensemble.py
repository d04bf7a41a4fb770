"""`radii ensemble`: what randomized attacks can do to several classifiers at once."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from radii.cli.options import add_arithmetic_flag, add_json_flag, arithmetic_from
from radii.cli.parsing import number, seconds
from radii.errors import ExperimentError, SpecificationError

if TYPE_CHECKING:
    from radii.cli.ensemble_progress import EnsembleProgress
    from radii.ensembles import EnsembleStudy, RandomizedAttack
    from radii.networks import Network


DESCRIPTION = (
    "The largest loss that a randomized attack can force on every classifier at "
    "once, decided exactly."
)

EPILOG = """examples:
  radii ensemble verify --networks a.onnx b.onnx c.onnx --data mnist:test[0:4] --domain 0:1 \\
      --norm l1 --eps 2 --alpha 0.4
  radii ensemble attack --networks a.onnx b.onnx --data digits:test[0:20] --domain 0:1 --eps 0.1 \\
      --save attack.npz
  radii ensemble curve --networks a.onnx b.onnx --data digits:test[0:20] --domain 0:1 \\
      --grid 0:0.3:0.02 --alpha 0.5 --out results
  radii ensemble verify --networks a.onnx b.onnx --data digits:test[0:2] --domain 0:1 --eps 0.02 \
      --arithmetic real

exit codes:
  0 done; verify: robust, 1 not proven robust (verify with --alpha), 2 bad input
"""

_VERBS = {
    "verify": "is the ensemble robust at eps and alpha, and what is the value of the game?",
    "attack": "the best randomized attack: which perturbations, with which probabilities",
    "curve": "the value over eps, and the eps at which the ensemble stops being robust",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for name, purpose in _VERBS.items():
        verb = verbs.add_parser(
            name,
            help=purpose,
            description=purpose[0].upper() + purpose[1:],
            epilog=EPILOG,
        )
        _add_flags(verb)
        if name == "curve":
            verb.add_argument("--grid", required=True, metavar="START:STOP:STEP", help="eps values")
        else:
            verb.add_argument("--eps", required=True, type=number, metavar="E", help="the radius")
        if name != "attack":
            verb.add_argument(
                "--alpha", type=float, metavar="A", help="robust: the value is below it, in (0, 1]"
            )
        else:
            verb.add_argument(
                "--save", type=Path, metavar="FILE.npz", help="keep the perturbed points"
            )
        verb.set_defaults(run=globals()[f"_{name}"])


def _add_flags(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what to attack")
    what.add_argument(
        "--networks",
        "--network",
        nargs="+",
        action="extend",
        required=True,
        metavar="FILE",
        help="ONNX files; may be repeated",
    )
    what.add_argument("--data", required=True, metavar="SPEC", help="as for radii run")
    what.add_argument("--domain", required=True, metavar="LOW:HIGH", help="valid inputs")
    what.add_argument(
        "--mean",
        action="append",
        metavar="M[,M...]",
        help="normalisation; once for all networks, or once for each",
    )
    what.add_argument("--std", action="append", metavar="S[,S...]", help="as --mean")
    what.add_argument("--layout", metavar="ORDER", help="chw or hwc, for flat coloured inputs")
    what.add_argument("--norm", default="linf", metavar="NAME", help="linf (default), l2 or l1")
    how = parser.add_argument_group("how")
    how.add_argument("--verifier", default="native", metavar="NAME", help="native (default), milp")
    add_arithmetic_flag(how)
    how.add_argument(
        "--timeout", type=seconds, default=60.0, metavar="S", help="wall seconds a question (60)"
    )
    how.add_argument("--budget", type=seconds, metavar="S", help="wall seconds an eps (no limit)")
    how.add_argument("--memory", metavar="SIZE", help="of each worker, such as 2G (no limit)")
    how.add_argument("--jobs", type=int, metavar="N", help="worker processes (one a core)")
    how.add_argument("--seed", type=int, default=0, metavar="N", help="of the attacks (0)")
    how.add_argument(
        "--out", type=Path, metavar="DIR", help="keep all facts; run again to continue"
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE.html",
        help="write the page that radii report makes of --out",
    )
    add_json_flag(parser)


@contextmanager
def _study(args: argparse.Namespace) -> Iterator[tuple[EnsembleStudy, EnsembleProgress]]:
    """The study, and the bar to show while it works; results are printed after the bar."""
    from radii import datasets
    from radii.cli.ensemble_progress import EnsembleProgress
    from radii.ensembles import EnsembleStudy
    from radii.experiments import default_jobs
    from radii.processes import parse_size

    if args.jobs is not None and args.jobs < 1:
        raise ExperimentError(f"--jobs {args.jobs} must be at least 1")
    if args.budget is not None and not args.budget > 0:
        raise ExperimentError(f"--budget {args.budget:g} must be a number of seconds above 0")
    if getattr(args, "alpha", None) is not None:
        from radii.ensembles import check_alpha

        check_alpha(args.alpha)
    bar = EnsembleProgress()
    with EnsembleStudy.open(
        _load_networks(args),
        datasets.load_spec(args.data),
        norm=args.norm,
        verifier=args.verifier,
        arithmetic=arithmetic_from(args),
        timeout=args.timeout,
        jobs=args.jobs or default_jobs(),
        memory_bytes=None if args.memory is None else parse_size(args.memory),
        out=args.out,
        layout=args.layout,
        seed=args.seed,
        observer=bar.told,
    ) as study:
        yield study, bar


def _load_networks(args: argparse.Namespace) -> list[Network]:
    from radii.balls import Domain
    from radii.networks import load_network

    domain = Domain.parse(args.domain)
    means, stds = (_each(args, name) for name in ("mean", "std"))
    return [
        load_network(path, domain=domain, mean=mean, std=std)
        for path, mean, std in zip(args.networks, means, stds, strict=True)
    ]


def _each(args: argparse.Namespace, name: str) -> Sequence[list[float] | None]:
    """One normalisation a network: all the same if one was given."""
    given, count = getattr(args, name), len(args.networks)
    if given is None:
        return [None] * count
    try:
        values = [[float(part) for part in text.split(",")] for text in given]
    except ValueError:
        raise SpecificationError(
            f"--{name} {' '.join(given)} must be numbers, one or one a channel"
        ) from None
    if len(values) not in (1, count):
        raise SpecificationError(
            f"--{name} was given {len(values)} times for {count} networks: once for all, or once "
            "for each"
        )
    return values * count if len(values) == 1 else values


def _budget(args: argparse.Namespace) -> float:
    return math.inf if args.budget is None else float(args.budget)


def _write_report(args: argparse.Namespace, study: EnsembleStudy) -> None:
    """Everything that is known of the ensemble, also from earlier runs with the same --out."""
    if args.report is None:
        return
    from radii.report import payload_of, write_report

    write_report(payload_of((), ensembles=[study.known]), args.report)


def _verify(args: argparse.Namespace) -> int:
    from radii.cli.ensemble_tables import print_value, value_object
    from radii.cli.json_output import print_json

    with _study(args) as (study, bar):
        with bar:
            found = study.value(args.eps, alpha=args.alpha, budget=_budget(args))
        is_robust = None if args.alpha is None else found.is_robust(args.alpha)
        _write_report(args, study)
        if args.json:
            print_json(value_object(study, found, args.alpha))
        else:
            print_value(study, found, args.alpha)
    return 0 if args.alpha is None or is_robust else 1


def _attack(args: argparse.Namespace) -> int:
    from radii.cli.ensemble_tables import attack_object, print_attack, value_object
    from radii.cli.json_output import print_json

    with _study(args) as (study, bar):
        with bar:
            found = study.value(args.eps, budget=_budget(args))
        attack = study.attack(found)
        if args.save is not None:
            _save(args.save, study, attack)
        _write_report(args, study)
        if args.json:
            print_json({**value_object(study, found, None), **attack_object(study, attack)})
        else:
            print_attack(study, found, attack)
    return 0


def _save(path: Path, study: EnsembleStudy, attack: RandomizedAttack) -> None:
    import numpy as np

    try:
        np.savez(
            path,
            probabilities=np.array([float(share) for share in attack.probabilities]),
            perturbed=np.array([[each.input for each in row] for row in attack.perturbed]),
            points=np.array([point.input for point in study.points]),
            labels=np.array([point.label for point in study.points]),
        )
    except OSError as error:
        raise ExperimentError(f"{path}: cannot be written: {error.strerror or error}") from None


def _curve(args: argparse.Namespace) -> int:
    from radii.cli.ensemble_tables import curve_object, print_curve
    from radii.cli.json_output import print_json
    from radii.queries import Grid

    values = Grid.parse(args.grid).values
    with _study(args) as (study, bar):
        critical = None
        with bar:
            curve = study.curve(values, budget=_budget(args))
            if args.alpha is not None:
                critical = study.critical(values, args.alpha, budget=_budget(args))
        _write_report(args, study)
        if args.json:
            print_json(curve_object(study, curve, critical))
        else:
            print_curve(study, curve, critical)
    return 0
