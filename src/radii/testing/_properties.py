"""What every property must do, as a class of tests.

A plugin's author writes

    class TestMine(PropertyConformance):
        def make(self) -> Property:
            return Mine()

        def radius(self, classifier, instance):  # where there is a closed form
            return ...

and runs pytest. `spec` is read back by `radii.problem.parse_property`, so the property has to be
declared as an entry point by then; set `is_declared = False` for one that only Python knows.
"""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
import torch

from radii.attacks import objective_depths, violation
from radii.errors import RadiiError, SpecificationError
from radii.problem import Anchor, Instance, LinearRequirement, Property, Query, Requirement, Verdict
from radii.problem import parse_property as parse
from radii.testing._graphs import Sketch
from radii.testing._networks import LinearClassifier, instance_at
from radii.verifiers import BranchAndBound, Limits

Float64 = npt.NDArray[np.float64]

BOUNDARY = 1e-9
"""Margins this close to 0 may round to either side."""
FLOAT32_BOUNDARY = 1e-4
"""The same for what attacks compute in float32."""
SAMPLES = 200


class PropertyConformance:
    """Subclass it, name it Test..., and return a property from `make`."""

    outputs = 4
    """Of the networks that the property is asked of."""
    is_declared = True
    """`radii.problem.parse_property` knows it."""
    scale = 2.0
    """Size of the random outputs: some of them should break the property, and some should not."""

    def make(self) -> Property:
        raise NotImplementedError

    def radius(self, classifier: LinearClassifier, instance: Instance) -> float | None:
        """The Linf radius of an instance of a linear classifier in closed form; None: unknown."""
        return None

    def labels(self) -> list[int]:
        """Labels of which the property says something."""
        return [label for label in range(self.outputs) if label != self.make().target]

    def anchors(self, *, are_probabilities: bool = False) -> list[Anchor]:
        """Inputs to tie it to, one for each label, at each of which it holds."""
        rng, anchors = np.random.default_rng(7), []
        for label in self.labels():
            for _ in range(1000):
                outputs = self.scale * rng.normal(size=self.outputs)
                if are_probabilities:
                    outputs = np.exp(outputs) / np.exp(outputs).sum()
                anchor = Anchor(label, outputs, are_probabilities)
                if self.make().at(anchor).holds(outputs[None], np.zeros(1))[0]:
                    anchors.append(anchor)
                    break
            else:
                raise AssertionError(f"{self.make().spec} holds at no output of label {label}")
        return anchors

    def samples(self, anchor: Anchor, seed: int = 0) -> tuple[Float64, Float64]:
        """Outputs around those of an anchor, near and far, and distances of their inputs."""
        rng = np.random.default_rng(seed)
        steps = self.scale * rng.normal(size=(SAMPLES, self.outputs))
        outputs = anchor.outputs + steps * rng.uniform(0, 2, (SAMPLES, 1))
        if anchor.outputs_are_probabilities:
            outputs = rng.dirichlet(np.ones(self.outputs), SAMPLES)
        return outputs, rng.uniform(0, 2, SAMPLES)

    def test_its_text_is_read_back(self) -> None:
        asked = self.make()
        assert asked.spec
        assert asked == self.make() and hash(asked) == hash(self.make())
        if self.is_declared:
            again = parse(asked.spec)
            assert type(again) is type(asked)
            assert (again, again.spec) == (asked, asked.spec)

    def test_it_travels_to_workers(self) -> None:
        asked = pickle.loads(pickle.dumps(self.make()))
        assert (asked, asked.spec) == (self.make(), self.make().spec)

    @pytest.mark.parametrize("are_probabilities", [False, True])
    def test_its_kind_is_known_before_anything_runs(self, are_probabilities: bool) -> None:
        for anchor in self.anchors(are_probabilities=are_probabilities):
            assert type(self.make().at(anchor)) is self.make().kind(are_probabilities)

    def test_it_can_hold_and_can_be_broken(self) -> None:
        for anchor in self.anchors():
            is_kept = self.make().at(anchor).holds(*self.samples(anchor))
            assert is_kept.any() and not is_kept.all(), "choose another `scale`"

    def test_it_holds_where_its_margin_is_positive(self) -> None:
        for anchor in self.anchors():
            requirement, (outputs, distances) = self.make().at(anchor), self.samples(anchor)
            margins = requirement.margin(outputs, distances)
            assert margins.shape == (SAMPLES,)
            assert np.array_equal(requirement.holds(outputs, distances), margins > 0)

    def test_outputs_that_are_no_numbers_break_it(self) -> None:
        anchor = self.anchors()[0]
        strange = np.full((1, self.outputs), np.nan)
        assert not self.make().at(anchor).holds(strange, np.zeros(1))[0]

    def test_a_batch_is_its_rows(self) -> None:
        for anchor in self.anchors():
            requirement, (outputs, distances) = self.make().at(anchor), self.samples(anchor)
            rows = [
                requirement.margin(outputs[row : row + 1], distances[row : row + 1])[0]
                for row in range(20)
            ]
            assert requirement.margin(outputs, distances)[:20] == pytest.approx(rows, abs=1e-12)

    @pytest.mark.parametrize("are_probabilities", [False, True])
    def test_polyhedra_are_the_outputs_that_break_it(self, are_probabilities: bool) -> None:
        """What verifiers are given, row by row, against what is replayed."""
        for anchor in self.anchors(are_probabilities=are_probabilities):
            requirement = self.make().at(anchor)
            polyhedra = requirement.violations
            assert (polyhedra is not None) == isinstance(requirement, LinearRequirement)
            if polyhedra is None:
                continue
            outputs, distances = self.samples(anchor)
            inside = np.zeros(SAMPLES, bool)
            for polyhedron in polyhedra:
                assert polyhedron.matrix.shape[1] == self.outputs
                rows = outputs @ polyhedron.matrix.T + polyhedron.offset
                inside |= (rows <= 0).all(axis=1)
            margins = requirement.margin(outputs, distances)
            clear = np.abs(margins) > BOUNDARY
            assert np.array_equal(inside[clear], margins[clear] <= 0)

    def test_training_lowers_what_is_replayed(self) -> None:
        """The violation in torch has the sign of the margin in numpy, and a gradient."""
        for anchor in self.anchors():
            requirement, (outputs, distances) = self.make().at(anchor), self.samples(anchor)
            points = torch.from_numpy(outputs).requires_grad_()
            references = torch.from_numpy(np.broadcast_to(anchor.outputs, outputs.shape).copy())
            labels = torch.full((SAMPLES,), anchor.label)
            violations = violation(
                self.make(), points, references, labels, torch.from_numpy(distances)
            )
            margins = requirement.margin(outputs, distances)
            clear = np.abs(margins) > BOUNDARY
            broken = violations.detach().numpy() > 0
            assert np.array_equal(broken[clear], margins[clear] < 0)
            (gradients,) = torch.autograd.grad(violations.sum(), points)
            assert torch.isfinite(gradients).all()

    def test_attacks_look_for_what_is_replayed(self) -> None:
        """Attacks minimise a depth; it is below 0 exactly where the requirement is broken."""
        sketch = Sketch([1, self.outputs])
        network = sketch.network(sketch.apply("Identity", "x"), domain=(-100.0, 100.0))
        for anchor in self.anchors():
            origin = anchor.outputs.astype(np.float32)
            exact = replace(anchor, outputs=origin.astype(np.float64))
            instance = instance_at(network, origin, property=self.make(), label=anchor.label)
            requirement = self.make().at(exact)
            outputs = self.samples(anchor)[0].astype(np.float32)
            distances = np.abs(outputs - origin).max(axis=1).astype(np.float64)
            margins = requirement.margin(outputs.astype(np.float64), distances)
            depths = objective_depths(network, Query(instance, 200.0), outputs)
            clear = np.abs(margins) > FLOAT32_BOUNDARY
            assert np.array_equal(depths[clear] <= 0, margins[clear] <= 0)

    def test_the_radius_of_a_linear_classifier(self) -> None:
        """Proven just below its closed form, broken just above it."""
        checked = 0
        for seed in range(3):
            classifier = LinearClassifier.random(seed, outputs=self.outputs, dtype=np.float32)
            point = np.random.default_rng(seed).normal(size=5)
            instance = instance_at(classifier.network, point, property=self.make())
            if instance.label not in self.labels() or not instance.holds:
                continue
            radius = self.radius(classifier, instance)
            if radius is None:
                pytest.skip("no closed form is given")
            verdicts = [
                BranchAndBound()
                .verify(classifier.network, Query(instance, factor * radius), Limits(30))
                .verdict
                for factor in (0.98, 1.02)
            ]
            assert verdicts == [Verdict.ROBUST, Verdict.NOT_ROBUST]
            checked += 1
        assert checked, "it holds at none of the random inputs"

    def test_a_label_that_the_network_has_not_is_refused(self) -> None:
        anchor = self.anchors()[0]
        beyond = replace(anchor, label=self.outputs)
        if self.make().uses_label:
            with pytest.raises(SpecificationError, match=str(self.outputs)):
                self.make().at(beyond)
        else:
            outputs, distances = self.samples(anchor)
            margins = [
                _margin(self.make().at(replace(anchor, label=label)), outputs, distances)
                for label in range(self.outputs)
            ]
            assert all(np.array_equal(margins[0], each) for each in margins)

    def test_bad_arguments_are_named(self) -> None:
        if not self.is_declared:
            pytest.skip("it has no text")
        name = self.make().spec.partition(":")[0]
        with pytest.raises(RadiiError) as raised:
            parse(f"{name}:nonsense=really")
        assert "\n" not in str(raised.value)


def _margin(requirement: Requirement, outputs: Float64, distances: Float64) -> Float64:
    return requirement.margin(outputs, distances)
