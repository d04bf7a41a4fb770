"""The question that the paper leaves open: what are the three clusters of Figure 7b?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from radii.statistics import Distribution
from radii_papers._evidence import CaseOutcome, ClaimBasis, ClaimCase, StudyClaim
from radii_papers._steps import (
    Paragraph,
    Part,
    StudyScale,
    StudySettings,
)
from radii_papers._tables import Cell, StudyTable
from radii_papers.classes._brackets import DEFINITIONS, definition_of, targeted
from radii_papers.classes._modes import SEPARATION, dip_power, modes_of
from radii_papers.classes._numbers import (
    CLUSTERED_TARGET,
    CLUSTERS,
    TARGETS,
)
from radii_papers.classes._one_to_any import WITNESSED
from radii_papers.classes._published import PAPERS_PAIR
from radii_papers.classes._source import ClassSource

DRAWS = {StudyScale.SMALL: 99, StudyScale.MACHINE: 299, StudyScale.FULL: 999}


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """One network and target: modes by definition, and where one-to-one's witnesses end.

    `p_values` are of one mode alone. `ends` is the p-value that witnesses which end as the target
    and those which end as a third class are equally far; NaN where all end alike.
    """

    network: str
    target: int
    images: int
    modes: tuple[int, int]
    p_values: tuple[float, float]
    third: float
    ends: float


def cluster_rows(found: Distribution, draws: int) -> list[ClusterRow]:
    """Correct images of both splits, by their witnessed distances."""
    from scipy.stats import ks_2samp

    rows = []
    for network in found.networks:
        for target in TARGETS:
            own = found.only(network=network, target=target).correctly_classified()
            one, become = (definition_of(own, name) for name in DEFINITIONS)
            found_modes = [
                modes_of(part.upper[np.isfinite(part.upper)], draws) for part in (one, become)
            ]
            is_third = one.column("witness_class") != target
            ends = math.nan
            if 1 < is_third.sum() < len(one) - 1:
                ends = float(ks_2samp(one.upper[is_third], one.upper[~is_third]).pvalue)
            rows.append(
                ClusterRow(
                    network,
                    target,
                    len(one),
                    (found_modes[0][0], found_modes[1][0]),
                    (found_modes[0][1], found_modes[1][1]),
                    float(is_third.mean()),
                    ends,
                )
            )
    return rows


def clusters(source: ClassSource, settings: StudySettings) -> list[Part]:
    """Modes under both definitions for every target, and what that says of the paper's clusters."""
    found = targeted(source, settings)
    rows = cluster_rows(found, DRAWS[settings.scale])
    cells: list[tuple[Cell, ...]] = [
        (
            row.network, row.target, row.images, row.modes[0], row.p_values[0], row.modes[1],
            row.p_values[1], row.third, row.ends,
        )
        for row in rows
    ]  # fmt: skip
    columns = (
        *("network", "target", "images", "modes, one-to-one", "p of one"),
        *("modes, become", "p of one, become", "a third class wins"),
        "p that it does not matter which wins",
    )
    title = "Modes of witnessed distances at 5 %, images of both splits where there are both"
    forms = ("", "", "", "", ".3f", "", ".3f", ".0%", ".3g")
    text = (
        "For target 6 the paper sees three clusters and leaves their cause open. What a target may "
        "mean is a candidate. Where only the label's output has to fall below the target's, images "
        "break in two ways: the target wins, or a third class does and the target is merely "
        "no longer below the label; their distances may differ. Where the target has to win, there "
        "is one way. The last column tests whether distances differ between the two ways. Whether "
        "there is more than one mode is asked of Hartigan's dip test, how many there are of "
        f"Silverman's. {_power_text(rows)}"
    )
    wide = _spans(found)
    return [
        Paragraph(text),
        StudyTable("clusters", title, columns, tuple(cells), forms),
        wide,
        Paragraph(_finding(found, rows), is_finding=True),
        _there_are_clusters(rows),
    ]


