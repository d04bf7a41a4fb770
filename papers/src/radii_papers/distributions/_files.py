"""What the paper published: its files row by row, and what is wrong with them."""

from __future__ import annotations

import numpy as np

from radii_papers._steps import Paragraph, Part, StudySettings
from radii_papers._tables import Cell, StudyTable, share_text
from radii_papers.distributions._public import (
    PAPER_IMAGES,
    QUERIES,
    TABLES,
    PublicResults,
)


def files_table(results: PublicResults, _: StudySettings) -> list[Part]:
    """A row for each public table, what stands in several of them, and the doubts of reading."""
    rows: list[tuple[Cell, ...]] = []
    brackets = 0
    for name, file in TABLES.items():
        table = results.table(name)
        if table is None:
            rows.append((file, *(None,) * 7))
            continue
        brackets += len(table) if name != "more images" else 0
        splits = table.column("split")
        rows.append(
            (
                file,
                len(table),
                len(table.networks),
                int((splits == "train").sum()),
                int((splits == "test").sum()),
                int(table.column("input").max()) + 1,
                table.unsolved,
                int((table.lower >= table.upper).sum()),
            )
        )
    columns = (
        *("file", "rows", "networks", "training rows", "testing rows", "images up to"),
        *("without any answer", "contradict themselves"),
    )
    parts: list[Part] = [
        StudyTable("files", "The public tables of brackets", columns, tuple(rows)),
        Paragraph(f"{brackets} rows without the file of more images. {_repeated(results)}"),
    ]
    return [*parts, _doubts(results)]


def _repeated(results: PublicResults) -> str:
    """How much of the file with more images is in the first one, number by number."""
    first, more = results.table("conventional"), results.table("more images")
    if first is None or more is None:
        return ""
    names = ("network", "input", "split", "lower", "upper")
    known = set(zip(*(first.column(name).tolist() for name in names), strict=True))
    again = sum(row in known for row in zip(*(more.column(n).tolist() for n in names), strict=True))
    beyond = int(np.count_nonzero(more.column("input") >= PAPER_IMAGES))
    return (
        f"Of that file {share_text(again, len(more), 'rows')} stand in the first one as well, with "
        f"the same brackets; {beyond} are of images beyond the first {PAPER_IMAGES}."
    )


def _doubts(results: PublicResults) -> StudyTable:
    """What reading the files cannot take at its word, in sentences."""
    files = {**TABLES, **{f"queries {name}": file for name, file in QUERIES.items()}}
    rows = tuple(
        (files[name], _shortened(note)) for name, notes in results.notes.items() for note in notes
    )
    return StudyTable(
        "doubts", "What in the files cannot be taken at face value", ("file", "what"), rows
    )


def _shortened(note: str) -> str:
    """Without the list of names or rows that a note ends with."""
    return note.partition(" (rows ")[0].partition(" (concat.ipynb")[0]
