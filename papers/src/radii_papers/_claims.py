"""What holds: every claim of the papers that were studied, and what became of it.

Claims are read from a study's folder, or from the page that it wrote: a page outlives its folder.
A page has the evidence of each claim, so its verdicts are made anew by the rules of today.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from radii.errors import ExperimentError, StoreError
from radii_papers._evidence import (
    BASES,
    CLAIM_LEVEL,
    FEWEST_INSTANCES,
    FEWEST_SEEDS,
    NOTE_BREAK,
    VERDICTS,
    CaseOutcome,
    ClaimBasis,
    ClaimCase,
    ClaimScope,
    StudyClaim,
)
from radii_papers._page import (
    CLAIM_COLUMNS,
    CLAIMS_HEADING,
    EVIDENCE_COLUMNS,
    EVIDENCE_HEADING,
    OTHER_SCALE,
    STEP_COLUMN,
    claims_table,
)
from radii_papers._registry import PAPERS, paper_study
from radii_papers._running import StepRecord, read_kept, write_whole
from radii_papers._tables import StudyTable, markdown_cells

PAGE_SUFFIX = ".md"
TITLE = CLAIMS_HEADING
INTRODUCTION = (
    "Each claim of the papers that radii has studied, in our words: where it stands, what became "
    "of it, and the evidence. It is written for the papers' authors to check."
)
RULES = (
    "A claim has cases, such as a network or a data set, and speaks of all of them, of most, or of "
    "some. A case holds or fails where a test or an interval says so at the "
    f"{100 * CLAIM_LEVEL:g} % level, corrected for all cases of the claim (Holm or Bonferroni, "
    "which allow for cases that share images); else it is unclear. That a test does not reject "
    "supports nothing: a claim of equality or of a law can fail by it and cannot hold. Where a "
    "paper says no more than that it found no significant difference, that holds if the "
    "uncorrected test finds none either, and fails only after the correction. Instances that "
    "depend on each other are not counted twice: the same images under several networks enter as "
    "one number an image, in pairs, or in a bootstrap over images. A case with fewer than "
    f"{FEWEST_INSTANCES} independent instances in its smallest cell (`n`), or with fewer than "
    f"{FEWEST_SEEDS} seeds where networks were trained for it, is unclear. A tie without room, "
    "such as two shares of 100 %, counts for neither side. Cases tested on material of ours decide "
    "nothing, whatever they show.",
    "The page of each study ends with a table of all cases.",
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
    """From the page's first lines, its table of claims, and that of their cases."""
    try:
        text = page.read_text(encoding="utf-8")
        command = re.search(r"^radii study (\S+) --scale (\S+)", text, re.MULTILINE)
        heads = re.search(r"^(?:\S+ to )?([\d-]{10}), .*Written by$", text, re.MULTILINE)
        rows = _rows(text, CLAIMS_HEADING, (*CLAIM_COLUMNS, STEP_COLUMN))
        cases = [_case(row) for row in _rows(text, EVIDENCE_HEADING, EVIDENCE_COLUMNS)]
        claims = tuple(_claim(row, [case for n, case in cases if n == row[0]]) for row in rows)
    except (OSError, ValueError, TypeError):
        command = heads = None
    if command is None or heads is None or command[1] not in PAPERS:
        raise StoreError(f"{page}: no page of radii study PAPER with claims is here")
    other = re.escape(OTHER_SCALE).replace(r"\{\}", r"(\w+)")
    scales = {command[2], *re.findall(rf"^{other}$", text, re.MULTILINE)}
    commands = tuple(_command(command[1], row[-1].strip("`"), command[2]) for row in rows)
    return ClaimsOfPaper(
        command[1], ", ".join(sorted(scales)), heads[1], claims, commands, page.as_posix()
    )


def _rows(text: str, heading: str, columns: Sequence[str]) -> list[list[str]]:
    """Cells of the table in the section of this heading."""
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    header, *rows = [markdown_cells(line) for line in lines]
    if header != list(columns) or any(len(row) != len(columns) for row in rows):
        raise ValueError(f"columns are {header}")
    return rows[1:]


def _case(row: Sequence[str]) -> tuple[str, ClaimCase]:
    """A row of `evidence_table`, with the number of its claim; as what it counts is found anew."""
    number, name, basis, n, seeds, shows, rule, outcome, _ = row
    return number, ClaimCase(
        name=name,
        basis=ClaimBasis(basis),
        n=int(n),
        seeds=int(seeds),
        shows=shows,
        rule=rule,
        outcome=CaseOutcome(outcome),
    )


def _claim(row: Sequence[str], cases: Sequence[ClaimCase]) -> StudyClaim:
    """A row of `claims_table`; the note is what follows the line break."""
    _, claim, place, _, _, _, scope, test, found, _ = row
    note = found.partition(NOTE_BREAK)[2]
    return StudyClaim(claim, place, test, tuple(cases), ClaimScope(scope), note)


def claims_lines(papers: Sequence[ClaimsOfPaper]) -> list[str]:
    """The page in Markdown: counts and rules first, then a table a paper."""
    counts = Counter(claim.verdict for each in papers for claim in each.claims)
    command = "radii study claims " + " ".join(each.source for each in papers)
    lines = [f"# {TITLE}", "", INTRODUCTION, "", "```sh", command, "```", ""]
    lines += ["| verdict | claims | means |", "| --- | --- | --- |"]
    lines += [f"| {v.value} | {counts[v]} | {meaning} |" for v, meaning in VERDICTS.items()]
    lines += ["", "| tested on | means |", "| --- | --- |"]
    lines += [f"| {basis.value} | {meaning} |" for basis, meaning in BASES.items()]
    for rule in RULES:
        lines += ["", rule]
    for each in papers:
        lines += ["", f"## {each.title}", "", f"{each.day}, scale `{each.scale}`.", ""]
        lines += each.table.markdown()
    return lines


def write_claims(papers: Sequence[ClaimsOfPaper], page: Path) -> None:
    write_whole(page, "\n".join(claims_lines(papers)) + "\n")
