"""What `radii ensemble` says of a game: tables and sentences, and objects for JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from radii.ensembles import (
    CriticalEps,
    EnsembleStudy,
    GameValue,
    JointResult,
    RandomizedAttack,
    members,
)
from radii.views.tables._records import TableColumn, TableRecord

Part = TableRecord | str


# --- objects for JSON


def game_object(
    study: EnsembleStudy,
    value: GameValue,
    *,
    alpha: float | None = None,
    attacks: int | None = None,
    attack: RandomizedAttack | None = None,
) -> dict[str, Any]:
    """A bracket with all that proves it, for JSON: what `game_parts` shows."""
    points = [
        {
            "input": point.index,
            "label": point.label,
            "fooled_together": [list(members(mask)) for mask in fooled if mask],
            "undecided": [list(members(mask)) for mask in undecided],
        }
        for point, fooled, undecided in zip(
            study.points, study.fooled(value.eps), study.undecided(value.eps), strict=True
        )
    ]
    impossible = [
        {
            **_claim_object(study, each.place, each.finding),
            "eps": each.finding.eps,
            "version": each.finding.version,
            "margin": each.finding.margin,
        }
        for each in study.impossible(value.eps)
    ]
    disagreements = [_claim_object(study, one.place, one.finding) for one in study.disagreements]
    more: dict[str, Any] = {}
    if alpha is not None:
        more |= {"alpha": alpha, "robust": value.is_robust(alpha)}
    if attacks is not None:
        lower, upper = study.value_of_few(value, attacks)
        more["limited"] = {"attacks": attacks, "lower": float(lower), "upper": float(upper)}
    if attack is not None:
        more |= _attack_object(study, attack)
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
        **more,
    }


def _claim_object(study: EnsembleStudy, place: int, found: JointResult) -> dict[str, Any]:
    """Which classifiers somebody says cannot be fooled together."""
    return {
        "input": study.points[place].index,
        "classifiers": list(members(found.classifiers)),
        "verifier": found.verifier,
        "arithmetic": None if found.arithmetic is None else str(found.arithmetic),
    }


def _attack_object(study: EnsembleStudy, attack: RandomizedAttack) -> dict[str, Any]:
    """The attack with whom it fools; `--save` keeps the inputs themselves."""
    return {
        "achieved": str(attack.value),
        "attacks": [
            {
                "probability": str(probability),
                "points": [
                    {
                        "input": point.index,
                        "fooled": list(members(each.fooled)),
                        "distance": each.distance,
                    }
                    for point, each in zip(study.points, row, strict=True)
                ],
            }
            for probability, row in zip(attack.probabilities, attack.perturbed, strict=True)
        ],
    }


def game_curve_object(
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


# --- tables and sentences


def game_parts(
    study: EnsembleStudy,
    value: GameValue,
    *,
    alpha: float | None = None,
    attacks: int | None = None,
    attack: RandomizedAttack | None = None,
) -> Iterator[Part]:
    """The value of the game, the best defence, and who is fooled together, or an attack.

    `alpha` asks whether the ensemble is robust for it, `attacks` for the value of at most that many
    deterministic attacks.
    """
    yield (
        f"{len(study.ensemble)} classifiers, {len(study.points)} points, {study.norm.value} "
        f"eps {value.eps:g}; {value.questions} questions in {value.seconds:.1f} s"
    )
    lower, upper = _fraction_text(value.lower), _fraction_text(value.upper)
    yield f"value {lower}, exactly" if value.is_exact else f"value between {lower} and {upper}"
    yield f"proofs hold {study.arithmetic.scope}"
    if alpha is not None:
        answer = {True: "robust", False: "NOT robust", None: "undecided"}[value.is_robust(alpha)]
        yield f"alpha {alpha:g}: {answer}"
    if attack is not None:
        yield f"replayed on every network, the attack achieves {_fraction_text(attack.value)}"
        yield _attack_table(study, attack)
    yield from _defence(study, value)
    if attack is None:
        yield _fooled_table(study, value.eps)
    yield from _disagreements(study)
    if attacks is not None:
        lower, upper = (_fraction_text(each) for each in study.value_of_few(value, attacks))
        yield (
            f"with at most {attacks} deterministic attacks: {lower} is attained; HiGHS finds no "
            f"more than {upper}"
        )


def _attack_table(study: EnsembleStudy, attack: RandomizedAttack) -> TableRecord:
    rows = [
        ("" if place else _fraction_text(probability), point, each)
        for probability, row in zip(attack.probabilities, attack.perturbed, strict=True)
        for place, (point, each) in enumerate(zip(study.points, row, strict=True))
    ]
    return TableRecord(
        title="Attack",
        columns=[
            TableColumn("probability", lambda row: row[0]),
            TableColumn("input", lambda row: row[1].index),
            TableColumn("distance", lambda row: row[2].distance, ".4g"),
            TableColumn("fools", lambda row: _classifier_names(study, row[2].fooled)),
        ],
        rows=rows,
        is_text=True,
    )


def game_curve_parts(
    study: EnsembleStudy, curve: Sequence[GameValue], critical: CriticalEps | None
) -> Iterator[Part]:
    """The value at each eps, and where the ensemble stops being robust."""
    yield TableRecord(
        title="Value of the game",
        columns=[
            TableColumn("eps", lambda value: value.eps, "g"),
            TableColumn("attained", lambda value: _fraction_text(value.lower)),
            TableColumn("at most", lambda value: _fraction_text(value.upper)),
            TableColumn("questions", lambda value: value.questions),
            TableColumn("s", lambda value: value.seconds, ".1f"),
        ],
        rows=curve,
        no_wrap=False,
    )
    yield f"proofs hold {study.arithmetic.scope}"
    if critical is not None:
        below = "nowhere" if critical.lower is None else f"proven at eps {critical.lower:g}"
        above = "nowhere" if critical.upper is None else f"at eps {critical.upper:g}"
        yield f"robust for alpha {critical.alpha:g}: {below}; broken: {above}"
    yield from _disagreements(study)


def _defence(study: EnsembleStudy, value: GameValue) -> Iterator[Part]:
    yield TableRecord(
        title="Best defence",
        columns=[
            TableColumn("weight", lambda row: _fraction_text(row[1])),
            TableColumn("network", lambda row: row[0]),
        ],
        rows=list(zip(study.ensemble.names, value.limit.defence, strict=True)),
        no_wrap=False,
    )
    yield (
        "drawn with these weights for every input, no attacker makes more than "
        f"{_fraction_text(value.upper)} of the answers wrong"
    )
    yield TableRecord(
        title="Defences compared",
        columns=[
            TableColumn("loses at least", lambda each: _fraction_text(each.lower)),
            TableColumn("at most", lambda each: _fraction_text(each.upper)),
            TableColumn("mix", lambda each: each.name),
        ],
        rows=study.defences(value),
        no_wrap=False,
    )


def _fooled_table(study: EnsembleStudy, eps: float) -> TableRecord:
    impossible: dict[int, list[str]] = {}
    for each in study.impossible(eps):
        shown = f"{_classifier_names(study, each.finding.classifiers)} ({each.finding.verifier})"
        impossible.setdefault(each.place, []).append(shown)

    def fooled(masks: Sequence[int]) -> str:
        return "; ".join(_classifier_names(study, mask) for mask in masks if mask) or "none"

    return TableRecord(
        title="Fooled together",
        columns=[
            TableColumn("input", lambda row: row[1][0].index),
            TableColumn("label", lambda row: row[1][0].label),
            TableColumn("fooled by one perturbation", lambda row: fooled(row[1][1])),
            TableColumn("proven impossible", lambda row: "; ".join(impossible.get(row[0], []))),
        ],
        rows=list(enumerate(zip(study.points, study.fooled(eps), strict=True))),
        is_text=True,
    )


def _disagreements(study: EnsembleStudy) -> Iterator[str]:
    for each in study.disagreements:
        index = study.points[each.place].index
        sets, claimed = _classifier_names(study, each.finding.classifiers), each.finding.arithmetic
        scope = "" if claimed is None else f" {claimed.scope}"
        yield (
            f"DISAGREEMENT input {index}: {each.finding.verifier} claimed that {sets} cannot be "
            f"fooled together{scope}; a replayed input does"
        )


def _classifier_names(study: EnsembleStudy, mask: int) -> str:
    return ", ".join(study.ensemble.names[place] for place in members(mask)) or "nobody"


def _fraction_text(value: Fraction) -> str:
    """The fraction, and its decimal where that is not obvious."""
    return str(value) if value.denominator == 1 else f"{value} ({float(value):.4f})"
