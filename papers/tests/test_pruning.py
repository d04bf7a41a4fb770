"""Iterative magnitude pruning: what is removed stays removed, and the smallest goes first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from radii import datasets
from radii.cli import main
from radii.errors import InputError
from radii.training import architecture
from radii_papers.tradeoff import prune
from radii_papers.tradeoff._pruning import smaller_masks

OPTIONS: dict[str, Any] = {"epochs": 2, "batch": 64, "seed": 3}


@pytest.fixture(scope="module")
def digits() -> datasets.Dataset:
    return datasets.load("digits", split="train").first(300)


@pytest.mark.parametrize(("strength", "rounds"), [(0.5, 1), (0.9, 2)])
def test_the_wanted_share_is_gone(
    digits: datasets.Dataset, strength: float, rounds: int, tmp_path: Path
) -> None:
    pruned = prune("dense:20", digits, strength=strength, rounds=rounds, out=tmp_path, **OPTIONS)
    assert pruned.pruned_share == pytest.approx(strength, abs=0.005)
    assert [each.number for each in pruned.rounds] == list(range(rounds + 1))
    shares = [each.kept_share for each in pruned.rounds]
    assert shares == sorted(shares, reverse=True)
    zeros = sum(int((p == 0).sum()) for p in pruned.trained.module.parameters() if p.dim() > 1)
    total = sum(p.numel() for p in pruned.trained.module.parameters() if p.dim() > 1)
    assert zeros == pytest.approx(strength * total, abs=2)
    outputs = pruned.trained.network.replay(digits.first(4).images)
    with torch.no_grad():
        module = pruned.trained.module(torch.from_numpy(digits.first(4).images)).numpy()
    assert np.allclose(outputs, module, atol=1e-5)
    assert (tmp_path / "network.onnx").exists()
    assert (tmp_path / "pruning.json").exists()
    again = prune("dense:20", digits, strength=strength, rounds=rounds, out=tmp_path, **OPTIONS)
    assert again.trained.network.fingerprint == pruned.trained.network.fingerprint


def test_rewinding_begins_with_the_first_weights(digits: datasets.Dataset) -> None:
    """With a learning rate of almost nothing, what is left are the first weights themselves."""
    slow = {**OPTIONS, "epochs": 1, "optimizer": "sgd", "rate": 1e-12}
    pruned = prune("dense:20", digits, strength=0.5, rewind=True, **slow)
    first = architecture("dense:20", digits.shape, 10, seed=3)
    for name, weight in first.named_parameters():
        mask = pruned.masks.get(name, torch.ones_like(weight))
        now = dict(pruned.trained.module.named_parameters())[name]
        assert torch.allclose(now, weight * mask, atol=1e-6)


def test_rewinding_changes_what_is_learnt(digits: datasets.Dataset) -> None:
    found = [
        prune("dense:20", digits, strength=0.75, rewind=rewind, **OPTIONS).trained.network
        for rewind in (False, True)
    ]
    assert found[0].fingerprint != found[1].fingerprint


def test_the_smallest_weights_of_each_layer_go() -> None:
    weights = {"a": torch.tensor([[0.1, -0.4], [0.2, 0.3]]), "b": torch.tensor([[5.0, -6.0]])}
    masks = {name: torch.ones_like(weight) for name, weight in weights.items()}
    half = smaller_masks(weights, masks, 0.5)
    assert half["a"].tolist() == [[0.0, 1.0], [0.0, 1.0]]
    assert half["b"].tolist() == [[0.0, 1.0]]
    least = smaller_masks({"a": weights["a"] * half["a"]}, half, 0.001)
    assert least["a"].tolist() == [[0.0, 1.0], [0.0, 0.0]]


def test_masked_weights_never_come_back() -> None:
    """Also where a weight that is left has become exactly 0."""
    masks = {"a": torch.tensor([0.0, 0.0, 1.0, 1.0])}
    smaller = smaller_masks({"a": torch.zeros(4)}, masks, 0.5)
    assert smaller["a"].tolist() == [0.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("strength", "rounds"), [(0.0, 1), (1.0, 1), (-1.0, 1), (float("nan"), 1), (0.5, 0), (0.5, 99)]
)
def test_bad_input(digits: datasets.Dataset, strength: float, rounds: int) -> None:
    with pytest.raises(InputError, match="pruning"):
        prune("dense:20", digits, strength=strength, rounds=rounds, **OPTIONS)


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["--data", "digits:train[0:200]", "--arch", "dense:8", "--epochs", "1"]
    flags = ["study", "prune", *data]
    pruning = ["--strength", "0.75", "--rounds", "2", "--rewind", "--out", str(tmp_path)]
    assert main([*flags, *pruning]) == 0
    told = json.loads((tmp_path / "pruning.json").read_text())
    assert told["rewinds"] is True
    assert told["rounds"][-1]["kept_share"] == pytest.approx(0.25, abs=0.01)
    assert main([*flags, "--strength", "1.5", "--out", str(tmp_path / "other")]) == 2
    assert "pruning strength 1.5" in capsys.readouterr().err
