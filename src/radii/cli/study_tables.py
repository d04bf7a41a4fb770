"""What `radii study` prints, writes and draws."""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.errors import DataError, StoreError
from radii.terminal import say

if TYPE_CHECKING:
    from radii.training import Correlation, Effect, Study, StudyMember


FIGURE_FORMATS = ("png", "pdf", "svg")


def check_output(args: argparse.Namespace) -> None:
    """Refuse what could not be shown, before hours of work."""
    from radii.training import STUDY_MEASURES

    if args.measure not in STUDY_MEASURES:
        raise DataError(f"measure '{args.measure}' is not one of {', '.join(STUDY_MEASURES)}")
    if args.format not in FIGURE_FORMATS:
        raise DataError(f"format '{args.format}' is not one of {', '.join(FIGURE_FORMATS)}")


def show_study(
    args: argparse.Namespace, study: Study, members: Sequence[StudyMember], confidence: float
) -> None:
    """Tables or JSON on standard output; files where asked for."""
    from radii.cli.json_output import print_json
    from radii.training import correlations, effects, write_csv

    found = correlations(members, confidence=confidence, seed=study.seed)
    told = effects(members, args.measure, seed=study.seed)
    if args.csv is not None:
        write_csv(members, args.csv)
    if args.figures is not None:
        draw(args.figures, args.format, members, args.measure, told)
    if args.json:
        print_json(
            {
                "study": study.identity,
                "networks": [member.row() for member in members],
                "correlations": [{**dataclasses.asdict(each), "sign": each.sign} for each in found],
                "effects": [_effect_row(effect) for effect in told],
            }
        )
        return
    _print_study_head(study, members)
    _print_networks(members)
    _print_correlations(found, confidence)
    _print_effects(told, args.measure)


def _effect_row(effect: Effect) -> dict[str, Any]:
    groups = [{"value": name, "networks": list(values)} for name, values in effect.groups]
    return {**dataclasses.asdict(effect), "groups": groups}


def _print_study_head(study: Study, members: Sequence[StudyMember]) -> None:
    kinds = Counter(member.recipe.kind for member in members)
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "none"
    say(f"{len(members)} of {len(study.recipes)} networks are finished: {told}")
    converged = [m.converged for m in members if m.converged is not None]
    if converged:
        say(f"{sum(converged)} of {len(converged)} Bayesian networks converged; others do not "
            "count")  # fmt: skip
    for member in members:
        if member.failure:
            say(f"{member.recipe.name} failed: {member.failure}")
    measured = [member.robustness for member in members if member.robustness is not None]
    if measured:
        say(
            f"trained on {study.data}; R and D of {study.test} within Linf {study.eps}, by "
            f"{study.attack} on {measured[0].inputs} inputs without replacement, "
            f"{100 * study.confidence:g} % confidence (finite-population statement, each network "
            "by itself); R is at most what the attack sees, D at least"
        )


def _print_networks(members: Sequence[StudyMember]) -> None:
    width = max((len(member.recipe.name) for member in members), default=7)
    say("", f"{'network':{width}}  accuracy  R attacked           D attacked           "
        "proven R  not refuted  R, interval     gap")  # fmt: skip
    for member in members:
        if member.accuracy is None:
            continue
        mark = " (not converged)" if member.converged is False else ""
        say(
            f"{member.recipe.name:{width}}  {member.accuracy:8.4f}  "
            f"{_value_text(member.robustness)}  "
            f"{_value_text(member.change)}  {_proven(member)}{mark}")  # fmt: skip


def _value_text(value: Any) -> str:
    if value is None:
        return " " * 19
    return f"{value.most:.3f} [{value.low:.3f}, {value.high:.3f}]"[:22].ljust(19)


def _proven(member: StudyMember) -> str:
    value, gap = member.proven_robustness, member.gap
    if value is None or gap is None:
        return f"{'-':>8}  {'-':>11}  {'-':<14}  {'-':>5}"
    return (
        f"{value.least:8.3f}  {value.most:11.3f}  [{value.low:.3f}, {value.high:.3f}]  {gap:5.3f}"
    )


