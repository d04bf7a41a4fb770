"""Section 4.3: one class towards all others, by both meanings of a target (Figures 5 to 7, 11, 12).

The text of the paper says "classified as the target": `become`. Tools that read VNN-LIB, as
oval-bab does, are mostly asked whether the target's output reaches the label's: `one-to-one`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from radii.statistics import Distribution, spearman_matrix
from radii.views import draw_boxes, draw_ks_matrix, draw_scatter
from radii_papers._evidence import ClaimScope, StudyClaim
from radii_papers._steps import (
    Paragraph,
    Part,
    StudyFigure,
    StudySettings,
)
from radii_papers._tables import Cell, StudyTable, share_text
from radii_papers.classes._brackets import (
    DEFINITIONS,
    cpu_minutes,
    definition_of,
    given_to_verifier,
    sizes_of,
    targeted,
)
from radii_papers.classes._differences import (
    Differences,
    differences,
    differences_table,
    fewest_images,
    networks_differ,
    of_tests,
    splits_alike,
    targets_differ,
    why_counts_differ,
)
from radii_papers.classes._numbers import (
    CURVES_OF_TARGETS,
    FROM_CLASS,
    IMAGES_OF_CLASS,
    NETWORKS,
    POINTS_OF_TARGETS,
    TARGETS,
    TARGETS_DIFFER,
)
from radii_papers.classes._one_to_any import ALONE, PAIRED_TEST, WITNESSED, at_hand
from radii_papers.classes._source import ClassSource
from radii_papers.figures import draw_ecdf_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def target_boxes(source: ClassSource, settings: StudySettings) -> list[Part]:
    """Figure 5: for each definition and network, boxes by target; and medians beside each other."""
    found, sizes = targeted(source, settings), sizes_of(settings)
    text = (
        f"Up to {sizes.targeted} images of class {FROM_CLASS} of each split, towards every other "
        f"class, are attacked, and {sizes.targeted_proven} of them given to the verifier, "
        f"{sizes.targeted_seconds:g} s for each target, with both meanings of a "
        "target: `one-to-one` (the target's output reaches the label's) and `become` (it beats "
        "all). A proof of one-to-any holds for every target, one of `one-to-one` for `become`; a "
        f"counterexample of `become` breaks `one-to-one`. That makes {len(found)} brackets, "
        f"{len(given_to_verifier(found))} with proofs of their own, in {cpu_minutes(found)}. The "
        f"paper has {IMAGES_OF_CLASS} images of each split, all with proofs."
    )
    parts: list[Part] = [Paragraph(text)]
    for name in DEFINITIONS:
        for letter, network in zip("abc", found.networks, strict=False):
            own = definition_of(found, name).only(network=network)
            title = f"Figure 5{letter}, {name}: class {FROM_CLASS} towards others on {network}"
            figure = f"figure-5{letter}-{name}"
            parts.append(StudyFigure(figure, title, lambda own=own: _boxes(own)))  # type: ignore[misc]
    return [*parts, _medians(found)]


def _boxes(own: Distribution) -> Figure:
    return draw_boxes(own, by=("target", "split"), side="upper")


def _medians(found: Distribution) -> StudyTable:
    """Of each target the witnessed medians, and how often a third class wins instead."""
    rows = []
    for target in TARGETS:
        row: list[Cell] = [target]
        for network in found.networks:
            own = found.only(network=network, target=target)
            right = own.select(own.correct) if own.correct.any() else own
            one, become = (definition_of(right, name) for name in DEFINITIONS)
            row += [float(np.median(one.upper)), float(np.median(become.upper))]
            row.append(float(np.mean(one.column("witness_class") != target)))
        rows.append(tuple(row))
    columns = ["target"]
    for network in found.networks:
        columns += [f"{network}: one-to-one", "become", "a third class wins"]
    title = "Figure 5 in numbers: median witnessed distances; how often one-to-one ends elsewhere"
    forms = ("", *((".3f", ".3f", ".0%") * len(found.networks)))
    return StudyTable("figure-5-medians", title, tuple(columns), tuple(rows), forms)


def _testing(found: Distribution) -> Distribution:
    is_test = found.column("split") == "test"
    return found.select(is_test) if is_test.any() else found


def target_curves(source: ClassSource, settings: StudySettings) -> list[Part]:
    """Figure 6: networks' curves for two targets, under both definitions."""
    found = _testing(targeted(source, settings))
    panels = {
        f"target {target}, {name}": part.only(target=target).correctly_classified()
        for target in CURVES_OF_TARGETS
        for name in DEFINITIONS
        for part in [definition_of(found, name)]
    }
    title = "Figure 6: two targets on every network, testing images where there are some"
    return [StudyFigure("figure-6", title, lambda: draw_ecdf_panels(panels))]


