"""Are 100 images enough? Table 6 and Figure 12 of Appendix C, and how far numbers of 100 vary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from radii.statistics import Distribution, sample_stability
from radii_papers._steps import Paragraph, Part, StudyFigure, StudySettings
from radii_papers._tables import EVERY_ROW, Beside, Cell, StudyTable, reasons_of
from radii_papers.distributions._claims import size_claim
from radii_papers.distributions._numbers import SAMPLE_SIZES
from radii_papers.distributions._public import (
    NETWORKS_OF_SECTION_4,
    PAPER_IMAGES,
    PublicResults,
    PublishedNetwork,
)
from radii_papers.distributions._quality import two_sample_p_value
from radii_papers.figures import draw_samples

RESAMPLES = 999


def sizes_table(results: PublicResults, _: StudySettings) -> list[Part]:
    """Table 6: images 0 to 99 against all others of the training split."""
    rows, answered = [], []
    samples: dict[str, tuple[float, int, int, int]] = {}
    for (name,), paper in SAMPLE_SIZES.items():
        network = next(n for n in NETWORKS_OF_SECTION_4 if n.architecture == name)
        first, others = sample_parts(results, network)
        cells: dict[str, Cell] = {}
        for place, (title, part) in enumerate((("100", first), ("400", others))):
            mean = None if part is None else float(part.lower.mean())
            spread = None if part is None or len(part) < 2 else float(part.lower.std(ddof=1))
            cells[f"mean, {title}"] = Beside(mean, paper[2 * place])
            cells[f"deviation, {title}"] = Beside(spread, paper[2 * place + 1])
        p_value = _sample_p_value(first, others)
        cells["p"] = Beside(p_value, paper[4])
        listed = results.part(network, "train", images=None, is_dropped=False)
        counts = [None if part is None else len(part) for part in (first, others)]
        beyond = None if listed is None else int((listed.column("input") >= PAPER_IMAGES).sum())
        if p_value is not None and first is not None and others is not None:
            fewest = min(len(first), len(others))
            samples[name] = (p_value, fewest, len(others), beyond or 0)
        reason = reasons_of(name, cells, REASONS_6)
        answered += [len(others)] if others is not None else []
        rows.append((name, *cells.values(), counts[0], counts[1], beyond, reason))
    columns = (
        *("network", *cells, "answered, 100", "answered, 400", "rows of the 400"),
        "reason of a difference",
    )
    return [
        StudyTable("table-6", "Table 6: 100 images against 400 others", columns, tuple(rows)),
        *_size_texts(answered),
        size_claim(samples),
    ]


def _size_texts(answered: Sequence[int]) -> list[Paragraph]:
    return [
        Paragraph(
            f"What Table 6 calls 400 images are between {min(answered, default=0)} and "
            f"{max(answered, default=0)} images with an answer.",
            is_finding=True,
        ),
        Paragraph(
            "The second sample is called 400 images. The file lists as many rows as the column "
            "`rows of the 400` says, and only `answered, 400` of them have an answer: the others "
            "are dropped without being counted, and images whose search did not end are no random "
            "part of all."
        ),
    ]


CONTRADICTED = (
    "many training rows of this network contradict themselves, and seem to be others than those "
    "that the paper used"
)

REASONS_6 = {
    (EVERY_ROW, "mean, 100"): "as in Table 5",
    ("net_256x4", "deviation, 100"): CONTRADICTED,
    ("net_256x4", "p"): CONTRADICTED,
}


def sample_parts(
    results: PublicResults, network: PublishedNetwork
) -> tuple[Distribution | None, Distribution | None]:
    """Answered training rows: those of the paper's 100 images, and those of all others."""
    everything = results.part(network, "train", images=None)
    if everything is None:
        return None, None
    is_first = everything.column("input") < PAPER_IMAGES
    return tuple(  # type: ignore[return-value]
        everything.select(keep) if keep.any() else None for keep in (is_first, ~is_first)
    )


def _sample_p_value(first: Distribution | None, others: Distribution | None) -> float | None:
    if first is None or others is None:
        return None
    return two_sample_p_value(first.lower, others.lower)


def sample_curves(results: PublicResults, _: StudySettings) -> list[Part]:
    """Figure 12."""
    samples = {}
    for (name,) in SAMPLE_SIZES:
        network = next(n for n in NETWORKS_OF_SECTION_4 if n.architecture == name)
        first, others = sample_parts(results, network)
        if first is not None and others is not None:
            samples[name] = (first, others)
    if not samples:
        return [Paragraph("The files hold no rows for this figure.")]
    names = (f"images 0 to {PAPER_IMAGES - 1}", "other images")
    title = "Figure 12: the paper's 100 training images, and all others of the file"
    return [
        StudyFigure("figure-12", title, lambda: draw_samples(samples, names)),
        _stability_table({name: first for name, (first, _) in samples.items()}),
    ]


def _stability_table(samples: Mapping[str, Distribution]) -> StudyTable:
    """How far numbers of 100 and of 400 images vary, drawn again from the sample itself."""
    rows = []
    for name, part in samples.items():
        for found in sample_stability(part, [100, 400], resamples=RESAMPLES):
            rows.append(
                (name, found.inputs, found.mean, found.median, found.robust_accuracy, found.band)
            )
    columns = (
        *("network", "images", "mean, ±", "median, ±", "robust accuracy at one eps, ±"),
        "at every eps at once, ±",
    )
    title = "How much 100 images say: half-widths of 95 % intervals, by drawing images again"
    forms = ("", "", ".4f", ".4f", ".2f", ".2f")
    return StudyTable("stability", title, columns, tuple(rows), forms)
