"""What `radii global` prints: plans, results and curves."""

from __future__ import annotations

import argparse
import csv
import dataclasses
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.errors import StoreError
from radii.terminal import say

if TYPE_CHECKING:
    from radii.guarantees import (
        CurvePoint,
        Demand,
        Estimate,
        GlobalRobustness,
        InputSource,
        Range,
        SamplePlan,
    )


def show_plan(
    args: argparse.Namespace, demand: Demand, source: InputSource | None, values: Range | None
) -> int:
    """How many inputs, for any source and for the one that is named."""
    from radii.cli.json_output import print_json
    from radii.guarantees import Population, Range, plan_samples

    anyone = Population("the data")
    error = demand.error or 0.0
    span = values or Range()
    way = demand.method or "hoeffding"
    plans = [plan_samples(error, demand.confidence, method=way, population=anyone, values=span)]
    if not demand.method and values is None:
        plans.append(plan_samples(error, demand.confidence, method="exact", population=anyone))
    if source is not None and source.available is not None:
        if source.population.size is None:
            plans[0].check_available(source.available, source.population.name)
        else:
            plans.append(
                plan_samples(
                    error, demand.confidence, method=way, population=source.population, values=span
                )
            )
    if args.json:
        print_json({**_plan_row(plans[0]), "alternatives": [_plan_row(p) for p in plans[1:]]})
        return 0
    say(plans[0])
    for plan in plans[1:]:
        say(f"or {plan}")
    if source is not None and source.available is not None:
        _note_available(plans[0], source.available, source.population.name)
    return 0


def _note_available(plan: SamplePlan, available: int, name: str) -> None:
    from radii.guarantees import reachable_error

    if plan.samples > available:
        error = reachable_error(
            available, plan.confidence, plan.method, plan.population, plan.values
        )
        say(
            f"{name} has {available} inputs, fewer than {plan.samples}: about what they were drawn "
            f"from they allow ±{error:.3g}; about themselves, all of them leave no error"
        )


def _plan_row(plan: SamplePlan) -> dict[str, Any]:
    return {
        "samples": plan.samples,
        "error": plan.error,
        "confidence": plan.confidence,
        "method": plan.method,
        "range": [plan.values.low, plan.values.high],
        "population": plan.population.size,
        "statement": f"{plan.population}: {plan.population.sampling}",
    }


def show_result(args: argparse.Namespace, found: GlobalRobustness) -> None:
    """One estimate, and where its width comes from."""
    from radii.cli.json_output import print_json

    if args.csv is not None:
        columns = ("index", "label", "predicted", "lower", "upper")
        _write_csv(args.csv, columns, (dataclasses.astuple(row) for row in found.inputs))
    if args.json:
        print_json(_result_row(found))
        return
    what = "share of inputs" if found.measure == "R" else "mean over inputs"
    say(f"{found.measure} of {found.network}: {what}, {found.asked}, {found.norm} {found.eps:g}")
    say(f"  {found.measure} {_interval_notation(found.estimate)} with "
        f"{100 * found.estimate.confidence:g} % confidence")  # fmt: skip
    say(f"  about       {found.estimate.population}; {found.estimate.population.sampling}")
    say(f"  sample      {found.estimate.samples} inputs, seed {found.seed}; {found.reason}")
    say(
        f"  found       {_sample_text(found.estimate)} by {found.by} "
        f"({found.estimate.method} limits)"
    )
    say(f"  width       {found.estimate.high - found.estimate.low:.4f}: sampling "
        f"{found.estimate.sampling_width:.4f}, open brackets "
        f"{found.estimate.bracket_width:.4f}")  # fmt: skip
    if found.arithmetic is not None:
        say(f"  proofs      hold {found.arithmetic.scope}")
    if found.attacked is not None:
        told = f"{_sample_text(found.attacked)}, {_interval_notation(found.attacked)}"
        say(f"  attack only {told}: {_attack_words(found)}")
    if found.threshold is not None:
        say(f"  decision    {found.measure} >= {found.threshold:g}: {_decision(found)}")


