"""VNN-COMP's lists of instances, and the results of one, written row by row.

A list has a line `onnx,vnnlib,timeout` for each instance, with paths relative to the list. Its
results have VNN-COMP's columns and no header: category, onnx, vnnlib, prepare time, result, run
time.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from radii.datasets import gunzip
from radii.errors import InputError, SpecificationError, StoreError
from radii.vnnlib._results import Outcome


@dataclass(frozen=True, slots=True)
class ListedInstance:
    """A line of the list, with paths as they stand there; `wrong` says why it cannot be used."""

    line: int
    onnx: str
    vnnlib: str
    seconds: float = math.inf
    wrong: str = ""


def read_instances(path: Path, most: float | None) -> list[ListedInstance]:
    """The lines of a list. `most` limits the seconds of each, and is used where a line has none."""
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


def counterexample_names(listed: list[ListedInstance]) -> list[str]:
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


@dataclass(frozen=True, slots=True)
class ResultRow:
    """Columns as VNN-COMP has them: result is sat, unsat, unknown, timeout or error."""

    category: str
    onnx: str
    vnnlib: str
    prepare_seconds: float
    result: str
    run_seconds: float

    @classmethod
    def parse(cls, cells: Sequence[str]) -> Self:
        category, onnx, vnnlib, prepare, result, run = cells
        return cls(category, onnx, vnnlib, float(prepare), Outcome(result).value, float(run))

    def __str__(self) -> str:
        """A line, with its end."""
        line = io.StringIO()
        seconds = (f"{self.prepare_seconds:.6f}", f"{self.run_seconds:.6f}")
        cells = (self.category, self.onnx, self.vnnlib, seconds[0], self.result, seconds[1])
        csv.writer(line, lineterminator="\n").writerow(cells)
        return line.getvalue()

    def as_object(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "category": self.category,
            "onnx": self.onnx,
            "vnnlib": self.vnnlib,
            "prepare_seconds": round(self.prepare_seconds, 6),
            "result": self.result,
            "run_seconds": round(self.run_seconds, 6),
        }


class ResultTable:
    """A row for each instance of a list, in the list's order once all are there.

    What an earlier run wrote is kept, but for errors, which are tried again, and for a last line
    that was cut off.
    """

    def __init__(self, path: Path, instances: Sequence[tuple[str, str]]) -> None:
        self.path = path
        self.folder = path.parent
        self._rows: list[ResultRow | None] = [None] * len(instances)
        self._is_ordered = True
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            text = path.read_text("utf-8") if path.exists() else ""
            self._take(text, list(instances))
            self._rewrite()
            self._stream = path.open("a", encoding="utf-8")
        except OSError as error:
            raise InputError(f"--out {path} cannot be written: {error.strerror}") from None
        except (UnicodeDecodeError, csv.Error):
            raise StoreError(f"{path} is not a file of results; choose another --out") from None

    def _take(self, text: str, instances: list[tuple[str, str]]) -> None:
        whole = text[: text.rfind("\n") + 1]
        if text and not whole and not any(f",{net},{prop}," in text for net, prop in instances):
            raise StoreError(f"{self.path} is not a file of results; choose another --out")
        places: dict[tuple[str, str], list[int]] = {}
        for place, instance in enumerate(instances):
            places.setdefault(instance, []).append(place)
        for number, cells in enumerate(csv.reader(whole.splitlines()), 1):
            try:
                row = ResultRow.parse(cells)
            except ValueError:
                raise StoreError(
                    f"{self.path}: line {number} is not a result of VNN-COMP's form; "
                    "choose another --out"
                ) from None
            waiting = places.get((row.onnx, row.vnnlib))
            if not waiting:
                raise StoreError(
                    f"{self.path}: line {number} is about {row.onnx} and {row.vnnlib}, which the "
                    "list does not have; choose another --out"
                )
            place = waiting.pop(0)
            if row.result != "error":
                self._rows[place] = row

    def __getitem__(self, place: int) -> ResultRow | None:
        return self._rows[place]

    def all(self) -> list[ResultRow]:
        """Those that are there, in the list's order."""
        return [row for row in self._rows if row is not None]

    def put(self, place: int, row: ResultRow) -> None:
        """Written at once, so that nothing is lost."""
        self._is_ordered &= all(later is None for later in self._rows[place + 1 :])
        self._rows[place] = row
        try:
            self._stream.write(str(row))
            self._stream.flush()
        except OSError as error:
            raise InputError(f"--out {self.path} cannot be written: {error.strerror}") from None

    def close(self) -> None:
        self._stream.close()
        if not self._is_ordered:
            self._rewrite()

    def _rewrite(self) -> None:
        """The whole file or the old one, never a part."""
        beside = self.path.with_name(self.path.name + ".tmp")
        beside.write_text("".join(map(str, self.all())), "utf-8")
        beside.replace(self.path)
