"""How many queries at once? Tables 1 and 4 and Figure 1, with radii's own verifier."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from radii.distributions import Distribution
from radii.plots import draw_run_times
from radii.results import Effort, effort_of, theoretical_maximum
from radii.training.papers._steps import (
    ClaimVerdict,
    Paragraph,
    Part,
    StudyClaim,
    StudyFigure,
    StudySettings,
)
from radii.training.papers._tables import Beside, Cell, StudyTable, share_text
from radii.training.papers.distributions._claims import graded
from radii.training.papers.distributions._measuring import (
    MNIST_GRID,
    at_hand,
    file_of,
    measured,
    mnist_images,
    of_scale,
)
from radii.training.papers.distributions._numbers import SEARCH_QUERIES, SEARCHES
from radii.training.papers.distributions._public import (
    NETWORKS_OF_SECTION_4,
    PublicResults,
    PublishedNetwork,
)

ALL_K = tuple(int(k) for (k,) in SEARCHES)
GRID_VALUES = 200
CHOSEN = ("net_256x2", "net", "nn", "relu_3_50", "relu_3_100")
"""Networks whose queries radii's verifier mostly decides within seconds."""

SCALES = {
    "small": ((1, 2), 1, 2, 2.0),
    "machine": (ALL_K, 3, 11, 0.4),
    "full": (ALL_K, 5, 20, 60.0),
}
"""Values of k, networks, training images of each, and CPU seconds of a query."""

LEAST_INSTANCES = 30
"""From which a verdict on means is given."""

CONFIDENCE = 0.95
RESAMPLES = 10_000
"""Of intervals of means: the bootstrap over instances, with a seed of its own."""


def search_table(results: PublicResults, settings: StudySettings) -> list[Part]:
    """The same images for every k, each of the k queries on a worker of its own."""
    settings = of_scale(settings)
    values, networks, images, seconds = SCALES[settings.scale.value]
    known = [n for n in NETWORKS_OF_SECTION_4 if n.architecture in CHOSEN]
    known.sort(key=lambda network: CHOSEN.index(network.architecture))
    chosen = list(at_hand(results, known).values())[:networks]
    if not chosen:
        return [Paragraph("Not made: none of its networks is at hand.")]
    found = {k: _searched(results, settings, chosen, k) for k in values}
    efforts = {k: effort_of(part.measurements) for k, part in found.items()}
    joined = Distribution.union([p.labelled(network=f"k = {k}") for k, p in found.items()])
    joined = joined.select(joined.column("queries") > 0)
    names = ", ".join(network.title for network in chosen)
    return [
        Paragraph(
            f"The same images for every k: training images 0 to {images - 1} of {names}. "
            f"radii's verifier, {seconds:g} s of the CPU a query in place of the paper's hour with "
            "another verifier on all twelve networks: its numbers stand beside ours to compare the "
            "order of the k, not sizes. The paper gives each of the k queries a core of its own; "
            "here they share the cores at hand, so that the wall says little, and the CPU much. "
            f"Verdicts need {LEAST_INSTANCES} instances, and means whose differences are beyond "
            f"chance: {100 * CONFIDENCE:g} % intervals by the bootstrap over instances, with "
            "Bonferroni's correction for several differences."
        ),
        _instance_table(efforts),
        _query_table(efforts),
        Paragraph(_paper_shares()),
        StudyFigure(
            "figure-1a",
            "Figure 1, left: share of instances that end within a time on the wall, for each k",
            lambda: draw_run_times(joined),
        ),
        StudyFigure(
            "figure-1b",
            "Figure 1, right: share of instances that end within a time of the CPU, for each k",
            lambda: draw_run_times(joined, time="cpu_seconds"),
        ),
        *search_claims({k: _searches(part) for k, part in found.items()}),
    ]


def _searched(
    results: PublicResults, settings: StudySettings, chosen: Sequence[PublishedNetwork], k: int
) -> Distribution:
    _, _, images, seconds = SCALES[settings.scale.value]
    return measured(
        settings.folder / f"k-{k}",
        settings,
        jobs=k if settings.jobs else 0,
        networks=[str(file_of(results, network)) for network in chosen],
        data=mnist_images(results, images),
        grid=MNIST_GRID,
        search="k-binary",
        k=k,
        verifier="native",
        cpu_timeout=seconds,
    )


