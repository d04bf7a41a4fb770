"""How good the published brackets are: Tables 2, 3 and 23, and the gaps of Figures 13 to 15."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from radii.statistics import Distribution, Float64
from radii.views import draw_gaps
from radii_papers._steps import (
    Paragraph,
    Part,
    StudyFigure,
    StudySettings,
)
from radii_papers._tables import (
    EVERY_ROW,
    UNEXPLAINED,
    Beside,
    Cell,
    StudyTable,
    reasons_of,
    share_text,
)
from radii_papers.distributions._claims import critical_claim
from radii_papers.distributions._numbers import (
    CRITICAL_TERMINATIONS,
    QUALITY,
    SIDES,
    SIGNIFICANCE,
)
from radii_papers.distributions._public import (
    GRID_STEPS,
    NETWORKS_OF_SECTION_4,
    SPLITS,
    TRAINED_NETWORKS,
    PublicResults,
    PublishedNetwork,
    Split,
    networks_of,
    unanswered_images,
)

INVALID, NOT_MADE = "invalid", "x"
CRITICAL, UNSOLVED, GAP = "critical %, test", "unsolved %, test", "mean gap, test"


def two_sample_p_value(x: Float64, y: Float64) -> float:
    """Kolmogorov and Smirnov's, exactly as scipy gives it and the paper prints it."""
    from scipy.stats import ks_2samp

    return float(ks_2samp(x, y).pvalue)


def log_normal_p_value(proven: Float64) -> float | None:
    """The paper's check of log-normality, on proven sides above 0; None where they do not vary.

    A log-normal distribution with location 0 is fitted to the values, and then tested as if its
    parameters had been known beforehand.
    """
    from scipy.stats import kstest, norm

    logs = np.log(proven[proven > 0])
    if logs.size < 2 or np.ptp(logs) == 0:
        return None
    return float(kstest(logs, norm(logs.mean(), logs.std()).cdf).pvalue)


def _log_normal_cell(part: Distribution | None, printed: str) -> Beside:
    if part is None:
        return Beside(None, printed)
    p_value = log_normal_p_value(part.lower)
    return Beside(INVALID if p_value is None else str(p_value >= SIGNIFICANCE), printed)


def critical_rows(network: PublishedNetwork, part: Distribution) -> int:
    """Rows with a value of the grid between both sides: a query there had no answer."""
    gaps = part.upper - part.lower
    return int(np.count_nonzero(np.isfinite(gaps) & (gaps > 1.5 * GRID_STEPS[network.dataset])))


def quality_row(results: PublicResults, network: PublishedNetwork) -> dict[str, Cell]:
    """A row of Table 2 or 3; shares are of all testing images, those without an answer too."""
    paper = QUALITY[network.architecture, network.training]
    parts = {split: results.part(network, split) for split in SPLITS}
    cells: dict[str, Cell] = {
        f"log-normal, {split}": _log_normal_cell(parts[split], printed)
        for split, printed in zip(SPLITS, paper[1:3], strict=True)
    }
    part, printed = parts["test"], paper[3:]
    missing, listed = _missing(network), _listed(results, network)
    critical = unsolved = gap = None
    if part is not None:
        critical = 100 * critical_rows(network, part) / (listed + missing)
        unsolved = 100 * missing / (listed + missing)
        finite = (part.upper - part.lower)[np.isfinite(part.upper)]
        gap = float(finite.mean()) if finite.size else None
    cells[CRITICAL] = Beside(critical, printed[0])
    cells[UNSOLVED] = Beside(unsolved, printed[1])
    cells[GAP] = Beside(gap, printed[2])
    return cells


def _missing(network: PublishedNetwork) -> int:
    """Of CIFAR-10 the paper counts testing images without an answer; of MNIST it does not."""
    return unanswered_images(network, "test") if network.dataset == "CIFAR-10" else 0


def _listed(results: PublicResults, network: PublishedNetwork) -> int:
    """Rows of the testing split, with an answer or without."""
    part = results.part(network, "test", is_dropped=False)
    return 0 if part is None else len(part)


