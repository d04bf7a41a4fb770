"""What `radii ensemble` says, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from radii.cli.console import Console
from radii.ensembles import members

if TYPE_CHECKING:
    from radii.ensembles import CriticalEps, EnsembleStudy, GameValue, RandomizedAttack
    from radii.verdicts import Arithmetic


def value_object(study: EnsembleStudy, found: GameValue, alpha: float | None) -> dict[str, Any]:
    """A bracket with all that proves it, for JSON."""
    told: dict[str, Any] = {
        "networks": list(study.ensemble.names),
        "norm": study.norm.value,
        "arithmetic": str(study.arithmetic),
        **_bracket(found),
        "defence": [str(weight) for weight in found.limit.defence],
        "points": [
            {
                "input": point.index,
                "label": point.label,
                "fooled_together": [_member_list(mask) for mask in fooled if mask],
                "undecided": [_member_list(mask) for mask in undecided],
            }
            for point, fooled, undecided in zip(
                study.points, study.fooled(found.eps), study.undecided(found.eps), strict=True
            )
        ],
        "impossible": [
            {
                "input": study.points[each.place].index,
                "classifiers": _member_list(each.finding.classifiers),
                "eps": each.finding.eps,
                "verifier": each.finding.verifier,
                "version": each.finding.version,
                "margin": each.finding.margin,
                "arithmetic": _text(each.finding.arithmetic),
            }
            for each in study.impossible(found.eps)
        ],
        "disagreements": [
            {
                "input": study.points[each.place].index,
                "classifiers": _member_list(each.finding.classifiers),
                "verifier": each.finding.verifier,
                "arithmetic": _text(each.finding.arithmetic),
            }
            for each in study.disagreements
        ],
    }
    if alpha is not None:
        told |= {"alpha": alpha, "robust": found.is_robust(alpha)}
    return told


def attack_object(study: EnsembleStudy, attack: RandomizedAttack) -> dict[str, Any]:
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


def curve_object(
    study: EnsembleStudy, curve: Sequence[GameValue], critical: CriticalEps | None
) -> dict[str, Any]:
    """The brackets over eps, for JSON."""
    told: dict[str, Any] = {
        "networks": list(study.ensemble.names),
        "norm": study.norm.value,
        "arithmetic": str(study.arithmetic),
        "curve": [_bracket(found) for found in curve],
    }
    if critical is not None:
        told["critical"] = {
            "alpha": critical.alpha,
            "lower": critical.lower,
            "upper": critical.upper,
        }
    return told


def print_value(study: EnsembleStudy, found: GameValue, alpha: float | None) -> None:
    console = Console()
    _print_ensemble_head(console, study, found)
    if alpha is not None:
        answer = {True: "robust", False: "NOT robust", None: "undecided"}[found.is_robust(alpha)]
        console.print(f"alpha {alpha:g}: {answer}")
    _print_defence(console, study, found)
    _print_points(console, study, found.eps)
    _print_disagreements(console, study)


def print_attack(study: EnsembleStudy, found: GameValue, attack: RandomizedAttack) -> None:
    console = Console()
    _print_ensemble_head(console, study, found)
    console.print(f"replayed on every network, the attack achieves {_fraction_text(attack.value)}")
    table = Table(box=SIMPLE_HEAD, title="Attack", title_justify="left")
    for name in ("probability", "input", "distance", "fools"):
        table.add_column(name)
    for probability, row in zip(attack.probabilities, attack.perturbed, strict=True):
        for place, (point, each) in enumerate(zip(study.points, row, strict=True)):
            share = _fraction_text(probability) if place == 0 else ""
            fooled = _classifier_names(study, each.fooled)
            table.add_row(share, str(point.index), f"{each.distance:.4g}", fooled)
        table.add_section()
    console.print(table)
    _print_defence(console, study, found)
    _print_disagreements(console, study)


def print_curve(
    study: EnsembleStudy, curve: Sequence[GameValue], critical: CriticalEps | None
) -> None:
    console = Console()
    table = Table(box=SIMPLE_HEAD, title="Value of the game", title_justify="left")
    for name in ("eps", "attained", "at most", "questions", "s"):
        table.add_column(name, justify="right")
    for found in curve:
        table.add_row(
            f"{found.eps:g}",
            _fraction_text(found.lower),
            _fraction_text(found.upper),
            str(found.questions),
            f"{found.seconds:.1f}",
        )
    console.print(table)
    console.print(f"proofs hold {study.arithmetic.scope}")
    if critical is not None:
        below = "nowhere" if critical.lower is None else f"proven at eps {critical.lower:g}"
        above = "nowhere" if critical.upper is None else f"at eps {critical.upper:g}"
        console.print(f"robust for alpha {critical.alpha:g}: {below}; broken: {above}")
    _print_disagreements(console, study)


def _bracket(found: GameValue) -> dict[str, Any]:
    return {
        "eps": found.eps,
        "lower": float(found.lower),
        "upper": float(found.upper),
        "exact": str(found.lower) if found.is_exact else None,
        "questions": found.questions,
        "seconds": found.seconds,
    }


def _print_ensemble_head(console: Console, study: EnsembleStudy, found: GameValue) -> None:
    count, points = len(study.ensemble), len(study.points)
    console.print(
        f"{count} classifiers, {points} points, {study.norm.value} eps {found.eps:g}; "
        f"{found.questions} questions in {found.seconds:.1f} s"
    )
    if found.is_exact:
        console.print(f"value {_fraction_text(found.lower)}, exactly")
    else:
        console.print(
            f"value between {_fraction_text(found.lower)} and {_fraction_text(found.upper)}"
        )
    console.print(f"proofs hold {study.arithmetic.scope}")


def _print_defence(console: Console, study: EnsembleStudy, found: GameValue) -> None:
    table = Table(box=SIMPLE_HEAD, title="Best defence", title_justify="left")
    table.add_column("weight", justify="right")
    table.add_column("network")
    for name, weight in zip(study.ensemble.names, found.limit.defence, strict=True):
        table.add_row(_fraction_text(weight), name)
    console.print(table)


def _print_points(console: Console, study: EnsembleStudy, eps: float) -> None:
    table = Table(box=SIMPLE_HEAD, title="Fooled together", title_justify="left")
    for name in ("input", "label", "fooled by one perturbation", "proven impossible"):
        table.add_column(name)
    impossible: dict[int, list[str]] = {}
    for each in study.impossible(eps):
        shown = f"{_classifier_names(study, each.finding.classifiers)} ({each.finding.verifier})"
        impossible.setdefault(each.place, []).append(shown)
    for place, (point, fooled) in enumerate(zip(study.points, study.fooled(eps), strict=True)):
        sets = "; ".join(_classifier_names(study, mask) for mask in fooled if mask) or "none"
        never = "; ".join(impossible.get(place, []))
        table.add_row(str(point.index), str(point.label), sets, never)
    console.print(table)


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
    return ", ".join(study.ensemble.names[place] for place in members(mask)) or "nobody"


def _text(arithmetic: Arithmetic | None) -> str | None:
    return None if arithmetic is None else str(arithmetic)


def _member_list(mask: int) -> list[int]:
    return list(members(mask))


def _fraction_text(value: Fraction) -> str:
    """The fraction, and its decimal where that is not obvious."""
    return str(value) if value.denominator == 1 else f"{value} ({float(value):.4f})"
