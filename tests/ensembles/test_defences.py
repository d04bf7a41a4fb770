"""What mixes of classifiers lose: the best one, all alike, and each network alone."""

from __future__ import annotations

from fractions import Fraction

from planar_classifiers import half_plane, point

from radii.ensembles import EnsembleStudy

LEFT, RIGHT = half_plane([-1.0, 0.0], 1.0), half_plane([1.0, 0.0], 1.0)
UP = half_plane([0.0, 1.0], 1.0)


def test_defences_are_compared() -> None:
    """Three exclusive classifiers: even weights lose 1/3; a single one is fooled always."""
    with EnsembleStudy.open((LEFT, RIGHT, UP), [point([0, 0])], norm="l1") as study:
        found = study.defences(study.value(1.5))
    assert [each.name for each in found[:2]] == ["best mix", "uniform mix"]
    assert len(found) == 2 + 3  # though the networks share a name
    assert found[0].upper == found[1].upper == Fraction(1, 3)
    for each in found[2:]:
        assert each.lower == each.upper == 1


def test_the_best_defence_is_never_worse() -> None:
    """A classifier that nobody fools is all that is played."""
    never = half_plane([0.01, 0.0], 1.0)
    with EnsembleStudy.open((LEFT, RIGHT, never), [point([0, 0])], norm="l1") as study:
        best, uniform, *alone = study.defences(study.value(2.0))
    assert best.upper == 0 and best.weights[2] == 1
    assert uniform.lower == Fraction(1, 3) <= uniform.upper  # pairs matter to no best play
    assert [each.upper for each in alone] == [1, 1, 0]
