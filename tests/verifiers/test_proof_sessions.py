"""What a verifier remembers between questions, and for how long."""

from __future__ import annotations

import pickle

import torch

from radii.networks import Network
from radii.problem import FLOAT, REAL, Instance
from radii.testing import NetworkFamily, random_instance, random_network
from radii.verifiers import BranchAndBound, Limits
from radii.verifiers.native._nodes import Frontier, Nodes
from radii.verifiers.native._session import (
    NETWORKS_REMEMBERED,
    ProofMemories,
    ProofSession,
)

OPEN = Frontier(
    Nodes.roots(torch.zeros(1), torch.ones(1), 1, 1),
    torch.zeros(1, dtype=torch.int64),
    random_instance(random_network(NetworkFamily.DENSE, 0), 0).ball(0.1),
)


def questions() -> tuple[Network, Instance, Instance]:
    network = random_network(NetworkFamily.DENSE, 0)
    return network, random_instance(network, 0), random_instance(network, 1)


def test_an_instance_is_remembered_beside_others_but_what_is_large_only_in_turn() -> None:
    network, one, other = questions()
    memories, session = ProofMemories(), ProofSession(network)
    memory = memories.recall(session, one).memory
    memory.margins[0.1, False] = 0.5
    memory.keep_frontiers({0.1: OPEN})
    assert memories.recall(session, one).memory is memory
    assert memory.frontiers == {0.1: OPEN}
    assert memories.recall(session, other).memory is not memory
    again = memories.recall(session, one).memory
    assert again.margins == {(0.1, False): 0.5}
    assert again.frontiers == {}


def test_arithmetics_and_reloaded_networks_are_told_apart_and_not() -> None:
    network, one, _ = questions()
    memories = ProofMemories()
    memory = memories.recall(ProofSession(network, FLOAT), one).memory
    assert memories.recall(ProofSession(network, REAL), one).memory is not memory
    reloaded: Network = pickle.loads(pickle.dumps(network))
    assert memories.recall(ProofSession(reloaded, FLOAT), one).memory is memory


def test_networks_that_many_others_came_after_give_their_memory_back() -> None:
    memories = ProofMemories()
    networks = [random_network(NetworkFamily.DENSE, 0) for _ in range(NETWORKS_REMEMBERED + 1)]
    for network in networks:
        network.memo.get("key", lambda: "first")
        memories.note(network)
        memories.note(networks[0])
    kept = [network.memo.get("key", lambda: "again") for network in networks]
    assert kept == ["first", "again", *["first"] * (NETWORKS_REMEMBERED - 1)]


def test_what_is_remembered_does_not_travel() -> None:
    network, one, _ = questions()
    native = BranchAndBound()
    before = pickle.dumps(native)
    answer = native.certify(network, one, [0.01, 0.02, 0.5], Limits(30.0))
    assert pickle.dumps(native) == before
    fresh: BranchAndBound = pickle.loads(before)
    again = fresh.certify(network, one, [0.01, 0.02, 0.5], Limits(30.0))
    assert (again.verdict, again.eps) == (answer.verdict, answer.eps)
