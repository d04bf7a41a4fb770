"""What holds: every claim of the papers that were studied, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from radii.errors import ExperimentError
from radii.training.papers._page import claims_table
from radii.training.papers._registry import PAPERS
from radii.training.papers._running import read_kept, write_whole
from radii.training.papers._steps import ClaimVerdict, StudyClaim
from radii.training.papers._tables import StudyTable

TITLE = "What holds"
INTRODUCTION = (
    "Each claim of the papers that radii has studied, in our words, and what was found of it: "
    "confirmed, refuted, depends (true under some conditions, false under others), or open (this "
    "run cannot tell). A verdict follows from the numbers of its step by a rule in the code."
)


@dataclass(frozen=True, slots=True)
class ClaimsOfPaper:
    """The claims of one study's folder, each with the command that found it."""

    paper: str
    scale: str
    day: str
    claims: tuple[StudyClaim, ...]
    commands: tuple[str, ...]

    @property
    def title(self) -> str:
        return PAPERS[self.paper][0]

    @property
    def table(self) -> StudyTable:
        return claims_table(f"claims-{self.paper}", self.claims, by=self.commands)


def read_claims(folders: Sequence[Path]) -> list[ClaimsOfPaper]:
    """The claims of studies, in the order of `PAPERS`."""
    found: dict[str, ClaimsOfPaper] = {}
    for folder in folders:
        paper, scale, records = read_kept(folder)
        if paper in found:
            raise ExperimentError(f"{folder}: the paper '{paper}' was given twice")
        pairs = [
            (part, f"`radii study {paper} --only {record.name}`")
            for record in records
            for part in record.parts
            if isinstance(part, StudyClaim)
        ]
        day = max((record.day for record in records), default="never")
        claims, commands = tuple(part for part, _ in pairs), tuple(text for _, text in pairs)
        found[paper] = ClaimsOfPaper(paper, scale, day, claims, commands)
    return [found[paper] for paper in PAPERS if paper in found]


def claims_lines(papers: Sequence[ClaimsOfPaper]) -> list[str]:
    """The page in Markdown: counts first, then a table a paper."""
    counts = Counter(claim.verdict for each in papers for claim in each.claims)
    summary = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in ClaimVerdict)
    command = "radii study claims " + " ".join(each.paper for each in papers)
    lines = [f"# {TITLE}", "", INTRODUCTION, "", f"{sum(counts.values())} claims: {summary}."]
    lines += ["", "```sh", command, "```", ""]
    for each in papers:
        lines += [f"## {each.title}", "", f"{each.day}, scale `{each.scale}`.", ""]
        lines += [*each.table.markdown(), ""]
    return lines[:-1]


def write_claims(papers: Sequence[ClaimsOfPaper], page: Path) -> None:
    write_whole(page, "\n".join(claims_lines(papers)) + "\n")
