"""What `radii data` does: get, list and check data sets."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from radii.datasets import (
    CATALOGUE,
    DataOrigin,
    ProgressCallback,
    PublishedSet,
    acquire,
    extent,
    published_set,
)
from radii.datasets import _cache as cache
from radii.datasets import _digits as digits
from radii.errors import DataError
from radii.terminal import say


def get_set(arguments: argparse.Namespace) -> int:
    if arguments.name.lower() == digits.NAME:
        say("digits is embedded in radii and always in place")
        return 0
    known = published_set(arguments.name)
    if not arguments.force and _is_whole(known):
        say(f"{known.name} is in place already ({cache.root() / known.name})")
        return 0
    with _progress(known) as progress:
        manifest = acquire(
            known,
            path=arguments.path,
            via=DataOrigin(arguments.via),
            side=arguments.size,
            progress=progress,
        )
    counts = ", ".join(f"{count} {split}" for split, count in manifest.counts.items())
    checked = "the official content" if manifest.official else "checksums recorded"
    say(
        f"{known.name} is in place: {counts} images of {extent(manifest.shape)}, {checked} "
        f"({cache.root() / known.name})"
    )
    return 0


def _is_whole(known: PublishedSet) -> bool:
    """In place and unharmed, so that nothing has to be done."""
    try:
        return cache.manifest_of(known) is not None and not cache.changed_files(known)
    except DataError:
        return False


@contextmanager
def _progress(known: PublishedSet) -> Iterator[ProgressCallback]:
    """Bars for downloads on standard error, if that is a terminal."""
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    from radii.cli.console import Console

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Bars(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        overall = bars.add_task(f"putting {known.name} in place", total=None)
        tasks: dict[str, Any] = {}

        def report(name: str, received: int, total: int | None) -> None:
            if name not in tasks:
                bars.update(overall, visible=False)
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=received, total=total)

        yield report


def show_sets(arguments: argparse.Namespace) -> int:
    rows = [_embedded(), *(_row(known) for known in CATALOGUE)]
    if arguments.json:
        say(*json.dumps({"directory": str(cache.root()), "datasets": rows}, indent=2).split("\n"))
        return 0
    columns = ("name", "in place", "train", "test", "image", "classes", "from")
    lines = [
        (
            row["name"],
            "yes" if row["in_place"] else f"no: {row['problem']}" if row["problem"] else "no",
            row["train"],
            row["test"],
            extent(tuple(row["shape"])),
            row["classes"],
            row["source"],
        )
        for row in rows
    ]
    _print_table(columns, lines)
    return 0


def _embedded() -> dict[str, Any]:
    counts = {split: part.stop - part.start for split, part in digits.DIGITS_SPLITS.items()}
    return {
        "name": digits.NAME,
        "title": "digits of scikit-learn, 8x8 pixels",
        "in_place": True,
        "problem": None,
        "official": True,
        **counts,
        "shape": [1, 8, 8],
        "classes": 10,
        "source": "embedded",
    }


def _row(known: PublishedSet) -> dict[str, Any]:
    problem = manifest = None
    try:
        manifest = cache.manifest_of(known)
    except DataError as error:
        problem = str(error)
    return {
        "name": known.name,
        "title": known.title,
        "in_place": manifest is not None,
        "problem": problem,
        "official": manifest.official if manifest else None,
        "train": manifest.counts.get("train") if manifest else None,
        "test": manifest.counts.get("test") if manifest else None,
        "shape": list(manifest.shape if manifest else known.shape),
        "classes": len(known.classes),
        "source": manifest.source if manifest else None,
    }


def check_sets(arguments: argparse.Namespace) -> int:
    """0 if all is well, 1 if a file was changed."""
    chosen = [published_set(name) for name in arguments.names if name.lower() != digits.NAME]
    if not arguments.names:
        chosen = [known for known in CATALOGUE if (cache.root() / known.name).exists()]
    rows = [{"name": known.name, "changed": list(cache.changed_files(known))} for known in chosen]
    if arguments.json:
        say(*json.dumps({"directory": str(cache.root()), "datasets": rows}, indent=2).split("\n"))
    elif rows:
        _print_table(
            ("name", "state"),
            [
                (
                    row["name"],
                    f"changed: {', '.join(row['changed'])}" if row["changed"] else "whole",
                )
                for row in rows
            ],
        )
    else:
        say(f"no data set is in place below {cache.root()}")
    return 1 if any(row["changed"] for row in rows) else 0


def _print_table(columns: tuple[str, ...], lines: list[tuple[Any, ...]]) -> None:
    from rich.table import Table

    from radii.cli.console import Console

    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for line in lines:
        table.add_row(*("" if value is None else str(value) for value in line))
    Console().print(table)
