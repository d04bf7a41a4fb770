"""Iterative magnitude pruning: train, remove the smallest weights, and train again without them.

In each of the rounds every layer loses the same share of the weights it still has, so that after
the last one the wanted share of all is gone. Biases stay. Between rounds training goes on from the
weights it has, or, with rewinding, from the very first ones, as the lottery ticket hypothesis does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from radii.datasets import Dataset
from radii.errors import TrainingError
from radii.training import TrainedNetwork, architecture, replacing, train

MOST_ROUNDS = 20
PRUNING_FILE = "pruning.json"


@dataclass(frozen=True, slots=True)
class PruningRound:
    """What was left after a round, the 0th being the whole network, and what it was worth."""

    number: int
    kept_share: float
    accuracy: float
    robust_accuracy: float


@dataclass(frozen=True, slots=True, eq=False)
class PrunedNetwork:
    """The network of the last round, `masks` with 0 where it has no weight, and all rounds."""

    trained: TrainedNetwork
    masks: dict[str, Tensor]
    rounds: tuple[PruningRound, ...]
    strength: float
    rewinds: bool

    @property
    def pruned_share(self) -> float:
        """Of all weights, biases aside."""
        return 1 - _kept_share(self.masks)


def prune(
    module: nn.Module | str,
    data: Dataset,
    *,
    strength: float,
    rounds: int = 1,
    rewind: bool = False,
    out: Path | str | None = None,
    **training: Any,
) -> PrunedNetwork:
    """Train a module, or the architecture of that name, and prune it by `strength`, such as 0.9.

    `training` are the options of `train`, for every round the same. With `out` each round is kept
    in a directory of its own, and doing it again continues; `out` itself gets the last network.
    """
    _check_pruning(strength, rounds)
    initial = _first_weights(module, data, training)
    directory = None if out is None else Path(out)
    trained = _round(module, data, 0, directory, {}, initial, training)
    masks = {name: torch.ones_like(weight) for name, weight in _weights(trained.module).items()}
    records = [_round_record(0, masks, trained)]
    for number in range(1, rounds + 1):
        kept = (1 - strength) ** (number / rounds)
        masks = smaller_masks(_weights(trained.module), masks, kept)
        start = initial if rewind else _state(trained.module)
        trained = _round(module, data, number, directory, masks, start, training)
        records.append(_round_record(number, masks, trained))
    pruned = PrunedNetwork(trained, masks, tuple(records), strength, rewind)
    if directory is not None:
        _write(directory, pruned)
    return pruned


def smaller_masks(
    weights: Mapping[str, Tensor], masks: Mapping[str, Tensor], kept: float
) -> dict[str, Tensor]:
    """Of each layer's weights the largest share `kept`, at least one, among those not masked."""
    pruned = {}
    for name, weight in weights.items():
        count = max(1, round(kept * weight.numel()))
        sizes = torch.where(masks[name] > 0, weight.abs(), -1.0).flatten()
        largest = sizes.topk(count).indices
        mask = torch.zeros_like(sizes)
        mask[largest] = 1.0
        pruned[name] = mask.reshape(weight.shape) * masks[name]
    return pruned


def _check_pruning(strength: float, rounds: int) -> None:
    if not 0 < strength < 1:
        raise TrainingError(f"pruning strength {strength:g} must be between 0 and 1, such as 0.9")
    if not 1 <= rounds <= MOST_ROUNDS:
        raise TrainingError(f"pruning rounds {rounds} must be between 1 and {MOST_ROUNDS}")


def _first_weights(
    module: nn.Module | str, data: Dataset, training: Mapping[str, Any]
) -> dict[str, Tensor]:
    if not isinstance(module, str):
        return _state(module)
    test = training.get("test")
    largest = max(int(part.labels.max()) for part in (data, test) if part is not None)
    built = architecture(
        module,
        data.shape,
        max(len(data.classes or ()), largest + 1),
        mean=training.get("mean"),
        std=training.get("std"),
        seed=training.get("seed", 0),
    )
    return _state(built)


def _round(
    module: nn.Module | str,
    data: Dataset,
    number: int,
    directory: Path | None,
    masks: Mapping[str, Tensor],
    start: Mapping[str, Tensor],
    training: Mapping[str, Any],
) -> TrainedNetwork:
    out = None if directory is None else directory / f"round-{number}"
    return train(module, data, out=out, masks=masks, start=start, **training)


def _weights(module: nn.Module) -> dict[str, Tensor]:
    """The weights of layers: matrices and kernels, not biases nor what normalises."""
    return {name: p.detach() for name, p in module.named_parameters() if p.dim() > 1}


def _state(module: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


def _kept_share(masks: Mapping[str, Tensor]) -> float:
    return float(sum(m.sum() for m in masks.values()) / sum(m.numel() for m in masks.values()))


def _round_record(
    number: int, masks: Mapping[str, Tensor], trained: TrainedNetwork
) -> PruningRound:
    card = trained.card
    return PruningRound(number, _kept_share(masks), card.accuracy, card.robust_accuracy)


def _write(directory: Path, pruned: PrunedNetwork) -> None:
    pruned.trained.write(directory)
    card = {
        "strength": pruned.strength,
        "rewinds": pruned.rewinds,
        "rounds": [asdict(each) for each in pruned.rounds],
    }
    with replacing(directory / PRUNING_FILE) as path:
        path.write_text(json.dumps(card, indent=1) + "\n")