def _attack_words(found: GlobalRobustness) -> str:
    if found.measure == "R":
        return "as if all were robust that the attack did not break; R is at most that"
    return "as if no change were larger than the attack found; D is at least that"


def _interval_notation(estimate: Estimate) -> str:
    return f"in [{estimate.low:.4f}, {estimate.high:.4f}]"


def _sample_text(estimate: Estimate) -> str:
    if estimate.bracket_width == 0:
        return f"{estimate.least:.4f}"
    return f"between {estimate.least:.4f} and {estimate.most:.4f}"


def _decision(found: GlobalRobustness) -> str:
    return {True: "yes", False: "no", None: "cannot be said"}[found.decision]


def _result_row(found: GlobalRobustness) -> dict[str, Any]:
    return {
        "measure": found.measure,
        "network": found.network,
        "property": found.asked,
        "norm": found.norm,
        "eps": found.eps,
        "by": found.by,
        "seed": found.seed,
        "arithmetic": None if found.arithmetic is None else str(found.arithmetic),
        "estimate": _estimate_row(found.estimate),
        "attack_only": None if found.attacked is None else _estimate_row(found.attacked),
        "stopped": found.reason,
        "threshold": found.threshold,
        "decision": found.decision,
        "inputs": [dataclasses.asdict(row) for row in found.inputs],
    }


def _estimate_row(estimate: Estimate) -> dict[str, Any]:
    return {
        "low": estimate.low,
        "high": estimate.high,
        "confidence": estimate.confidence,
        "samples": estimate.samples,
        "proven": estimate.least,
        "not_refuted": estimate.most,
        "sampling_width": estimate.sampling_width,
        "bracket_width": estimate.bracket_width,
        "method": estimate.method,
        "population": estimate.population.size,
        "statement": f"{estimate.population}: {estimate.population.sampling}",
    }


def show_curve(args: argparse.Namespace) -> int:
    """R at every eps at once, of each network of a finished run."""
    from radii.cli.json_output import print_json
    from radii.cli.sources import read_distributions
    from radii.distributions import proof_scope, weakest_arithmetic
    from radii.guarantees import robustness_curve

    distribution = read_distributions([args.curve])
    curves = {
        name: robustness_curve(part, args.confidence, by_class=args.by_class)
        for name, part in distribution.by_network().items()
    }
    if args.csv is not None:
        rows = ((name, *dataclasses.astuple(p)) for name, curve in curves.items() for p in curve)
        columns = ("network", "eps", "label", "proven", "not_refuted", "low", "high")
        _write_csv(args.csv, columns, rows)
    if args.json:
        told = {name: [dataclasses.asdict(p) for p in curve] for name, curve in curves.items()}
        weakest = weakest_arithmetic(distribution)
        arithmetic = None if weakest is None else str(weakest)
        head = {"confidence": args.confidence, "statement": "i.i.d.", "arithmetic": arithmetic}
        print_json({**head, "networks": told})
        return 0
    for name, curve in curves.items():
        size = len(distribution.by_network()[name])
        say(
            f"R of {name}, all eps{' and classes' if args.by_class else ''} at once with "
            f"{100 * args.confidence:g} % confidence, from {size} inputs drawn independently "
            "(i.i.d. statement)"
        )
        _print_curve(curve)
    if scope := proof_scope(distribution):
        say(scope)
    return 0


def _print_curve(curve: Sequence[CurvePoint]) -> None:
    say(f"  {'class':>5} {'eps':>10}  {'of the sample':>16}  {'of all inputs':>16}")
    step = max(1, math.ceil(len(curve) / 60))
    for point in curve[::step]:
        label = "all" if point.label is None else str(point.label)
        sample = f"{point.proven:.3f} to {point.not_refuted:.3f}"
        say(f"  {label:>5} {point.eps:>10.5g}  {sample:>16}  {point.low:.3f} to {point.high:.3f}")
    if step > 1:
        say(f"  every {step}th of {len(curve)} points; --csv or --json give all")


def _write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    try:
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(columns)
            writer.writerows(rows)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror})") from None
