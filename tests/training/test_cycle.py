"""The verification cycle on digits: from a network that fails a requirement to a better one."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from radii import datasets
from radii.errors import DataError, ExperimentError, InputError
from radii.networks import load_network
from radii.store import Store
from radii.training import Cycle, CycleObserver, Round, read_rounds, run_cycle

REQUIREMENT = "robust_accuracy(0.08) >= 0.7"


def described(**changes: object) -> Cycle:
    settings: dict[str, object] = {
        "architecture": "dense:20",
        "data": "digits:train",
        "test": "digits:test[0:20]",
        "requirements": (REQUIREMENT,),
        "later_regime": "pgd:eps=0.1",
        "epochs": 5,
        "later_epochs": 15,
        "attacked": 60,
        "verified": 5,
        "training": {"rate": 0.003, "batch": 64},
        "measuring": {"timeout": 10.0, "grid": "0.04:0.12:0.04"},
    }
    return Cycle(**{**settings, **changes})  # type: ignore[arg-type]


class Listening(CycleObserver):
    """Hears everything, and stops at the first sentence that holds a word."""

    def __init__(self, stop_at: str = "never said") -> None:
        self.heard: list[str] = []
        self.stop_at = stop_at

    def said(self, sentence: str) -> None:
        self.heard.append(sentence)
        if self.stop_at in sentence:
            raise KeyboardInterrupt

    def training(self):  # type: ignore[no-untyped-def]
        from contextlib import nullcontext

        return nullcontext()

    measuring = training


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[Round, ...], list[str]]:
    out = tmp_path_factory.mktemp("cycle")
    observer = Listening()
    return out, run_cycle(described(), out, rounds=4, observer=observer), observer.heard


Whole = tuple[Path, tuple[Round, ...], list[str]]


def test_a_requirement_is_reached_from_a_network_that_fails_it(whole: Whole) -> None:
    out, rounds, _ = whole
    assert len(rounds) >= 2
    assert not any(one.is_met for one in rounds[:-1])
    assert rounds[-1].is_met and rounds[-1].proven >= 0.7 > rounds[0].proven
    assert read_rounds(out) == list(rounds)


def test_counterexamples_are_of_training_images_and_join_them(whole: Whole) -> None:
    out, rounds, _ = whole
    train = datasets.load("digits", "train")
    with np.load(out / "round-0" / "counterexamples.npz") as held:
        points, labels = held["images"], held["labels"]
    assert len(points) == rounds[1].counterexamples > 0
    assert rounds[1].images == len(train) + len(points)
    network = load_network(out / "round-0" / "training" / "network.onnx", domain=(0, 1))
    assert (network.replay(points).argmax(1) != labels).all()
    for point, label in zip(points, labels, strict=True):
        near = np.abs(train.images - point).reshape(len(train), -1).max(1)
        assert near.min() <= 0.08 + 1e-6
        assert label in train.labels[near <= 0.08 + 1e-6]


def test_every_round_keeps_network_distribution_and_card(whole: Whole) -> None:
    out, rounds, _ = whole
    for one in rounds:
        folder = out / f"round-{one.number}"
        for name in ("training/network.onnx", "training/card.json", "card.md", "round.json"):
            assert (folder / name).is_file()
        with Store.open(folder / "results") as store:
            assert len(store.measurements()) == 20
    card = json.loads((out / "round-1" / "training" / "card.json").read_text())
    assert card["data"]["images"] == rounds[1].images


def test_a_cycle_that_met_its_requirement_does_nothing_more(whole: Whole) -> None:
    out, rounds, _ = whole
    observer = Listening()
    assert run_cycle(described(), out, rounds=9, observer=observer) == rounds
    assert observer.heard == []
    with pytest.raises(ExperimentError, match="holds another cycle"):
        run_cycle(described(eps=0.05), out)


@pytest.mark.slow
def test_cut_off_anywhere_it_ends_with_the_same_networks(whole: Whole, tmp_path: Path) -> None:
    out, rounds, heard = whole
    for stop in ("round 0: measuring", "seeking", "round 1: training", "round 1: measuring"):
        assert any(stop in sentence for sentence in heard)
        with pytest.raises(KeyboardInterrupt):
            run_cycle(described(), tmp_path, rounds=2, observer=Listening(stop))
    again = run_cycle(described(), tmp_path, rounds=2)
    for before, after in zip(rounds, again, strict=False):
        assert dataclasses.replace(before, seconds=0.0) == dataclasses.replace(after, seconds=0.0)
    for number in range(len(again)):
        name = Path(f"round-{number}") / "training" / "network.onnx"
        assert (out / name).read_bytes() == (tmp_path / name).read_bytes()


def test_the_budget_ends_first(tmp_path: Path) -> None:
    hard = described(
        requirements=("robust_accuracy(0.08) >= 0.999",), epochs=1, test="digits:test[0:3]"
    )
    (only,) = run_cycle(hard, tmp_path, seconds=1e-9)
    assert not only.is_met and only.number == 0


def test_judging_on_training_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="never saw"):
        run_cycle(described(test="digits:train[0:5]"), tmp_path)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"requirements": ()}, "needs a requirement"),
        ({"requirements": ("accuracy >= 0.9",)}, "name no eps"),
        ({"requirements": ("nonsense",)}, "nonsense"),
        ({"eps": -1.0}, "eps -1"),
        ({"attacked": -1}, "attacked -1"),
        ({"epochs": 0}, "epochs 0"),
        ({"regime": "nothing"}, "nothing"),
        ({"training": {"speed": 1}}, "speed"),
        ({"measuring": {"speed": 1}}, "speed"),
        ({"measuring": {"verifier": "nobody"}}, "nobody"),
        (
            {
                "requirements": ("robust_accuracy(0.02) >= 1", "robust_accuracy(0.0301) >= 1"),
                "measuring": {},
            },
            "--grid",
        ),
    ],
)
def test_bad_descriptions(changes: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        described(**changes)


def test_the_grid_holds_the_eps_of_the_requirements() -> None:
    cycle = described(requirements=("robust_accuracy(0.02) >= 0.9", "median >= 0.04"), measuring={})
    assert cycle.eps == 0.04
    assert str(cycle.judging.grid) == "0.005:0.065:0.005"
    assert str(cycle.verifying.grid) == "0.04:0.08:0.04"