def _instance_table(efforts: Mapping[int, Effort]) -> StudyTable:
    rows: list[tuple[Cell, ...]] = []
    for k, effort in efforts.items():
        paper = SEARCHES[(str(k),)]
        numbers = (
            effort.fewest,
            effort.most,
            effort.mean(effort.queries),
            effort.mean(effort.cpu_seconds),
            effort.mean(effort.wall_seconds),
            effort.mean(effort.timeouts),
        )
        row: list[Cell] = [k, Beside(theoretical_maximum(GRID_VALUES, k), paper[0])]
        for ours, theirs in zip(numbers, paper[1:], strict=True):
            row += [ours, theirs]
        rows.append(tuple(row))
    names = ("fewest", "most", "mean queries", "CPU s", "wall s", "time-outs")
    columns = ("k", "maximum in theory", *(n for name in names for n in (name, f"{name}, paper")))
    forms = ("", "", "", "", "", "", ".2f", "", ".2f", "", ".2f", "", ".2f", "")
    return StudyTable("table-1", "Table 1: an instance, by k", columns, tuple(rows), forms)


def _query_table(efforts: Mapping[int, Effort]) -> StudyTable:
    rows: list[tuple[Cell, ...]] = []
    for k, effort in efforts.items():
        paper = SEARCH_QUERIES[(str(k),)]
        share = effort.cancelled / effort.queries if effort.queries else math.nan
        numbers = (effort.queries, effort.timeouts, effort.memouts, effort.cancelled, share)
        row: list[Cell] = [k]
        for ours, theirs in zip(numbers, paper, strict=True):
            row += [ours, theirs]
        rows.append(tuple(row))
    names = ("queries", "time-outs", "memory-outs", "cancelled", "share cancelled")
    columns = ("k", *(n for name in names for n in (name, f"{name}, paper")))
    forms = ("", *("",) * 8, ".3f", "")
    return StudyTable("table-4", "Table 4: all queries, by k", columns, tuple(rows), forms)


def _paper_shares() -> str:
    """Shares of cancelled queries that are not those of the paper's own counts."""
    slips = []
    for (k,), (asked, _, _, cancelled, printed) in SEARCH_QUERIES.items():
        share = int(cancelled) / int(asked)
        if Beside(share, printed).agrees is False:
            slips.append(f"for k = {k} {cancelled} of {asked} are {share:.3f}, not {printed}")
    return (
        "Shares of cancelled queries that do not follow from the paper's own counts: "
        f"{', '.join(slips)}."
    )


# --- claims


@dataclass(frozen=True, slots=True)
class SearchedInstance:
    """What one search took, and what it came to."""

    queries: int
    timeouts: int
    cpu_seconds: float
    lower: float


Searches = Mapping[tuple[str, int], SearchedInstance]
"""By network and image, all searches of one k."""


def _searches(part: Distribution) -> Searches:
    return {
        (m.network, m.input): SearchedInstance(
            m.queries, m.timeouts, m.cpu_seconds or 0.0, m.bracket.lower
        )
        for m in part.measurements
        if m.queries
    }


def search_claims(found: Mapping[int, Searches]) -> list[StudyClaim]:
    """Verdicts need every k of the paper and enough instances: else they stay open."""
    shared = sorted(set.intersection(*(set(searches) for searches in found.values())))
    by_k = {k: [searches[key] for key in shared] for k, searches in found.items()}
    claims = [_fewest_claim(by_k), _theory_claim(by_k), _time_claim(by_k), _radius_claim(by_k)]
    if set(found) >= set(ALL_K) and len(shared) >= LEAST_INSTANCES:
        return claims
    return [replace(claim, verdict=ClaimVerdict.OPEN) for claim in claims]


ByK = Mapping[int, Sequence[SearchedInstance]]
"""Searches of the same instances in the same order, by k."""


def mean_interval(values: Sequence[float], comparisons: int = 1) -> tuple[float, float]:
    """Bootstrap interval of a mean, by percentiles; wider where it is one of several."""
    rng = np.random.default_rng(0)
    drawn = rng.choice(np.asarray(values, np.float64), (RESAMPLES, len(values))).mean(axis=1)
    tail = (1 - CONFIDENCE) / 2 / comparisons
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return float(low), float(high)


def _differences(first: Sequence[float], second: Sequence[float], of: int) -> tuple[float, float]:
    """Of the means of the same instances, second less first, one of `of` such intervals."""
    return mean_interval([b - a for a, b in zip(first, second, strict=True)], of)