def _reasons(results: PublicResults, network: PublishedNetwork) -> dict[tuple[str, str], str]:
    """What explains a row of Table 2 or 3."""
    reasons = dict(REASONS_2)
    for split in SPLITS:
        own = results.part(network, split)
        if own is not None and len(np.unique(own.lower[own.lower > 0])) == 1:
            reasons[EVERY_ROW, f"log-normal, {split}"] = "all radii above 0 are equal"
    return reasons


REASONS_2 = {
    ("mnist_relu_4_1024 FGSM", "log-normal, train"): "the paper's FGSM and PGD are exchanged",
    ("mnist_relu_4_1024 PGD", "log-normal, train"): "the paper's FGSM and PGD are exchanged",
    ("gtsrb_6_256 PGD", GAP): "the paper repeats the gap of gtsrb_6_256 Standard",
    ("resnet_4b FGSM", CRITICAL): "the paper's number seems to lack a digit",
}


def _quality_table(results: PublicResults, number: int, convolutional: bool) -> StudyTable:
    rows = []
    for network in networks_of("MNIST", "CIFAR-10", "GTSRB", convolutional=convolutional):
        if (network.architecture, network.training) not in QUALITY:
            continue
        cells = quality_row(results, network)
        rows.append(
            (
                network.title,
                *cells.values(),
                reasons_of(network.title, cells, _reasons(results, network)),
            )
        )
    kind = "convolutional" if convolutional else "fully connected"
    title = f"Table {number}: quality of the brackets of {kind} networks"
    columns = ("network", *cells, "reason of a difference")
    return StudyTable(f"table-{number}", title, columns, tuple(rows))


HOW_2 = (
    "A network passes where log-normality is not rejected at 5 %. The check that gives the "
    "paper's answers drops radii of 0, fits a log-normal distribution with location 0 to the rest, "
    "and then takes its parameters as known. A critical termination is a bracket "
    "wider than one step of the grid."
)


def dense_quality(results: PublicResults, _: StudySettings) -> list[Part]:
    """Table 2."""
    return [Paragraph(HOW_2), _quality_table(results, 2, convolutional=False)]


def convolutional_quality(results: PublicResults, _: StudySettings) -> list[Part]:
    """Table 3."""
    return [_quality_table(results, 3, convolutional=True)]


def critical_terminations(results: PublicResults, _: StudySettings) -> list[Part]:
    """Section 3.2: how many searches of the twelve networks ended with a query unanswered."""
    count = wide = total = 0
    for network in NETWORKS_OF_SECTION_4:
        for split in SPLITS:
            part = results.part(network, split, is_dropped=False)
            if part is not None:
                total += len(part)
                count += critical_rows(network, part)
                gaps = part.upper - part.lower
                wide += int(np.count_nonzero(np.isfinite(gaps) & (gaps > 2.5 * 0.002)))
    critical, instances = CRITICAL_TERMINATIONS
    rows = (
        ("instances", Beside(total, instances), ""),
        (
            "critical terminations",
            Beside(count, critical),
            f"{UNEXPLAINED}; counted where two values of the grid or more are left out, there are "
            f"{wide}",
        ),
    )
    columns = ("of the twelve networks, both splits", "number", "reason of a difference")
    title = "Section 3.2: critical terminations"
    return [
        StudyTable("section-3-2", title, columns, rows),
        Paragraph(
            f"{share_text(count, total, 'brackets')} of the twelve networks are wider than one "
            f"step of the grid, so that a query between had no answer; the paper says {critical}.",
            is_finding=True,
        ),
        critical_claim(count, total, _same_count(results)),
    ]


def _same_count(results: PublicResults) -> str:
    """Whether brackets wider than a step give the paper's own shares of critical terminations."""
    cells = [
        quality_row(results, network)[CRITICAL]
        for network in networks_of("MNIST", convolutional=False)
    ]
    known = [cell.agrees for cell in cells if isinstance(cell, Beside) and cell.agrees is not None]
    if not known:
        return ""
    return (
        "Table 2 has its shares of critical terminations from this count: they agree for "
        f"{sum(known)} of {len(known)} MNIST networks."
    )


