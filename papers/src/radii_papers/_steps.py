"""What a study of a paper is: a list of steps, each a table or figure of the paper and its data.

A step's function is pure: from what the paper published (its `Source`) and the settings it makes
parts in the order in which they are read. Files, pages and resuming are `_running`'s.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from radii_papers._evidence import StudyClaim
from radii_papers._tables import StudyTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from radii.runs import Observer

Source = TypeVar("Source")


class StudyScale(StrEnum):
    """How much of a paper is done again.

    SMALL: from the published files, minutes. MACHINE: what two cores and no GPU do in a night.
    FULL: the paper's own sizes and limits.
    """

    SMALL = "small"
    MACHINE = "machine"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of the page, in Markdown. One that `is_finding` stands at the top of the page."""

    text: str
    is_finding: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class StudyFigure:
    """A figure; `draw` is None once it lies in the study's folder under its name."""

    name: str
    title: str
    draw: Callable[[], Figure] | None = None


@dataclass(frozen=True, slots=True)
class StudyFile:
    """A file that the step wrote into its own folder under this name: kept beside the page, which
    links to it with `title`."""

    name: str
    title: str


Part = Paragraph | StudyTable | StudyFigure | StudyFile | StudyClaim


class StudyProgress(Protocol):
    """Is told how a study goes; a progress bar, mostly."""

    def step(self, heading: str, done: int, total: int, /) -> None:
        """Called before a step, with how many are done, and once at the end."""

    def inside(self) -> Observer | None:
        """Called by a step that runs an experiment: who is to be told of it."""


@dataclass(frozen=True, slots=True)
class StudySettings:
    """How a study is made. `folder` is the step's own, for what it keeps beside its parts."""

    scale: StudyScale
    data: Path | None
    folder: Path
    jobs: int
    progress: StudyProgress

    def pick(self, small: Any, machine: Any, full: Any = None) -> Any:
        """What a step uses at this scale; FULL as MACHINE, unless it has its own."""
        if self.scale is StudyScale.SMALL:
            return small
        return machine if self.scale is StudyScale.MACHINE or full is None else full


@dataclass(frozen=True, slots=True)
class PaperStep(Generic[Source]):
    """A table or figure of the paper: `name` is that of its files, `heading` that of its part."""

    name: str
    heading: str
    make: Callable[[Source, StudySettings], Sequence[Part]]


@dataclass(frozen=True, slots=True)
class StudySection(Generic[Source]):
    heading: str
    steps: tuple[PaperStep[Source], ...]


@dataclass(frozen=True, slots=True)
class PaperStudy(Generic[Source]):
    """A paper: what it is called, how its published files are read, and its sections.

    `read` takes the folder of `--data`, or None; `files` are those that a kept step depends on.
    `introduction` stands below the page's first lines. `check` raises where the scale needs what is
    not at hand, before any step is made.
    """

    name: str
    title: str
    paper: str
    introduction: tuple[str, ...]
    read: Callable[[Path | None], Source]
    files: Callable[[Source], Sequence[Path]]
    sections: tuple[StudySection[Source], ...]
    check: Callable[[Source, StudyScale], None] | None = None

    @property
    def steps(self) -> tuple[PaperStep[Source], ...]:
        return tuple(step for section in self.sections for step in section.steps)


def digest_of(files: Sequence[Path]) -> str:
    """Changes with the content of any of the files, not with where they are."""
    found = hashlib.sha256()
    for path in sorted(files, key=lambda path: path.name):
        found.update(path.name.encode())
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:16]
