"""The page of a study: date, machine and time first, then the paper's parts in their order."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeGuard

from radii.errors import writing
from radii_papers._evidence import StudyClaim
from radii_papers._running import FIGURES, TABLES, StepRecord, write_whole
from radii_papers._steps import (
    PaperStudy,
    Paragraph,
    Part,
    StudyFigure,
    StudyFile,
    StudyScale,
)
from radii_papers._tables import StudyTable

CELLS = "Numbers are ours, the paper's in parentheses, with the difference where it is one."
OTHER_SCALE = "This part is of scale `{}`."

LAST_CALL = (
    "The time above is that of the last call of each step: one that was cut off and went on took "
    "longer in all, and its text says how long."
)

PAGE_FILE = "index.md"

CLAIMS_HEADING = "What holds"
EVIDENCE_HEADING = "The evidence, case by case"
CLAIM_COLUMNS = (
    *("no.", "the paper says", "where", "verdict", "tested on", "n", "speaks of"),
    *("test", "found"),
)
STEP_COLUMN = "step"
EVIDENCE_COLUMNS = (
    *("claim", "case", "tested on", "n", "seeds", "shows", "holds if", "so", "counts as"),
)
RULES = (
    "Each verdict follows from the cases at the end of this page by one function, whose rules "
    "stand on the page that `radii study claims` writes."
)


def write_pages(
    study: PaperStudy[Any],
    records: Sequence[StepRecord],
    scale: StudyScale,
    out: Path,
    page: Path | None = None,
) -> Path:
    """Write the page of a study's folder; the same as `page`, its figures and files in a folder
    beside it.

    That folder has the page's name without its suffix. Gives the path of the first.
    """
    own = out / PAGE_FILE
    write_whole(own, "\n".join(page_lines(study, records, scale, FIGURES, TABLES)) + "\n")
    if page is not None:
        beside = page.with_suffix("")
        lines = page_lines(study, records, scale, beside.name, beside.name)
        write_whole(page, "\n".join(lines) + "\n")
        for record in records:
            for part in record.parts:
                if isinstance(part, StudyFigure):
                    _copy(out / FIGURES / f"{part.name}.png", beside / f"{part.name}.png")
                if isinstance(part, StudyFile):
                    _copy(out / TABLES / part.name, beside / part.name)
    return own


def _copy(source: Path, target: Path) -> None:
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())


def page_lines(
    study: PaperStudy[Any],
    records: Sequence[StepRecord],
    scale: StudyScale,
    figures: str,
    files: str = TABLES,
) -> list[str]:
    """The whole page in Markdown; `figures` and `files` are folders as the page links to them."""
    by_name = {record.name: record for record in records}
    lines = [f"# {study.title}", "", *_first_lines(study, records, scale)]
    for paragraph in study.introduction:
        lines += [paragraph, ""]
    findings = [part for record in records for part in record.parts if _is_finding(part)]
    if findings:
        lines += ["The short version:", "", *(f"- {part.text}" for part in findings), ""]
    claims = [(part, record.name) for record in records for part in record.claims]
    lines += claims_section(claims)
    for section in study.sections:
        lines += [f"## {section.heading}", ""]
        for step in section.steps:
            lines += [f"### {step.heading}", ""]
            if step.name not in by_name:
                lines += ["Not made yet.", ""]
                continue
            if by_name[step.name].scale != scale:
                lines += [OTHER_SCALE.format(by_name[step.name].scale), ""]
            for part in by_name[step.name].parts:
                if not _is_finding(part) and not isinstance(part, StudyClaim):
                    lines += [*_part_lines(part, figures, files), ""]
    return [*lines, *evidence_section(claims)][:-1]


def claims_section(claims: Sequence[tuple[StudyClaim, str]]) -> list[str]:
    """The claims of a page, each with the step that tested it."""
    if not claims:
        return []
    found, steps = zip(*claims, strict=True)
    table = claims_table("claims", found, STEP_COLUMN, [f"`{name}`" for name in steps])
    return [f"## {CLAIMS_HEADING}", "", RULES, "", *table.markdown(), ""]


def evidence_section(claims: Sequence[tuple[StudyClaim, str]]) -> list[str]:
    """All cases of the claims of a page."""
    if not claims:
        return []
    table = evidence_table([claim for claim, _ in claims])
    return [f"## {EVIDENCE_HEADING}", "", *table.markdown(), ""]


def claims_table(
    name: str, claims: Sequence[StudyClaim], last: str, finders: Sequence[str]
) -> StudyTable:
    """A row for each claim; the column `last` has what tested it, a step or a command."""
    rows = tuple(
        (
            number, each.claim, each.place, each.verdict.value, each.tested_on, each.instances,
            each.scope.value, each.test, each.found, finder,
        )
        for number, (each, finder) in enumerate(zip(claims, finders, strict=True), 1)
    )  # fmt: skip
    return StudyTable(name, "", (*CLAIM_COLUMNS, last), rows)


def evidence_table(claims: Sequence[StudyClaim]) -> StudyTable:
    """A row for each case of each claim, by the claim's number: what its numbers say, and as what
    that counts with so many instances and seeds."""
    rows = tuple(
        (
            number, case.name, case.basis.value, case.n, case.seeds, case.shows, case.rule,
            case.outcome.value, case.counted.value,
        )
        for number, claim in enumerate(claims, 1)
        for case in claim.cases
    )  # fmt: skip
    return StudyTable("evidence", "", EVIDENCE_COLUMNS, rows)


def _is_finding(part: Part) -> TypeGuard[Paragraph]:
    return isinstance(part, Paragraph) and part.is_finding


def _first_lines(
    study: PaperStudy[Any], records: Sequence[StepRecord], scale: StudyScale
) -> list[str]:
    """When, on what, how long, at which scale, by which command; and how many numbers agree."""
    days = sorted({record.day for record in records})
    seconds = _duration(sum(record.seconds for record in records))
    cpu_seconds = _duration(sum(record.cpu_seconds for record in records))
    agreeing, compared = paper_agreement(records)
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}" if days else "never"
    took = f"{seconds} ({cpu_seconds} of the CPU)"
    return [
        f"{when}, {machine_text()}, {took}, scale `{scale}`. Written by",
        "",
        "```sh",
        f"radii study {study.name} --scale {scale} --out {study.name}",
        "```",
        "",
        f"The paper: {study.paper}.",
        f"{CELLS} {agreeing} of {compared} numbers agree as far as the paper prints digits; each "
        f"table says why others do not. {LAST_CALL}",
        "",
    ]


def paper_agreement(records: Sequence[StepRecord]) -> tuple[int, int]:
    """How many numbers agree with the paper's, and how many can be compared."""
    cells = [cell for record in records for table in record.tables for cell in table.comparisons]
    return sum(bool(cell.agrees) for cell in cells), len(cells)


def machine_text() -> str:
    """The processor and how many cores this process may use."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        name = models[0].partition(":")[2].strip() if models else name
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores of {' '.join(name.split())}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _part_lines(part: Part, figures: str, files: str) -> list[str]:
    if isinstance(part, StudyTable):
        return [f"**{part.title}**", "", *part.markdown()]
    if isinstance(part, StudyFigure):
        return [f"![{part.title}]({figures}/{part.name}.png)", "", f"*{part.title}*"]
    if isinstance(part, StudyFile):
        return [f"{part.title}: [{part.name}]({files}/{part.name})."]
    assert isinstance(part, Paragraph)
    return [part.text]
