"""Studies of papers: numbers beside the paper's, tables in three forms, and steps that are kept."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from radii.errors import ExperimentError, StoreError
from radii_papers._claims import claims_lines, read_claims
from radii_papers._evidence import (
    CaseOutcome,
    ClaimBasis,
    ClaimCase,
    ClaimScope,
    ClaimVerdict,
    StudyClaim,
    fact,
)
from radii_papers._page import CLAIMS_HEADING, EVIDENCE_HEADING, page_lines, write_pages
from radii_papers._registry import PAPERS
from radii_papers._running import run_paper
from radii_papers._steps import (
    PaperStep,
    PaperStudy,
    Paragraph,
    Part,
    StudyFigure,
    StudyFile,
    StudyScale,
    StudySection,
    StudySettings,
)
from radii_papers._tables import (
    EVERY_ROW,
    UNEXPLAINED,
    Beside,
    StudyTable,
    paper_rows,
    reasons_of,
)


@pytest.mark.parametrize(
    ("ours", "paper", "agrees", "text"),
    [
        (0.0423, "0.042", True, "0.042 (0.042)"),
        (0.0655, "0.065", True, "0.066 (0.065)"),  # cut off, not rounded
        (0.0696, "0.071", False, "0.070 (0.071, −0.001)"),
        (0.0661, "0.065", False, "0.066 (0.065, +0.001)"),
        (81, "80", False, "81 (80, +1)"),
        (99, "99", True, "99 (99)"),
        ("True", "False", False, "True (False)"),
        ("x", "x", True, "x (x)"),
        (None, "0.996", None, "– (0.996)"),
        (0.5, "", None, "0.500"),
        (math.inf, "2", False, "∞ (2)"),
    ],
)
def test_numbers_beside_the_papers(ours: Any, paper: str, agrees: bool | None, text: str) -> None:
    cell = Beside(ours, paper)
    assert cell.agrees is agrees
    assert cell.text == text


def table() -> StudyTable:
    rows = (("a_b", Beside(0.07, "0.071"), 3.0), ("c|d", Beside(None, "0.5"), None))
    return StudyTable("t", "Table 1: 50 %", ("network", "mean", "s"), rows, ("", "", ".1f"))


def test_a_table_as_csv_markdown_and_latex() -> None:
    made = table()
    read = list(csv.DictReader(io.StringIO(made.csv())))
    assert read[0] == {
        "network": "a_b",
        "mean": "0.07",
        "mean, paper": "0.071",
        "mean, difference": "-0.001",
        "s": "3.0",
    }
    assert read[1]["mean"] == "" and read[1]["mean, paper"] == "0.5"
    assert made.markdown()[2:] == [
        "| a_b | 0.070 (0.071, −0.001) | 3.0 |",
        r"| c\|d | – (0.5) | – |",
    ]
    latex = "\n".join(made.latex())
    assert r"a\_b & 0.070 (0.071, $-$0.001) & 3.0 \\" in latex and r"50 \%" in latex
    assert StudyTable.from_record(made.record()) == made


def test_infinity_is_kept() -> None:
    made = StudyTable("t", "T", ("a",), ((math.inf,), (Beside(math.inf, "1"),)))
    assert StudyTable.from_record(made.record()) == made


def test_reasons_are_said_once() -> None:
    cells = {"a": Beside(1, "2"), "b": Beside(3, "3"), "c": Beside(1, "2"), "d": Beside(1, "5")}
    known = {("net", "a"): "a slip", (EVERY_ROW, "c"): "a slip"}
    assert reasons_of("net", cells, known) == f"a, c: a slip; d: {UNEXPLAINED}"
    assert reasons_of("net", {"b": Beside(3, "3")}, known) == ""


def test_rows_of_a_paper() -> None:
    rows = paper_rows("net PGD 0.1 -\nnet FGSM x 2", names=2)
    assert rows == {("net", "PGD"): ("0.1", ""), ("net", "FGSM"): ("x", "2")}


# --- making a study


class Silent:
    def step(self, heading: str, done: int, total: int) -> None: ...
    def inside(self) -> None: ...


def settings(scale: StudyScale = StudyScale.SMALL, data: Path | None = None) -> StudySettings:
    return StudySettings(scale, data, Path(), 0, Silent())


def draw() -> Any:
    from radii.views import new_figure

    figure, axes = new_figure(2, 1)
    axes.plot([0, 1])
    return figure


def study(made: list[str], name: str = "tiny") -> PaperStudy[int]:
    def step(own: str, parts: Sequence[Part]) -> PaperStep[int]:
        def make(source: int, given: StudySettings) -> Sequence[Part]:
            made.append(own)
            assert given.folder.name == own
            return [Paragraph(f"of {source} rows"), *parts]

        return PaperStep(own, f"Part {own}", make)

    steps = (step("one", [table()]), step("two", [StudyFigure("f", "Figure 1: a line", draw)]))
    return PaperStudy(
        name=name,
        title="A tiny study",
        paper="Nobody, Nothing",
        introduction=("It is tiny.",),
        read=lambda folder: len((folder or Path()).joinpath("rows.csv").read_text()),
        files=lambda _: [DATA / "rows.csv"],
        sections=(StudySection("All of it", steps),),
    )


DATA = Path()


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(globals(), "DATA", tmp_path)
    (tmp_path / "rows.csv").write_text("12345")
    return tmp_path


def test_what_is_made_is_not_made_again(data: Path) -> None:
    made: list[str] = []
    out = data / "out"
    run_paper(study(made), out, settings(data=data), only=["two"])
    assert made == ["two"]
    records = run_paper(study(made), out, settings(data=data))
    assert made == ["two", "one"] and [record.name for record in records] == ["one", "two"]
    again = run_paper(study(made), out, settings(data=data))
    assert again[0] == records[0] and again[1].parts[0] == Paragraph("of 5 rows")
    for suffix in ("csv", "md", "tex"):
        assert (out / "tables" / f"t.{suffix}").stat().st_size
    for suffix in ("png", "pdf"):
        assert (out / "figures" / f"f.{suffix}").stat().st_size
    assert made == ["two", "one"]


@pytest.mark.parametrize("what", ["scale", "files"])
def test_other_files_or_another_scale_are_made_again(data: Path, what: str) -> None:
    made: list[str] = []
    run_paper(study(made), data / "out", settings(data=data))
    scale = StudyScale.MACHINE if what == "scale" else StudyScale.SMALL
    if what == "files":
        (data / "rows.csv").write_text("123456")
    run_paper(study(made), data / "out", settings(scale, data))
    assert made == ["one", "two"] * 2


def test_a_step_that_is_not_asked_for_keeps_its_other_scale(data: Path) -> None:
    made: list[str] = []
    run_paper(study(made), data / "out", settings(data=data))
    records = run_paper(study(made), data / "out", settings(StudyScale.MACHINE, data), only=["two"])
    assert made == ["one", "two", "two"]
    assert [record.scale for record in records] == ["small", "machine"]
    lines = page_lines(study(made), records, StudyScale.MACHINE, "figures")
    assert lines.count("This part is of scale `small`.") == 1


def test_the_page_has_every_part_in_order(data: Path) -> None:
    records = run_paper(study([]), data / "out", settings(data=data))
    elsewhere = data / "docs" / "tiny.md"
    path = write_pages(study([]), records, StudyScale.SMALL, data / "out", elsewhere)
    lines = path.read_text().splitlines()
    assert lines[0] == "# A tiny study" and "scale `small`" in lines[2]
    assert "radii study tiny --scale small --out tiny" in lines
    assert "![Figure 1: a line](figures/f.png)" in lines
    assert "0 of 1 numbers agree" in "\n".join(lines)
    headings = [line for line in lines if line.startswith("#")]
    assert headings[1:] == ["## All of it", "### Part one", "### Part two"]
    assert "![Figure 1: a line](tiny/f.png)" in elsewhere.read_text()
    assert (data / "docs" / "tiny" / "f.png").exists()


def test_a_step_that_is_not_made_says_so(data: Path) -> None:
    records = run_paper(study([]), data / "out", settings(data=data), only=["one"])
    assert "Not made yet." in page_lines(study([]), records, StudyScale.SMALL, "figures")


def test_what_is_refused(data: Path) -> None:
    out = data / "out"
    run_paper(study([]), out, settings(data=data))
    with pytest.raises(ExperimentError, match="holds the study of 'tiny'"):
        run_paper(study([], name="other"), out, settings(data=data))
    with pytest.raises(ExperimentError, match="step 'three' is not one of one, two"):
        run_paper(study([]), out, settings(data=data), only=["three"])
    (out / "steps" / "one.json").write_text("{")
    with pytest.raises(StoreError, match=r"one\.json: cannot be read"):
        run_paper(study([]), out, settings(data=data))


def claiming(step: str, *claims: StudyClaim) -> PaperStudy[str]:
    """A study of one step, which has these claims."""

    def make(source: str, settings: StudySettings) -> Sequence[Part]:
        return (Paragraph("Text."), *claims)

    return PaperStudy(
        name="distributions",
        title="T",
        paper="P",
        introduction=(),
        read=lambda data: "",
        files=lambda source: (),
        sections=(StudySection("S", (PaperStep(step, "One", make),)),),
    )


REFUTED = StudyClaim(
    "Deep is robust", "Section 2", "a count", (fact("nets", False, "3 of 4 are not", 4),)
)
ROW = (
    "| 1 | Deep is robust | Section 2 | refuted | a fact | 4 | all cases | a count | "
    "nets: 3 of 4 are not (fails) | {} |"
)


def test_claims_stand_at_the_top_of_a_page_and_across_papers(tmp_path: Path) -> None:
    study = claiming("one", REFUTED)
    for _ in range(2):  # the second time from what is kept
        records = run_paper(study, tmp_path / "study", settings())
        lines = page_lines(study, records, StudyScale.SMALL, "figures")
        assert lines.index(f"## {CLAIMS_HEADING}") < lines.index("## S")
        assert lines.index(f"## {EVIDENCE_HEADING}") > lines.index("## S")
        assert ROW.format("`one`") in lines
        assert "| 1 | nets | a fact | 4 | 0 | 3 of 4 are not | true | fails | fails |" in lines
    across = claims_lines(read_claims([tmp_path / "study"]))
    assert sum(line.startswith("| refuted | 1 |") for line in across) == 1
    assert across[-1] == ROW.format("`radii study distributions --scale small --only one`")
    with pytest.raises(ExperimentError, match="twice"):
        read_claims([tmp_path / "study"] * 2)
    with pytest.raises(StoreError, match="no study"):
        read_claims([tmp_path])


def some_claims() -> tuple[StudyClaim, ...]:
    """Of every basis, outcome and scope, with texts that tables must escape."""
    cases = tuple(
        ClaimCase(
            name=f"of |A| = {n}", basis=basis, n=n, shows="2; then | 4", rule="above 0",
            outcome=outcome, seeds=n % 4,
        )
        for n, (basis, outcome) in enumerate(
            [(basis, outcome) for basis in ClaimBasis for outcome in CaseOutcome], 25
        )
    )  # fmt: skip
    some = [StudyClaim("|x| is small", "Section 2", "t", cases, scope) for scope in ClaimScope]
    return (*some, StudyClaim("Deep is robust", "", "t", (), note="Too few, and | so."))


def test_claims_of_a_page_are_those_of_its_folder(tmp_path: Path) -> None:
    """A page outlives its folder: `radii study claims` reads either, evidence included."""
    study = claiming("table-5", *some_claims())
    folder, page = tmp_path / "study", tmp_path / "page.md"
    records = run_paper(study, folder, settings())
    write_pages(study, records, StudyScale.SMALL, folder, page)
    (of_folder,), (of_page,) = read_claims([folder]), read_claims([page])
    assert of_page.source == page.as_posix() and of_folder.source == "distributions"
    assert dataclasses.replace(of_page, source="distributions") == of_folder
    assert of_page.claims == some_claims()
    with pytest.raises(ExperimentError, match="twice"):
        read_claims([folder, page])


def test_verdicts_of_a_page_are_made_anew(tmp_path: Path) -> None:
    """Nobody can write a verdict into a page: it follows from the cases there."""
    study, page = claiming("one", REFUTED), tmp_path / "page.md"
    records = run_paper(study, tmp_path / "study", settings())
    write_pages(study, records, StudyScale.SMALL, tmp_path / "study", page)
    page.write_text(page.read_text().replace("| refuted |", "| confirmed |"))
    (found,) = read_claims([page])
    assert found.claims[0].verdict is ClaimVerdict.REFUTED
    page.write_text(page.read_text().replace("| a fact | 4 | 0 |", "| ours | 400 | 5 |"))
    (found,) = read_claims([page])
    assert found.claims[0].verdict is ClaimVerdict.NOT_TESTABLE


def test_a_page_of_parts_at_several_scales_says_so(tmp_path: Path) -> None:
    records = run_paper(claiming("one", REFUTED), tmp_path / "study", settings())
    page = tmp_path / "page.md"
    write_pages(claiming("one", REFUTED), records, StudyScale.MACHINE, tmp_path / "study", page)
    (found,) = read_claims([page])
    assert found.scale == "machine, small"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace("radii study distributions", "radii study nothing"),
        lambda text: text.replace("## What holds", "## What fails"),
        lambda text: text.replace("| fails |", "| wrong |"),
        lambda text: text.replace("| where |", "| place |"),
        lambda text: text.replace("| a fact | 4 | 0 |", "| a fact | four | 0 |"),
        lambda text: text.replace("## The evidence", "## No evidence"),
        lambda text: text.replace("Written by", "Written after"),
    ],
)
def test_a_page_without_claims_is_refused(tmp_path: Path, spoil: Callable[[str], str]) -> None:
    records = run_paper(claiming("one", REFUTED), tmp_path / "study", settings())
    page = tmp_path / "page.md"
    write_pages(claiming("one", REFUTED), records, StudyScale.SMALL, tmp_path / "study", page)
    assert read_claims([page])
    page.write_text(spoil(page.read_text()))
    with pytest.raises(StoreError, match=r"page\.md: no page of radii study PAPER with claims"):
        read_claims([page])
    with pytest.raises(StoreError, match="no page"):
        read_claims([tmp_path / "absent.md"])


def test_a_file_of_a_step_is_kept_beside_the_page(tmp_path: Path) -> None:
    def make(source: str, given: StudySettings) -> Sequence[Part]:
        given.folder.mkdir(parents=True, exist_ok=True)
        (given.folder / "rows.csv").write_text("a,b\n1,2\n")
        return [StudyFile("rows.csv", "All rows")]

    filed = dataclasses.replace(
        claiming("one"), sections=(StudySection("S", (PaperStep("one", "One", make),)),)
    )
    page = tmp_path / "docs" / "filed.md"
    for _ in range(2):  # the second time from what is kept
        records = run_paper(filed, tmp_path / "out", settings())
        own = write_pages(filed, records, StudyScale.SMALL, tmp_path / "out", page)
        assert "All rows: [rows.csv](tables/rows.csv)." in own.read_text()
        assert "All rows: [rows.csv](filed/rows.csv)." in page.read_text()
        assert (tmp_path / "docs" / "filed" / "rows.csv").read_text() == "a,b\n1,2\n"


STUDIES = Path("docs/studies")


def test_what_holds_is_what_the_pages_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it fails: radii study claims docs/studies/PAPER.md ... --page docs/studies/claims.md"""
    monkeypatch.chdir(Path(__file__).parents[2])
    pages = [STUDIES / f"{paper}.md" for paper in PAPERS]
    own = [page for page in pages if "\n## What holds\n" in page.read_text()]
    written = (STUDIES / "claims.md").read_text().splitlines()
    assert written == claims_lines(read_claims(own))


@pytest.mark.parametrize("paper", PAPERS)
def test_verdicts_on_a_committed_page_are_those_of_its_cases(paper: str) -> None:
    """Where it fails, the rules have changed: write the page again."""
    page = Path(__file__).parents[2] / STUDIES / f"{paper}.md"
    (found,) = read_claims([page])
    text = page.read_text()
    for claim, command in zip(found.claims, found.commands, strict=True):
        row = f"{claim.place} | {claim.verdict.value} | {claim.tested_on} | {claim.instances} |"
        assert row in text, claim.claim
        assert command.strip("`").split()[-1] in text