def _print_correlations(found: Sequence[Correlation], confidence: float) -> None:
    if not found:
        say("", "too few networks of any kind for a correlation")
        return
    say("", f"correlation over networks; {100 * confidence:g} % intervals by bootstrap and by "
        "Fisher's transformation; p by permutation")  # fmt: skip
    say(f"{'kind':13}  {'measure':8}  {'with':8}  {'method':8}  {'n':>3}  {'value':>6}  "
        f"{'bootstrap':16}  {'Fisher':16}  {'p':>6}  sign")  # fmt: skip
    for each in found:
        say(f"{each.kind:13}  {each.measure:8}  {each.along:8}  {each.method:8}  "
            f"{each.networks:3}  {_signed(each.value):>6}  "
            f"{_signed_interval(each.low, each.high)}  "
            f"{_signed_interval(each.fisher_low, each.fisher_high)}  {each.p_value:6.4f}  "
            f"{each.sign}")  # fmt: skip


def _signed(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:+.2f}"


def _signed_interval(low: float, high: float) -> str:
    return f"[{_signed(low)}, {_signed(high)}]".ljust(16)


def _print_effects(told: Sequence[Effect], measure: str) -> None:
    if not told:
        return
    say("", f"median {measure} by hyper-parameter; p of Kruskal and Wallis' test by permutation, "
        "and Holm's within a kind")  # fmt: skip
    for effect in told:
        medians = ", ".join(f"{name}: {_median(values):.3f}" for name, values in effect.groups)
        say(f"{effect.kind:13}  {effect.parameter:12}  p {effect.p_value:.4f}  Holm "
            f"{effect.adjusted:.4f}  {medians}")  # fmt: skip


def _median(values: Sequence[float]) -> float:
    import statistics

    return statistics.median(values)


def draw(
    directory: Path,
    suffix: str,
    members: Sequence[StudyMember],
    measure: str,
    told: Sequence[Effect],
) -> None:
    """The scatter, the boxes of each kind, and the gaps to proofs; those that there are."""
    from radii.plots import (
        TradeoffPoint,
        draw_hyper_parameters,
        draw_proof_gaps,
        draw_tradeoff,
        save_figure,
    )
    from radii.training import RECIPE_KINDS, STUDY_MEASURES

    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{directory}: cannot be made ({error.strerror})") from None
    series = {
        _series(kind, is_counted): [
            TradeoffPoint(member.accuracy or 0.0, *_ends(member, measure))
            for member in members
            if member.recipe.kind == kind
            and member.accuracy is not None
            and member.is_counted is is_counted
            and _ends(member, measure)
        ]
        for kind in RECIPE_KINDS
        for is_counted in (True, False)
    }
    shown = {name: points for name, points in series.items() if points}
    figure = draw_tradeoff(shown, STUDY_MEASURES[measure])
    save_figure(figure, directory / f"tradeoff.{suffix}")
    for kind in RECIPE_KINDS:
        boxes = {effect.parameter: dict(effect.groups) for effect in told if effect.kind == kind}
        if boxes:
            figure = draw_hyper_parameters(boxes, measure)
            save_figure(figure, directory / f"effects-{kind}.{suffix}")
    gaps = {
        kind: [
            (member.proven_robustness.least, member.unbroken)
            for member in members
            if member.recipe.kind == kind
            and member.proven_robustness is not None
            and member.unbroken is not None
        ]
        for kind in RECIPE_KINDS
    }
    if any(gaps.values()):
        figure = draw_proof_gaps({kind: pairs for kind, pairs in gaps.items() if pairs})
        save_figure(figure, directory / f"proof-gaps.{suffix}")


def _series(kind: str, is_counted: bool) -> str:
    return kind if is_counted else f"{kind}, not converged"


def _ends(member: StudyMember, measure: str) -> tuple[float, ...]:
    """The value and its interval; nothing where it was not measured."""
    if measure == "R" and member.robustness is not None:
        return member.robustness.most, member.robustness.low, member.robustness.high
    if measure == "1-D" and member.change is not None:
        change = member.change
        return 1 - change.least, 1 - change.high, 1 - change.low
    if measure == "proven R" and member.proven_robustness is not None:
        proven = member.proven_robustness
        return proven.least, proven.low, proven.high
    return ()
