"""What `radii ensemble` shows of a game: objects for JSON, and tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from radii.terminal import say

if TYPE_CHECKING:
    from radii.cli._tables import Console
    from radii.ensembles import CriticalEps, EnsembleStudy, GameValue, RandomizedAttack
    from radii.problem import Arithmetic


def value_object(study: EnsembleStudy, value: GameValue, alpha: float | None) -> dict[str, Any]:
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


def few_object(study: EnsembleStudy, value: GameValue, attacks: int | None) -> dict[str, Any]:
    """The value of at most --attacks deterministic attacks, for JSON."""
    if attacks is None:
        return {}
    lower, upper = study.value_of_few(value, attacks)
    return {"limited": {"attacks": attacks, "lower": float(lower), "upper": float(upper)}}


def print_few(study: EnsembleStudy, value: GameValue, attacks: int | None) -> None:
    if attacks is None:
        return
    lower, upper = (_fraction_text(each) for each in study.value_of_few(value, attacks))
    say(
        f"with at most {attacks} deterministic attacks: {lower} is attained; HiGHS finds no "
        f"more than {upper}"
    )


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


def print_value(study: EnsembleStudy, value: GameValue, alpha: float | None) -> None:
    from radii.cli._tables import Console

    console = Console()
    _print_ensemble_head(console, study, value)
    if alpha is not None:
        answer = {True: "robust", False: "NOT robust", None: "undecided"}[value.is_robust(alpha)]
        console.print(f"alpha {alpha:g}: {answer}")
    _print_defence(console, study, value)
    _print_points(console, study, value.eps)
    _print_disagreements(console, study)


def print_attack(study: EnsembleStudy, value: GameValue, attack: RandomizedAttack) -> None:
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


def print_curve(
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
