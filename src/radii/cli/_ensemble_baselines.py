"""`radii ensemble verify --method`: the methods of the literature, for comparison.

What they say is not proven by radii: an attack counts by its replay on ONNX Runtime, and a claim of
robustness is believed, and marked so.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from radii.cli._options import check_files
from radii.cli._output import print_json
from radii.errors import SpecificationError
from radii.terminal import say

if TYPE_CHECKING:
    from radii.ensembles import BaselineResult
    from radii.networks import Network

GAME = "game"
METHODS = (GAME, "milp", "maxmilp", "smt", "ua", "bda")
SOLVERS = ("auto", "gurobi", "highs")
ENCODED = ("milp", "maxmilp", "smt")
"""Those that are told how many attacks to look for."""


def check_method(args: argparse.Namespace) -> None:
    """Refuse flags that the method has no use for."""
    method = args.method
    if args.solver is not None and method not in ("milp", "maxmilp"):
        raise SpecificationError(f"--solver is of --method milp and maxmilp, not of '{method}'")
    if method == GAME:
        return
    for name in ("verifier", "arithmetic", "memory", "budget", "out", "report"):
        if getattr(args, name) is not None:
            raise SpecificationError(f"--{name} is of --method game, not of '{method}'")
    if args.attacks is not None and method not in ENCODED:
        raise SpecificationError(
            f"--attacks is of --method game, milp, maxmilp and smt: '{method}' attacks every "
            "classifier once"
        )


def verify_by_baseline(
    args: argparse.Namespace, load_networks: Callable[[argparse.Namespace], Sequence[Network]]
) -> int:
    """Run the method and say what it claims; exit code 0 without --alpha, else 1."""
    check_files(args)
    from radii import datasets
    from radii.ensembles import BaselineProblem, Ensemble, MipSolver, run_baseline
    from radii.problem import Norm

    ensemble = Ensemble(load_networks(args))
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
