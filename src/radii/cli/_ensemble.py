"""`radii ensemble`: what randomized attacks can do to several classifiers at once."""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.cli._options import EPS, JOBS, OUT, add_json_flag, add_options, check_files
from radii.cli._output import print_json
from radii.errors import ExperimentError, SpecificationError
from radii.experiments import COUNT, SECONDS, Option

if TYPE_CHECKING:
    from radii.cli._progress import EnsembleProgress
    from radii.cli._tables import Console
    from radii.ensembles import CriticalEps, EnsembleStudy, GameValue, RandomizedAttack
    from radii.networks import Network
    from radii.verdicts import Arithmetic


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
  radii ensemble verify --networks a.onnx b.onnx --data digits:test[0:2] --domain 0:1 --eps 0.02 \\
      --alpha 0.5 --method milp --attacks 2 --timeout 60

exit codes:
  0 done; verify: robust, 1 not proven robust (verify with --alpha), 2 bad input
  methods other than game prove nothing: what they claim is believed, and ends with 1
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
        if name == "verify":
            _add_methods(verb)
        verb.set_defaults(run=work)


def _add_methods(parser: argparse.ArgumentParser) -> None:
    from radii.cli._ensemble_baselines import METHODS, SOLVERS

    other = parser.add_argument_group("methods of the literature")
    other.add_argument(
        "--method",
        choices=METHODS,
        default=METHODS[0],
        help="game (default): exact, by radii; others are for comparison",
    )
    other.add_argument(
        "--solver",
        choices=SOLVERS,
        help="of milp and maxmilp: Gurobi where a licence is found (auto, default), or one of both",
    )


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
    from radii.experiments import default_jobs

    if getattr(args, "alpha", None) is not None:
        check_alpha(args.alpha)
    bar = EnsembleProgress()
    with EnsembleStudy.open(
        _load_networks(args),
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


def _load_networks(args: argparse.Namespace) -> list[Network]:
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
    from radii.report import payload_of, write_report

    write_report(payload_of((), ensembles=[study.known]), args.report)


def _verify(args: argparse.Namespace) -> int:
    from radii.cli._ensemble_baselines import GAME, check_method, verify_by_baseline

    check_method(args)
    if args.method != GAME:
        return verify_by_baseline(args, _load_networks)
    with _study(args) as (study, bar):
        with bar:
            value = study.value(args.eps, alpha=args.alpha, budget=_budget(args))
        is_robust = None if args.alpha is None else value.is_robust(args.alpha)
        _write_report(args, study)
        if args.json:
            print_json({**_value_object(study, value, args.alpha), **_few(study, value, args)})
        else:
            _print_value(study, value, args.alpha)
            _print_few(study, value, args)
    return 0 if args.alpha is None or is_robust else 1


def _attack(args: argparse.Namespace) -> int:
    with _study(args) as (study, bar):
        with bar:
            value = study.value(args.eps, budget=_budget(args))
        attack = study.attack(value, attacks=args.attacks)
        if args.save is not None:
            _save(args.save, study, attack)
        _write_report(args, study)
        if args.json:
            print_json(
                {
                    **_value_object(study, value, None),
                    **_few(study, value, args),
                    **_attack_object(study, attack),
                }
            )
        else:
            _print_attack(study, value, attack)
            _print_few(study, value, args)
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

    values = args.grid.values
    with _study(args) as (study, bar):
        critical = None
        with bar:
            curve = study.curve(values, budget=_budget(args))
            if args.alpha is not None:
                critical = study.critical(values, args.alpha, budget=_budget(args))
        _write_report(args, study)
        if args.json:
            print_json(_curve_object(study, curve, critical))
        else:
            _print_curve(study, curve, critical)
    return 0


def _value_object(study: EnsembleStudy, value: GameValue, alpha: float | None) -> dict[str, Any]:
    """A bracket with all that proves it, for JSON."""
    points = [
        {
            "input": point.index,
            "label": point.label,
            "fooled_together": [_member_list(mask) for mask in fooled if mask],
            "undecided": [_member_list(mask) for mask in undecided],
        }
        for point, fooled, undecided in zip(
            study.points, study.fooled(value.eps), study.undecided(value.eps), strict=True
        )
    ]
    impossible = [
        {
            "input": study.points[each.place].index,
            "classifiers": _member_list(each.finding.classifiers),
            "eps": each.finding.eps,
            "verifier": each.finding.verifier,
            "version": each.finding.version,
            "margin": each.finding.margin,
            "arithmetic": _text(each.finding.arithmetic),
        }
        for each in study.impossible(value.eps)
    ]
    disagreements = [
        {
            "input": study.points[each.place].index,
            "classifiers": _member_list(each.finding.classifiers),
            "verifier": each.finding.verifier,
            "arithmetic": _text(each.finding.arithmetic),
        }
        for each in study.disagreements
    ]
    judged = {} if alpha is None else {"alpha": alpha, "robust": value.is_robust(alpha)}
    return {
        **_ensemble_object(study),
        **_bracket(value),
        "defence": [str(weight) for weight in value.limit.defence],
        "defences": [
            {
                "name": each.name,
                "weights": [str(weight) for weight in each.weights],
                "lower": float(each.lower),
                "upper": float(each.upper),
            }
            for each in study.defences(value)
        ],
        "points": points,
        "impossible": impossible,
        "disagreements": disagreements,
        **judged,
    }


def _few(study: EnsembleStudy, value: GameValue, args: argparse.Namespace) -> dict[str, Any]:
    """The value of at most --attacks deterministic attacks, for JSON."""
    if args.attacks is None:
        return {}
    lower, upper = study.value_of_few(value, args.attacks)
    return {"limited": {"attacks": args.attacks, "lower": float(lower), "upper": float(upper)}}


def _print_few(study: EnsembleStudy, value: GameValue, args: argparse.Namespace) -> None:
    from radii.terminal import say

    if args.attacks is None:
        return
    lower, upper = (_fraction_text(each) for each in study.value_of_few(value, args.attacks))
    say(
        f"with at most {args.attacks} deterministic attacks: {lower} is attained; HiGHS finds no "
        f"more than {upper}"
    )


def _attack_object(study: EnsembleStudy, attack: RandomizedAttack) -> dict[str, Any]:
    """The attack with whom it fools, for JSON; `--save` keeps the inputs themselves."""
    return {
        "achieved": str(attack.value),
        "attacks": [
            {
                "probability": str(probability),
                "points": [
                    {
                        "input": point.index,
                        "fooled": _member_list(each.fooled),
                        "distance": each.distance,
                    }
                    for point, each in zip(study.points, row, strict=True)
                ],
            }
            for probability, row in zip(attack.probabilities, attack.perturbed, strict=True)
        ],
    }


def _curve_object(
    study: EnsembleStudy, curve: Sequence[GameValue], critical: CriticalEps | None
) -> dict[str, Any]:
    """The brackets over eps, for JSON."""
    ends = {} if critical is None else {"critical": dataclasses.asdict(critical)}
    return {**_ensemble_object(study), "curve": [_bracket(value) for value in curve], **ends}


def _ensemble_object(study: EnsembleStudy) -> dict[str, Any]:
    return {
        "networks": list(study.ensemble.names),
        "norm": study.norm.value,
        "arithmetic": str(study.arithmetic),
    }


def _bracket(value: GameValue) -> dict[str, Any]:
    return {
        "eps": value.eps,
        "lower": float(value.lower),
        "upper": float(value.upper),
        "exact": str(value.lower) if value.is_exact else None,
        "questions": value.questions,
        "seconds": value.seconds,
    }


def _print_value(study: EnsembleStudy, value: GameValue, alpha: float | None) -> None:
    from radii.cli._tables import Console

    console = Console()
    _print_ensemble_head(console, study, value)
    if alpha is not None:
        answer = {True: "robust", False: "NOT robust", None: "undecided"}[value.is_robust(alpha)]
        console.print(f"alpha {alpha:g}: {answer}")
    _print_defence(console, study, value)
    _print_points(console, study, value.eps)
    _print_disagreements(console, study)


def _print_attack(study: EnsembleStudy, value: GameValue, attack: RandomizedAttack) -> None:
    from radii.cli._tables import Console, text_table

    console = Console()
    _print_ensemble_head(console, study, value)
    console.print(f"replayed on every network, the attack achieves {_fraction_text(attack.value)}")
    made = text_table("Attack", ("probability", "input", "distance", "fools"), ())
    for probability, row in zip(attack.probabilities, attack.perturbed, strict=True):
        for place, (point, each) in enumerate(zip(study.points, row, strict=True)):
            share = _fraction_text(probability) if place == 0 else ""
            fooled = _classifier_names(study, each.fooled)
            made.add_row(share, str(point.index), f"{each.distance:.4g}", fooled)
        made.add_section()
    console.print(made)
    _print_defence(console, study, value)
    _print_disagreements(console, study)


def _print_curve(
    study: EnsembleStudy, curve: Sequence[GameValue], critical: CriticalEps | None
) -> None:
    from radii.cli._tables import Console, table

    console = Console()
    rows = [
        (
            f"{value.eps:g}",
            _fraction_text(value.lower),
            _fraction_text(value.upper),
            str(value.questions),
            f"{value.seconds:.1f}",
        )
        for value in curve
    ]
    columns = ("eps", "attained", "at most", "questions", "s")
    console.print(table("Value of the game", columns, rows, no_wrap=False))
    console.print(f"proofs hold {study.arithmetic.scope}")
    if critical is not None:
        below = "nowhere" if critical.lower is None else f"proven at eps {critical.lower:g}"
        above = "nowhere" if critical.upper is None else f"at eps {critical.upper:g}"
        console.print(f"robust for alpha {critical.alpha:g}: {below}; broken: {above}")
    _print_disagreements(console, study)


def _print_ensemble_head(console: Console, study: EnsembleStudy, value: GameValue) -> None:
    count, points = len(study.ensemble), len(study.points)
    console.print(
        f"{count} classifiers, {points} points, {study.norm.value} eps {value.eps:g}; "
        f"{value.questions} questions in {value.seconds:.1f} s"
    )
    lower, upper = _fraction_text(value.lower), _fraction_text(value.upper)
    if value.is_exact:
        console.print(f"value {lower}, exactly")
    else:
        console.print(f"value between {lower} and {upper}")
    console.print(f"proofs hold {study.arithmetic.scope}")


def _print_defence(console: Console, study: EnsembleStudy, value: GameValue) -> None:
    from radii.cli._tables import table

    made = table("Best defence", ("weight",), (), no_wrap=False)
    made.add_column("network")
    for name, weight in zip(study.ensemble.names, value.limit.defence, strict=True):
        made.add_row(_fraction_text(weight), name)
    console.print(made)
    console.print(
        "drawn with these weights for every input, no attacker makes more than "
        f"{_fraction_text(value.upper)} of the answers wrong"
    )
    mixes = table("Defences compared", ("loses at least", "at most"), (), no_wrap=False)
    mixes.add_column("mix")
    for each in study.defences(value):
        mixes.add_row(_fraction_text(each.lower), _fraction_text(each.upper), each.name)
    console.print(mixes)


def _print_points(console: Console, study: EnsembleStudy, eps: float) -> None:
    from radii.cli._tables import text_table

    impossible: dict[int, list[str]] = {}
    for each in study.impossible(eps):
        shown = f"{_classifier_names(study, each.finding.classifiers)} ({each.finding.verifier})"
        impossible.setdefault(each.place, []).append(shown)
    rows = [
        (
            str(point.index),
            str(point.label),
            "; ".join(_classifier_names(study, mask) for mask in fooled if mask) or "none",
            "; ".join(impossible.get(place, [])),
        )
        for place, (point, fooled) in enumerate(zip(study.points, study.fooled(eps), strict=True))
    ]
    columns = ("input", "label", "fooled by one perturbation", "proven impossible")
    console.print(text_table("Fooled together", columns, rows))


def _print_disagreements(console: Console, study: EnsembleStudy) -> None:
    for each in study.disagreements:
        index = study.points[each.place].index
        sets, claimed = _classifier_names(study, each.finding.classifiers), each.finding.arithmetic
        scope = "" if claimed is None else f" {claimed.scope}"
        console.print(
            f"DISAGREEMENT input {index}: {each.finding.verifier} claimed that {sets} cannot be "
            f"fooled together{scope}; a replayed input does"
        )


def _classifier_names(study: EnsembleStudy, mask: int) -> str:
    return ", ".join(study.ensemble.names[place] for place in _member_list(mask)) or "nobody"


def _text(arithmetic: Arithmetic | None) -> str | None:
    return None if arithmetic is None else str(arithmetic)


def _member_list(mask: int) -> list[int]:
    from radii.ensembles import members

    return list(members(mask))


def _fraction_text(value: Fraction) -> str:
    """The fraction, and its decimal where that is not obvious."""
    return str(value) if value.denominator == 1 else f"{value} ({float(value):.4f})"
