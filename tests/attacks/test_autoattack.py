"""The parts of AutoAttack, each against its formula or a radius known in closed form."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from radii.attacks import AutoAttack
from radii.attacks._autoattack import (
    _cross_entropy,
    _targeted_ratio,
    descend_loss,
    fast_boundary,
)
from radii.attacks._batches import Batch, Clock, batches
from radii.attacks._fixed_radius import checkpoints
from radii.attacks._square import square_search, window_share
from radii.errors import SpecificationError, UnsupportedQuery
from radii.problem import Norm, Query, Verdict
from radii.testing import (
    LinearClassifier,
    NetworkFamily,
    instance_at,
    random_instance,
    random_network,
)

NORMS = (Norm.LINF, Norm.L2)


def batch_of(
    classifier: LinearClassifier, norm: Norm, part_of_radius: float
) -> tuple[Batch, float]:
    point = np.random.default_rng(3).normal(size=5)
    instance = instance_at(classifier.network, point, norm=norm)
    radius = classifier.radius(instance.input, instance.label, norm)
    (batch,) = batches(classifier.network, [Query(instance, part_of_radius * radius)], rows=1)
    return batch, radius


def test_checkpoints_are_the_papers() -> None:
    assert checkpoints(100) == [22, 41, 57, 70, 80, 87, 93, 99]
    assert checkpoints(1) == []


def test_windows_shrink_as_in_the_paper() -> None:
    assert window_share(0.0) == 0.8
    assert window_share(0.002) == 0.8 / 2
    assert window_share(0.9) == 0.8 / 512


def test_the_loss_is_the_cross_entropy() -> None:
    scores = torch.randn(6, 10, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    label = 3
    guides = scores[:, [label]] - scores[:, [t for t in range(10) if t != label]]
    expected = torch.nn.functional.cross_entropy(scores, torch.full((6,), label), reduction="none")
    assert torch.allclose(-_cross_entropy(guides[:, 0], guides, scores), expected)


def test_the_ratio_does_not_change_with_the_scale_of_logits() -> None:
    scores = torch.tensor([[5.0, 3.0, 2.0, 1.0]])
    own = scores[:, 0] - scores[:, 1]
    assert float(_targeted_ratio(own, own, scores)) == pytest.approx(2 / 3.5)
    assert float(_targeted_ratio(9 * own, own, 9 * scores)) == pytest.approx(2 / 3.5)
    few = scores[:, :3]  # not defined for three classes
    assert float(_targeted_ratio(own, own, few)) == 2.0


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("loss", [_cross_entropy, _targeted_ratio])
def test_apgd_breaks_a_linear_classifier_just_beyond_its_radius_only(norm: Norm, loss) -> None:  # type: ignore[no-untyped-def]
    classifier = LinearClassifier.random(3, dtype=np.float32)
    for part, is_broken in ((1.02, True), (0.99, False)):
        batch, _ = batch_of(classifier, norm, part)
        rows = list(range(len(batch.owners)))
        assert bool(descend_loss(batch, rows, loss, 100, 0, Clock())) is is_broken


@pytest.mark.parametrize("norm", NORMS)
def test_fab_finds_the_radius_of_a_linear_classifier(norm: Norm) -> None:
    """In a ball that is much larger: it looks for the closest counterexample."""
    classifier = LinearClassifier.random(3, dtype=np.float32)
    batch, radius = batch_of(classifier, norm, 5.0)
    rows = list(range(len(batch.owners)))
    found = fast_boundary(batch, rows, 20, Clock())
    assert found[0][0] == pytest.approx(radius, rel=2e-3)
    batch, _ = batch_of(classifier, norm, 0.99)
    assert fast_boundary(batch, rows, 20, Clock()) == {}


@pytest.mark.parametrize("norm", NORMS)
def test_square_needs_no_gradient_and_stays_in_the_ball(norm: Norm) -> None:
    classifier = LinearClassifier.random(3, dtype=np.float32)
    batch, radius = batch_of(classifier, norm, 2.0)
    points, depths = square_search(batch, [0], 500, 0, Clock())
    assert float(depths[0]) <= 0
    length = float(batch.geometry.lengths(points - batch.centers)[0])
    assert radius * (1 - 1e-5) <= length <= 2.0 * radius * (1 + 1e-5)


@pytest.mark.parametrize("norm", NORMS)
def test_square_on_images(norm: Norm) -> None:
    """Channels, rows and columns of a convolutional network's input."""
    network = random_network(NetworkFamily.CONVOLUTIONAL, 1, units=10)
    query = Query(random_instance(network, 3, norm=norm), 0.3)
    (batch,) = batches(network, [query], rows=1)
    before = batch.objective.least_depths(batch.centers, torch.tensor([0]))
    points, depths = square_search(batch, [0], 60, 0, Clock())
    assert float(depths[0]) < float(before[0])
    assert query.instance.ball(query.eps * (1 + 1e-5)).contains(batch.points(points)[0])


def test_l1_is_refused() -> None:
    network = random_network(NetworkFamily.DENSE, 0, units=5)
    with pytest.raises(UnsupportedQuery, match="l1"):
        AutoAttack().attack(network, [Query(random_instance(network, 0, norm=Norm.L1), 0.1)])


def test_options() -> None:
    with pytest.raises(SpecificationError, match="at least one step"):
        AutoAttack(steps=0)
    assert AutoAttack(evaluations=7).spec == "autoattack:evaluations=7"


def test_it_ends_by_itself() -> None:
    network = random_network(NetworkFamily.DENSE, 0, units=5)
    query = Query(random_instance(network, 0), 1e-6)
    (result,) = AutoAttack().within(0.05).attack(network, [query])
    assert result.verdict is Verdict.UNKNOWN and result.seconds < 1.0
