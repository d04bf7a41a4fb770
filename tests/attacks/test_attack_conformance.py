"""Every attack of the registry, and some of foolbox, pass the suite that plugins run."""

from __future__ import annotations

import pytest

from radii.attacks import (
    Apgd,
    Attack,
    AutoAttack,
    Fgsm,
    FoolboxAttack,
    MinimumNorm,
    Pgd,
    RandomSearch,
)
from radii.attacks._minimum_norm import STAGES
from radii.testing import AttackConformance

SOME_OF_EACH = pytest.mark.sampled(3, "family", "table")
"""Families and tables are read by what all attacks share: some of them a run, of each attack."""


@SOME_OF_EACH
class TestMinimumNorm(AttackConformance):
    """Its first stage, which half of its time goes to."""

    reach = 1.01

    def make(self) -> Attack:
        return MinimumNorm(stages=STAGES[:1])


@pytest.mark.slow
class TestMinimumNormInFull(AttackConformance):
    reach = 1.01

    def make(self) -> Attack:
        return MinimumNorm()


@SOME_OF_EACH
class TestApgd(AttackConformance):
    reach = 1.01

    def make(self) -> Attack:
        return Apgd()


@SOME_OF_EACH
class TestAutoAttack(AttackConformance):
    """With few evaluations of Square, which takes most of the time."""

    reach = 1.05

    def make(self) -> Attack:
        return AutoAttack(steps=20, evaluations=20)


@SOME_OF_EACH
class TestPgd(AttackConformance):
    reach = 1.05

    def make(self) -> Attack:
        return Pgd()


@SOME_OF_EACH
class TestFgsm(AttackConformance):
    def make(self) -> Attack:
        return Fgsm()


@SOME_OF_EACH
class TestRandomSearch(AttackConformance):
    reach = 1.2

    def make(self) -> Attack:
        return RandomSearch(evaluations=2000)


@SOME_OF_EACH
class TestFoolboxLinfPgd(AttackConformance):
    reach = 4.0  # it raises the loss, which may lead past the nearest class

    def make(self) -> Attack:
        return FoolboxAttack("LinfPGD", steps=20)


@SOME_OF_EACH
class TestFoolboxL2FastMinimumNorm(AttackConformance):
    def make(self) -> Attack:
        return FoolboxAttack("L2FMNAttack", steps=100)
