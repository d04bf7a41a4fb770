"""What every attack must do, as a class of tests.

A plugin's author writes

    class TestMine(AttackConformance):
        def make(self) -> Attack:
            return Mine()

and runs pytest. Networks are tiny; norms that the attack does not search are skipped.
"""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest
import torch

from radii.attacks import Attack
from radii.errors import UnsupportedQuery
from radii.networks import Network
from radii.problem import Become, Norm, OneToOne, Query, Result, Verdict
from radii.testing._networks import (
    LinearClassifier,
    NetworkFamily,
    instance_at,
    random_instance,
    random_network,
)
from radii.testing._sampling import TABLES, loses_to_sampling, sampling_wins

HIDDEN_UNITS = 10
"""Hidden units of the random networks."""

BOUNDARY_ROUNDING = 1e-5
"""Part of a radius by which float32 may misplace a decision boundary."""

TABLE_CASES = [
    (name, norm)
    for name, table in TABLES.items()
    for norm in ([None] if table.categories else list(Norm))
]
"""Categories take the longest, and one norm of the attack (None) is enough for them."""


class AttackConformance:
    """Subclass it, name it Test..., and return an attack from `make`."""

    reach = 2.0
    """At this many radii of a linear classifier the attack always finds a witness."""

    def make(self) -> Attack:
        raise NotImplementedError

    def norm(self) -> Norm:
        """A norm whose balls the attack searches."""
        return min(self.make().norms)

    def result(self, network: Network, query: Query, seed: int = 0) -> Result:
        """The result of one query, after every check that holds for all results."""
        attack = self.make()
        (result,) = attack.attack(network, [query], seed=seed)
        _check(network, query, result)
        assert (result.verifier, result.version) == (attack.name, attack.version)
        return result

    def test_it_says_who_it_is(self) -> None:
        attack = self.make()
        assert attack.name
        assert attack.version
        assert attack.norms

    def test_it_travels_to_workers(self) -> None:
        attack = pickle.loads(pickle.dumps(self.make()))
        assert (attack.name, attack.norms) == (self.make().name, self.make().norms)

    @pytest.mark.parametrize("norm", list(Norm))
    @pytest.mark.parametrize("seed", range(3))
    def test_linear_classifiers_are_broken_beyond_their_radius_only(
        self, norm: Norm, seed: int
    ) -> None:
        if norm not in self.make().norms:
            pytest.skip(f"does not search {norm.value}")
        classifier = LinearClassifier.random(seed, dtype=np.float32)
        point = np.random.default_rng(seed).normal(size=5)
        instance = instance_at(classifier.network, point, norm=norm)
        radius = classifier.radius(instance.input, instance.label, norm)
        beyond = self.result(classifier.network, Query(instance, self.reach * radius))
        assert beyond.witness is not None
        assert beyond.witness.distance >= (1 - BOUNDARY_ROUNDING) * radius
        within = self.result(classifier.network, Query(instance, 0.99 * radius))
        assert within.verdict is Verdict.UNKNOWN

    @pytest.mark.parametrize("family", list(NetworkFamily))
    def test_what_it_finds_replays_inside_the_ball(self, family: NetworkFamily) -> None:
        network = random_network(family, 1, units=HIDDEN_UNITS)
        queries = [
            Query(random_instance(network, 3, norm=norm), eps)
            for norm in sorted(self.make().norms)
            for eps in (0.1, 0.9)
        ]
        for query, result in zip(queries, self.make().attack(network, queries), strict=True):
            _check(network, query, result)

    @pytest.mark.parametrize(("table", "norm"), TABLE_CASES)
    def test_it_does_not_lose_to_uniform_sampling(self, table: str, norm: Norm | None) -> None:
        """Of as many points, whatever the scales of the features are."""
        norm = norm or self.norm()
        if norm not in self.make().norms:
            pytest.skip(f"does not search {norm.value}")
        network = TABLES[table].network(seed=0)
        wins, decided = sampling_wins(self.make(), network, TABLES[table].queries(network, norm, 0))
        assert not loses_to_sampling(wins, decided), f"sampling is closer at {wins} of {decided}"

    @pytest.mark.parametrize("table", TABLES)
    def test_it_does_not_lose_to_uniform_sampling_of_steps(self, table: str) -> None:
        """The same on a function that is constant in pieces, as that of a forest is."""
        if self.make().needs_gradient:
            pytest.skip("needs gradients, which are 0 there")
        network, norm = TABLES[table].network(seed=0, has_steps=True), max(self.make().norms)
        wins, decided = sampling_wins(self.make(), network, TABLES[table].queries(network, norm, 0))
        assert not loses_to_sampling(wins, decided), f"sampling is closer at {wins} of {decided}"

    def test_each_query_gets_its_own_answer(self) -> None:
        network = random_network(NetworkFamily.DENSE, 2, units=HIDDEN_UNITS)
        asked = [random_instance(network, seed, norm=self.norm()) for seed in range(4)]
        queries = [Query(each, eps) for each, eps in zip(asked, (0.9, 0.01, 0.4, 0.9), strict=True)]
        results = self.make().attack(network, queries)
        for query, result in zip(queries, results, strict=True):
            _check(network, query, result)
        assert self.make().attack(network, []) == []

    def test_a_misclassified_input_is_its_own_witness(self) -> None:
        network = random_network(NetworkFamily.DENSE, 2, units=HIDDEN_UNITS)
        right = random_instance(network, 0, norm=self.norm())
        label = (right.label + 1) % network.output_size
        wrong = instance_at(network, right.input, norm=self.norm(), label=label)
        for eps in (0.0, 0.1):
            result = self.result(network, Query(wrong, eps))
            assert result.witness is not None
            assert result.witness.distance == 0
        assert self.result(network, Query(right, 0.0)).verdict is Verdict.UNKNOWN

    def test_a_target_alone_counts(self) -> None:
        classifier = LinearClassifier.random(4, dtype=np.float32)
        point = np.random.default_rng(4).normal(size=5)
        any_class = instance_at(classifier.network, point, norm=self.norm())
        radius = classifier.radius(any_class.input, any_class.label, self.norm())
        for target in set(range(4)) - {any_class.label}:
            asked = instance_at(
                classifier.network, point, norm=self.norm(), property=OneToOne(target)
            )
            for eps in (0.99 * radius, 10 * radius):
                result = self.result(classifier.network, Query(asked, eps))
                assert result.witness is None or eps > radius

    def test_a_witness_of_becoming_a_target_is_taken_for_it(self) -> None:
        classifier = LinearClassifier.random(4, dtype=np.float32)
        point = np.random.default_rng(4).normal(size=5)
        label = instance_at(classifier.network, point).label
        for target in set(range(4)) - {label}:
            asked = instance_at(
                classifier.network, point, norm=self.norm(), property=Become(target)
            )
            radius = classifier.become_radius(asked.input, target, self.norm())
            within = self.result(classifier.network, Query(asked, 0.99 * radius))
            assert within.verdict is Verdict.UNKNOWN
            beyond = self.result(classifier.network, Query(asked, 10 * radius))
            if beyond.witness is not None:
                assert beyond.witness.distance >= (1 - BOUNDARY_ROUNDING) * radius
                assert beyond.witness.outputs[target] == beyond.witness.outputs.max()

    def test_the_domain_is_never_left(self) -> None:
        network = random_network(NetworkFamily.DENSE, 3, units=HIDDEN_UNITS, domain=(0.25, 0.5))
        instance = random_instance(network, 1, norm=self.norm())
        for seed in range(3):
            result = self.result(network, Query(instance, 5.0), seed)
            if result.witness is not None:
                assert result.witness.input.min() >= 0.25
                assert result.witness.input.max() <= 0.5

    def test_the_same_seed_gives_the_same_witness(self) -> None:
        classifier = LinearClassifier.random(1, dtype=np.float32)
        instance = instance_at(classifier.network, np.ones(5), norm=self.norm())
        radius = classifier.radius(instance.input, instance.label, self.norm())
        query = Query(instance, self.reach * radius)
        first, again = (self.result(classifier.network, query, seed=5).witness for _ in range(2))
        assert first is not None
        assert again is not None
        assert np.array_equal(first.input, again.input)

    def test_random_numbers_of_others_are_left_alone(self) -> None:
        network = random_network(NetworkFamily.DENSE, 4, units=HIDDEN_UNITS)
        query = Query(random_instance(network, 0, norm=self.norm()), 0.3)
        before = _random_states()
        self.result(network, query)
        assert _random_states() == before

    def test_other_norms_are_refused(self) -> None:
        network = random_network(NetworkFamily.DENSE, 0, units=HIDDEN_UNITS)
        for norm in set(Norm) - self.make().norms:
            with pytest.raises(UnsupportedQuery, match=norm.value):
                self.make().attack(network, [Query(random_instance(network, 0, norm=norm), 0.1)])

    def test_it_prints_nothing(self, capfd: pytest.CaptureFixture[str]) -> None:
        network = random_network(NetworkFamily.DENSE, 6, units=HIDDEN_UNITS)
        self.result(network, Query(random_instance(network, 0, norm=self.norm()), 0.1))
        assert capfd.readouterr() == ("", "")


def _random_states() -> list[object]:
    of_numpy = np.random.get_state(legacy=False)["state"]
    return [
        random.getstate(),
        (of_numpy["pos"], of_numpy["key"].tolist()),
        torch.get_rng_state().tolist(),
    ]


def _check(network: Network, query: Query, result: Result) -> None:
    """A failed attack proves nothing; a witness is inside the ball and replays as it says."""
    assert result.eps == query.eps
    assert result.proof is None
    if result.witness is None:
        assert result.verdict is Verdict.UNKNOWN
        return
    assert result.verdict is Verdict.NOT_ROBUST
    witness, instance = result.witness, query.instance
    assert witness.input.shape == instance.input.shape
    assert instance.ball(query.eps).contains(witness.input)
    assert witness.distance <= query.eps
    outputs = network.replay(witness.input[None])
    assert np.array_equal(outputs[0], witness.outputs)
    assert not instance.requirement.holds(outputs, witness.distance)[0]
