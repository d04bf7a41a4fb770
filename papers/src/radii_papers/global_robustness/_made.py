"""Appendix B: the grids, the networks that were made of them, and whom the statements are about."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from radii_papers._evidence import StudyClaim, fact
from radii_papers._steps import (
    Paragraph,
    Part,
    StudyScale,
    StudySettings,
)
from radii_papers._tables import Beside, Cell, StudyTable
from radii_papers.global_robustness._networks import (
    SETS,
    NetworkGroup,
    NetworkStudies,
    make_networks,
    network_folder,
    network_groups,
)
from radii_papers.tradeoff._description import Recipe, expand, preset_tables
from radii_papers.tradeoff._results import StudyMember, Value, write_csv

PAPER_COUNTS = {
    ("mnist", "deterministic", "dense"): ("B.1", "1000"),
    ("mnist", "deterministic", "convolutional"): ("B.2", "1000"),
    ("fashion", "deterministic", "dense"): ("B.3", "500"),
    ("fashion", "deterministic", "convolutional"): ("B.4", "500"),
    ("cifar10", "deterministic", "convolutional"): ("B.5", "600"),
    ("mnist", "pruned", "dense"): ("B.6", ""),
    ("fashion", "pruned", "dense"): ("B.7", ""),
    ("mnist", "bayesian", "dense"): ("B.8", ""),
    ("fashion", "bayesian", "dense"): ("B.9", ""),
}
"""The grids of the appendix, and how many networks Section 4.2 counts. On CIFAR-10 it counts 800,
about 200 of which are another collection's."""


ONCE = "as many or more, if each combination is trained once"


def grids_step(source: NetworkStudies, settings: StudySettings) -> list[Part]:
    """How many combinations the appendix's grids have, beside the networks that the text counts."""
    rows: list[tuple[Cell, ...]] = []
    cases = []
    for (name, kind, family), (place, counted) in PAPER_COUNTS.items():
        size = grid_size(name, kind, family)
        own = [r for r in source.study(name, settings.scale).recipes
               if (r.kind, r.family, r.images) == (kind, family, None)]  # fmt: skip
        rows.append((place, SETS[name], f"{kind}, {family}", Beside(size, counted), len(own)))
        if counted:
            cases.append(
                fact(place, None, f"{size} combinations for {counted} networks", rule=ONCE)
            )
    columns = ("grid", "data", "networks", "combinations (the paper's networks)", "made here")
    table = StudyTable("grids", "Appendix B: the grids", columns, tuple(rows))
    claim = StudyClaim(
        "the networks of Section 4.2 are those of the appendix's grids",
        "Section 4.2, Appendix B",
        "combinations of a grid, beside the networks that the text counts",
        tuple(cases),
        note="Fewer combinations than networks contradict it only if each is trained once, and a "
        "width is one number for all layers: the paper says neither. More combinations do not show "
        "that the networks are among them.",
    )
    return [Paragraph(_scale_text(settings)), table, claim]


def grid_size(name: str, kind: str, family: str) -> int:
    """Combinations of the appendix, from the preset that has them, before any are drawn."""
    found: list[Recipe] = []
    for grid in preset_tables(f"{name}-paper").get(kind, []):
        every = {field: values for field, values in grid.items() if field != "count"}
        found += expand(kind, every, 0)
    return sum(recipe.family == family for recipe in found)


def _scale_text(settings: StudySettings) -> str:
    if settings.scale is StudyScale.FULL:
        return (
            "The presets `mnist-paper`, `fashion-paper` and `cifar10-paper` have the appendix's "
            "grids; where these are larger than what the text counts, as many are drawn."
        )
    return (
        "The presets `mnist-paper`, `fashion-paper` and `cifar10-paper` have the appendix's grids "
        "(`--scale full`). Made here are those of `mnist-small`, `fashion-small` and "
        "`cifar10-small`, or some of them: the same hyper-parameters, with narrower layers, fewer "
        "training images and epochs, and larger rates in return. They were set by what the machine "
        "could do and after trials: Bayesian chains of 20 and of 80 samples mostly did not "
        "converge and are left out, sigmoids, which converge slowly, are among the narrowest "
        "alone. The 200 CIFAR-10 networks that the paper takes from another collection are left "
        "out. Columns that differ are the paper's own: its grids have other numbers of "
        "combinations than its text counts networks."
    )


