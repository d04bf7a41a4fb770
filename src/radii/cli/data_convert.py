"""`radii data convert`, also `radii convert data`: a data set made from another."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.errors import DataError
from radii.terminal import say

if TYPE_CHECKING:
    from radii.datasets import Dataset


CONVERT_EPILOG = """examples:
  radii data convert gtsrb --grey --size 48 --classes 1,2,3,4,5,7,8,9,10,12 --out gtsrb10.npz
  radii data convert mnist:test[0:500] --size 14 --out small.npz
  radii data convert digits:test[0:20] --out pictures          a folder a class, PNG
  radii data convert digits:test[0:20] --out table.csv         a row an image: label,x0,x1,...

Without a split in SPEC, train and test are both converted. Chosen classes are numbered anew, in
the order given. In .npz and PNG, values between 0 and 1 are stored in 8 bits; in .csv as they are.
"""


def add_convert(commands: Any, name: str = "convert", command: str = "data convert") -> None:
    parser = commands.add_parser(
        name,
        help="a data set: to .npz, .csv or pictures; grey, resize, choose classes",
        description="Make a data set from another: one .npz or .csv file, or a folder of PNGs.",
        epilog=CONVERT_EPILOG.replace("data convert", command),
    )
    parser.add_argument("data", metavar="SPEC", help="mnist:train[0:100], file.npz, a folder")
    parser.add_argument("--grey", action="store_true", help="colours to shades of grey")
    parser.add_argument("--size", type=int, metavar="N", help="resize to NxN pixels, bilinearly")
    parser.add_argument("--classes", metavar="C[,C...]", help="only these, numbered anew")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE|FOLDER")
    parser.set_defaults(run=_convert)


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
    found = []
    for split in ("train", "test") if spec.split is None else ():
        try:
            found.append(load_spec(dataclasses.replace(spec, split=split)))
        except DataError:
            continue
    return found or [load_spec(spec)]


def _labels(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise DataError(f"--classes '{text}' is not a list of whole numbers") from None
