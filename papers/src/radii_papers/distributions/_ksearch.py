"""How many queries at once? Tables 1 and 4 and Figure 1, with radii's own verifier."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from radii.statistics import Distribution, Effort, effort_of, theoretical_maximum
from radii.views import draw_run_times
from radii_papers._evidence import (
    CaseOutcome,
    ClaimBasis,
    ClaimCase,
    ClaimInterval,
    StudyClaim,
    within,
)
from radii_papers._intervals import mean_interval
from radii_papers._steps import (
    Paragraph,
    Part,
    StudyFigure,
    StudySettings,
)
from radii_papers._tables import Beside, Cell, StudyTable, share_text
from radii_papers.distributions._measuring import (
    MNIST_GRID,
    at_hand,
    file_of,
    measured,
    mnist_images,
    of_scale,
)
from radii_papers.distributions._numbers import SEARCH_QUERIES, SEARCHES
from radii_papers.distributions._public import (
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
            "With another verifier and other limits, nothing here decides a claim of the paper."
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


ByK = Mapping[int, Sequence[SearchedInstance]]
"""Searches of the same instances in the same order, by k."""

OURS = ClaimBasis.OURS
"""Another verifier, other limits of time, and some of the paper's twelve networks."""

HOW = "bootstrap over instances, Bonferroni"


def search_claims(found: Mapping[int, Searches]) -> list[StudyClaim]:
    """The claims of Section 4.2, on instances that were searched with every k."""
    shared = sorted(set.intersection(*(set(searches) for searches in found.values())))
    by_k = {k: [searches[key] for key in shared] for k, searches in found.items()}
    return [_fewest_claim(by_k), _theory_claim(by_k), _time_claim(by_k), _radius_claim(by_k)]


def _gap(first: Sequence[float], second: Sequence[float], of: int) -> ClaimInterval:
    """Of the means of the same instances, second less first, one of `of` such intervals."""
    return mean_interval([b - a for a, b in zip(first, second, strict=True)], of)


def _fewest_claim(by_k: ByK) -> StudyClaim:
    queries = {k: [float(each.queries) for each in searches] for k, searches in by_k.items()}
    others = [k for k in queries if k != 2 and 2 in queries and queries[2]]
    asked, late, full, *_ = SEARCH_QUERIES["1",]
    return StudyClaim(
        "k = 2 needs the fewest queries on average",
        "Section 4.2, Table 1",
        f"queries with another k less those with k = 2; {HOW}",
        tuple(
            within(
                f"k = {k}", OURS, len(queries[k]), _gap(queries[2], queries[k], len(others)),
                above=0,
            )
            for k in others
        ),
        note=f"Of the paper's {asked} queries for k = 1 {late} ran out of time and {full} out of "
        "memory; where all have an answer, k = 1 needs the fewest by theory.",
    )  # fmt: skip


def _theory_claim(by_k: ByK) -> StudyClaim:
    limits = {k: theoretical_maximum(GRID_VALUES, k) for k in by_k}
    bounded = {k: limit for k, limit in limits.items() if limit is not None and by_k[k]}
    asked = sum(each.queries for searches in by_k.values() for each in searches)
    late = sum(each.timeouts for searches in by_k.values() for each in searches)
    return StudyClaim(
        "On average more queries are needed than the theory of one missing answer allows",
        "Section 4.2, Table 1",
        f"mean queries of an instance; {HOW}",
        tuple(
            within(
                f"k = {k}", OURS, len(by_k[k]),
                mean_interval([each.queries for each in by_k[k]], len(bounded)), above=limit,
            )
            for k, limit in bounded.items()
        ),
        note=f"{share_text(late, asked, 'queries')} ran out of time.",
    )  # fmt: skip


def _time_claim(by_k: ByK) -> StudyClaim:
    cpu = {k: [each.cpu_seconds for each in searches] for k, searches in by_k.items()}
    steps = list(pairwise(k for k in (1, 2, 4, 8) if cpu.get(k)))
    return StudyClaim(
        "CPU time rises with k, up to k = 8",
        "Section 4.2, Figure 1",
        f"CPU seconds of an instance, more with the larger k; {HOW}",
        tuple(
            within(f"k = {a} to {b}", OURS, len(cpu[a]), _gap(cpu[a], cpu[b], len(steps)), above=0)
            for a, b in steps
        ),
    )


def _radius_claim(by_k: ByK) -> StudyClaim:
    instances = list(zip(*by_k.values(), strict=True))
    same = [len({round(one.lower, 9) for one in each}) == 1 for each in instances]
    answered = [not any(one.timeouts for one in each) for each in instances]
    shows = share_text(sum(same), len(same), "instances")
    is_open = not all(s for s, has_all in zip(same, answered, strict=True) if has_all)
    outcome = CaseOutcome.HOLDS if same and all(same) else CaseOutcome.UNCLEAR
    return StudyClaim(
        "Every k leads to the same radius",
        "Section 4.2",
        "count of instances whose lower side is the same with every k",
        (
            ClaimCase(
                name="all instances", basis=OURS, n=len(same), shows=shows, rule="all of them",
                outcome=CaseOutcome.FAILS if is_open else outcome,
            ),
        ),
        note=f"{sum(answered)} of the {len(same)} had no time-out; where a query has one, the "
        "lower side depends on which eps was asked.",
    )  # fmt: skip
