"""What holds: every claim of the papers that were studied, and what became of it.

Claims are read from a study's folder, or from the page that it wrote: a page outlives its folder.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from radii.errors import ExperimentError, StoreError
from radii.training.papers._page import (
    CLAIM_COLUMNS,
    CLAIMS_HEADING,
    OTHER_SCALE,
    STEP_COLUMN,
    claims_table,
)
from radii.training.papers._registry import PAPERS, paper_study
from radii.training.papers._running import StepRecord, read_kept, write_whole
from radii.training.papers._steps import ClaimVerdict, StudyClaim
from radii.training.papers._tables import StudyTable, markdown_cells

PAGE_SUFFIX = ".md"
TITLE = CLAIMS_HEADING
INTRODUCTION = (
    "Each claim of the papers that radii has studied, in our words, and what was found of it: "
    "confirmed, refuted, depends (true under some conditions, false under others), or open (this "
    "run cannot tell). A verdict follows from the numbers of its step by a rule in the code."
)


@dataclass(frozen=True, slots=True)
class ClaimsOfPaper:
    """The claims of one study, each with the command that found it.

    `source` is how the study is named in the command that reads it: by its paper, or its page.
    """

    paper: str
    scale: str
    day: str
    claims: tuple[StudyClaim, ...]
    commands: tuple[str, ...]
    source: str

    @property
    def title(self) -> str:
        return PAPERS[self.paper][0]

    @property
    def table(self) -> StudyTable:
        return claims_table(f"claims-{self.paper}", self.claims, "by", self.commands)


def read_claims(studies: Sequence[Path]) -> list[ClaimsOfPaper]:
    """The claims of studies' folders and pages, in the order of `PAPERS`."""
    found: dict[str, ClaimsOfPaper] = {}
    for study in studies:
        each = _of_page(study) if study.suffix == PAGE_SUFFIX else _of_folder(study)
        if each.paper in found:
            raise ExperimentError(f"{study}: the paper '{each.paper}' was given twice")
        found[each.paper] = each
    return [found[paper] for paper in PAPERS if paper in found]


def _of_folder(folder: Path) -> ClaimsOfPaper:
    paper, scale, records = read_kept(folder)
    pairs = [
        (claim, _command(paper, record.name, record.scale))
        for record in _in_papers_order(paper, records)
        for claim in record.claims
    ]
    day = max((record.day for record in records), default="never")
    claims, commands = tuple(claim for claim, _ in pairs), tuple(text for _, text in pairs)
    return ClaimsOfPaper(paper, scale, day, claims, commands, paper)


def _in_papers_order(paper: str, records: Sequence[StepRecord]) -> list[StepRecord]:
    """As on the study's page; steps that the study no longer has come last."""
    names = [step.name for step in paper_study(paper).steps] if paper in PAPERS else []
    places = {name: place for place, name in enumerate(names)}
    return sorted(records, key=lambda record: places.get(record.name, len(places)))


def _command(paper: str, step: str, scale: str) -> str:
    only = f" --only {step}" if step else ""
    return f"`radii study {paper} --scale {scale}{only}`"


def _of_page(page: Path) -> ClaimsOfPaper:
    """From the page's first lines and its table of claims."""
    try:
        text = page.read_text(encoding="utf-8")
        command = re.search(r"^radii study (\S+) --scale (\S+)", text, re.MULTILINE)
        heads = re.search(r"^(?:\S+ to )?([\d-]{10}), .*Written by$", text, re.MULTILINE)
        rows = _claim_rows(text)
        claims = tuple(
            StudyClaim(claim, place, ClaimVerdict(verdict), found)
            for claim, place, verdict, found, _ in rows
        )
    except (OSError, ValueError, TypeError):
        command = heads = None
    if command is None or heads is None or command[1] not in PAPERS:
        raise StoreError(f"{page}: no page of radii study PAPER with claims is here")
    other = re.escape(OTHER_SCALE).replace(r"\{\}", r"(\w+)")
    scales = {command[2], *re.findall(rf"^{other}$", text, re.MULTILINE)}
    commands = tuple(_command(command[1], row[4].strip("`"), command[2]) for row in rows)
    return ClaimsOfPaper(
        command[1], ", ".join(sorted(scales)), heads[1], claims, commands, page.as_posix()
    )


def _claim_rows(text: str) -> list[list[str]]:
    """Cells of the table below `CLAIMS_HEADING`; an empty step on a page that has none yet."""
    lines = text.partition(f"\n## {CLAIMS_HEADING}\n\n")[2].partition("\n\n")[0].splitlines()
    header, *rows = [markdown_cells(line) for line in lines]
    if header not in ([*CLAIM_COLUMNS], [*CLAIM_COLUMNS, STEP_COLUMN]):
        raise ValueError(f"columns are {header}")
    return [[*row, ""][: len(CLAIM_COLUMNS) + 1] for row in rows[1:]]


def claims_lines(papers: Sequence[ClaimsOfPaper]) -> list[str]:
    """The page in Markdown: counts first, then a table a paper."""
    counts = Counter(claim.verdict for each in papers for claim in each.claims)
    summary = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in ClaimVerdict)
    command = "radii study claims " + " ".join(each.source for each in papers)
    lines = [f"# {TITLE}", "", INTRODUCTION, "", f"{sum(counts.values())} claims: {summary}."]
    lines += ["", "```sh", command, "```", ""]
    for each in papers:
        lines += [f"## {each.title}", "", f"{each.day}, scale `{each.scale}`.", ""]
        lines += [*each.table.markdown(), ""]
    return lines[:-1]


def write_claims(papers: Sequence[ClaimsOfPaper], page: Path) -> None:
    write_whole(page, "\n".join(claims_lines(papers)) + "\n")
