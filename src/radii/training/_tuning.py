"""Search for the settings of a training run that leave the network most robust.

Each trial trains on a part of the training images and is scored on the rest of them, never on the
test images. What is searched is what the literature searched: the learning rate, the epochs
after which it falls, the factor by which, and the weights of a regime that has any.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.datasets import Dataset
from radii.errors import MissingExtra, TrainingError
from radii.problem import Ball, Norm
from radii.training._checkpoints import claimed
from radii.training._preparation import digest
from radii.training._regime import Regime, parse_regime
from radii.training._runs import TrainedNetwork, train

if TYPE_CHECKING:
    import optuna


TUNING_FILE = "tuning.log"

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


@dataclass(frozen=True, slots=True)
class Trial:
    """One combination and what came of it; `score` is 0 if the training diverged."""

    number: int
    settings: Mapping[str, float | int]
    score: float


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
    with _quiet(), claimed(directory):
        study = _study(directory, purpose)
        while len(done := _ended_trials(study)) < trials:
            study.sampler = _sampler(seed + len(done))  # the same after a kill
            with _explaining_errors(directory):
                trial = study.ask()
                combination = _combination(trial, chosen, epochs)
            score = _score(
                architecture,
                training,
                held_out,
                OBJECTIVES[objective],
                out=directory / f"trial-{len(done)}",
                regime=_with(chosen, combination),
                eps=eps,
                seed=seed,
                epochs=epochs,
                device=device,
                **{**settings, **_of_loop(combination)},
            )
            with _explaining_errors(directory):
                study.tell(trial, score)
            if on_trial is not None:
                on_trial(Trial(len(done), combination, score))
        best = max(done[:trials], key=lambda ended: ended.score)
    return TuningResult(
        _with(chosen, best.settings).spec, _of_loop(best.settings), tuple(done[:trials])
    )


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


def _combination(trial: optuna.Trial, regime: Regime, epochs: int) -> dict[str, float | int]:
    combination: dict[str, float | int] = {
        "rate": trial.suggest_float("rate", *RATE_RANGE, log=True),
        "rate_step": trial.suggest_int("rate_step", 1, max(1, epochs)),
        "rate_factor": trial.suggest_float("rate_factor", *FACTOR_RANGE, log=True),
    }
    if hasattr(regime, "alpha"):  # a weight beside that of the cross-entropy
        combination["beta"] = trial.suggest_float("beta", *WEIGHT_RANGE, log=True)
    if hasattr(regime, "kappa"):
        combination["kappa"] = trial.suggest_float("kappa", *SHARE_RANGE)
    return combination


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


def _study(directory: Path, purpose: dict[str, Any]) -> optuna.Study:
    """The study kept in a directory; a trial that a kill cut off does not count."""
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    with _explaining_errors(directory):
        # Nobody else searches here: a lock that is there was left by a kill.
        (directory / f"{TUNING_FILE}.lock").unlink(missing_ok=True)
        storage = JournalStorage(JournalFileBackend(str(directory / TUNING_FILE)))
        study = optuna.create_study(
            study_name="tuning", storage=storage, direction="maximize", load_if_exists=True
        )
        known = study.user_attrs.get("purpose")
        if known is None:
            study.set_user_attr("purpose", purpose)
            known = purpose
    if known != purpose:
        different = ", ".join(name for name in purpose if purpose[name] != known.get(name))
        raise TrainingError(
            f"{directory}: holds another search (other {different}); choose another directory"
        )
    with _explaining_errors(directory):
        for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
    return study


@contextmanager
def _explaining_errors(directory: Path) -> Iterator[None]:
    """Around what optuna reads and writes: full disks and damaged files, in a sentence."""
    try:
        yield
    except Exception as error:  # it fails on damaged files in more ways than it documents
        first = next(iter(str(error).strip().splitlines()), "")
        raise TrainingError(
            f"{directory / TUNING_FILE}: cannot be used for a search ({type(error).__name__}"
            + (f": {first})" if first else ")")
        ) from None


def _ended_trials(study: optuna.Study) -> list[Trial]:
    from optuna.trial import TrialState

    ended = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return [
        Trial(number, dict(trial.params), trial.value if trial.value is not None else math.nan)
        for number, trial in enumerate(ended)
    ]


def _sampler(seed: int) -> optuna.samplers.BaseSampler:
    from optuna.samplers import TPESampler

    return TPESampler(seed=seed, n_startup_trials=5)


@contextmanager
def _quiet() -> Iterator[None]:
    """Optuna tells of every trial on standard error unless it is asked not to."""
    try:
        import optuna
    except ImportError:
        raise MissingExtra("optuna", "train", "the search for training settings") from None
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", category=optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)
