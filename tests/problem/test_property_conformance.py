"""Every property passes the suite that plugins run; their radii have closed forms."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.optimize import linprog

from radii.problem import (
    RESOLUTION,
    Become,
    Instance,
    LipschitzRobustness,
    Norm,
    OneToAny,
    OneToOne,
    PredictionStays,
    Property,
    StandardRobustness,
    StrongClassification,
    TopK,
)
from radii.testing import LinearClassifier, PropertyConformance


class TestOneToAny(PropertyConformance):
    def make(self) -> Property:
        return OneToAny()

    def radius(self, classifier: LinearClassifier, instance: Instance) -> float:
        return classifier.radius(instance.input, instance.label, Norm.LINF)


class TestPredictionStays(TestOneToAny):
    def make(self) -> Property:
        return PredictionStays()


class TestOneToOne(PropertyConformance):
    def make(self) -> Property:
        return OneToOne(1)

    def radius(self, classifier: LinearClassifier, instance: Instance) -> float:
        slope = np.abs(classifier.weights[instance.label] - classifier.weights[1]).sum()
        return float((instance.outputs[instance.label] - instance.outputs[1]) / slope)


class TestBecome(PropertyConformance):
    def make(self) -> Property:
        return Become(1)

    def radius(self, classifier: LinearClassifier, instance: Instance) -> float:
        return classifier.become_radius(instance.input, 1, Norm.LINF)


class TestTopK(PropertyConformance):
    """The nearest input where two rivals reach the label at once is a linear program a pair."""

    def make(self) -> Property:
        return TopK(2)

    def radius(self, classifier: LinearClassifier, instance: Instance) -> float:
        label, point = instance.label, instance.input.ravel()
        rivals = [rival for rival in range(len(classifier.bias)) if rival != label]
        radii = []
        for pair in combinations(rivals, 2):
            above = classifier.weights[label] - classifier.weights[list(pair)]
            gaps = above @ point + classifier.bias[label] - classifier.bias[list(pair)]
            steps = np.eye(point.size)
            column = np.full((point.size, 1), -1.0)
            program = linprog(  # the least t with |d| <= t and above @ d <= -gaps
                np.eye(point.size + 1)[-1],
                np.block([[above, np.zeros((2, 1))], [steps, column], [-steps, column]]),
                np.concatenate([-gaps, np.zeros(2 * point.size)]),
                bounds=[(None, None)] * (point.size + 1),
            )
            radii.append(max(0.0, float(program.fun)) if program.success else np.inf)
        return min(radii)


class TestTopOne(TestOneToAny):
    """One rival is enough: the same as one-to-any."""

    def make(self) -> Property:
        return TopK(1)


class TestStrongClassification(PropertyConformance):
    """Of two classes: a bound on the difference of their logits."""

    outputs = 2

    def make(self) -> Property:
        return StrongClassification(0.6)

    def radius(self, classifier: LinearClassifier, instance: Instance) -> float:
        label = instance.label
        slope = np.abs(classifier.weights[label] - classifier.weights[1 - label]).sum()
        odds = instance.outputs[label] - instance.outputs[1 - label]
        return float((odds - np.log(0.6 / 0.4)) / slope)


class TestStandardRobustness(PropertyConformance):
    def make(self) -> Property:
        return StandardRobustness(0.9)

    def radius(self, classifier: LinearClassifier, instance: Instance) -> float:
        return float(0.9 / np.abs(classifier.weights).sum(axis=1).max())


class TestStandardRobustnessOnProbabilities(PropertyConformance):
    """Of two classes: the probability moves by delta where the logits' difference reaches it."""

    outputs = 2

    def make(self) -> Property:
        return StandardRobustness(0.05, on_probabilities=True)

    def radius(self, classifier: LinearClassifier, instance: Instance) -> float:
        slope = np.abs(classifier.weights[0] - classifier.weights[1]).sum()
        odds = float(instance.outputs[0] - instance.outputs[1])
        share = 1 / (1 + np.exp(-odds))
        ends = [end for end in (share - 0.05, share + 0.05) if 0 < end < 1]
        return float(min(abs(np.log(end / (1 - end)) - odds) for end in ends) / slope)


class TestLipschitzRobustness(PropertyConformance):
    """An output moves by slope * eps, which reaches L * eps + tau where the slope is above L."""

    def make(self) -> Property:
        return LipschitzRobustness(2.0)

    def radius(self, classifier: LinearClassifier, instance: Instance) -> float:
        tau = RESOLUTION * max(1.0, float(np.abs(instance.outputs).max()))
        steepest = np.abs(classifier.weights).sum(axis=1).max()
        return float(tau / (steepest - 2.0))
