"""What a benchmark measured, kept as JSON lines, so that a run that is cut off loses nothing."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

Key = tuple[str, str, str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One measurement; what does not apply keeps its default.

    `case` is an image's number or a file's name, `budget` wall seconds, `upper` None without a
    witness, `late` the seconds after the limit at which an answer came.
    """

    network: str
    case: str
    method: str
    budget: float
    seconds: float = 0.0
    lower: float = 0.0
    upper: float | None = None
    answer: str = ""
    expected: str = ""
    peak_bytes: int = 0
    late: float = 0.0
    cpu_seconds: float = 0.0
    queries: int = 0
    cancelled: int = 0
    timeouts: int = 0
    memouts: int = 0

    @property
    def key(self) -> Key:
        return (self.network, self.case, self.method, self.budget)


@dataclass(slots=True)
class Log:
    """Records by key; the last one of a key counts. Without a path nothing is kept."""

    path: Path | None = None
    records: dict[Key, Record] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path | None) -> Log:
        log = cls(path)
        if path is not None and path.exists():
            for record in _read(path):
                log.records[record.key] = record
        return log

    def find(self, network: str, case: object, method: str, budget: float) -> Record | None:
        return self.records.get((network, str(case), method, budget))

    def add(self, record: Record) -> Record:
        self.records[record.key] = record
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps(dataclasses.asdict(record)) + "\n")
        return record

    def uppers(self, network: str, case: object) -> list[float]:
        """The distances of all witnesses that any method found."""
        mine = (r for r in self.records.values() if (r.network, r.case) == (network, str(case)))
        return [record.upper for record in mine if record.upper is not None]


def _read(path: Path) -> Iterator[Record]:
    for line in path.read_text().splitlines():
        try:
            yield Record(**json.loads(line))
        except (json.JSONDecodeError, TypeError):
            print(f"{path}: a line that is cut off or of another version is left out")


@dataclass(frozen=True, slots=True)
class PeerOptions:
    """Of the comparison with peers: what is measured, and beside what.

    `images` names a set of them, not the table's; `instances` is a part of the names of those that
    are measured, `before` another checkout of
    radii, `tool` a folder with alpha-beta-CROWN; `cpu`: budgets are CPU seconds.
    """

    instances: str = ""
    images: str = ""
    before: Path | None = None
    tool: Path | None = None
    cpu: bool = False


@dataclass(frozen=True, slots=True)
class Options:
    """How much to measure; None: as much as the benchmark's table demands."""

    log: Log
    images: int | None = None
    budget: float | None = None
    jobs: int = 1
    seeds: range | None = None
    peers: PeerOptions = PeerOptions()
