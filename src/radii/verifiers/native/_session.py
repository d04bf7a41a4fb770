"""A proof session: one network, how it is proven, and what is remembered between questions.

A verifier begins a session with each question. What an instance's questions have in common is
remembered from one to the next: margins of quick proofs, the latest pass of CROWN, and the nodes
that the last climb left open. That memory belongs to the verifier that was asked, and lives until
the verifier does not, or until it has been asked about many other instances. A worker process has
one verifier for all of its life, so that a probe, a glance and a climb there share what they find.

None of it travels to other processes, and no answer needs it: it only saves time. What follows from
a network alone, such as its fusion, is in the memo of the network.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field, replace

from radii.bounds import CrownPasses
from radii.networks import Memo, Network
from radii.problem import FLOAT, Arithmetic, Instance
from radii.verifiers.native._nodes import Frontier
from radii.verifiers.native._settings import ProofSettings

INSTANCES_REMEMBERED = 64
"""Margins are a few numbers an instance; searches come back to one after probing all others."""

NETWORKS_REMEMBERED = 16
"""Forms and matrices of a network take megabytes. A worker rarely alternates between more."""


@dataclass(frozen=True, slots=True, eq=False)
class ProofMemory:
    """What proofs about one instance have shown, in one arithmetic.

    `margins` are of quick proofs, by eps and whether they were on intervals: what a glance found is
    not done again by the climb after it. `frontiers` are what the latest climb left open, by eps.
    """

    margins: dict[tuple[float, bool], float] = field(default_factory=dict)
    frontiers: dict[float, Frontier] = field(default_factory=dict)
    passes: CrownPasses = field(default_factory=CrownPasses)

    def keep_frontiers(self, frontiers: dict[float, Frontier]) -> None:
        """For the next climb, in place of those of the last."""
        kept = dict(frontiers)
        self.frontiers.clear()
        self.frontiers.update(kept)

    def drop_large(self) -> None:
        """Another instance's turn has come: only what takes no memory is kept."""
        self.frontiers.clear()
        self.passes.forget()


@dataclass(slots=True, eq=False)
class PassDuration:
    """Wall seconds of the last whole pass of CROWN over a network, on this machine; 0: none yet."""

    seconds: float = 0.0

    @classmethod
    def of(cls, network: Network) -> PassDuration:
        return network.memo.get("pass duration", cls)


@dataclass(frozen=True, slots=True, eq=False)
class ProofSession:
    """How questions about a network are decided, and what is known from earlier ones.

    `device` is where multipliers are looked for. With `certifies`, what a certificate needs is kept
    of every proof.
    """

    network: Network
    arithmetic: Arithmetic = FLOAT
    device: str = "cpu"
    certifies: bool = False
    settings: ProofSettings = field(default_factory=ProofSettings)
    memory: ProofMemory = field(default_factory=ProofMemory)

    def about(self, network: Network) -> ProofSession:
        """The same for another network, whose questions are parts of this one's. They need no
        certificates of their own."""
        return replace(self, network=network, certifies=False)

    @property
    def pass_duration(self) -> PassDuration:
        return PassDuration.of(self.network)


class ProofMemories:
    """The memories of one verifier, by instance; all but the latest are small.

    Networks that many others were asked about since lose what they remember of themselves.
    """

    def __init__(self) -> None:
        self._networks: tuple[weakref.ref[Network], ...] = ()
        self._by_instance = Memo(INSTANCES_REMEMBERED)
        self._latest = ProofMemory()

    def __reduce__(self) -> tuple[type[ProofMemories], tuple[()]]:
        """They stay in their process."""
        return ProofMemories, ()

    def note(self, network: Network) -> None:
        """A question about a network begins."""
        recent = [known for known in self._networks if known() not in (None, network)]
        for forgotten in recent[: 1 - NETWORKS_REMEMBERED]:
            if (old := forgotten()) is not None:
                old.memo.forget()
        self._networks = (*recent[1 - NETWORKS_REMEMBERED :], weakref.ref(network))

    def recall(self, session: ProofSession, instance: Instance) -> ProofSession:
        """The session with what is remembered of the instance."""
        memory = self._by_instance.get(_key(session, instance), ProofMemory)
        before, self._latest = self._latest, memory
        if before is not memory:
            before.drop_large()
        return replace(session, memory=memory)


def _key(session: ProofSession, instance: Instance) -> tuple[object, ...]:
    """What all that is remembered of an instance depends on: also what a violation is, since
    properties of other packages may share a name."""
    violations = instance.requirement.violations or ()
    return (
        session.network.cache_key,
        instance.key,
        tuple((each.matrix.tobytes(), each.offset.tobytes()) for each in violations),
        session.arithmetic,
        session.certifies,
    )
