"""Making a study: step by step, each kept as it ends, and at the end one page of them all.

A study's folder has `tables` (CSV, Markdown and LaTeX), `figures` (PDF and PNG), `steps` (what is
kept, as JSON), a folder of its own for each step that keeps more, and `index.md`.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

from radii import __version__
from radii.errors import ExperimentError, StoreError, writing
from radii.views import save_figure
from radii_papers._evidence import (
    CaseOutcome,
    ClaimBasis,
    ClaimCase,
    ClaimScope,
    StudyClaim,
)
from radii_papers._steps import (
    PaperStep,
    PaperStudy,
    Paragraph,
    Part,
    StudyFigure,
    StudyFile,
    StudyScale,
    StudySettings,
    digest_of,
)
from radii_papers._tables import StudyTable

Source = TypeVar("Source")

STUDY_FILE_OF_PAPER = "study.json"
TABLES, FIGURES, STEPS = "tables", "figures", "steps"
FIGURE_SUFFIXES = (".pdf", ".png")


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A step that is done: its parts, on which day, the seconds on the wall and of the CPU, and at
    which scale."""

    name: str
    parts: tuple[Part, ...]
    seconds: float
    cpu_seconds: float
    day: str
    scale: str

    @property
    def tables(self) -> list[StudyTable]:
        return [part for part in self.parts if isinstance(part, StudyTable)]

    @property
    def claims(self) -> list[StudyClaim]:
        return [part for part in self.parts if isinstance(part, StudyClaim)]


def run_paper(
    study: PaperStudy[Any], out: Path, settings: StudySettings, only: Sequence[str] = ()
) -> list[StepRecord]:
    """Make what `out` does not hold yet; with `only`, of these steps. All that are held, in order.

    A step is made again where the scale, the files that it was made from or radii differ. Beside
    `only`, what is held at another scale is kept as it is: the page says at which.
    """
    names = [step.name for step in study.steps]
    unknown = [name for name in only if name not in names]
    if unknown:
        raise ExperimentError(f"step '{unknown[0]}' is not one of {', '.join(names)}")
    _claim(out, study.name)
    source = study.read(settings.data)
    if study.check is not None:
        study.check(source, settings.scale)
    key = {"scale": settings.scale.value, "radii": __version__}
    key["files"] = digest_of(study.files(source))
    records = []
    for place, step in enumerate(study.steps):
        kept = _read(out, step.name, key)
        if kept is None and (not only or step.name in only):
            settings.progress.step(step.heading, place, len(names))
            own = dataclasses.replace(settings, folder=out / step.name)
            kept = _make(step, source, own, out, key)
        if kept is None:
            kept = _of_other_scale(out, step.name, key)
        if kept is not None:
            records.append(kept)
    settings.progress.step("", len(names), len(names))
    return records


def _claim(out: Path, name: str) -> None:
    """Take a folder for one paper; another paper's is refused."""
    path = out / STUDY_FILE_OF_PAPER
    try:
        out.mkdir(parents=True, exist_ok=True)
        held = json.loads(path.read_text()).get("paper") if path.exists() else None
        if held not in (None, name):
            raise ExperimentError(f"{out} holds the study of '{held}': choose another --out")
        if held is None:
            path.write_text(json.dumps({"paper": name}) + "\n")
    except (OSError, ValueError, AttributeError) as error:
        raise StoreError(f"{out}: cannot keep a study ({error})") from None


def _make(
    step: PaperStep[Source],
    source: Source,
    settings: StudySettings,
    out: Path,
    key: dict[str, str],
) -> StepRecord:
    began, cpu_began = time.perf_counter(), _cpu_seconds()
    parts = tuple(_written(part, out) for part in step.make(source, settings))
    for part in parts:
        if isinstance(part, StudyFile):
            text = (settings.folder / part.name).read_text(encoding="utf-8")
            write_whole(out / TABLES / part.name, text)
    seconds, cpu_seconds = time.perf_counter() - began, _cpu_seconds() - cpu_began
    day = date.today().isoformat()
    made = StepRecord(step.name, parts, seconds, cpu_seconds, day, key["scale"])
    record = {
        "key": key,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "day": made.day,
        "parts": [_part_record(part) for part in parts],
    }
    write_whole(out / STEPS / f"{step.name}.json", json.dumps(record, allow_nan=False))
    return made


