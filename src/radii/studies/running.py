"""All networks of a study, several at once; what is done stays done, whatever ends the run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from radii.errors import ExperimentError
from radii.execution import Request, Staff, Stopped
from radii.studies.description import FILE_NAME, Study
from radii.studies.making import Workshop
from radii.studies.members import Member, read_member, read_members
from radii.training.checkpoints import claimed, replacing

__all__ = ["run_study"]


def run_study(
    study: Study,
    directory: Path,
    *,
    jobs: int = 1,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[Member]:
    """Make and measure what the directory does not hold yet, `jobs` networks at once.

    A network whose process dies is left out, and an ExperimentError in the end names the first.
    """
    if jobs < 1:
        raise ExperimentError(f"jobs {jobs} must be at least 1")
    with claimed(directory):
        total = len(study.recipes)
        missing = [
            place
            for place, recipe in enumerate(study.recipes)
            if read_member(directory, recipe) is None
        ]
        if missing:
            Workshop(study, directory)  # data that cannot be used is found out here
        _begin(study, directory)
        done, lost = total - len(missing), []
        progress(done, total)
        with Staff(Workshop, study, directory, jobs=min(jobs, max(1, len(missing)))) as staff:
            for request, outcome in staff.answers([Request((place,)) for place in missing]):
                if isinstance(outcome, Stopped):
                    lost.append(f"{study.recipes[request.arguments[0]].name}: {outcome.message}")
                done += 1
                progress(done, total)
    if lost:
        raise ExperimentError(
            f"{len(lost)} of {total} networks were not finished ({lost[0]}); run again to try them "
            "again"
        )
    return read_members(directory)


def _begin(study: Study, directory: Path) -> None:
    path = directory / FILE_NAME
    if not path.exists():
        with replacing(path) as partial:
            partial.write_text(json.dumps(study.identity, indent=1) + "\n")
        return
    known, asked = Study.read(directory).identity, study.identity
    different = [name for name in asked if asked[name] != known.get(name)]
    if different:
        raise ExperimentError(
            f"{directory}: holds another study (other {', '.join(different)}); choose another --out"
        )
