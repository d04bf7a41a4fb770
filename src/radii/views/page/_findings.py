"""What a distribution shows, in plain sentences. Every number is computed from the brackets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np

from radii.problem import ProofStatus
from radii.runs import show_duration
from radii.statistics import (
    Distribution,
    Run,
    dkw_half_width,
    inputs_with_radius,
    proof_checks,
    proof_scope,
    proof_statuses,
)


def finding_sentences(distribution: Distribution, *, eps: float) -> list[str]:
    """Three sentences: how the median radii rank, robust accuracy at `eps`, how tight it all is.

    A network is called more robust than another only if the brackets of their medians are disjoint.
    """
    return [ranking(distribution), _accuracy(distribution, eps), tightness(distribution)]


def ranking(distribution: Distribution) -> str:
    """Medians over inputs that have a radius, as in the papers; misclassified ones have none."""
    parts = distribution.by_network()
    medians = {
        name: part.correctly_classified().median()
        for name, part in parts.items()
        if part.holds.any()
    }
    inputs = inputs_with_radius(distribution)
    if not medians:
        return f"There is no median radius: there are no {inputs}."
    absent = [f"{name} has no {inputs}." for name in parts if name not in medians]
    return " ".join([f"Over {inputs}, {_ranked(medians)}", *absent])


def _ranked(medians: Mapping[str, tuple[float, float]]) -> str:
    if len(medians) == 1:
        ((name, median),) = medians.items()
        return f"the median radius of {name} is {known_interval(*median)}."
    best = max(medians, key=lambda name: medians[name])
    # By its upper end: if even that is above the best's lower end, all have a value in common.
    worst = min(medians, key=lambda name: medians[name][::-1])
    if medians[best][0] < medians[worst][1]:
        return "the median radii of the networks overlap: none is shown to be more robust."
    leaders = [name for name in medians if medians[name][1] > medians[best][0]]
    largest = " and ".join(f"{name}, {known_interval(*medians[name])}," for name in leaders)
    place = "is the largest" if len(leaders) == 1 else "are the largest, and overlap"
    sentence = (
        f"the median {'radius' if len(leaders) == 1 else 'radii'} of {largest} {place}; "
        f"that of {worst} is {known_interval(*medians[worst])}"
    )
    if medians[worst][1] > 0:
        # Rounded down, so that "at least" stays true.
        factor = math.floor(10 * medians[best][0] / medians[worst][1]) / 10
        sentence += f", at least {factor:.1f} times smaller"
    return f"{sentence}."


def _accuracy(distribution: Distribution, eps: float) -> str:
    share = "accuracy" if distribution.is_about_label else "the share that keeps the property"
    parts = distribution.by_network()
    shares = {name: part.robust_accuracy(eps) for name, part in parts.items()}
    texts = {
        name: f"{one.proven:.3f}" if one.proven == one.not_refuted else str(one)
        for name, one in shares.items()
    }
    falls = [
        f"from {part.holds.mean():.3f} to {texts[name]} for {name}" for name, part in parts.items()
    ]
    is_open = any(one.proven < one.not_refuted for one in shares.values())
    meaning = " (from what is proven to what is not refuted)" if is_open else ""
    return f"When every pixel may change by {eps:g}, {share} falls {', '.join(falls)}{meaning}."


def tightness(distribution: Distribution) -> str:
    widths = distribution.upper - distribution.lower
    closed = widths[widths < math.inf]
    unwitnessed = len(widths) - len(closed)
    missing, nothing = sum(m.missing for m in distribution), distribution.unsolved
    answers = (
        _count_text(missing, "answer is missing", "answers are missing") or "no answer is missing"
    )
    parts = [
        *([answers] if any(m.queries for m in distribution) else []),  # else nobody counted them
        _count_text(unwitnessed, "has no counterexample", "have no counterexample")
        or "each has a counterexample",
        *([f"{_count_text(nothing, 'has', 'have')} no proof either"] if nothing else []),
    ]
    if closed.size:
        parts.append(f"the widest{' of the others' if unwitnessed else ''} is {closed.max():.4f}")
    return f"{_count_text(len(widths), 'bracket', 'brackets')}: {', '.join(parts)}."


def _count_text(number: int, one: str, more: str) -> str:
    return f"{number:,} {one if number == 1 else more}" if number else ""


def known_interval(low: float, high: float) -> str:
    """A bracket in three decimals, rounded outward so that it stays true."""
    if low == high:
        return f"{low:.3f}"
    proven = _rounded(low, ROUND_FLOOR)
    if high == math.inf:
        return f"at least {proven}"
    return f"[{proven}, {_rounded(high, ROUND_CEILING)})"


def _rounded(value: float, direction: str) -> Decimal:
    return Decimal(repr(value)).quantize(Decimal("0.001"), direction)


# The sentences a report begins with, all of them computed, and the notes it must not hide.


NORM_TITLES = {"linf": "L∞", "l2": "L2", "l1": "L1"}


def summary_sentences(
    runs: Sequence[Run], measured: Distribution, counted: Distribution
) -> list[str]:
    """What was measured, who is the most robust, what breaks first, how tight and how costly.

    `measured` has one bracket an instance, `counted` one an input: the smallest over its targets.
    """
    fewest = min(len(part) for part in counted.by_network().values())
    sentences = [_subject_sentence(runs, counted)]
    if are_comparable(runs):
        sentences.append(ranking(counted))
    sentences += [
        *_first_to_break(measured),
        tightness(measured),
        *(f"{clause[0].upper()}{clause[1:]}." for clause in proof_clauses(measured)),
        "If the inputs were drawn at random, sampling moves a network's robust accuracy by at most "
        f"±{100 * dkw_half_width(fewest):.1f} percentage points, at all radii at once, with "
        "95 % confidence.",
    ]
    seconds = float(np.nansum(measured.column("seconds")))  # files may have neither these
    queries = int(measured.column("queries").sum())  # nor those
    if seconds:
        asked = _counted_noun(queries, "question") if queries else "All questions"
        sentences.append(f"{asked} took {show_duration(seconds)}.")
    return sentences


def are_comparable(runs: Sequence[Run]) -> bool:
    """Radii in different norms are different things."""
    return len({run.settings.norm for run in runs}) == 1


def notes(runs: Sequence[Run]) -> list[str]:
    """What a reader must know before comparing, and what importing files found."""
    sentences = [note for run in runs for note in run.notes]
    sentences += [sentence for run in runs for sentence in _without_answer(run)]
    for run in runs:
        if refused := proof_statuses(Distribution.from_run(run)).get(ProofStatus.FAILED, 0):
            proofs = "A proof" if refused == 1 else f"{refused:,} proofs"
            sentences.append(
                f"{run.place}: {proofs} of its lower bounds failed the check of its certificate."
            )
    for name, why in (
        ("norm", "their radii cannot be compared"),
        ("property", "their radii answer different questions"),
        ("source", "differences between networks may be differences between inputs"),
    ):
        values = dict.fromkeys(str(run.settings.text_of(name) or "unknown") for run in runs)
        if len(values) > 1:
            sentences.append(f"The experiments differ in {name} ({', '.join(values)}): {why}.")
    chosen = dict.fromkeys(run.settings.arithmetic for run in runs)
    if len(named := [str(arithmetic) for arithmetic in chosen if arithmetic]) > 1:
        sentences.append(
            f"The experiments differ in arithmetic ({', '.join(named)}): a proof in real "
            "arithmetic says nothing of rounding."
        )
    return sentences


def _without_answer(run: Run) -> list[str]:
    """Results of which nothing is known: no number stands for them, and they must not look as 0."""
    parts = Distribution.from_run(run).by_network()
    counts = ", ".join(f"{name} {part.unsolved:,}" for name, part in parts.items() if part.unsolved)
    if not counts:
        return []
    return [
        f"{run.place}: some results have no answer, neither a proof nor a counterexample "
        f"({counts}). Boxes, points of pairs and correlations leave them out; shares and medians "
        "count them as intervals from 0 to infinity."
    ]


def _subject_sentence(runs: Sequence[Run], counted: Distribution) -> str:
    networks = _counted_noun(len(counted.networks), "network")
    data = " and ".join(dict.fromkeys(run.settings.source or str(run.place) for run in runs))
    sizes = sorted({len(part) for part in counted.by_network().values()})
    inputs = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    norms = {NORM_TITLES[run.settings.norm] for run in runs if run.settings.norm is not None}
    distance = f" Distances are {' or '.join(sorted(norms))}." if norms else ""
    each = " each" if len(counted.networks) > 1 else ""
    return f"{networks}, {inputs} inputs{each}, from {data}.{distance}"


def _first_to_break(measured: Distribution) -> list[str]:
    right = measured.holds & np.isfinite(measured.upper)
    wrong = int((~measured.holds).sum())
    kept, broken = (
        ("a correctly classified input", "misclassified")
        if measured.is_about_label
        else ("an input with the property", "without the property")
    )
    sentences = []
    if right.any():
        row = int(np.argmin(np.where(right, measured.upper, np.inf)))
        becomes = int(measured.column("witness_class")[row])
        seen = f" and becomes {becomes}" if becomes >= 0 else ""
        sentences.append(
            f"The closest counterexample to {kept} is "
            f"{measured.upper[row]:.3g} away: input {measured.column('input')[row]} "
            f"of class {measured.label[row]} breaks {measured.network[row]}{seen}."
        )
    if wrong:
        sentences.append(
            f"{_counted_noun(wrong, 'instance')} of {len(measured):,} "
            f"{'is' if wrong == 1 else 'are'} {broken} without any change, with radius 0."
        )
    return sentences


def proof_clauses(distribution: Distribution) -> list[str]:
    """Which numbers the proofs speak of, and who has checked them, as far as there are proofs."""
    return [*filter(None, (proof_scope(distribution), proof_checks(distribution)))]


def _counted_noun(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