def sides_table(results: PublicResults, _: StudySettings) -> list[Part]:
    """Table 23."""
    rows = []
    for network in TRAINED_NETWORKS:
        paper = SIDES[network.architecture, network.training]
        cells: dict[str, Cell] = {}
        tests = {split: _side_tests(results, network, split) for split in SPLITS}
        for place, name in enumerate(("t-test", "KS test")):
            for offset, split in enumerate(SPLITS):
                cells[f"{name}, {split}"] = Beside(tests[split][place], paper[2 * place + offset])
        reason = reasons_of(network.title, cells, {})
        for split in SPLITS:
            cells[f"KS, all rows, {split}"] = tests[split][2]
        for split in SPLITS:
            cells[f"wide, {split}"] = _width_text(network, results.part(network, split))
        rows.append((network.title, *cells.values(), reason))
    columns = ("network", *cells, "reason of a difference")
    forms = ("",) * 5 + (".3f", ".3f", "", "", "")
    title = "Table 23: do proven and witnessed sides differ?"
    return [
        StudyTable("table-23", title, columns, tuple(rows), forms),
        Paragraph(SIDES_TEXT),
        Paragraph(
            "The test by which the paper calls distributions precise drops radii of 0 on one side "
            "only, and so misses differences (Table 23).",
            is_finding=True,
        ),
    ]


SIDES_TEXT = (
    "The paper calls a distribution precise where these tests do not reject. Its "
    "Kolmogorov-Smirnov test leaves out radii of 0 on the proven side, and keeps the same images "
    "on the witnessed side: so it compares different images, and where many radii are 0 it finds "
    "no difference where there is one (the columns with all rows). Even with all rows a large "
    "p-value shows little: both sides are of the same images, the witnessed one is always the "
    "larger, and fewer images make every p-value larger. How many brackets are wider than one step "
    "of the grid (the last columns) answers the question itself."
)


def _side_tests(
    results: PublicResults, network: PublishedNetwork, split: Split
) -> tuple[float | str | None, float | str | None, float | None]:
    """p-values between both sides: t, Kolmogorov and Smirnov's as the paper makes it and of all.

    The paper's proven sides are those above 0, its witnessed sides those of all rows.
    """
    from scipy.stats import ttest_ind

    part = results.part(network, split)
    everything = results.part(network, split, is_dropped=False)
    if part is None or everything is None:
        return None, None, None
    upper = everything.upper[np.isfinite(everything.upper)]
    # An empty cell makes scipy's t-test no number, which the paper prints as x.
    is_whole = len(everything) == len(part)
    t_test = float(ttest_ind(part.lower, upper).pvalue) if is_whole else NOT_MADE
    positive = part.lower[part.lower > 0]
    own = part.upper[np.isfinite(part.upper)]
    return (
        t_test,
        two_sample_p_value(positive, upper) if positive.size else NOT_MADE,
        two_sample_p_value(part.lower, own) if own.size else None,
    )


def _width_text(network: PublishedNetwork, part: Distribution | None) -> str | None:
    return None if part is None else share_text(critical_rows(network, part), len(part))


def gap_figure(
    results: PublicResults, number: int, networks: Sequence[PublishedNetwork], dataset: str
) -> list[Part]:
    """Figure 13, 14 or 15: a box of bracket widths for each network."""
    joined = results.joined(networks)
    if joined is None:
        return [Paragraph(f"The files hold no rows of {dataset} networks.")]
    title = f"Figure {number}: verification gaps of the {dataset} networks, both splits"
    return [StudyFigure(f"figure-{number}", title, lambda: draw_gaps(joined))]


def mnist_gaps(results: PublicResults, _: StudySettings) -> list[Part]:
    return gap_figure(results, 13, networks_of("MNIST"), "MNIST")


def cifar_gaps(results: PublicResults, _: StudySettings) -> list[Part]:
    return gap_figure(results, 14, networks_of("CIFAR-10"), "CIFAR-10")


def gtsrb_gaps(results: PublicResults, _: StudySettings) -> list[Part]:
    return gap_figure(results, 15, networks_of("GTSRB"), "GTSRB")
