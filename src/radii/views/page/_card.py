"""A section for a model card: what was measured about a network, in sentences and tables."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from radii.errors import DataError
from radii.problem import REAL, ProofStatus
from radii.statistics import (
    CATALOGUE,
    Distribution,
    Run,
    arithmetics,
    fairness,
    is_unsearched,
    over_targets,
    proof_statuses,
    robust_accuracy_interval,
    why_unsearched,
)
from radii.terminal import plain
from radii.views.page._findings import known_interval, proof_clauses
from radii.views.tables._records import TableColumn, TableRecord, markdown_lines

NORM_SENTENCES = {
    "linf": "no value changes by more than eps",
    "l2": "the change has a Euclidean length of at most eps",
    "l1": "all changes together amount to at most eps",
}
_MARKUP = re.compile(r"[\\`*<|]|(?<=\])[(\[]")
_BEGINNING = re.compile(r"^(\d+(?=[.)])|(?=[-+#>=~\[]))(.)")
"""What would make a heading, list, quotation, rule or definition of a line."""
CARD_SETTINGS = (
    *("property", "norm", "grid", "search", "verifier", "arithmetic"),
    *("attack", "timeout", "seed"),
)


def default_eps(distribution: Distribution) -> tuple[float, ...]:
    """Round values at which about three quarters, half and a quarter of the inputs are proven."""
    proven = [distribution.quantile(share)[0] for share in (0.25, 0.5, 0.75)]
    return tuple(sorted({float(f"{eps:.1g}") for eps in proven if eps > 0}))


def card(runs: Sequence[Run], *, eps: Sequence[float] = (), level: float = 0.95) -> str:
    """Markdown, with a part for each network."""
    lines = ["## Robustness to small changes of the input", ""]
    for run in runs:
        for name, targets in Distribution.from_run(run).by_network().items():
            part = over_targets(targets)
            chosen = tuple(eps) or default_eps(part)
            lines += [f"### {_inline(name.removesuffix('.onnx'))}", ""]
            lines += [*_finding_lines(name, part, run), *_radii(part, run), ""]
            lines += [*_table(part, chosen, level), ""]
            lines += [*_worst_class_lines(part, chosen, level), "", "Limitations:", ""]
            lines += [f"- {sentence}" for sentence in _limitations(part, run, level)]
            lines += ["", "How it was measured:", ""]
            lines += [f"- {sentence}" for sentence in _method(part, run)]
            lines.append("")
    # Parts that say nothing leave empty lines: one of several is kept.
    kept = [line for place, line in enumerate(lines) if line or (place and lines[place - 1])]
    return "\n".join(map(plain, kept))


def _finding_lines(name: str, part: Distribution, run: Run) -> Iterator[str]:
    right = int(part.holds.sum())
    data = _inline(run.settings.source or run.place.name)
    network = _inline(name.removesuffix(".onnx"))
    if _is_published(part):
        yield _sentence(
            f"{data} has results of {network} for {right} inputs that it classifies correctly."
        )
    else:
        names = map(_inline, dict.fromkeys(part.column("property").tolist()))
        which = f"The property {' or '.join(names)} holds for {network} at"
        yield _sentence(
            f"{network} classifies {right} of {len(part)} inputs ({data}) correctly."
            if part.is_about_label
            else f"{which} {right} of {len(part)} inputs ({data})."
        )


def _radii(part: Distribution, run: Run) -> Iterator[str]:
    """Of the inputs that have a radius: correct ones, or those at which the property holds."""
    if not part.holds.any():
        return
    norm = run.settings.norm
    change = "the change is at most eps" if norm is None else NORM_SENTENCES[norm]
    proven = "provably" if run.is_measured else "by published claims"
    low, high = part.correctly_classified().median()
    if part.is_about_label:
        whose, stays = "the correctly classified inputs", f"the answer {proven} stays right"
    else:
        whose, stays = "the inputs at which it holds", f"the property {proven} holds"
    if low > 0:
        yield (
            f"For half of {whose} {stays} under every change within {low:.4g} ({change}); "
            f"their median radius is {known_interval(low, high)}."
        )
    else:
        radius = f"a radius above 0 is known in which {stays} ({change})"
        yield f"For less than half of {whose} {radius}."
    witnessed = part.holds & np.isfinite(part.upper)
    if witnessed.any():
        row = int(np.argmin(np.where(witnessed, part.upper, math.inf)))
        broken = "a correct answer" if part.is_about_label else "the property"
        yield (
            f"The smallest change known to break {broken} is {part.upper[row]:.4g} "
            f"(input {part.column('input')[row]})."
        )


def _table(part: Distribution, eps: Sequence[float], level: float) -> Iterator[str]:
    published = _is_published(part)
    population = "all correctly classified inputs" if published else "all inputs"
    values = eps if published else (0.0, *eps)
    endings = {value: why_unsearched(part, value) for value in values}

    def not_refuted(value: float) -> str:
        share = part.robust_accuracy(value).not_refuted
        return "not searched" if endings[value] else f"{100 * share:.1f} %"

    def limits(value: float) -> str:
        low, high = robust_accuracy_interval(part, value, level)
        return f"{100 * low:.1f} % to {100 * high:.1f} %"

    columns = [
        TableColumn("eps", lambda value: value, "g"),
        TableColumn("proven", lambda value: f"{100 * part.robust_accuracy(value).proven:.1f} %"),
        TableColumn("not refuted", not_refuted),
        TableColumn(f"{population}, {100 * level:g} % confidence", limits),
    ]
    yield from markdown_lines(TableRecord(title=None, columns=columns, rows=values))
    yield ""
    for why in dict.fromkeys(filter(None, endings.values())):
        yield f"Not searched: {why}, so what is not refuted at that eps is not known."
    share_of = (
        "The share of correctly classified inputs whose answer stays right within eps"
        if published
        else "Robust accuracy: the share of inputs whose answer is right and stays so within eps"
        if part.is_about_label
        else "Constraint satisfaction: the share of inputs for which the property holds within eps"
    )
    yield f"{share_of}. Confidence is for each eps alone."


def _worst_class_lines(part: Distribution, eps: Sequence[float], level: float) -> Iterator[str]:
    """The worst class, at the middle eps."""
    at = eps[len(eps) // 2] if eps else 0.0
    try:
        spread = fairness(part, at, level=level)
    except DataError:
        return  # one class, or none is given
    worst = min(spread.classes, key=lambda row: (row.recall.proven, row.recall.not_refuted))
    shares = f"{100 * worst.recall.proven:.0f} % of its inputs ({worst.inputs}) are proven"
    if not is_unsearched(part, at).any():
        shares += f" and {100 * worst.recall.not_refuted:.0f} % not refuted"
    yield f"The class with the least proven is {worst.label}: at eps {at:g}, {shares}. {spread}"


def _limitations(part: Distribution, run: Run, level: float) -> Iterator[str]:
    gap = CATALOGUE["mean_gap"](part)
    yield (
        f"The figures are of {len(part)} inputs. What is said with {100 * level:g} % confidence of "
        "all inputs holds if these were drawn at random from them."
    )
    if "train" in part.column("split"):
        yield "Inputs are training inputs: on inputs that training did not see it may be worse."
    yield (
        "Nothing is said about other changes, such as rotations, blur or other kinds of noise, nor "
        "about larger ones."
    )
    if math.isfinite(gap):
        yield (f"What is proven of a radius and its counterexample are {gap:.2g} apart on average.")
    no_witness = int(np.isinf(part.upper).sum())
    if no_witness:
        yield f"For {no_witness} inputs no counterexample is known."
    nothing = int(((part.lower == 0) & part.holds).sum())
    if nothing:
        which = "correctly classified inputs" if part.is_about_label else "inputs where it holds"
        yield f"For {nothing} {which} nothing is proven."
    if missing := CATALOGUE["missing"](part):
        yield f"{missing} of {CATALOGUE['queries'](part)} questions were left without an answer."
    if not run.is_measured:
        yield "Proofs and counterexamples are published claims, which radii has not checked."
    elif REAL in arithmetics(part):
        yield (
            "What is proven in real arithmetic holds for the network without rounding, which is "
            "not quite what runs."
        )
    counts = proof_statuses(part)
    if believed := counts.get(ProofStatus.BELIEVED):
        yield f"Lower bounds without a certificate, whose prover is believed: {believed}."
    if not_read := counts.get(ProofStatus.UNREADABLE):
        yield f"Lower bounds whose certificate the checker cannot read: {not_read}."
    if refused := counts.get(ProofStatus.FAILED):
        yield f"Lower bounds whose certificate the checker REFUSED: {refused}."
    if _is_published(part):
        yield "Inputs that are misclassified were not published: accuracy is not known."
    yield from (_sentence(_inline(note)) for note in run.notes)


def _method(part: Distribution, run: Run) -> Iterator[str]:
    if not run.is_measured:
        yield f"Read from {_inline(run.place.name)}; published claims."
        return
    values = {name: run.settings.text_of(name) for name in CARD_SETTINGS}
    settings = [f"{name} {_inline(value)}" for name, value in values.items() if value is not None]
    yield f"Settings: {', '.join(settings)}."
    yield f"Data: {_inline(run.settings.source)}."
    yield f"Network: fingerprint {_inline(part.column('fingerprint')[0])}."
    for clause in map(_inline, proof_clauses(part)):
        yield f"{clause[0].upper()}{clause[1:]}."
    own = [record for record in run.records if record.facts.network == part.networks[0]]
    counts = Counter(result.author for record in own for result in record.results)
    answers = (f"{_inline(author)} ({count})" for author, count in sorted(counts.items()))
    yield f"Answers by: {', '.join(answers)}."
    witnesses = [result.witness for record in run.records for result in record.results]
    if engines := sorted({witness.replayed_on for witness in witnesses if witness is not None}):
        yield f"Every counterexample was replayed on {', '.join(map(_inline, engines))}."
    seconds = float(np.nansum(part.column("seconds")))
    yield f"Time: {seconds:.0f} s for {len(part)} inputs."


def _inline(value: object) -> str:
    """Text of others, as it stands inside a line of Markdown: without markup, and in one line."""
    return _MARKUP.sub(r"\\\g<0>", plain(str(value)).strip())


def _sentence(text: str) -> str:
    """A line that begins with text of others: it stays a sentence."""
    return _BEGINNING.sub(r"\g<1>\\\g<2>", text)


def _is_published(part: Distribution) -> bool:
    """Results of others, which leave out what the network misclassifies."""
    return bool(part.correct.all()) and not any(part.column("fingerprint"))