def _fewest_claim(by_k: ByK) -> StudyClaim:
    """CONFIRMED where every other k needs more, beyond chance. Where one needs fewer, it DEPENDS on
    how many queries go without an answer: if all have one, k = 1 needs the fewest by theory."""
    queries = {k: [float(each.queries) for each in searches] for k, searches in by_k.items()}
    others = [k for k in queries if k != 2]
    verdict = ClaimVerdict.OPEN
    if 2 in queries and others and queries[2]:
        gaps = [_differences(queries[2], queries[k], len(others)) for k in others]
        if all(low > 0 for low, _ in gaps):
            verdict = ClaimVerdict.CONFIRMED
        elif any(high < 0 for _, high in gaps):
            verdict = ClaimVerdict.DEPENDS
    asked, late, full, *_ = SEARCH_QUERIES["1",]
    return StudyClaim(
        "k = 2 needs the fewest queries on average",
        "Section 4.2, Table 1",
        verdict,
        f"mean queries of an instance: {_means(queries, '.1f')}; of the paper's {asked} queries "
        f"for k = 1 {late} ran out of time and {full} out of memory",
    )


def _theory_claim(by_k: ByK) -> StudyClaim:
    """By the interval of each mean; one that holds the limit counts for neither side."""
    limits = {k: theoretical_maximum(GRID_VALUES, k) for k in by_k}
    bounded = {k: limit for k, limit in limits.items() if limit is not None and by_k[k]}
    ends = {k: mean_interval([each.queries for each in by_k[k]]) for k in bounded}
    above = [k for k, limit in bounded.items() if ends[k][0] > limit]
    below = [k for k, limit in bounded.items() if ends[k][1] < limit]
    verdict = ClaimVerdict.OPEN
    if len(above) + len(below) == len(bounded):
        verdict = graded(len(above), len(bounded))
    elif above and below:
        verdict = ClaimVerdict.DEPENDS
    asked = sum(each.queries for searches in by_k.values() for each in searches)
    late = sum(each.timeouts for searches in by_k.values() for each in searches)
    return StudyClaim(
        "On average more queries are needed than the theory of one missing answer allows",
        "Section 4.2, Table 1",
        verdict,
        f"of {len(bounded)} k with a theoretical maximum the mean lies above it for {len(above)} "
        f"and below it for {len(below)}; {share_text(late, asked, 'queries')} ran out of time",
    )


def _time_claim(by_k: ByK) -> StudyClaim:
    """CONFIRMED where it rises from each k to the next, beyond chance; REFUTED where it falls."""
    cpu = {k: [each.cpu_seconds for each in searches] for k, searches in by_k.items()}
    rising = [k for k in (1, 2, 4, 8) if cpu.get(k)]
    steps = list(pairwise(rising))
    gaps = [_differences(cpu[a], cpu[b], len(steps)) for a, b in steps]
    verdict = ClaimVerdict.OPEN
    if gaps and all(low > 0 for low, _ in gaps):
        verdict = ClaimVerdict.CONFIRMED
    elif any(high < 0 for _, high in gaps):
        verdict = ClaimVerdict.REFUTED
    return StudyClaim(
        "CPU time rises with k, up to k = 8",
        "Section 4.2, Figure 1",
        verdict,
        f"mean CPU seconds of an instance: {_means(cpu, '.1f')}",
    )


def _radius_claim(by_k: ByK) -> StudyClaim:
    """CONFIRMED by all instances, REFUTED by one whose queries were all answered in time; where
    only others differ, it DEPENDS on the time that a query has."""
    instances = list(zip(*by_k.values(), strict=True))
    same = [each for each in instances if len({round(one.lower, 9) for one in each}) == 1]
    answered = [each for each in instances if not any(one.timeouts for one in each)]
    same_answered = sum(each in same for each in answered)
    verdict = ClaimVerdict.CONFIRMED if len(same) == len(instances) else ClaimVerdict.DEPENDS
    if same_answered < len(answered):
        verdict = ClaimVerdict.REFUTED
    return StudyClaim(
        "Every k leads to the same radius",
        "Section 4.2",
        verdict,
        f"the same lower side by every k on {share_text(len(same), len(instances), 'instances')}, "
        f"and on {same_answered} of the {len(answered)} without any time-out",
    )


def _means(values: Mapping[int, Sequence[float]], form: str) -> str:
    return ", ".join(
        f"{sum(each) / len(each):{form}} (k = {k})" for k, each in values.items() if each
    )