def networks_step(name: str) -> Callable[[NetworkStudies, StudySettings], list[Part]]:
    """The step that makes and measures the networks of a data set."""

    def make(source: NetworkStudies, settings: StudySettings) -> list[Part]:
        members = make_networks(source, settings, name)
        write_csv(members, network_folder(settings, name) / "networks.csv")
        study = source.study(name, settings.scale)
        minutes = sum(member.seconds for member in members) / 60
        chains = (
            f" Bayesian networks see the first {study.bayesian_images} images, by {study.chains} "
            f"chains, of which {study.members} samples are kept."
            if any(recipe.kind == "bayesian" for recipe in study.recipes)
            else ""
        )
        proofs = (
            f" The first {study.proof_inputs} of them are also given to the verifier."
            if study.proof_inputs
            else ""
        )
        text = (
            f"{len(members)} networks, trained on {study.data}, took {minutes:.0f} min of one "
            f"core, training and measuring.{chains} R, R(0.5) and D are those that "
            f"{study.attack.upper()} leaves of {_inputs(members)} images of {study.test} within "
            f"Linf {study.eps}.{proofs} `networks-{name}/networks.csv` has a line for each network."
        )
        return [Paragraph(text), _summary(name, members), *_failures(members)]

    return make


def _inputs(members: Sequence[StudyMember]) -> int:
    return max((m.robustness.inputs for m in members if m.robustness is not None), default=0)


def _failures(members: Sequence[StudyMember]) -> list[Part]:
    failed = [member for member in members if member.failure]
    if not failed:
        return []
    return [Paragraph(f"{len(failed)} networks have no values, such as {failed[0].recipe.name}: "
                      f"{failed[0].failure}")]  # fmt: skip


def _summary(name: str, members: Sequence[StudyMember]) -> StudyTable:
    """A row for each group: how accurate and how robust, in the middle and at the ends."""
    rows = [_summary_row(group) for group in network_groups(members).values()]
    columns = ("networks", "n", "learned", "accuracy", "R", "R(0.5)", "D", "proven R")
    title = f"{SETS[name]}: medians, and least to most over networks"
    return StudyTable(f"networks-{name}", title, columns, tuple(rows))


def _summary_row(group: NetworkGroup) -> tuple[Cell, ...]:
    accuracies = [member.accuracy for member in group.members if member.accuracy is not None]
    values: list[Cell] = [_spread(accuracies)]
    for field, side in (
        ("robustness", "most"),
        ("steadiness", "most"),
        ("change", "least"),
        ("proven_robustness", "least"),
    ):
        held = [getattr(member, field) for member in group.members]
        values.append(_spread([getattr(value, side) for value in held if value is not None]))
    return (group.title, len(group.members), len(group.learned.members), *values)


def _spread(values: Sequence[float]) -> str | None:
    if not values:
        return None
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


STATEMENT_FIELDS = {"R": "robustness", "R(0.5)": "steadiness", "D": "change"}


def statements_step(source: NetworkStudies, settings: StudySettings) -> list[Part]:
    """What the same sample says of the test set, and of all inputs like it."""
    rows: list[tuple[Cell, ...]] = []
    for name, title in SETS.items():
        members = make_networks(source, settings, name)
        for measure, field in STATEMENT_FIELDS.items():
            values = [getattr(member, field) for member in members]
            known = [value for value in values if value is not None]
            if known:
                rows.append((title, measure, len(known), known[0].inputs, *_widths(known)))
    columns = ("data", "measure", "networks", "inputs", "test set: ± median", "test set: ± most",
               "population: ± median", "population: ± most")  # fmt: skip
    forms = ("", "", "", "", ".3f", ".3f", ".3f", ".3f")
    text = (
        "Each estimate is two statements with 95 % confidence, for each network by itself. About "
        "the test set: its images are drawn without replacement, nothing is assumed. About the "
        "population: all images that the test set is an independent sample of, as the paper "
        "assumes of P; images drawn without replacement from an independent sample are one "
        "themselves. Limits of shares (R, R(0.5)) are exact, those of D Chernoff's. All speak of "
        "what the attack sees: an attack that fails proves nothing."
    )
    title = "Half the width of the intervals, the larger side of each"
    return [Paragraph(text), StudyTable("statements", title, columns, tuple(rows), forms)]


def _widths(values: Sequence[Value]) -> list[float]:
    """Median and largest half width, of the test set and of the population."""
    finite = [max(value.most - value.low, value.high - value.least) for value in values]
    beyond = [
        max(value.most - value.beyond_low, value.beyond_high - value.least)
        for value in values
        if value.beyond_low is not None and value.beyond_high is not None
    ]
    return [number for own in (finite, beyond) for number in (statistics.median(own), max(own))]
