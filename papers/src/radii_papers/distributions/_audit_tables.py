"""What the audit found: counts by network, training, split and time, and files for the authors."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from radii.errors import InputError, writing
from radii.statistics import Distribution
from radii.views import draw_claims
from radii_papers._steps import (
    Paragraph,
    Part,
    StudyFigure,
    StudyFile,
    StudyScale,
    StudySettings,
)
from radii_papers._tables import Cell, StudyTable, share_text
from radii_papers.distributions import _replay
from radii_papers.distributions._audit import (
    AuditedRow,
    PaperAudit,
    run_audit,
    table_file,
)
from radii_papers.distributions._claims import proof_claim
from radii_papers.distributions._public import (
    ALL_NETWORKS,
    SPLIT_NAMES,
    PublicResults,
)

AUDIT_CSV, REFUTED_CSV, REPLAY_SCRIPT = "audit.csv", "refuted.csv", "replay.py"

TIMES = ((0.0, 600.0), (600.0, 3100.0), (3100.0, 7200.0), (7200.0, math.inf))
"""Published seconds of a row: below the paper's time-out of one hour a query, about one, several.

A search that took longer than 3,100 s may have had a query that timed out."""

COLUMNS = (
    *("file", "row", "network", "training", "split", "image", "claimed_eps"),
    *(
        "published_smallest_sat",
        "published_seconds",
        "outcome",
        "closest_witness",
        "claim_over_witness",
    ),
    *("witness_class", "margin", "witness_file"),
)


def audit_step(results: PublicResults, settings: StudySettings) -> list[Part]:
    """Attack, count, and write what the authors could be sent."""
    if not results.networks:
        return [Paragraph(f"Not made: {results.folder} has no ONNX files of the paper's networks.")]
    try:
        audit = run_audit(results, settings)
    except InputError as error:
        if settings.scale is not StudyScale.SMALL:
            raise
        return [Paragraph(f"Not made: {error}.")]
    rows = audit.rows
    if not rows:
        return [Paragraph("Not made: no published row has its network and its image at hand.")]
    write_files(rows, settings.folder)
    return [
        Paragraph(_summary(audit, settings)),
        Paragraph(_absent_text(results)),
        _claims_figure(rows),
        _by_network(rows),
        _counts(
            "audit-time", "The audit by the published time of a row", "seconds", rows, _time_name
        ),
        _counts(
            "audit-training",
            "The audit by training and split",
            "training and split",
            rows,
            lambda row: f"{row.network.training}, {SPLIT_NAMES[row.split]}",
        ),
        Paragraph(_files_text()),
        StudyFile(REFUTED_CSV, "All refuted rows, for the paper's authors"),
        Paragraph(_short(rows), is_finding=True),
        proof_claim(refuted_radii(rows, results.relabelled), how_far(rows)),
    ]


def _absent_text(results: PublicResults) -> str:
    """Networks of the paper's tables whose files are public and not at hand."""
    absent = [n.file for n in ALL_NETWORKS if n.file not in results.networks]
    if not absent:
        return "All networks of the paper's tables are at hand."
    return (
        f"Public, not at hand: {', '.join(dict.fromkeys(absent))}. `--data FOLDER` takes a full "
        "clone of the paper's repository, and then attacks the rows of these networks as well."
    )


