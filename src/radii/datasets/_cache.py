"""Published sets on this machine: one directory each, complete and checked, or not there at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from radii.datasets._archives import FileTree, open_tree
from radii.datasets._catalogue import PublishedSet
from radii.datasets._dataset import channels_first, extent
from radii.datasets._files import read_npz, splits_of
from radii.datasets._layouts import Split, recognise
from radii.errors import DataError

MANIFEST = "manifest.json"
MANIFEST_VERSION = 1


@dataclass(frozen=True, slots=True)
class StoredFile:
    """What a stored file must be."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What was put in place, from where, and whether it is known to be the official content."""

    name: str
    source: str
    official: bool
    shape: tuple[int, ...]
    counts: dict[str, int]
    files: tuple[StoredFile, ...]
    version: int = MANIFEST_VERSION


def data_root() -> Path:
    """$RADII_DATA, or radii's directory below $XDG_CACHE_HOME, or ~/.cache/radii."""
    if chosen := os.environ.get("RADII_DATA"):
        return Path(chosen).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "radii"


def manifest_of(known: PublishedSet) -> Manifest | None:
    """The manifest of a set that is in place; None if it is not."""
    path = data_root() / known.name / MANIFEST
    try:
        record = json.loads(path.read_bytes())
        if record["version"] != MANIFEST_VERSION:
            raise DataError(
                f"{path}: is of version {record['version']}, not {MANIFEST_VERSION}; "
                f"{_again(known)}"
            )
        files = tuple(StoredFile(**entry) for entry in record.pop("files"))
        return Manifest(**{**record, "shape": tuple(record["shape"])}, files=files)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise DataError(f"{path}: cannot be read as a manifest; {_again(known)}") from None


def check_placed(known: PublishedSet) -> Manifest:
    """What a set in place holds; a DataError if it is not in place."""
    manifest = manifest_of(known)
    if manifest is None:
        raise DataError(
            f"data set '{known.name}' is not in place; run: radii data get {known.name}"
        )
    return manifest


def read_placed(known: PublishedSet, split: str) -> Split:
    """A split of a set in place. Every file that is read is compared with its checksum first."""
    manifest = check_placed(known)
    if split not in manifest.counts:
        have = " and ".join(manifest.counts)
        raise DataError(f"data set '{known.name}' was put in place with {have} only, not '{split}'")
    directory = data_root() / known.name
    expected = {f.name: known.files.get(f.name, f.sha256) for f in manifest.files}

    def checked(name: str) -> bytes:
        data = (directory / name).read_bytes()
        if hashlib.sha256(data).hexdigest() != expected[name]:
            raise DataError(f"{directory / name}: was changed or damaged; {_again(known)}")
        return data

    members = {name: partial(checked, name) for name in expected}
    return known.stored.read(FileTree(str(directory), members), split)


def changed_files(known: PublishedSet) -> tuple[str, ...]:
    """The stored files that are missing or no longer what they were; empty if all is well."""
    manifest = check_placed(known)
    directory = data_root() / known.name
    return tuple(f.name for f in manifest.files if _stored(directory / f.name) != f)


def place(known: PublishedSet, path: Path, *, source: str, side: int | None = None) -> Manifest:
    """Put a set in place from a directory, archive or .npz file; an older one is replaced.

    The set appears under its name only when it is complete and its checksums are right. `side` is
    the height and width that GTSRB's pictures are resized to.
    """
    with _new_directory(known.name) as directory:
        counts: dict[str, int] = {}
        names: list[str] = []
        shape: tuple[int, ...] = ()
        for split, content in _splits(known, path, side):
            shape = content.images.shape[1:]
            content.check_labels(len(known.classes), str(path))
            counts[split] = len(content.labels)
            names += known.stored.write(directory, split, content)
        files = tuple(file for name in names if (file := _stored(directory / name)))
        _check_official(known, files, shape, path)
        manifest = Manifest(known.name, source, bool(known.files), shape, counts, files)
        (directory / MANIFEST).write_text(json.dumps(asdict(manifest), indent=2) + "\n")
        _replace(data_root() / known.name, directory)
    return manifest


def _splits(known: PublishedSet, path: Path, side: int | None) -> Iterator[tuple[str, Split]]:
    if path.suffix == ".npz":
        for split in splits_of(path):
            yield split, _npz_split(path, split)
        return
    layouts = known.layouts
    if side is not None:
        layouts = tuple(filter(None, (layout.resized(side) for layout in layouts)))
    with open_tree(path, known.archives) as tree:
        layout = recognise(tree, layouts)
        if layout is not None:
            for split in layout.splits(tree):
                yield split, layout.read(tree, split)


def _npz_split(path: Path, split: str) -> Split:
    images, labels, _ = read_npz(path, split)
    images = channels_first(images)
    if images.dtype != "uint8" or images.ndim != 4 or labels.shape != images.shape[:1]:
        raise DataError(
            f"{path}: {split} images are {images.dtype} {images.shape} with labels {labels.shape}; "
            "expected are uint8 pixels (N, H, W) or (N, H, W, C) and one label for each image"
        )
    if labels.dtype.kind not in "iu" or (
        labels.size and not 0 <= labels.min() <= labels.max() < 256
    ):
        raise DataError(f"{path}: {split} labels of type {labels.dtype} are not integers in 0..255")
    return Split(images, labels.astype("uint8"))


def _check_official(
    known: PublishedSet, files: tuple[StoredFile, ...], shape: tuple[int, ...], path: Path
) -> None:
    """A DataError unless files were found and, where checksums are known, all of them agree."""
    if not files:
        raise DataError(f"{path}: no files of '{known.name}' are in it")
    if known.files:
        if shape != known.shape:
            raise DataError(
                f"{path}: its images are {extent(shape)}, those of '{known.name}' "
                f"are {extent(known.shape)}"
            )
        stored = {file.name: file.sha256 for file in files}
        for name, sha256 in known.files.items():
            if name not in stored:
                raise DataError(f"{path}: '{name}' of '{known.name}' is missing")
            if stored[name] != sha256:
                raise DataError(
                    f"{path}: '{name}' is not that of the official '{known.name}' (its sha256 is "
                    f"{stored[name][:16]}..., not {sha256[:16]}...); use other data by its path"
                )


def _stored(path: Path) -> StoredFile | None:
    """The file as it is now; None if it cannot be read."""
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return StoredFile(path.name, path.stat().st_size, digest)
    except OSError:
        return None


@contextmanager
def _new_directory(name: str) -> Iterator[Path]:
    """A directory beside the final one, removed unless it was moved away."""
    try:
        data_root().mkdir(parents=True, exist_ok=True)
        directory = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=data_root()))
    except OSError as error:
        raise DataError(
            f"{data_root()}: cannot be written ({error.strerror}); "
            "set RADII_DATA to another directory"
        ) from None
    try:
        yield directory
    except OSError as error:
        raise DataError(f"{directory}: cannot be written ({error.strerror or error})") from None
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _replace(final: Path, new: Path) -> None:
    """Move a finished directory to its final name; an older one goes first, in one step."""
    new.chmod(0o755)
    if final.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{final.name}-old-", dir=final.parent))
        final.rename(old / final.name)
        new.rename(final)
        shutil.rmtree(old, ignore_errors=True)
    else:
        new.rename(final)


def _again(known: PublishedSet) -> str:
    return f"run: radii data get {known.name} --force"
