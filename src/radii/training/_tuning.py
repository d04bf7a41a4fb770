"""Search for the settings of a training run that leave the network most robust.

Each trial trains on a part of the training images and is scored on the rest of them, never on the
test images. What is searched is what the literature searched: the learning rate, the epochs
after which it falls, the factor by which, and the weights of a regime that has any.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from radii.datasets import Dataset
from radii.errors import TrainingError
from radii.problem import Ball, Norm
from radii.training._checkpoints import claimed, replacing
from radii.training._preparation import digest
from radii.training._regime import Regime, parse_regime
from radii.training._runs import TrainedNetwork, train

TUNING_FILE = "tuning.json"

HELD_OUT_SHARE = 0.2
"""The share of the training images that trials are scored on, and not trained on."""

ROBUSTNESS_WEIGHT = 0.5
"""The weight of robustness in a score; the rest is accuracy."""

CERTIFIED_IMAGES = 200
"""Images on which the objective `crown` tries a proof."""

RATE_RANGE, FACTOR_RANGE, WEIGHT_RANGE, SHARE_RANGE = (
    (1e-4, 2e-2),
    (0.02, 1.0),
    (0.02, 5.0),
    (0.0, 0.9),
)
"""Where the learning rate, its factor, weights (beta) and shares (kappa) are searched."""

DIMENSIONS = 5
"""The three settings of the learning rate, beta and kappa."""

SPREAD_TRIALS = 5
"""Trials that are spread evenly before the search goes on around the best of them."""

LARGEST_STEP = 0.25
"""The standard deviation of the first step from the best trial, as a part of each range."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One combination and what came of it; `score` is 0 if the training diverged.

    `place` is where in the unit cube of all ranges the combination lies.
    """

    number: int
    settings: Mapping[str, float | int]
    score: float
    place: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class TuningResult:
    """The best combination: a regime and settings for `train`, and all trials in order."""

    regime: str
    settings: Mapping[str, float | int]
    trials: tuple[Trial, ...]


def tune(
    architecture: str,
    data: Dataset,
    *,
    out: Path | str,
    trials: int,
    regime: Regime | str = "standard",
    objective: str = "pgd",
    eps: float | None = None,
    seed: int = 0,
    epochs: int = 10,
    on_trial: Callable[[Trial], None] | None = None,
    device: str | None = None,
    **settings: Any,
) -> TuningResult:
    """The best of `trials` combinations, each kept in `out`; doing it again continues.

    Scores are the mean of the accuracy and of the robust accuracy at eps: under attack
    (`pgd`), or proven by linear bounds (`crown`), on held-out training images. `device` and
    `settings` are further arguments of `train`.
    """
    _check_search(trials, objective)
    chosen = parse_regime(regime) if isinstance(regime, str) else regime
    training, held_out = _split(data, seed)
    directory = Path(out)
    purpose = {
        "architecture": architecture,
        "regime": chosen.spec,
        "data": f"{data.title} ({digest(data.images, data.labels)[:12]})",
        "objective": f"{objective} at {chosen.radius if eps is None else eps}",
        "epochs": epochs,
        "seed": seed,
        "settings": {name: str(value) for name, value in sorted(settings.items())},
    }
    with claimed(directory):
        done = _read_trials(directory / TUNING_FILE, purpose)
        for number in range(len(done), trials):
            place = _place(done, seed)
            combination = _combination(place, chosen, epochs)
            score = _score(
                architecture,
                training,
                held_out,
                OBJECTIVES[objective],
                out=directory / f"trial-{number}",
                regime=_with(chosen, combination),
                eps=eps,
                seed=seed,
                epochs=epochs,
                device=device,
                **{**settings, **_of_loop(combination)},
            )
            done.append(Trial(number, combination, score, place))
            _write_trials(directory / TUNING_FILE, purpose, done)
            if on_trial is not None:
                on_trial(done[-1])
    tried = tuple(done[:trials])
    best = max(tried, key=lambda trial: trial.score)
    return TuningResult(_with(chosen, best.settings).spec, _of_loop(best.settings), tried)


def _check_search(trials: int, objective: str) -> None:
    if trials < 1:
        raise TrainingError(f"a search of {trials} trials has nothing to do")
    if objective not in OBJECTIVES:
        raise TrainingError(f"objective '{objective}' is not one of {', '.join(OBJECTIVES)}")


def _split(data: Dataset, seed: int) -> tuple[Dataset, Dataset]:
    count = max(1, round(HELD_OUT_SHARE * len(data)))
    if count >= len(data):
        raise TrainingError(f"'{data.title}' has too few images to hold some out")
    order = np.random.default_rng(seed).permutation(len(data))
    return data.take(np.sort(order[count:])), data.take(np.sort(order[:count]))


def _place(done: Sequence[Trial], seed: int) -> tuple[float, ...]:
    """Where in the unit cube the next trial lies: a function of the trials so far and the seed.

    The first ones are spread evenly; each later one is a random step from the best so far, shorter
    and shorter.
    """
    rng = np.random.default_rng([seed, len(done)])
    if len(done) < SPREAD_TRIALS:
        from scipy.stats import qmc

        return tuple(qmc.Halton(d=DIMENSIONS, rng=seed).random(len(done) + 1)[-1].tolist())
    best = max(done, key=lambda trial: trial.score)
    size = LARGEST_STEP * SPREAD_TRIALS / len(done)
    moved = np.array(best.place) + size * rng.normal(size=DIMENSIONS)
    return tuple(np.clip(moved, 0.0, 1.0).tolist())


def _combination(place: Sequence[float], regime: Regime, epochs: int) -> dict[str, float | int]:
    """The settings at a place of the unit cube."""
    rate, step, factor, beta, kappa = place
    combination: dict[str, float | int] = {
        "rate": _logarithmic(rate, *RATE_RANGE),
        "rate_step": min(1 + int(step * epochs), max(1, epochs)),
        "rate_factor": _logarithmic(factor, *FACTOR_RANGE),
    }
    if hasattr(regime, "alpha"):  # a weight beside that of the cross-entropy
        combination["beta"] = _logarithmic(beta, *WEIGHT_RANGE)
    if hasattr(regime, "kappa"):
        low, high = SHARE_RANGE
        combination["kappa"] = low + kappa * (high - low)
    return combination


def _logarithmic(share: float, low: float, high: float) -> float:
    """The point that lies this share of the way from `low` to `high` on a logarithmic scale."""
    return float(low * (high / low) ** share)


def _of_loop(combination: Mapping[str, float | int]) -> dict[str, float | int]:
    names = ("rate", "rate_step", "rate_factor")
    return {name: combination[name] for name in names}


def _with(regime: Regime, combination: Mapping[str, float | int]) -> Regime:
    """The regime with the weights of a combination."""
    assert dataclasses.is_dataclass(regime)
    own = {f.name for f in dataclasses.fields(regime)} & combination.keys()
    changed: Regime = dataclasses.replace(regime, **{name: combination[name] for name in own})
    return changed


def _score(
    architecture: str,
    training: Dataset,
    held_out: Dataset,
    robustness: Callable[[TrainedNetwork, Dataset], float],
    **how: Any,
) -> float:
    try:
        trained = train(architecture, training, test=held_out, **how)
    except TrainingError as error:
        if "diverged" in str(error):
            return 0.0
        raise
    robust = robustness(trained, held_out)
    return (1 - ROBUSTNESS_WEIGHT) * trained.card.accuracy + ROBUSTNESS_WEIGHT * robust


def _under_attack(trained: TrainedNetwork, _held_out: Dataset) -> float:
    return trained.card.robust_accuracy


def _certified(trained: TrainedNetwork, held_out: Dataset) -> float:
    """The share of images whose class CROWN proves within eps."""
    from radii.bounds import crown_bounds

    network, eps = trained.network, trained.card.settings.eps
    shown = held_out.first(min(CERTIFIED_IMAGES, len(held_out)))
    eye = np.eye(network.output_size)
    proven = 0
    for image, label in zip(shown.images, shown.labels.tolist(), strict=True):
        ball = Ball(image.astype(np.float64), eps, Norm.LINF, network.domain)
        rows = np.delete(eye[label] - eye, label, axis=0)
        proven += bool((crown_bounds(network, [ball], rows).low > 0).all())
    return proven / len(shown)


OBJECTIVES: dict[str, Callable[[TrainedNetwork, Dataset], float]] = {
    "pgd": _under_attack,
    "crown": _certified,
}


def _read_trials(path: Path, purpose: Mapping[str, Any]) -> list[Trial]:
    """The trials that have ended; a TrainingError if they are those of another search."""
    if not path.exists():
        return []
    try:
        stored = json.loads(path.read_text("utf-8"))
        before = stored["purpose"]
        trials = [Trial(**{**each, "place": tuple(each["place"])}) for each in stored["trials"]]
        different = [name for name in purpose if purpose[name] != before.get(name)]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise TrainingError(f"{path}: cannot be read as a search ({error})") from None
    if different:
        raise TrainingError(
            f"{path.parent}: holds another search (other {', '.join(different)}); choose another "
            "directory"
        )
    return trials


def _write_trials(path: Path, purpose: Mapping[str, Any], trials: list[Trial]) -> None:
    stored = {"purpose": purpose, "trials": [dataclasses.asdict(trial) for trial in trials]}
    with replacing(path) as partial:
        partial.write_text(json.dumps(stored, indent=1) + "\n", "utf-8")
