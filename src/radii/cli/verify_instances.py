"""`radii verify --instances`: a VNN-COMP list of instances, decided one after the other.

The list has a line `onnx,vnnlib,timeout` for each instance, with paths relative to the list. The
results have VNN-COMP's columns and no header: category, onnx, vnnlib, prepare time, result, run
time. A counterexample lies beside them, as NET_PROP.counterexample.gz.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from radii.cli.verify import VerifyResult, decide_in_time
from radii.cli.verify_results import ResultRow, ResultTable
from radii.datasets import gunzip
from radii.errors import InputError, NetworkError, RadiiError, SpecificationError
from radii.processes import parse_size
from radii.terminal import say


@dataclass(frozen=True, slots=True)
class ListedInstance:
    """A line of the list, with paths as they stand there; `wrong` says why it is no instance."""

    line: int
    onnx: str
    vnnlib: str
    seconds: float = math.inf
    wrong: str = ""


def run_instances(args: argparse.Namespace) -> int:
    """Exit code 2 if a line of the list could not be used: its result is `error`."""
    memory = None if args.memory is None else parse_size(args.memory)
    listed = _read_instances(args.instances, args.timeout)
    category = args.category or args.instances.resolve().parent.name
    rows = ResultTable(
        args.out or Path("results.csv"), [(each.onnx, each.vnnlib) for each in listed]
    )
    names = _counterexample_names(listed)
    told = sys.stderr if args.json else sys.stdout
    open_ = [place for place in range(len(listed)) if rows[place] is None]
    if len(open_) < len(listed):
        say(f"{rows.path}: {len(listed) - len(open_)} results are kept", file=told)
    for place in open_:
        row, message = _decide_instance(
            args, listed[place], category, memory, rows.folder / names[place]
        )
        rows.put(place, row)
        same = (rows[other] for other, name in enumerate(names) if name == names[place])
        if not any(each is not None and each.result == "sat" for each in same):
            _forget(rows.folder / names[place])
        shown = f"[{place + 1}/{len(listed)}] {row.onnx} {row.vnnlib}: {row.result}"
        say(f"{shown}, {row.run_seconds:.2f} s", file=told, flush=True)
        if message:
            say(f"radii: line {listed[place].line}: {message}", file=sys.stderr)
    rows.close()
    counts = Counter(row.result for row in rows.all())
    if args.json:
        say(json.dumps({"results": [row.as_object() for row in rows.all()]}))
    else:
        say(f"{rows.path}: " + ", ".join(f"{n} {result}" for result, n in sorted(counts.items())))
    return 2 if counts["error"] else 0


def _decide_instance(
    args: argparse.Namespace,
    listed: ListedInstance,
    category: str,
    memory: int | None,
    counterexample: Path,
) -> tuple[ResultRow, str]:
    """One instance's row, and what there is to say about it. Preparing is reading the property."""
    started = time.monotonic()
    result, message, preparing = "error", listed.wrong, 0.0
    try:
        if not message:
            folder = args.instances.parent
            network = _existing(folder / listed.onnx, NetworkError)
            property_ = _existing(folder / listed.vnnlib, SpecificationError)
            one = argparse.Namespace(**{**vars(args), "network": network, "property": property_})
            found = decide_in_time(one, started, listed.seconds, memory)
            result, preparing = found.verification.outcome.value, found.reading_seconds
            message = "" if found.replayed_on else found.message
            _keep(found, counterexample)
    except RadiiError as error:
        message = " ".join(str(error).split())
    running = time.monotonic() - started - preparing
    return ResultRow(category, listed.onnx, listed.vnnlib, preparing, result, running), message


def _keep(found: VerifyResult, path: Path) -> None:
    """The values alone, as VNN-COMP's checker reads them."""
    word, _, values = str(found.verification).partition("\n")
    if word != "sat" or not values:
        return
    try:
        path.write_bytes(gzip.compress((values + "\n").encode(), mtime=0))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be written: {error}") from None


def _forget(path: Path) -> None:
    """A counterexample of an earlier run, where no instance of its name is sat any more."""
    with suppress(OSError, ValueError):  # where no file can be, there is none
        path.unlink()


def _existing(path: Path, error: type[InputError]) -> Path:
    """The file, or the gzipped one beside it, as benchmarks are shipped."""
    with suppress(OSError):  # names that are too long
        for place in (path, Path(f"{path}.gz")):
            if place.is_file():
                return place
    raise error(f"{path} does not exist")


def _read_instances(path: Path, most: float | None) -> list[ListedInstance]:
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gunzip(data, str(path), SpecificationError)
        text = data.decode("utf-8-sig")
        lines = [(n, row) for n, row in enumerate(csv.reader(text.splitlines()), 1) if any(row)]
    except OSError as error:
        raise SpecificationError(f"{path} cannot be read: {error.strerror or error}") from None
    except (UnicodeDecodeError, csv.Error):
        raise SpecificationError(f"{path} is not a list of instances in CSV") from None
    if not lines:
        raise SpecificationError(f"{path} lists no instance")
    return [_instance(number, [cell.strip() for cell in row], most) for number, row in lines]


def _instance(number: int, cells: list[str], most: float | None) -> ListedInstance:
    onnx, vnnlib, limit, *more = [*cells, "", "", ""][: max(3, len(cells))]
    seconds, wrong = math.inf, ""
    if more or not onnx or not vnnlib:
        wrong = f"'{','.join(cells)}' is not of the form onnx,vnnlib,timeout"
    elif limit:
        try:
            seconds = float(limit)
        except ValueError:
            seconds = math.nan
        if not seconds > 0:
            wrong = f"timeout '{limit}' is not a number of seconds above 0"
    elif most is None:
        wrong = "no timeout is given: add it to the line, or give --timeout"
    return ListedInstance(number, onnx, vnnlib, min(seconds, most or math.inf), wrong)


def _counterexample_names(listed: list[ListedInstance]) -> list[str]:
    """NET_PROP; where that is not unique, with the property's folder in front, or the line."""
    plain = [f"{_stem(each.onnx)}_{_stem(each.vnnlib)}" for each in listed]
    pairs = {(name, each.onnx, each.vnnlib) for name, each in zip(plain, listed, strict=True)}
    often = Counter(name for name, _, _ in pairs)
    longer = [
        name if often[name] == 1 else f"{Path(each.vnnlib).parent.name}_{name}"
        for name, each in zip(plain, listed, strict=True)
    ]
    pairs = {(name, each.onnx, each.vnnlib) for name, each in zip(longer, listed, strict=True)}
    often = Counter(name for name, _, _ in pairs)
    return [
        f"{name if often[name] == 1 else f'{name}_line_{each.line}'}.counterexample.gz"
        for name, each in zip(longer, listed, strict=True)
    ]


def _stem(path: str) -> str:
    return Path(path.removesuffix(".gz")).stem
