"""`radii study baseline`: the methods of the literature for ensembles, for comparison.

What they say is not proven by radii: an attack counts by its replay on ONNX Runtime, and a claim of
robustness is believed, and marked so.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from radii.cli import (
    EPS,
    add_classifiers,
    add_json_flag,
    add_options,
    check_files,
    load_classifiers,
    print_json,
)
from radii.errors import SpecificationError
from radii.runs import COUNT, Option
from radii.terminal import say

if TYPE_CHECKING:
    from radii_papers.baselines import BaselineResult

METHODS = ("milp", "maxmilp", "smt", "ua", "bda")
SOLVERS = ("auto", "gurobi", "highs")
ENCODED = ("milp", "maxmilp", "smt")
"""Those that are told how many attacks to look for."""

ATTACKS = Option(
    name="attacks",
    form=COUNT,
    help="deterministic attacks of the mix, at most (as many as classifiers)",
)

EPILOG = """examples:
  radii study baseline --networks a.onnx b.onnx --data digits:test[0:2] --domain 0:1 --eps 0.02 \\
      --alpha 0.5 --method milp --attacks 2 --timeout 60

Nothing is proven: what a method claims is believed, and with --alpha the exit code is always 1.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--method",
        choices=METHODS,
        required=True,
        help="an integer program (milp, or maxmilp with the largest sum of losses), Z3 (smt), "
        "uniform or best deterministic attackers (ua, bda)",
    )
    parser.add_argument(
        "--solver",
        choices=SOLVERS,
        help="of milp and maxmilp: Gurobi where a licence is found (auto, default), or one of both",
    )
    add_classifiers(parser)
    EPS.add_to(parser, required=True)
    parser.add_argument("--alpha", type=float, metavar="A", help="robust: the value is below it")
    ATTACKS.add_to(parser)
    add_options(parser, timeout={"default": 60.0, "help": "wall seconds in all (60)"})
    add_json_flag(parser)


def _check_method(args: argparse.Namespace) -> None:
    """Refuse flags that the method has no use for."""
    method = args.method
    if args.solver is not None and method not in ("milp", "maxmilp"):
        raise SpecificationError(f"--solver is of --method milp and maxmilp, not of '{method}'")
    if args.attacks is not None and method not in ENCODED:
        raise SpecificationError(
            f"--attacks is of --method milp, maxmilp and smt: '{method}' attacks every classifier "
            "once"
        )


def run(args: argparse.Namespace) -> int:
    """Run the method and say what it claims; exit code 0 without --alpha, else 1."""
    _check_method(args)
    check_files(args)
    from radii import datasets
    from radii.ensembles import Ensemble
    from radii.problem import Norm
    from radii_papers.baselines import BaselineProblem, MipSolver, run_baseline

    ensemble = Ensemble(load_classifiers(args))
    points = ensemble.points(datasets.load_spec(args.data), layout=args.layout)
    problem = BaselineProblem(
        ensemble,
        points,
        Norm.parse(args.norm),
        args.eps,
        args.alpha,
        args.attacks,
        args.timeout,
    )
    ensemble.check_outputs(points)
    result = run_baseline(args.method, problem, solver=MipSolver(args.solver or "auto"))
    if args.json:
        print_json(baseline_object(result))
    else:
        say(*_lines(result))
    return 0 if args.alpha is None else 1


def baseline_object(result: BaselineResult) -> dict[str, Any]:
    """What the method says, what its attack is worth when replayed, and who says so, for JSON.

    `robust` is false where a replayed attack reaches alpha, else null: it is never true, since
    nothing is proven.
    """
    problem, attack = result.problem, result.attack
    return {
        "networks": list(problem.ensemble.names),
        "norm": problem.norm.value,
        "eps": problem.eps,
        "alpha": problem.alpha,
        "method": result.method,
        "solver": result.solver,
        "note": result.note,
        "attacks": problem.attack_count if result.method in ENCODED else None,
        "claims": result.reply.value,
        "believed": result.reply == "robust",
        "covers_all_attacks": result.covers_all_attacks if result.reply == "robust" else None,
        "replayed": result.is_replayed if attack is not None else None,
        "value": None if attack is None else str(attack.value),
        "probabilities": None if attack is None else [str(p) for p in attack.probabilities],
        "optimal": result.is_optimal,
        "robust": False if result.is_broken else None,
        "seconds": result.seconds,
    }


def _lines(result: BaselineResult) -> list[str]:
    problem = result.problem
    asked = "" if problem.alpha is None else f", alpha {problem.alpha:g}"
    count = problem.attack_count
    attacks = f", {count} {'attack' if count == 1 else 'attacks'}"
    lines = [
        f"{len(problem.ensemble)} classifiers, {len(problem.points)} points, "
        f"{problem.norm.value} eps {problem.eps:g}{asked}"
        f"{attacks if result.method in ENCODED else ''}; method {result.method}",
        f"solved by {result.solver} in {result.seconds:.1f} s",
    ]
    if result.note:
        lines.append(result.note)
    return [*lines, *_answer(result)]


def _answer(result: BaselineResult) -> list[str]:
    if result.reply == "robust":
        scope = (
            "for every randomized attack"
            if result.covers_all_attacks
            else f"for mixes of {result.problem.attack_count} deterministic attacks only: "
            f"{len(result.problem.ensemble)} can be needed"
        )
        return [f"claimed: robust, {scope} (believed, not proven by radii)"]
    if result.attack is None:
        return ["no answer within the time limit"]
    value = result.attack.value
    lines = [f"replayed on ONNX Runtime, its attack attains {value} ({float(value):.4f})"]
    if not result.is_replayed:
        lines.append(
            f"claimed: an attack that reaches {result.claimed:g}; it does not when it is replayed"
        )
    if result.reply == "timeout":
        lines.append("it ran out of time: what it found by then")
    elif result.is_optimal:
        lines.append("the solver claims that no attack is better by its own objective (believed)")
    if result.is_broken:
        lines.append(f"alpha {result.problem.alpha:g}: NOT robust")
    elif result.problem.alpha is not None:
        lines.append(f"alpha {result.problem.alpha:g}: undecided")
    return lines
