"""Classes that count more: by given weights, and by weights that follow robust errors."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from torch import Tensor, nn

import radii.training._loop
from radii import datasets
from radii.datasets import Dataset
from radii.errors import TrainingError
from radii.training import Epoch, Regime, Step, TrainedNetwork, TrainingSettings, train
from radii.training._class_weights import BALANCED, BALANCING_RATE, LARGEST_RATIO, ClassWeights


def test_weights_are_read() -> None:
    assert ClassWeights.parse("8=1.5, 3=2") == ClassWeights(((3, 2.0), (8, 1.5)))
    assert ClassWeights.parse(BALANCED).is_balancing
    assert ClassWeights.parse("1=2").first(3) == [1.0, 2.0, 1.0]


@pytest.mark.parametrize(
    "text", ["3", "3=", "a=2", "3=0", "3=-1", "3=nan", "3=inf", "-1=2", "3=2,3=4", "balanced"]
)
def test_what_is_no_weight_is_refused(text: str) -> None:
    with pytest.raises(TrainingError, match="class weights"):
        TrainingSettings(regime="standard", class_weights=text)


def test_a_class_that_the_network_lacks_is_refused() -> None:
    with pytest.raises(TrainingError, match="class 3 is not one of the network's 3"):
        ClassWeights.parse("3=2").first(3)


def test_found_weights_follow_errors() -> None:
    """exp(rate x error), with mean 1; an unseen class keeps its share of the middle."""
    balancing = ClassWeights.parse(BALANCED)
    found = balancing.after([1.0, 1.0], [0.1, 0.3])
    assert found[1] / found[0] == pytest.approx(math.exp(0.2 * BALANCING_RATE))
    assert sum(found) == pytest.approx(2)
    assert balancing.after([1.0, 1.0], [0.5, 0.5]) == pytest.approx([1.0, 1.0])
    assert balancing.after([1.0, 1.0, 1.0], [0.4, 0.4, math.nan]) == pytest.approx([1, 1, 1])
    weights = [1.0, 1.0]
    for _ in range(50):
        weights = balancing.after(weights, [0.0, 1.0])
    assert weights[1] / weights[0] == pytest.approx(LARGEST_RATIO)
    given = ClassWeights.parse("0=3")
    assert given.after([3.0, 1.0], [0.0, 1.0]) == [3.0, 1.0]


def test_the_loss_is_the_weighted_mean() -> None:
    outputs, labels = torch.tensor([[2.0, 0.0], [0.0, 0.0], [1.0, 3.0]]), torch.tensor([0, 0, 1])
    step = Step(nn.Identity(), outputs, labels, outputs, outputs, 0.0, torch.tensor([1.0, 4.0]))
    losses = [math.log(1 + math.exp(-2)), math.log(2), math.log(1 + math.exp(-2))]
    expected = (losses[0] + losses[1] + 4 * losses[2]) / 6
    assert float(step.cross_entropy(outputs, labels)) == pytest.approx(expected, rel=1e-5)


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return datasets.load("digits", "train").first(300)


def recall(trained: TrainedNetwork, data: Dataset, label: int) -> float:
    with torch.no_grad():
        answers = trained.module(torch.from_numpy(data.images)).argmax(1).numpy()
    return float((answers[data.labels == label] == label).mean())


@pytest.mark.parametrize("regime", ["standard", "fgsm:eps=0.05", "augmentation-uniform", "ibp"])
def test_a_heavy_class_is_learnt_first(regime: str, digits: Dataset) -> None:
    """After three short epochs, a class of a hundred times the weight is what is known."""
    plain = train("dense:8", digits, regime=regime, epochs=3, rate=0.01)
    heavy = train("dense:8", digits, regime=regime, epochs=3, rate=0.01, class_weights="8=100")
    assert recall(heavy, digits, 8) > max(0.9, recall(plain, digits, 8))


class Interrupt(Exception):
    """Ends a run between two steps."""


class Interrupting:
    """As a kill would, after so many batches."""

    def __init__(self, after: int) -> None:
        self.after = after

    def started(self, batches: int, done: int) -> None:
        self.after += done

    def advanced(self, done: int) -> None:
        if done >= self.after:
            raise Interrupt

    def finished_epoch(self, epoch: Epoch, done: int) -> None:
        pass


def test_found_weights_survive_a_cut(
    digits: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(radii.training._loop, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(radii.training._loop, "SHOW_SECONDS", 0.0)

    def run(out: Path | None, after: int, weights: str = BALANCED) -> list[Tensor]:
        trained = train(
            "dense:8", digits, regime="fgsm:eps=0.1", epochs=3, batch=64, rate=0.01, out=out,
            class_weights=weights, observer=Interrupting(after),
        )  # fmt: skip
        return list(trained.module.state_dict().values())

    whole = run(None, 10**6)
    assert not all(map(torch.equal, whole, run(None, 10**6, "")))
    with pytest.raises(Interrupt):
        run(tmp_path, 8)  # within the second epoch, whose weights were found after the first
    assert all(map(torch.equal, whole, run(tmp_path, 10**6)))
    with pytest.raises(TrainingError, match="class_weights balanced-robustness, not 3=2"):
        run(tmp_path, 10**6, "3=2")


def test_checkpoints_from_before_there_were_weights_go_on() -> None:
    settings = TrainingSettings(regime="standard")
    before = {k: v for k, v in dataclasses.asdict(settings).items() if k != "class_weights"}
    assert settings.differences(before) == []


@dataclass(frozen=True, slots=True)
class Own(Regime):
    """One that knows nothing of weights."""

    name: ClassVar[str] = "own"

    def loss(self, step: Step) -> Tensor:
        outputs: Tensor = step.module(step.images)
        return outputs.square().mean()


def test_a_regime_that_would_ignore_weights_is_refused(digits: Dataset) -> None:
    with pytest.raises(TrainingError, match="'own' does not weigh classes"):
        train("dense:8", digits, regime=Own(), class_weights="3=2")