def _summary(audit: PaperAudit, settings: StudySettings) -> str:
    rows, claims = audit.rows, audit.claims
    refuted = [row for row in rows if row.is_refuted]
    ties = sum(row.outcome == _replay.TIE for row in rows)
    wrong = sum(row.outcome == _replay.WRONG for row in rows)
    missed = sum(row.is_misclassified for row in rows)
    slow = [row for row in refuted if row.published_seconds > TIMES[2][0]]
    known = [row.seconds for row in rows if not math.isnan(row.seconds)]
    each = sum(known) / len(known) if known else math.nan
    drawn = ", drawn at random" if settings.scale is StudyScale.SMALL else ""
    text = (
        f"{len(rows)} of the {claims} rows that claim a proof about a network at hand were "
        f"attacked{drawn}. **{share_text(len(refuted), len(rows))} are refuted**: a counterexample "
        "within the claimed radius, which plain onnxruntime classifies as another class. "
        f"{ties} more reach a tie, which VNN-LIB counts as broken and we do not count here; "
        f"{wrong} witnesses do not replay, and {missed} images are misclassified as they are. "
        f"{len(slow)} of the refuted rows had taken more than "
        f"{TIMES[2][0]:,.0f} s, as searches do in which a query ran into the limit of an hour. A "
        "row that stands is not thereby proven."
    )
    if audit.missing:
        text += f" Not attacked: {'; '.join(audit.missing)}."
    if settings.scale is not StudyScale.FULL:
        text += (
            " The attack was the quick version of `minimum-norm`: four starts for each class, 40 "
            "steps."
        )
    if settings.scale is not StudyScale.SMALL and known:
        text += f" It took {sum(known) / 60:.0f} min of one core for all rows."
    if settings.scale is StudyScale.SMALL and known:
        text += (
            f" An attack took {each:.1f} s of one core; all {claims} rows take about "
            f"{claims * each / 3600:.1f} h of one core (`--scale machine`)."
        )
    return text


def _short(rows: Sequence[AuditedRow]) -> str:
    refuted = [row for row in rows if row.is_refuted]
    return (
        f"{share_text(len(refuted), len(rows), 'attacked rows')} are refuted by a "
        "counterexample within the claimed radius."
    )


def _claims_figure(rows: Sequence[AuditedRow]) -> StudyFigure:
    """Every attacked row as a point: below the line a witness lies within what it claims. Images
    that the network misclassifies as they are have no witness, and are left out."""
    rows = [row for row in rows if not row.is_misclassified]
    places = list(range(len(rows)))
    claimed, closest = [row.claimed for row in rows], [row.closest for row in rows]
    both = Distribution.union(
        [
            Distribution.from_arrays(claimed, claimed, network="claimed", input=places),
            Distribution.from_arrays([0.0] * len(rows), closest, network="attack", input=places),
        ]
    )
    title = (
        "The audit: claimed radii against the closest witnesses; below the line they are refuted. "
        "Images that are misclassified as they are have no witness, and are left out"
    )
    return StudyFigure(
        "audit-claims",
        title,
        lambda: draw_claims(both, [("claimed", "attack")], names=["all rows"]),
    )


def _by_network(rows: Sequence[AuditedRow]) -> StudyTable:
    table = []
    for title in dict.fromkeys(row.network.title for row in rows):
        mine = [row for row in rows if row.network.title == title]
        refuted = [row for row in mine if row.is_refuted]
        ratio = max((row.claimed / row.closest for row in refuted), default=None)
        fastest = min((row.published_seconds for row in refuted), default=None)
        # The radius of an image is at most its claim's only where no witness lies below.
        at_most = [min(row.claimed, row.closest) for row in mine]
        table.append(
            (
                title,
                len(mine),
                len(refuted),
                ratio,
                fastest,
                sum(row.claimed for row in mine) / len(mine),
                sum(at_most) / len(mine),
                sum(row.is_misclassified for row in mine),
            )
        )
    columns = (
        *("network", "rows", "refuted", "largest claim over witness", "fastest refuted row, s"),
        *("mean claim", "mean of claim or witness", "misclassified"),
    )
    forms = ("", "", "", ".2f", ",.0f", ".4f", ".4f", "")
    return StudyTable("audit-network", "The audit by network", columns, tuple(table), forms)


