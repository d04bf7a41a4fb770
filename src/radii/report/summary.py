"""The sentences a report begins with, all of them computed, and the notes it must not hide."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from radii.distributions import Distribution, dkw_half_width, proof_scope
from radii.report.findings import ranking, tightness
from radii.report.sources import Source

__all__ = ["are_comparable", "notes", "summary_sentences"]

NORMS = {"linf": "L∞", "l2": "L2", "l1": "L1"}


def summary_sentences(
    sources: Sequence[Source], measured: Distribution, counted: Distribution
) -> list[str]:
    """What was measured, who is the most robust, what breaks first, how tight and how costly.

    `measured` has one bracket an instance, `counted` one an input: the smallest over its targets.
    """
    told = [_subject(sources, counted)]
    if are_comparable(sources):
        told.append(ranking(counted))
    told += [
        *_first_to_break(measured),
        tightness(measured),
        *_scope(measured),
        _confidence(counted),
        *_cost(measured),
    ]
    return told


def are_comparable(sources: Sequence[Source]) -> bool:
    """Radii in different norms are different things."""
    return len({source.experiment.get("norm") for source in sources}) == 1


def notes(sources: Sequence[Source]) -> list[str]:
    """What a reader must know before comparing, and what importing files found."""
    told = [note for source in sources for note in source.notes]
    told += [sentence for source in sources for sentence in _without_answer(source)]
    for name, why in (
        ("norm", "their radii cannot be compared"),
        ("property", "their radii answer different questions"),
        ("source", "differences between networks may be differences between inputs"),
    ):
        values = dict.fromkeys(str(source.experiment.get(name) or "unknown") for source in sources)
        if len(values) > 1:
            told.append(f"The experiments differ in {name} ({', '.join(values)}): {why}.")
    asked = dict.fromkeys(source.experiment.get("arithmetic") for source in sources)
    if len(named := [str(name) for name in asked if name]) > 1:
        told.append(
            f"The experiments differ in arithmetic ({', '.join(named)}): a proof in real "
            "arithmetic says nothing of rounding."
        )
    return told


def _without_answer(source: Source) -> list[str]:
    """Results of which nothing is known: no number stands for them, and they must not look as 0."""
    counts = {name: part.unsolved for name, part in source.distribution.by_network().items()}
    told = ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)
    if not told:
        return []
    return [
        f"{source.place}: some results have no answer, neither a proof nor a counterexample "
        f"({told}). Boxes, points of pairs and correlations leave them out; shares and medians "
        "count them as intervals from 0 to infinity."
    ]


def _subject(sources: Sequence[Source], counted: Distribution) -> str:
    networks = _count(len(counted.networks), "network")
    data = " and ".join(dict.fromkeys(str(s.experiment.get("source") or s.place) for s in sources))
    sizes = sorted({len(part) for part in counted.by_network().values()})
    inputs = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    norms = {NORMS.get(str(s.experiment.get("norm")), "") for s in sources} - {""}
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
    told = []
    if right.any():
        row = int(np.argmin(np.where(right, measured.upper, np.inf)))
        becomes = int(measured.column("witness_class")[row])
        seen = f" and becomes {becomes}" if becomes >= 0 else ""
        told.append(
            f"The closest counterexample to {kept} is "
            f"{measured.upper[row]:.3g} away: input {measured.column('input')[row]} "
            f"of class {measured.label[row]} breaks {measured.network[row]}{seen}."
        )
    if wrong:
        told.append(
            f"{_count(wrong, 'instance')} of {len(measured):,} "
            f"{'is' if wrong == 1 else 'are'} {broken} without any change, with radius 0."
        )
    return told


def _scope(measured: Distribution) -> list[str]:
    """Which numbers the proofs speak of."""
    said = proof_scope(measured)
    return [f"{said[0].upper()}{said[1:]}."] if said else []


def _confidence(counted: Distribution) -> str:
    fewest = min(len(part) for part in counted.by_network().values())
    return (
        "If the inputs were drawn at random, sampling moves a network's robust accuracy by at most "
        f"±{100 * dkw_half_width(fewest):.1f} percentage points, at all radii at once, with "
        f"95 % confidence."
    )


def _cost(measured: Distribution) -> list[str]:
    """Files of published results may tell neither."""
    seconds = float(np.nansum(measured.column("seconds")))
    queries = int(measured.column("queries").sum())
    asked = _count(queries, "question") if queries else "All questions"
    return [f"{asked} took {_duration(seconds)}."] if seconds else []


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.1f} minutes"
    return f"{seconds / 3600:.1f} hours"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
