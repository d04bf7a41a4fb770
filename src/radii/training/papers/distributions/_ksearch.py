"""How many queries at once? Tables 1 and 4 and Figure 1, with radii's own verifier."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

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
CHOSEN = ("relu_3_50", "net_256x2", "relu_3_100", "relu_6_100", "nn")
"""Networks whose queries radii's verifier mostly decides within seconds."""

SCALES = {
    "small": ((1, 2), 1, 2, 2.0),
    "machine": (ALL_K, 2, 3, 3.0),
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
    names = ", ".join(network.title for network in chosen)
    return [
        Paragraph(
            f"The same images for every k: training images 0 to {images - 1} of {names}. "
            f"radii's verifier, {seconds:g} s of the CPU a query in place of the paper's hour with "
            "another verifier on all twelve networks: its numbers stand beside ours for their "
            "order, not to be reached. The wall is that of all cores at hand, which are fewer "
            "than k."
        ),
        _instance_table(efforts),
        _query_table(efforts),
        StudyFigure(
            "figure-1",
            "Figure 1: share of instances that end within a time on the wall, for each k",
            lambda: draw_run_times(joined),
        ),
        *_claims(efforts, found),
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


def _claims(efforts: Mapping[int, Effort], found: Mapping[int, Distribution]) -> list[StudyClaim]:
    """Verdicts need every k of the paper: a run of fewer leaves them open."""
    claims = [*_query_claims(efforts), _time_claim(efforts), _radius_claim(found)]
    if set(efforts) >= set(ALL_K):
        return claims
    return [replace(claim, verdict=ClaimVerdict.OPEN) for claim in claims]


def _query_claims(efforts: Mapping[int, Effort]) -> list[StudyClaim]:
    queries = {k: effort.mean(effort.queries) or math.nan for k, effort in efforts.items()}
    limits = {k: theoretical_maximum(GRID_VALUES, k) for k in efforts}
    bounded = {k: limit for k, limit in limits.items() if limit is not None}
    above = sum(queries[k] > limit for k, limit in bounded.items())
    listed = ", ".join(f"{value:.1f} (k = {k})" for k, value in queries.items())
    late = sum(effort.timeouts for effort in efforts.values())
    return [
        StudyClaim(
            "k = 2 needs the fewest queries on average",
            "Section 4.2, Table 1",
            _verdict(min(queries, key=lambda k: queries[k]) == 2),
            f"mean queries of an instance: {listed}",
        ),
        StudyClaim(
            "On average more queries are needed than the theory of one missing answer allows",
            "Section 4.2, Table 1",
            graded(above, len(bounded)),
            f"more on average for {above} of {len(bounded)} k with a theoretical maximum; {late} "
            f"of {sum(effort.queries for effort in efforts.values())} queries ran out of time",
        ),
    ]


def _time_claim(efforts: Mapping[int, Effort]) -> StudyClaim:
    cpu = {k: effort.mean(effort.cpu_seconds) or math.nan for k, effort in efforts.items()}
    rising = [cpu[k] for k in (1, 2, 4, 8) if k in cpu]
    spent = ", ".join(f"{value:.1f} s (k = {k})" for k, value in cpu.items())
    return StudyClaim(
        "CPU time rises with k, up to k = 8",
        "Section 4.2, Figure 1",
        _verdict(rising == sorted(rising)),
        f"mean CPU time of an instance: {spent}",
    )


def _radius_claim(found: Mapping[int, Distribution]) -> StudyClaim:
    same, total = _same_lower(found), min(len(part) for part in found.values())
    return StudyClaim(
        "Every k leads to the same radius",
        "Section 4.2",
        _verdict(same == total),
        f"the same lower side by every k on {share_text(same, total, 'instances')}",
    )


def _same_lower(found: Mapping[int, Distribution]) -> int:
    """Instances whose proven side is the same for every k; all parts list them in one order."""
    lowers = np.stack([part.lower for part in found.values()])
    return int((np.ptp(lowers, axis=0) < 1e-9).sum())


def _verdict(holds: bool) -> ClaimVerdict:
    return ClaimVerdict.CONFIRMED if holds else ClaimVerdict.REFUTED