def refuted_radii(
    rows: Sequence[AuditedRow], relabelled: Collection[str]
) -> dict[str, tuple[int, int]]:
    """By network: refuted radii, and attacked ones.

    Two tables have rows of the same ONNX file under two names: these are one network, and a radius
    that both give for an image is one claim. `relabelled` are the networks whose testing rows are
    of training images.
    """
    names: dict[str, list[str]] = {}
    claims: dict[str, dict[tuple[str, int, float], bool]] = {}
    for row in rows:
        network = row.network
        titles = names.setdefault(network.file, [])
        if network.title not in titles:
            titles.append(network.title)
        split = "train" if network.title in relabelled else row.split
        key = (split, row.image, round(row.claimed, 9))
        own = claims.setdefault(network.file, {})
        own[key] = own.get(key, False) or row.is_refuted
    return {" = ".join(names[file]): (sum(own.values()), len(own)) for file, own in claims.items()}


WELL_WITHIN = 0.9
"""Of the claimed radius: no rounding puts a witness there."""

CLEAR_LEAD = 0.01
"""Of a witness's class over the label's: outputs of float32 networks differ by less between
programs."""


def how_far(rows: Sequence[AuditedRow]) -> str:
    """How many witnesses lie well within the claim, and how many of them lead clearly."""
    refuted = [row for row in rows if row.is_refuted]
    if not refuted:
        return ""
    within = sum(row.closest < WELL_WITHIN * row.claimed for row in refuted)
    clear = sum(row.margin > CLEAR_LEAD for row in refuted)
    return (
        f"Of {len(refuted)} refuted rows {within} have a witness within {100 * WELL_WITHIN:g} % of "
        f"the claimed radius, and {clear} one whose class leads by more than {CLEAR_LEAD:g}."
    )


def _counts(
    name: str,
    title: str,
    column: str,
    rows: Sequence[AuditedRow],
    key: Callable[[AuditedRow], str],
) -> StudyTable:
    table: list[tuple[Cell, ...]] = []
    order = dict.fromkeys(key(row) for row in sorted(rows, key=_published_time))
    for value in order:
        mine = [row for row in rows if key(row) == value]
        refuted = sum(row.is_refuted for row in mine)
        table.append((value, len(mine), refuted, 100 * refuted / len(mine)))
    columns = (column, "rows", "refuted", "%")
    return StudyTable(name, title, columns, tuple(table), ("", "", "", ".0f"))


def _time_name(row: AuditedRow) -> str:
    for low, high in TIMES:
        if low <= row.published_seconds < high:
            return f"{low:,.0f} or more" if math.isinf(high) else f"{low:,.0f} to {high:,.0f}"
    return "not published"


def _published_time(row: AuditedRow) -> float:
    return math.inf if math.isnan(row.published_seconds) else row.published_seconds


def _files_text() -> str:
    return (
        f"`audit/{AUDIT_CSV}` has every attacked row, `audit/{REFUTED_CSV}` the refuted ones: the "
        "file and row in which it is published (counted from 1 below the header), claimed eps, "
        "distance and class of the witness, "
        "and by how much that class leads (`margin`). `audit/*/witnesses` holds the witnesses, and "
        f"`python audit/{REPLAY_SCRIPT} audit NETWORKS` replays them with numpy and onnxruntime "
        "alone."
    )


def write_files(rows: Sequence[AuditedRow], folder: Path) -> None:
    """Tables of all rows and of the refuted ones, and the script that replays witnesses."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, wanted in ((AUDIT_CSV, rows), (REFUTED_CSV, [r for r in rows if r.is_refuted])):
            with (folder / name).open("w", newline="", encoding="utf-8") as stream:
                writer = csv.writer(stream)
                writer.writerow(COLUMNS)
                writer.writerows(_csv_row(row) for row in wanted)
        (folder / REPLAY_SCRIPT).write_text(Path(_replay.__file__).read_text())


def _csv_row(row: AuditedRow) -> list[object]:
    has_witness, is_found = bool(row.witness), 0 < row.closest < math.inf
    return [
        table_file(row.network),
        row.row,
        row.network.name,
        row.network.training,
        row.split,
        row.image,
        row.claimed,
        row.published_upper,
        row.published_seconds,
        row.outcome,
        row.closest if is_found else None,
        row.claimed / row.closest if is_found else None,
        row.witness_class,
        row.margin if has_witness else None,
        row.witness,
    ]
