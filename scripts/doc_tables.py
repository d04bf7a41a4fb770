"""The tables of the documentation that are made from the code: write them into their pages.

    python scripts/doc_tables.py

A table stands between `<!-- NAME: ... -->` and `<!-- end of NAME -->`. What lies between is
replaced; a test compares it with what this script would write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from radii.datasets import DIGITS_SPLITS, catalogue, extent, load

DOCS = Path(__file__).parents[1] / "docs"


def published_sets() -> str:
    """The data sets that have a name."""
    digits = {split: part.stop - part.start for split, part in DIGITS_SPLITS.items()}
    rows = [
        ("digits", load("digits").shape, digits, "embedded"),
        *((known.name, known.shape, known.counts, known.origin) for known in catalogue()),
    ]
    lines = [
        f"| `{name}` | {extent(shape)} | {counts['train']} | {counts['test']} | {origin} |"
        for name, shape, counts, origin in rows
    ]
    return "\n".join(("| name | images | train | test | from |", "|---|---|---|---|---|", *lines))


TABLES: Mapping[str, tuple[str, Callable[[], str]]] = {
    "published sets": ("data.md", published_sets),
}
"""By the name in the comments: the page, and what makes the table."""


def with_tables(page: str, text: str) -> str:
    """The text of a page with its tables as they are made now."""
    for name, (own_page, make) in TABLES.items():
        if own_page == page:
            begin, end = f"<!-- {name}: written by scripts/doc_tables.py -->\n", "\n<!-- end of "
            old = text.partition(begin)[2].partition(end + name)[0]
            text = text.replace(old, make())
    return text


def main() -> None:
    for page in dict.fromkeys(page for page, _ in TABLES.values()):
        path = DOCS / page
        path.write_text(with_tables(page, path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
