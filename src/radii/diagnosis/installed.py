"""Packages, verifiers and data sets that are found here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import metadata

from radii.datasets import cache, digits
from radii.datasets.catalogue import CATALOGUE
from radii.errors import InputError

__all__ = ["DataSet", "Package", "Tool", "data_sets", "packages", "tools"]

REQUIREMENT = re.compile(r'([\w.-]+)[^;\[]*(?:;.*extra == "([\w-]+)")?')


@dataclass(frozen=True, slots=True)
class Package:
    """A package that radii uses. `extra` installs it where it is optional; no version: missing."""

    name: str
    version: str | None
    extra: str | None

    @property
    def is_lacking(self) -> bool:
        """It is needed and not there."""
        return self.version is None and self.extra is None


@dataclass(frozen=True, slots=True)
class Tool:
    """A verifier. `refusal` says why it cannot be used here; None if it can."""

    name: str
    version: str
    refusal: str | None


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set that radii knows by name. `problem`: it is in place, and damaged."""

    name: str
    is_in_place: bool
    problem: str = ""


def packages() -> list[Package]:
    """All that radii's own description names."""
    found = []
    for text in metadata.requires("radii") or []:
        matched = REQUIREMENT.fullmatch(text)
        if matched:  # not those of an extra that only names others
            found.append(Package(matched[1], _version(matched[1]), matched[2]))
    return found


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def tools() -> list[Tool]:
    """Every verifier that the command line knows, offered the smallest of networks."""
    from radii.balls import Norm
    from radii.testing.networks import LinearClassifier
    from radii.verifiers import VERIFIERS

    network = LinearClassifier.random(0).network
    found = []
    for kind in VERIFIERS:
        try:
            verifier = kind()
        except InputError as error:
            found.append(Tool(kind.name, "", str(error)))
        else:
            refusal = verifier.unsupported(network, Norm.LINF)
            found.append(Tool(kind.name, verifier.version, refusal))
    return found


def data_sets() -> list[DataSet]:
    """The embedded digits, and those that can be put in place."""
    found = [DataSet(digits.NAME, True)]
    for known in CATALOGUE:
        try:
            found.append(DataSet(known.name, cache.manifest_of(known) is not None))
        except InputError as error:
            found.append(DataSet(known.name, False, str(error)))
    return found
