"""Files of a directory or of an archive, read by name, within limits, never unpacked to disk.

Reading members by name from memory leaves no room for paths that climb out of a directory, for
links or for devices; the limits leave none for archives that unpack to more than they should.
"""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

from radii.errors import DataError, InputError

MAX_UNPACKED_BYTES = 1 << 30
"""The most that one member, or all members of a compressed tar archive, may unpack to."""

_DEBIAN_MAGIC = b"!<arch>\n"
DAMAGE_ERRORS = (
    OSError,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What archives raise that are damaged, encrypted or something else."""

Reader = Callable[[], bytes]


class FileTree:
    """Regular files below one place. Names are relative, with forward slashes."""

    def __init__(self, title: str, members: Mapping[str, Reader]) -> None:
        self.title = title
        self._members = members
        self._called: dict[str, list[str]] = {}
        for name in members:
            self._called.setdefault(name.rpartition("/")[2], []).append(name)

    def names(self) -> Iterable[str]:
        return self._members.keys()

    def read(self, name: str) -> bytes:
        """The file's bytes; a DataError if it cannot be read or is too large."""
        try:
            return self._members[name]()
        except KeyError:
            raise DataError(f"{self.title}: '{name}' is missing") from None
        except DAMAGE_ERRORS as error:
            raise DataError(
                f"{self.title}: '{name}' cannot be read ({error_text(error)})"
            ) from None

    def find(self, file_name: str) -> str | None:
        """The name of the file called `file_name` in the topmost directory that has one."""
        paths = self._called.get(file_name, [])
        depths = [name.count("/") for name in paths]
        top = [n for n, depth in zip(paths, depths, strict=True) if depth == min(depths)]
        if len(top) > 1:
            raise DataError(
                f"{self.title}: '{top[0]}' and '{top[1]}' both fit; name one of their directories"
            )
        return top[0] if top else None


@contextmanager
def open_tree(path: Path, archives: tuple[str, ...] = ()) -> Iterator[FileTree]:
    """The files of a directory or of an archive (zip, tar, deb).

    Archives directly in the directory whose name fits one of the patterns are looked into as well.
    """
    members: dict[str, Reader] = {}
    opened: list[zipfile.ZipFile] = []
    try:
        if path.is_dir():
            members.update(_directory(path))
            for inner in sorted(path.iterdir()):
                if inner.is_file() and any(fnmatch(inner.name, pattern) for pattern in archives):
                    members.update(_archive(inner, opened))
        elif path.is_file():
            members.update(_archive(path, opened))
        else:
            raise DataError(f"{path}: there is no such file or directory")
        yield FileTree(str(path), members)
    finally:
        for archive in opened:
            archive.close()


def error_text(error: BaseException) -> str:
    """What went wrong, on one line and short; hostile bytes make some messages long."""
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= 120 else f"{words[:117]}..."


def _directory(root: Path) -> dict[str, Reader]:
    members: dict[str, Reader] = {}
    try:
        for path in root.rglob("*"):
            if path.is_file():
                members[path.relative_to(root).as_posix()] = _file_reader(path)
    except OSError as error:
        raise DataError(f"{root}: cannot be listed ({error_text(error)})") from None
    return members


def _file_reader(path: Path) -> Reader:
    def read() -> bytes:
        if path.stat().st_size > MAX_UNPACKED_BYTES:
            raise ValueError(f"larger than {MAX_UNPACKED_BYTES >> 20} MiB")
        return path.read_bytes()

    return read


def _archive(path: Path, opened: list[zipfile.ZipFile]) -> dict[str, Reader]:
    try:
        if zipfile.is_zipfile(path):
            opened.append(zipfile.ZipFile(path))
            return _zip_members(opened[-1])
        with path.open("rb") as stream:
            head = stream.read(len(_DEBIAN_MAGIC))
            if head == _DEBIAN_MAGIC:
                return _tar_members(io.BytesIO(_debian_payload(stream)))
            stream.seek(0)
            return _tar_members(stream)
    except DAMAGE_ERRORS as error:
        raise DataError(
            f"{path}: not a readable directory, zip, tar or deb archive ({error_text(error)})"
        ) from None


def _zip_members(archive: zipfile.ZipFile) -> dict[str, Reader]:
    def reader(member: zipfile.ZipInfo) -> Reader:
        def read() -> bytes:
            if member.file_size > MAX_UNPACKED_BYTES:
                raise ValueError(f"unpacks to more than {MAX_UNPACKED_BYTES >> 20} MiB")
            return archive.read(member)

        return read

    return {member.filename: reader(member) for member in archive.infolist() if not member.is_dir()}


def _tar_members(stream: io.BufferedReader | io.BytesIO) -> dict[str, Reader]:
    """Read in one pass, since going back in compressed data means unpacking it again."""
    members: dict[str, Reader] = {}
    total = 0
    with tarfile.open(fileobj=stream, mode="r:*") as archive:
        for member in archive:
            if not member.isreg():
                continue
            total += member.size
            if total > MAX_UNPACKED_BYTES:
                raise ValueError(f"unpacks to more than {MAX_UNPACKED_BYTES >> 20} MiB")
            content = archive.extractfile(member)
            assert content is not None  # regular files have content
            members[member.name.removeprefix("./")] = partial(bytes, content.read())
    return members


def _debian_payload(stream: io.BufferedReader) -> bytes:
    """The member `data.tar.*` of a Debian package: an `ar` archive with headers of 60 bytes."""
    while len(header := stream.read(60)) == 60:
        name, size = header[:16].decode("ascii").strip(" /"), int(header[48:58])
        if name.startswith("data.tar"):
            if size > MAX_UNPACKED_BYTES:
                raise ValueError("its data is too large")
            return stream.read(size)
        stream.seek(size + size % 2, io.SEEK_CUR)
    raise ValueError("no data.tar in it")


# Gzipped files, unpacked in memory and within a limit.


def gunzip(data: bytes, name: str, error: type[InputError]) -> bytes:
    """Unpacked data; the error if they are damaged or unpack to more than the limit."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            unpacked = stream.read(MAX_UNPACKED_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        raise error(f"{name} is a damaged gzip file; fetch it again") from None
    if len(unpacked) > MAX_UNPACKED_BYTES:
        raise error(
            f"{name} unpacks to more than {MAX_UNPACKED_BYTES >> 20} MiB; unpack it yourself first"
        )
    return unpacked
