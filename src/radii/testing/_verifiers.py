"""What every verifier must do, as a class of tests.

A plugin's author writes

    class TestMine(VerifierConformance):
        def make(self) -> Verifier:
            return Mine()

and runs pytest. Networks are tiny; those that the verifier calls unsupported are skipped.
"""

from __future__ import annotations

import pickle
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from radii.errors import UnsupportedQuery
from radii.networks import Network
from radii.problem import (
    Array,
    Become,
    Box,
    Halfspaces,
    Instance,
    LinearRequirement,
    Norm,
    OneToOne,
    Query,
    Requirement,
    Result,
    Specification,
    Verdict,
)
from radii.problem import parse_property as parse
from radii.testing._graphs import Sketch
from radii.testing._networks import (
    LinearClassifier,
    NetworkFamily,
    instance_at,
    random_instance,
    random_network,
)
from radii.verifiers import Limits, Verifier

GRACE_SECONDS = 10.0
"""Seconds past its limit after which a verifier must have returned: one, and what a busy machine
adds to it."""

HIDDEN_UNITS = 10
"""Hidden units of the random networks."""


class _Opaque(Requirement):
    """A requirement that is not a union of polyhedra."""

    violations = None

    def margin(self, outputs, distances):  # type: ignore[no-untyped-def]
        return np.ones(len(np.asarray(outputs)))