def _cpu_seconds() -> float:
    """Of this process and of workers that ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _written(part: Part, out: Path) -> Part:
    """The part, once its files are there."""
    if isinstance(part, StudyTable):
        write_whole(out / TABLES / f"{part.name}.csv", part.csv())
        write_whole(out / TABLES / f"{part.name}.md", "\n".join(part.markdown()) + "\n")
        write_whole(out / TABLES / f"{part.name}.tex", "\n".join(part.latex()) + "\n")
    if isinstance(part, StudyFigure):
        (out / FIGURES).mkdir(parents=True, exist_ok=True)
        assert part.draw is not None, f"figure {part.name} has no drawing"
        figure = part.draw()
        for suffix in FIGURE_SUFFIXES:
            save_figure(figure, out / FIGURES / f"{part.name}{suffix}")
        return dataclasses.replace(part, draw=None)
    return part


def write_whole(path: Path, text: str) -> None:
    """A whole file or none: a study that is cut off goes on with what it has."""
    partial = path.with_name(f".{path.name}.partial")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)


def read_kept(out: Path) -> tuple[str, str, list[StepRecord]]:
    """The paper of a study's folder, the scale, and all that is kept, whatever it was made from."""
    try:
        paper = str(json.loads((out / STUDY_FILE_OF_PAPER).read_text())["paper"])
        steps = sorted((out / STEPS).glob("*.json"))
        keys = [json.loads(path.read_text(encoding="utf-8"))["key"] for path in steps]
        scales = sorted({str(key["scale"]) for key in keys})
    except (OSError, ValueError, KeyError, TypeError):
        raise StoreError(f"{out}: no study of a paper is here; make one with radii study") from None
    kept = [_read(out, path.stem, None) for path in steps]
    return paper, ", ".join(scales), [record for record in kept if record is not None]


def _read(out: Path, name: str, key: dict[str, str] | None) -> StepRecord | None:
    """What is kept of a step; None if nothing is, or it is not of `key`: other files or scale."""
    path = out / STEPS / f"{name}.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if key is not None and record["key"] != key:
            return None
        parts = tuple(_part_from(part) for part in record["parts"])
        times = float(record["seconds"]), float(record["cpu_seconds"])
        return StepRecord(name, parts, *times, record["day"], str(record["key"]["scale"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AssertionError) as error:
        raise StoreError(f"{path}: cannot be read ({error}); remove it to make it again") from None


def _of_other_scale(out: Path, name: str, key: dict[str, str]) -> StepRecord | None:
    """What is kept of a step that differs in its scale alone."""
    for scale in StudyScale:
        kept = _read(out, name, {**key, "scale": scale.value})
        if kept is not None:
            return kept
    return None


def _part_record(part: Part) -> dict[str, Any]:
    if isinstance(part, StudyTable):
        return {"table": part.record()}
    if isinstance(part, StudyFigure):
        return {"figure": {"name": part.name, "title": part.title}}
    if isinstance(part, StudyFile):
        return {"file": {"name": part.name, "title": part.title}}
    if isinstance(part, StudyClaim):
        return {"claim": dataclasses.asdict(part)}
    return {"text": part.text, "is_finding": part.is_finding}


def _part_from(record: dict[str, Any]) -> Part:
    if "table" in record:
        return StudyTable.from_record(record["table"])
    if "figure" in record:
        return StudyFigure(record["figure"]["name"], record["figure"]["title"])
    if "file" in record:
        return StudyFile(record["file"]["name"], record["file"]["title"])
    if "claim" in record:
        claim = dict(record["claim"])
        cases = tuple(_case_from(case) for case in claim.pop("cases"))
        return StudyClaim(cases=cases, scope=ClaimScope(claim.pop("scope")), **claim)
    return Paragraph(record["text"], record["is_finding"])


def _case_from(record: dict[str, Any]) -> ClaimCase:
    basis, outcome = ClaimBasis(record["basis"]), CaseOutcome(record["outcome"])
    return ClaimCase(**{**record, "basis": basis, "outcome": outcome})
