"""The networks that a store is about, loaded again: where they were, or wherever they are now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from radii.errors import InputError, NetworkError, StoreError
from radii.networks import Network, as_classifier, load_network, structural_fingerprint
from radii.problem import Domain
from radii.runs._description import Experiment
from radii.runs._fields import options_of
from radii.store import Record, Store


@dataclass(frozen=True, slots=True)
class StoredNetwork:
    """A network of a store, and the file in which it was found; None: the store itself holds it."""

    name: str
    network: Network
    file: Path | None


def stored_networks(
    store: Store, records: Iterable[Record], given: Sequence[Path] = ()
) -> dict[str, StoredNetwork]:
    """The networks of some records by fingerprint: of the given files, or as the store knows them.

    A NetworkError says which is not there any more, or has changed.
    """
    needed = dict.fromkeys(record.facts.fingerprint for record in records)
    names, feeding = store.networks(), store.feeding()
    domains = store.settings().domain_of_network()
    for file in given:
        if not file.is_file():
            raise NetworkError(f"{file}: cannot be read: No such file or directory")
    loaded = {}
    for fingerprint in needed:
        name, path = names[fingerprint]
        if fingerprint not in domains:
            raise StoreError(f"{store.place}: does not say which inputs of {name} are valid")
        known = _KnownNetwork(name, fingerprint, domains[fingerprint], feeding[fingerprint] or {})
        loaded[fingerprint] = StoredNetwork(name, *known.found(store, Path(path), given))
    return loaded


@dataclass(frozen=True, slots=True)
class _KnownNetwork:
    name: str
    fingerprint: str
    domain: Domain
    feeding: Mapping[str, Any]

    def found(self, store: Store, path: Path, given: Sequence[Path]) -> tuple[Network, Path | None]:
        content = store.model(self.fingerprint)
        for file in (*given, *([path] if path.is_file() else [])):
            network = self.loaded(file)
            if network is not None:
                return network, file
        if content is not None and (network := self.restored(content)) is not None:
            return network, None
        lost = "has changed" if path.is_file() else "is not there any more"
        raise NetworkError(
            f"{store.place}: its network {self.name} {lost} at {path}; --network FILE "
            "takes the one that was measured"
        )

    def loaded(self, path: Path) -> Network | None:
        """The network in a file, fed as it was; None if it is another one."""
        options = options_of(Experiment)
        read = {
            name: None if value is None else options[name].read(value)
            for name, value in self.feeding.items()
        }
        for opaque in (False, True):
            try:
                network = load_network(
                    path,
                    domain=self.domain,
                    mean=read.get("mean"),
                    std=read.get("std"),
                    name=self.name,
                    opaque=opaque,
                )
                if self.is_same(network := as_classifier(network, read.get("threshold"))):
                    return network
            except InputError:  # a file of something else, or of operators that only run
                continue
        return None

    def restored(self, content: bytes) -> Network | None:
        """The network that the store itself holds."""
        for opaque in (False, True):
            try:
                network = Network.from_bytes(
                    content, domain=self.domain, name=self.name, opaque=opaque
                )
                if self.is_same(network):
                    return network
            except InputError:
                continue
        return None

    def is_same(self, network: Network) -> bool:
        """It is the one that was measured, maybe with operators that were handed in with it then:
        here those only run, which is what replays need."""
        if network.fingerprint != self.fingerprint:
            if structural_fingerprint(network) != self.fingerprint:
                return False
            network.fingerprint = self.fingerprint
        return True
