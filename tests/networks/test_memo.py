"""What an object remembers of itself: made once, kept as long as it, and never sent along."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from radii.bounds import fuse
from radii.networks import Memo
from radii.testing import NetworkFamily, random_network


def test_a_value_is_made_once_even_if_it_is_none() -> None:
    memo, made = Memo(), []
    for _ in range(2):
        assert memo.get("key", lambda: made.append(1)) is None
    assert made == [1]


def test_the_oldest_key_is_forgotten_first() -> None:
    memo = Memo(2)
    for key in ("a", "b", "a", "c"):
        memo.get(key, lambda key=key: [key])  # type: ignore[misc]
    assert memo.get("a", list) == ["a"]
    assert memo.get("b", list) == []


def test_threads_that_make_a_value_at_once_get_the_same_one() -> None:
    memo, together = Memo(), Barrier(4)

    def make() -> object:
        together.wait()
        return object()

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: memo.get("key", make), range(4)))
    assert len(set(map(id, found))) == 1


def test_copies_and_other_processes_begin_with_an_empty_one() -> None:
    network = random_network(NetworkFamily.CONVOLUTIONAL, 0)
    size = len(pickle.dumps(network))
    fusion = fuse(network)
    assert fuse(network) is fusion
    assert len(pickle.dumps(network)) == size
    assert fuse(pickle.loads(pickle.dumps(network))) is not fusion
    for stage in fusion.stages:
        for linear_map in stage.maps.values():
            linear_map.memo.get("key", lambda: 1)
            assert copy.deepcopy(linear_map).memo.get("key", lambda: 2) == 2


def test_what_is_derived_is_dropped_with_its_owner() -> None:
    network = random_network(NetworkFamily.DENSE, 0)
    fusion = weakref.ref(fuse(network).graph)
    del network
    gc.collect()
    assert fusion() is None