def _spans(found: Distribution) -> StudyTable:
    """How different targets are from each other by either definition: the range of medians."""
    rows: list[tuple[Cell, ...]] = []
    for network in found.networks:
        for name in DEFINITIONS:
            own = definition_of(found, name).only(network=network).correctly_classified()
            medians = [float(np.median(part.upper)) for part in own.group_by("target").values()]
            by_input = [np.ptp(part.upper) for part in _by_input(own)]
            rows.append(
                (network, name, min(medians), max(medians), max(medians) / min(medians),
                 float(np.median(by_input)))
            )  # fmt: skip
    columns = (
        *("network", "definition", "smallest median of a target", "largest", "ratio"),
        "within an image, from closest to furthest target (median)",
    )
    title = "How much targets differ, by either definition (witnessed distances)"
    return StudyTable("spans", title, columns, tuple(rows), ("", "", ".3f", ".3f", ".2f", ".3f"))


def _by_input(own: Distribution) -> list[Distribution]:
    places, splits = own.column("input"), own.column("split")
    return [
        own.select((places == place) & (splits == split))
        for place, split in sorted(set(zip(places.tolist(), splits.tolist(), strict=True)))
    ]


def _of_target(rows: list[ClusterRow]) -> list[ClusterRow]:
    return [row for row in rows if row.target == CLUSTERED_TARGET]


def _finding(found: Distribution, rows: list[ClusterRow]) -> str:
    third = np.mean([row.third for row in rows])
    one, become = (definition_of(found, name) for name in DEFINITIONS)
    right = one.correct & np.isfinite(one.upper) & np.isfinite(become.upper)
    ratio = float(np.median(become.upper[right] / one.upper[right]))
    return (
        f"What a target means decides what is measured: {100 * third:.0f} % of the closest "
        "counterexamples of `one-to-one` are taken for a third class, and the distance to *become* "
        f"the target is {ratio:.2f} times as large (median over images and targets). Modes of the "
        f"distances towards class {CLUSTERED_TARGET}, where the paper sees three clusters: "
        f"{_shown(_of_target(rows))}."
    )


def _power_text(rows: list[ClusterRow]) -> str:
    """What the dip test would find with as many images as the smallest row has."""
    fewest = min((row.images for row in rows), default=0)
    return (
        f"Three equal clusters, {SEPARATION:g} standard deviations from one to the next, would be "
        f"told from one in {100 * dip_power(fewest):.0f} % of samples of {fewest} images."
    )


def _shown(rows: list[ClusterRow]) -> str:
    return "; ".join(
        f"{row.network}, {row.images} images: one-to-one {row.modes[0]}, become {row.modes[1]}"
        for row in rows
    )


def _missing(rows: list[ClusterRow]) -> str:
    """What to say where a network of the paper's pair is not at hand; empty where both are."""
    absent = [name for name in PAPERS_PAIR if name not in {row.network for row in rows}]
    return f" The paper's figure also has {', '.join(absent)}, not at hand." if absent else ""


def _there_are_clusters(rows: list[ClusterRow]) -> StudyClaim:
    """One mode that is not rejected shows nothing of the third network, nor of lower bounds."""
    own = _of_target(rows)
    cases = [
        ClaimCase(
            name=f"{row.network}, {name}", basis=ClaimBasis.THEIRS, n=row.images,
            shows=f"{modes} at 5 %, p of one {p_value:.2g}", rule=f"{CLUSTERS} or more",
            outcome=CaseOutcome.HOLDS if modes >= CLUSTERS else CaseOutcome.UNCLEAR,
        )
        for row in own
        for name, modes, p_value in zip(DEFINITIONS, row.modes, row.p_values, strict=True)
    ]  # fmt: skip
    return StudyClaim(
        f"Radii of class 9 towards class {CLUSTERED_TARGET} appear to fall into three clusters",
        "Section 4.3, Figures 6b and 7b",
        "modes by Hartigan's dip test, then Silverman's",
        tuple(cases),
        note=f"{_power_text(own)}{_missing(own)} {WITNESSED}",
    )
