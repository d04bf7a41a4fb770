"""`radii ensemble`: what randomized attacks can do to several classifiers at once."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii import views
from radii.cli._options import EPS, JOBS, OUT, add_json_flag, add_options, check_files
from radii.cli._output import print_json, print_parts, writing
from radii.errors import SpecificationError
from radii.runs import COUNT, SECONDS, Option

if TYPE_CHECKING:
    from radii.cli._progress import EnsembleProgress
    from radii.ensembles import EnsembleStudy, GameValue, RandomizedAttack
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
  radii ensemble verify --networks a.onnx b.onnx --data digits:test[0:2] --domain 0:1 --eps 0.02 \\
      --arithmetic real

exit codes:
  0 done; verify: robust, 1 not proven robust (verify with --alpha), 2 bad input
"""

ATTACKS = Option(
    name="attacks",
    form=COUNT,
    help="deterministic attacks of the mix, at most (as many as classifiers)",
)

_VERBS = {
    "verify": "is the ensemble robust at eps and alpha, and what is the value of the game?",
    "attack": "the best randomized attack: which perturbations, with which probabilities",
    "curve": "the value over eps, and the eps at which the ensemble stops being robust",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    works = (_verify, _attack, _curve)
    for (name, purpose), work in zip(_VERBS.items(), works, strict=True):
        verb = verbs.add_parser(
            name,
            help=purpose,
            description=purpose[0].upper() + purpose[1:],
            epilog=EPILOG,
        )
        _add_flags(verb)
        if name == "curve":
            add_options(verb, grid={"required": True, "help": "eps values"})
        else:
            EPS.add_to(verb, required=True)
        if name != "attack":
            verb.add_argument(
                "--alpha", type=float, metavar="A", help="robust: the value is below it, in (0, 1]"
            )
        else:
            verb.add_argument(
                "--save", type=Path, metavar="FILE.npz", help="keep the perturbed points"
            )
        if name != "curve":
            ATTACKS.add_to(verb)
        verb.set_defaults(run=work)


def add_classifiers(parser: argparse.ArgumentParser) -> None:
    """The flags of what is attacked: networks, inputs, norm."""
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
    once_or_each = "normalisation; once for all networks, or once for each"
    add_options(
        what,
        data={"required": True, "help": "as for radii run"},
        domain={"required": True, "help": "valid inputs"},
        mean={"is_repeated": True, "help": once_or_each},
        std={"is_repeated": True, "help": "as --mean"},
        layout="chw or hwc, for flat coloured inputs",
        norm={"default": "linf"},
    )


def _add_flags(parser: argparse.ArgumentParser) -> None:
    add_classifiers(parser)
    how = parser.add_argument_group("how")
    add_options(
        how,
        "arithmetic",
        verifier={"help": "native (default), milp"},
        timeout={"default": 60.0, "help": "wall seconds per question (60)"},
        budget={"form": SECONDS, "help": "wall seconds per eps (no limit)"},
        memory="of each worker, such as 2G (no limit)",
        seed={"default": 0, "help": "of the attacks (0)"},
    )
    JOBS.add_to(how)
    OUT.add_to(how, help="keep all facts; run again to continue")
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
    check_files(args)
    from radii import datasets
    from radii.cli._progress import EnsembleProgress
    from radii.ensembles import EnsembleStudy, check_alpha
    from radii.runs import default_jobs

    if getattr(args, "alpha", None) is not None:
        check_alpha(args.alpha)
    bar = EnsembleProgress()
    with EnsembleStudy.open(
        load_classifiers(args),
        datasets.load_spec(args.data),
        norm=args.norm,
        verifier=args.verifier or "native",
        arithmetic=args.arithmetic,
        timeout=args.timeout,
        jobs=args.jobs or default_jobs(),
        memory_bytes=args.memory,
        out=args.out,
        layout=args.layout,
        seed=args.seed,
        observer=bar.show,
    ) as study:
        yield study, bar


def load_classifiers(args: argparse.Namespace) -> list[Network]:
    """The networks that the flags name, each with its normalisation."""
    from radii.networks import load_network

    means, stds = (_each(args, name) for name in ("mean", "std"))
    return [
        load_network(path, domain=args.domain, mean=mean, std=std)
        for path, mean, std in zip(args.networks, means, stds, strict=True)
    ]


def _each(args: argparse.Namespace, name: str) -> Sequence[tuple[float, ...] | None]:
    """A normalisation for each network: all the same if one was given."""
    given, count = getattr(args, name), len(args.networks)
    if given is None:
        return [None] * count
    if len(given) not in (1, count):
        raise SpecificationError(
            f"--{name} was given {len(given)} times for {count} networks: once for all, or once "
            "for each"
        )
    values: Sequence[tuple[float, ...]] = given * count if len(given) == 1 else given
    return values


def _budget(args: argparse.Namespace) -> float:
    return math.inf if args.budget is None else float(args.budget)


def _write_report(args: argparse.Namespace, study: EnsembleStudy) -> None:
    """Everything that is known of the ensemble, also from earlier runs with the same --out."""
    if args.report is None:
        return
    views.write_report(views.payload_of((), ensembles=[study.known]), args.report)


def _verify(args: argparse.Namespace) -> int:
    with _study(args) as (study, bar):
        with bar:
            value = study.value(args.eps, alpha=args.alpha, budget=_budget(args))
        is_robust = None if args.alpha is None else value.is_robust(args.alpha)
        _write_report(args, study)
        _show(args, study, value, alpha=args.alpha, attacks=args.attacks)
    return 0 if args.alpha is None or is_robust else 1


def _attack(args: argparse.Namespace) -> int:
    with _study(args) as (study, bar):
        with bar:
            value = study.value(args.eps, budget=_budget(args))
        attack = study.attack(value, attacks=args.attacks)
        if args.save is not None:
            _save(args.save, study, attack)
        _write_report(args, study)
        _show(args, study, value, attack=attack, attacks=args.attacks)
    return 0


def _show(args: argparse.Namespace, study: EnsembleStudy, value: GameValue, **asked: Any) -> None:
    if args.json:
        print_json(views.game_object(study, value, **asked))
    else:
        print_parts(views.game_parts(study, value, **asked))


def _save(path: Path, study: EnsembleStudy, attack: RandomizedAttack) -> None:
    import numpy as np

    with writing(path):
        np.savez(
            path,
            probabilities=np.array([float(share) for share in attack.probabilities]),
            perturbed=np.array([[each.input for each in row] for row in attack.perturbed]),
            points=np.array([point.input for point in study.points]),
            labels=np.array([point.label for point in study.points]),
        )


def _curve(args: argparse.Namespace) -> int:
    values = args.grid.values
    with _study(args) as (study, bar):
        critical = None
        with bar:
            curve = study.curve(values, budget=_budget(args))
            if args.alpha is not None:
                critical = study.critical(values, args.alpha, budget=_budget(args))
        _write_report(args, study)
        if args.json:
            print_json(views.game_curve_object(study, curve, critical))
        else:
            print_parts(views.game_curve_parts(study, curve, critical))
    return 0
