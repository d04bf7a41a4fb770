"""The networks that a store is about, loaded again: where they were, or wherever they are now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from radii.balls import Domain
from radii.errors import InputError, NetworkError, StoreError
from radii.experiments._description import Experiment
from radii.experiments._fields import options_of
from radii.networks import Network, as_classifier, load_network
from radii.store import Record, Store


def stored_networks(
    store: Store, records: Iterable[Record], given: Sequence[Path] = ()
) -> dict[str, Network]:
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
        loaded[fingerprint] = known.found(store, Path(path), given)
    return loaded


@dataclass(frozen=True, slots=True)
class _KnownNetwork:
    name: str
    fingerprint: str
    domain: Domain
    feeding: Mapping[str, Any]

    def found(self, store: Store, path: Path, given: Sequence[Path]) -> Network:
        content = store.model(self.fingerprint)
        for file in (*given, *([path] if path.is_file() else [])):
            network = self.loaded(file)
            if network is not None:
                return network
        if content is not None and (network := self.restored(content)) is not None:
            return network
        lost = "has changed" if path.is_file() else "is not there any more"
        raise NetworkError(
            f"{store.place}: its network {self.name} {lost} at {path}; radii check {store.place} "
            "--network FILE takes the one that was measured"
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
                network = as_classifier(network, read.get("threshold"))
            except InputError:  # a file of something else, or of operators that only run
                continue
            if network.fingerprint == self.fingerprint:
                return network
        return None

    def restored(self, content: bytes) -> Network | None:
        """The network that the store itself holds."""
        for opaque in (False, True):
            try:
                network = Network.from_bytes(
                    content, domain=self.domain, name=self.name, opaque=opaque
                )
            except InputError:
                continue
            if network.fingerprint == self.fingerprint:
                return network
        return None
