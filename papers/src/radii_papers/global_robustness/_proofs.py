"""Beyond the paper: what the attack hides. R that is proven, on a part of the same images."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from radii_papers._evidence import ClaimBasis, ClaimCase, ClaimInterval, StudyClaim, within
from radii_papers._intervals import tail_of
from radii_papers._steps import (
    Paragraph,
    Part,
    StudyFigure,
    StudySettings,
)
from radii_papers._tables import Cell, StudyTable
from radii_papers.figures import draw_proof_gaps
from radii_papers.global_robustness._measures import BASIS
from radii_papers.global_robustness._networks import (
    SETS,
    NetworkStudies,
    all_networks,
)
from radii_papers.tradeoff._results import StudyMember

NEARLY_EXACT = 0.02
"""A share of images by which the attack may be too kind and still be called an approximation."""


def proofs_step(source: NetworkStudies, settings: StudySettings) -> list[Part]:
    """For each network the share that the attack left and the share that is proven."""
    made = all_networks(source, settings)
    known = {SETS[name]: proven_members(members) for name, members in made.items()}
    drawn = {title: [_pair(m) for m in members] for title, members in known.items() if members}
    parts: list[Part] = [
        Paragraph(
            "An attack that fails proves nothing. Deterministic and pruned networks are also given "
            "to radii's verifier, on the first of the same images: what it proves is a guarantee, "
            "what it breaks is what the attack overlooked, and the rest is open at the time limit. "
            "Means of softmaxes and pooled networks on CIFAR-10 are not proven here."
        )
    ]
    if drawn:
        title = "No attack found against proven, a line for each network"
        parts.append(StudyFigure("proof-gaps", title, lambda: draw_proof_gaps(drawn)))
    rows = [_row(title, members) for title, members in known.items() if members]
    columns = ("data", "networks", "images of each", "not broken by the attack", "not refuted",
               "proven", "largest gap", "R(0.5) not refuted", "R(0.5) proven")  # fmt: skip
    heading = "Mean shares over networks; the gap is between not broken and proven"
    forms = ("", "", "", ".3f", ".3f", ".3f", ".3f", ".3f", ".3f")
    parts.append(StudyTable("proofs", heading, columns, tuple(rows), forms))
    return [*parts, attack_claim(known, BASIS)]


def proven_members(members: Sequence[StudyMember]) -> list[StudyMember]:
    return [m for m in members if m.proven_robustness is not None and m.unbroken is not None]


def _pair(member: StudyMember) -> tuple[float, float]:
    assert member.proven_robustness is not None and member.unbroken is not None
    return member.proven_robustness.least, member.unbroken


def _row(title: str, members: Sequence[StudyMember]) -> tuple[Cell, ...]:
    values = [member.proven_robustness for member in members]
    known = [value for value in values if value is not None]
    steady = [m.proven_steadiness for m in members if m.proven_steadiness is not None]
    gaps = [unbroken - proven for proven, unbroken in map(_pair, members)]
    return (
        title,
        len(members),
        known[0].inputs,
        statistics.mean([member.unbroken or 0.0 for member in members]),
        statistics.mean([value.most for value in known]),
        statistics.mean([value.least for value in known]),
        max(gaps),
        statistics.mean([value.most for value in steady]),
        statistics.mean([value.least for value in steady]),
    )


def attack_claim(known: Mapping[str, Sequence[StudyMember]], basis: ClaimBasis) -> StudyClaim:
    """How much of what the attack left a stronger search breaks, and how much is not proven."""
    made = {place: members for place, members in known.items() if members}
    return StudyClaim(
        "FGSM approximates local robustness, where its exact computation is prohibitive",
        "Sections 3.1 and 4.2",
        "share of images by which FGSM is too kind, mean over networks; Hoeffding's interval over "
        "images, which all networks of a data set share, Bonferroni",
        tuple(_kindness_case(place, members, basis, len(made)) for place, members in made.items()),
        note="The paper says that its statistical bounds do not depend on how local robustness is "
        "approximated: they are about what the attack sees.",
    )


def _kindness_case(
    place: str, members: Sequence[StudyMember], basis: ClaimBasis, of: int
) -> ClaimCase:
    """Between what a stronger search breaks and what is not proven, and as far on either side as
    other images may be: the mean over networks of an image lies between 0 and 1."""
    values = [m.proven_robustness for m in members if m.proven_robustness is not None]
    unbroken = statistics.mean([m.unbroken or 0.0 for m in members])
    most = statistics.mean([value.most for value in values])
    least = statistics.mean([value.least for value in values])
    images = min(value.inputs for value in values)
    reach = math.sqrt(math.log(1 / tail_of(of)) / (2 * images))
    broken, missing = unbroken - most, unbroken - least
    shows = f"{len(members)} networks, {broken:.3f} broken by a stronger search, {missing:.3f} not "
    return within(
        place, basis, images, ClaimInterval(broken, max(0.0, broken - reach), missing + reach),
        below=NEARLY_EXACT, before=f"{shows}proven: ",
    )  # fmt: skip