def target_points(source: ClassSource, settings: StudySettings) -> list[Part]:
    """Figure 7: the same images on two networks, for two targets and both definitions."""
    found = _testing(targeted(source, settings))
    if len(found.networks) < 2:
        return [Paragraph("There is one network only: nothing to compare.")]
    pair = (found.networks[0], found.networks[1])
    parts: list[Part] = []
    rows: list[tuple[Cell, ...]] = []
    for letter, target in zip("ab", POINTS_OF_TARGETS, strict=True):
        for name in DEFINITIONS:
            own = definition_of(found, name).only(target=target)
            title = f"Figure 7{letter}, {name}: class {FROM_CLASS} towards {target} on two networks"
            figure = f"figure-7{letter}-{name}"
            parts.append(
                StudyFigure(figure, title, lambda own=own: draw_scatter(own, [pair], side="upper"))  # type: ignore[misc]
            )
            ranks = spearman_matrix(own, "upper")
            rows.append((target, name, int(ranks.inputs[0, 1]), float(ranks.coefficients[0, 1])))
    columns = ("target", "definition", "images right on both", "Spearman's coefficient")
    title = "Figure 7 in numbers: witnessed distances"
    forms = ("", "", "", ".2f")
    return [*parts, StudyTable("figure-7-ranks", title, columns, tuple(rows), forms)]


def target_tests(source: ClassSource, settings: StudySettings) -> list[Part]:
    """Figure 11: targets against each other, for each network and definition."""
    found = targeted(source, settings)
    parts: list[Part] = []
    by_definition: dict[str, Mapping[str, Differences | None]] = {}
    for name in DEFINITIONS:
        own = definition_of(found, name)
        matrices = {net: differences(part, "target") for net, part in own.by_network().items()}
        by_definition[name] = matrices
        others = [net for net in NETWORKS if net not in matrices]
        title = f"Figure 11, {name}: targets against each other"
        parts += [
            StudyFigure(
                f"figure-11-{name}",
                title,
                lambda own=own: draw_ks_matrix(own, "target", side="upper"),  # type: ignore[misc]
            ),
            differences_table(
                f"figure-11-{name}-counts",
                f"Figure 11 in numbers, {name}: pairs of targets, and targets whose splits differ",
                "network",
                matrices,
                TARGETS_DIFFER,
                others=others,
                reason=why_counts_differ(sizes_of(settings).targeted),
            ),
        ]
    text = (
        f"{of_tests(sizes_of(settings).targeted)} Targets of the same images are not independent "
        "samples, as the test takes them to be; the paper's matrices share that."
    )
    parts_of = {
        f"{net}, {name}, {split}": part
        for name in DEFINITIONS
        for net, own in definition_of(found, name).by_network().items()
        for split, part in own.group_by("split").items()
    }
    known = {
        f"{net}, {name}": each
        for name, matrices in by_definition.items()
        for net, each in matrices.items()
        if each is not None
    }
    images = fewest_images(definition_of(found, "become"), "target")
    return [
        *parts,
        Paragraph(text),
        Paragraph(_finding(by_definition), is_finding=True),
        StudyClaim(
            f"On {at_hand(found)} robustness differs significantly between targets of the same "
            "images",
            "Section 4.3, Figure 11",
            "Friedman's test of all targets of each image, by either meaning of a target, Holm",
            tuple(targets_differ(parts_of)),
            note=WITNESSED,
        ),
        StudyClaim(
            f"For most targets, training and testing images of {at_hand(found)} are not found to "
            "differ significantly",
            "Section 4.3, Figure 11",
            f"Kolmogorov and Smirnov's test between different images, by either meaning, {ALONE}",
            tuple(splits_alike(known, images)),
            ClaimScope.MOST,
            WITNESSED,
        ),
    ]


def _finding(found: Mapping[str, Mapping[str, Differences | None]]) -> str:
    """Pairs of targets that differ by either definition, over networks and splits."""
    told = []
    for name, matrices in found.items():
        known = [each for each in matrices.values() if each is not None]
        differ = sum(each.differ(part) for each in known for part in ("train", "test"))
        tested = sum(each.tested(part) for each in known for part in ("train", "test"))
        told.append(f"{share_text(differ, tested, 'pairs of targets')} by `{name}`")
    return (
        f"Radii of the same images towards different targets differ significantly in "
        f"{' and '.join(told)}, over networks and splits. The paper finds differences in many "
        "cases, and its words (classified as the target) are those of `become`."
    )


def networks_by_target(source: ClassSource, settings: StudySettings) -> list[Part]:
    """Figure 12: networks against each other, for each target and definition."""
    found = targeted(source, settings)
    if len(found.networks) < 2:
        return [Paragraph("There is one network only: nothing to compare.")]
    parts: list[Part] = []
    tested = {}
    for name in DEFINITIONS:
        own = definition_of(found, name)
        matrices = {
            f"target {target}": differences(part, "network")
            for target, part in own.group_by("target").items()
        }
        parts += [
            StudyFigure(
                f"figure-12-{name}",
                f"Figure 12, {name}: networks against each other, by target",
                lambda own=own: draw_ks_matrix(own, ("network", "target"), side="upper"),  # type: ignore[misc]
            ),
            differences_table(
                f"figure-12-{name}-counts",
                f"Figure 12 in numbers, {name}: networks, by target",
                "of",
                matrices,
                {},
            ),
        ]
        for target in CURVES_OF_TARGETS:
            for split, part in own.only(target=target).group_by("split").items():
                tested[f"target {target}, {name}, {split}"] = part
    claim = StudyClaim(
        f"For targets 2 and 6 the distributions of {at_hand(found)} differ, on both splits",
        "Section 4.3, Figures 6 and 12",
        f"{PAIRED_TEST}, by either meaning of a target",
        tuple(networks_differ(tested)),
        note="The paper's words (misclassified as the target) are those of `become`; how its "
        f"verifier was asked is not told, so that both have to hold. {WITNESSED}",
    )
    return [*parts, claim]
