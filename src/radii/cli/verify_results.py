"""The results file of VNN-COMP, written row by row, and gone on with when it is there already."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from radii.errors import InputError, StoreError

RESULT_WORDS = ("sat", "unsat", "unknown", "timeout", "error")


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
        if result not in RESULT_WORDS:
            raise ValueError(f"'{result}' is not one of {', '.join(RESULT_WORDS)}")
        return cls(category, onnx, vnnlib, float(prepare), result, float(run))

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
            open_ = places.get((row.onnx, row.vnnlib))
            if not open_:
                raise StoreError(
                    f"{self.path}: line {number} is about {row.onnx} and {row.vnnlib}, which the "
                    "list does not have; choose another --out"
                )
            place = open_.pop(0)
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
