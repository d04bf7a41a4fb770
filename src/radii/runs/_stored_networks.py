"""The networks that a store is about, loaded again: where they were, or wherever they are now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from radii.errors import InputError, NetworkError, StoreError
from radii.networks import Network, structural_fingerprint
from radii.problem import Domain
from radii.runs._plan import fed_network
from radii.store import KnownNetwork, Record, Store


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
    for file in given:
        if not file.is_file():
            raise NetworkError(f"{file}: cannot be read: No such file or directory")
    known = store.networks()
    needed = (known[key] for key in dict.fromkeys(one.facts.fingerprint for one in records))
    return {one.fingerprint: _found(store, one, given) for one in needed}


def _found(store: Store, known: KnownNetwork, given: Sequence[Path]) -> StoredNetwork:
    if known.domain is None:
        raise StoreError(f"{store.place}: does not say which inputs of {known.name} are valid")
    path, content = Path(known.path), store.model(known.fingerprint)
    for file in (*given, *([path] if path.is_file() else []), None):
        source = content if file is None else file
        network = None if source is None else _loaded(known, known.domain, source)
        if network is not None:
            return StoredNetwork(known.name, network, file)
    lost = "has changed" if path.is_file() else "is not there any more"
    raise NetworkError(
        f"{store.place}: its network {known.name} {lost} at {path}; --network FILE "
        "takes the one that was measured"
    )


def _loaded(known: KnownNetwork, domain: Domain, source: Path | bytes) -> Network | None:
    """The network in a file, fed as it was, or the one whose content the store holds; None if it
    is another one."""
    for opaque in (False, True):
        try:
            if isinstance(source, bytes):
                network = Network.from_bytes(source, domain=domain, name=known.name, opaque=opaque)
            else:
                feeding = known.feeding or {}
                network = fed_network(source, known.name, domain, feeding, opaque=opaque)
        except InputError:  # a file of something else, or of operators that only run
            continue
        if network.fingerprint == known.fingerprint:
            return network
        if structural_fingerprint(network) == known.fingerprint:
            # It is the one that was measured, with operators that were handed in with it then: here
            # those only run, which is what replays need.
            network.fingerprint = known.fingerprint
            return network
    return None