class VerifierConformance:
    """Subclass it, name it Test..., and return a verifier from `make`."""

    seconds = 30.0

    def make(self) -> Verifier:
        raise NotImplementedError

    def result(self, network: Network, instance: Instance, eps: float) -> Result:
        verifier = self.make()
        reason = verifier.unsupported(network, instance.norm, instance.kind)
        if reason is not None:
            pytest.skip(reason)
        result = verifier.verify(network, Query(instance, eps), Limits(self.seconds))
        assert result.eps == eps
        assert (result.verifier, result.version) in self.answering(verifier)
        return result

    def answering(self, verifier: Verifier) -> set[tuple[str, str]]:
        """Names and versions that its results may carry."""
        return {(verifier.name, verifier.version)}

    def test_it_says_who_it_is(self) -> None:
        verifier = self.make()
        assert verifier.name and verifier.version and verifier.norms
        assert verifier.name == verifier.name.lower()

    def test_it_travels_to_workers(self) -> None:
        verifier = pickle.loads(pickle.dumps(self.make()))
        assert verifier.version == self.make().version

    @pytest.mark.parametrize("norm", list(Norm))
    @pytest.mark.parametrize("seed", range(3))
    def test_linear_classifiers_have_their_closed_form(self, norm: Norm, seed: int) -> None:
        verifier = self.make()
        if norm not in verifier.norms:
            pytest.skip(f"does not decide {norm.value}")
        classifier = LinearClassifier.random(seed, dtype=np.float32)
        point = np.random.default_rng(seed).normal(size=5)
        instance = instance_at(classifier.network, point, norm=norm)
        radius = classifier.radius(instance.input, instance.label, norm)
        below = self.result(classifier.network, instance, 0.999 * radius)
        above = self.result(classifier.network, instance, 1.001 * radius)
        assert above.verdict is not Verdict.ROBUST
        assert below.verdict is not Verdict.NOT_ROBUST
        if verifier.is_complete:
            assert below.verdict is Verdict.ROBUST
            assert below.proof is not None and below.proof.margin >= 0
            assert above.verdict is Verdict.NOT_ROBUST
            assert above.witness is not None
            assert 0.999 * radius < above.witness.distance <= 1.001 * radius

    @pytest.mark.parametrize("name", ["sr", "scr", "lr"])
    def test_other_properties_of_linear_classifiers(self, name: str) -> None:
        """Their radii have closed forms, too; LR depends on the slope alone."""
        classifier = LinearClassifier.random(1, outputs=2, dtype=np.float32)
        bare = instance_at(classifier.network, np.random.default_rng(4).normal(size=5))
        steepest = float(np.abs(classifier.weights).sum(axis=1).max())
        odds = float(bare.outputs[bare.label] - bare.outputs[1 - bare.label])
        slope = float(np.abs(classifier.weights[0] - classifier.weights[1]).sum())
        robust, broken = {
            "sr": (f"sr:delta={0.2 * steepest * 1.01}", f"sr:delta={0.2 * steepest * 0.99}"),
            "scr": tuple(
                f"scr:eta={1 / (1 + np.exp(0.2 * slope * factor - odds))}"
                for factor in (1.01, 0.99)
            ),
            "lr": (f"lr:L={1.01 * steepest}", f"lr:L={0.98 * steepest}"),
        }[name]
        verifier = self.make()
        for spec, expected in ((robust, Verdict.ROBUST), (broken, Verdict.NOT_ROBUST)):
            instance = replace(bare, property=parse(spec))
            result = self.result(classifier.network, instance, 0.2)
            if verifier.is_complete:
                assert result.verdict is expected
            assert result.verdict is expected or result.verdict.is_missing

    @pytest.mark.parametrize("family", list(NetworkFamily))
    def test_it_never_contradicts_a_sample_and_is_monotone(self, family: NetworkFamily) -> None:
        network = random_network(family, 1, units=HIDDEN_UNITS)
        for norm in sorted(self.make().norms):
            instance = random_instance(network, 3, norm=norm)
            robust = []
            for eps in (0.001, 0.02, 0.1, 0.4):
                result = self.result(network, instance, eps)
                violated = bool((_sampled_margins(network, instance, eps) <= 0).any())
                assert not (violated and result.verdict is Verdict.ROBUST)
                if result.verdict is Verdict.NOT_ROBUST:
                    _check_witness(network, instance, result)
                robust.append(result.verdict is Verdict.ROBUST)
                if self.make().is_complete:
                    assert result.verdict in (Verdict.ROBUST, Verdict.NOT_ROBUST)
            assert robust == sorted(robust, reverse=True)

    def test_a_misclassified_input_is_its_own_witness(self) -> None:
        network = random_network(NetworkFamily.DENSE, 2, units=HIDDEN_UNITS)
        right = random_instance(network, 0)
        wrong = instance_at(network, right.input, label=(right.label + 1) % network.output_size)
        for eps in (0.0, 0.1):
            result = self.result(network, wrong, eps)
            assert result.verdict is not Verdict.ROBUST
            if self.make().is_complete:
                assert result.verdict is Verdict.NOT_ROBUST

    def test_a_tie_is_a_violation(self) -> None:
        sketch = Sketch([1, 2])
        weight = sketch.constant(np.array([[1.0, 1.0], [1.0, 1.0]]))
        network = sketch.network(sketch.apply("MatMul", "x", weight))
        result = self.result(network, instance_at(network, [0.5, 0.25]), 0.1)
        assert result.verdict is not Verdict.ROBUST

    def test_one_target_is_no_harder_than_all(self) -> None:
        network = random_network(NetworkFamily.DENSE, 4, units=HIDDEN_UNITS)
        instance = random_instance(network, 1)
        targets = [t for t in range(network.output_size) if t != instance.label]
        one = [instance_at(network, instance.input, property=OneToOne(t)) for t in targets]
        for eps in (0.05, 0.3):
            alone = [self.result(network, each, eps).verdict for each in one]
            together = self.result(network, instance, eps).verdict
            if together is Verdict.ROBUST:
                assert Verdict.NOT_ROBUST not in alone
            if together is Verdict.NOT_ROBUST:
                assert set(alone) != {Verdict.ROBUST}

    @pytest.mark.parametrize("norm", list(Norm))
    def test_becoming_a_target_takes_all_comparisons_at_once(self, norm: Norm) -> None:
        """A linear classifier's distance to a class is that to a polyhedron, mostly to its edge."""
        verifier = self.make()
        if norm not in verifier.norms:
            pytest.skip(f"does not decide {norm.value}")
        classifier = LinearClassifier.random(7, dtype=np.float32)
        plain = instance_at(classifier.network, np.random.default_rng(7).normal(size=5), norm=norm)
        for target in set(range(4)) - {plain.label}:
            instance = replace(plain, property=Become(target))
            radius = classifier.become_radius(instance.input, target, norm)
            below = self.result(classifier.network, instance, 0.999 * radius)
            above = self.result(classifier.network, instance, 1.001 * radius)
            assert above.verdict is not Verdict.ROBUST
            assert below.verdict is not Verdict.NOT_ROBUST
            if above.witness is not None:
                assert above.witness.outputs[target] == above.witness.outputs.max()
            if verifier.is_complete:
                assert (below.verdict, above.verdict) == (Verdict.ROBUST, Verdict.NOT_ROBUST)

    def test_boxes_conjunctions_and_cut_inputs(self) -> None:
        """y = relu(x) over a box: both outputs are low near the origin only; a cut excludes it."""
        sketch = Sketch([1, 2])
        network = sketch.network(sketch.apply("Relu", "x"), domain=(-1, 1))
        both_low = LinearRequirement((Halfspaces(np.eye(2), np.full(2, -0.5)),))
        box = Box(np.array([-1.0, 0.0]), np.array([1.0, 1.0]))
        free = self._decided(network, Specification(box, both_low))
        away = Halfspaces(-np.ones((1, 2)), np.array([1.125]))  # x0 + x1 >= 1.125
        cut = self._decided(network, Specification(box, both_low, away))
        assert free is not Verdict.ROBUST
        assert cut is not Verdict.NOT_ROBUST
        if self.make().is_complete:
            assert (free, cut) == (Verdict.NOT_ROBUST, Verdict.ROBUST)

    def _decided(self, network: Network, specification: Specification) -> Verdict:
        verifier = self.make()
        reason = verifier.unsupported(network, Norm.LINF)
        if reason is not None:
            pytest.skip(reason)
        answer, witness = verifier.decide(network, specification, Limits(self.seconds))
        assert (witness is not None) == (answer.verdict is Verdict.NOT_ROBUST)
        if witness is not None:
            assert specification.contains(witness.input)
        return answer.verdict

    @pytest.mark.parametrize("cancelled", [False, True])
    def test_limits_are_honoured(self, cancelled: bool) -> None:
        network = random_network(NetworkFamily.DENSE, 5, units=HIDDEN_UNITS)
        instance = random_instance(network, 0)
        verifier = self.make()
        if verifier.unsupported(network, instance.norm) is not None:
            pytest.skip("does not decide this network")
        limits = Limits(self.seconds if cancelled else 0.0, cancelled=lambda: cancelled)
        started = time.monotonic()
        result = verifier.verify(network, Query(instance, 0.3), limits)
        assert time.monotonic() - started < GRACE_SECONDS
        assert result.verdict.is_missing or result.witness or result.proof

    def test_what_it_cannot_decide_is_refused_before_any_work(self) -> None:
        verifier = self.make()
        network = random_network(NetworkFamily.DENSE, 0, units=HIDDEN_UNITS)
        instance = random_instance(network, 0)
        for norm in set(Norm) - verifier.norms:
            assert verifier.unsupported(network, norm)
            with pytest.raises(UnsupportedQuery, match=norm.value):
                verifier.verify(network, Query(random_instance(network, 0, norm=norm), 0.1))
        opaque = Specification(instance.ball(0.1), _Opaque())
        with pytest.raises(UnsupportedQuery, match="not linear"):
            verifier.decide(network, opaque, Limits())

    def test_it_prints_nothing(self, capfd: pytest.CaptureFixture[str]) -> None:
        network = random_network(NetworkFamily.DENSE, 6, units=HIDDEN_UNITS)
        self.result(network, random_instance(network, 0), 0.1)
        assert capfd.readouterr() == ("", "")


def _sampled_margins(network: Network, instance: Instance, eps: float) -> Array:
    points = instance.ball(eps).sample(np.random.default_rng(0), 500)
    with torch.no_grad():
        outputs = network(torch.from_numpy(points)).numpy()
    return instance.requirement.margin(outputs, 0.0)


def _check_witness(network: Network, instance: Instance, result: Result) -> None:
    assert result.witness is not None
    point = result.witness.input
    assert instance.ball(result.eps).contains(point)
    assert not instance.requirement.holds(network.replay(point[None]), 0.0)[0]
