"""The search for training settings: scored on held-out training images, resumed to the same."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from radii import datasets
from radii.datasets import Dataset
from radii.errors import MissingExtra, TrainingError
from radii.training import Trial, TuningResult, tune


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return datasets.load("digits", "train").first(200)


def searched(digits: Dataset, out: Path, trials: int = 3, **changes: object) -> TuningResult:
    settings: dict[str, object] = {"regime": "standard", "epochs": 2, "seed": 1, "eps": 0.05}
    return tune("dense:8", digits, out=out, trials=trials, **{**settings, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def tuned(digits: Dataset, tmp_path_factory: pytest.TempPathFactory) -> TuningResult:
    return searched(digits, tmp_path_factory.mktemp("tuning"))


def test_the_best_combination_is_returned(tuned: TuningResult) -> None:
    assert [trial.number for trial in tuned.trials] == [0, 1, 2]
    best = max(tuned.trials, key=lambda trial: trial.score)
    assert dict(tuned.settings) == dict(best.settings)
    assert tuned.regime == "standard"
    assert len({trial.settings["rate"] for trial in tuned.trials}) == 3
    assert all(0 <= trial.score <= 1 for trial in tuned.trials)


def test_cut_off_in_a_trial_it_ends_with_the_same(
    digits: Dataset, tuned: TuningResult, tmp_path: Path
) -> None:
    def stop(trial: Trial) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        searched(digits, tmp_path, on_trial=stop)
    assert searched(digits, tmp_path, trials=2).trials == tuned.trials[:2]
    assert searched(digits, tmp_path) == tuned
    with pytest.raises(TrainingError, match=r"another search.*epochs"):
        searched(digits, tmp_path, epochs=5)


def test_weights_of_a_regime_are_searched_too(digits: Dataset, tmp_path: Path) -> None:
    found = searched(
        digits, tmp_path, 1, regime="ibp:eps=0.05", epochs=1, objective="crown", eps=None
    )
    (trial,) = found.trials
    assert set(trial.settings) == {"rate", "rate_step", "rate_factor", "kappa"}
    assert f"kappa={trial.settings['kappa']!r}" in found.regime
    assert set(found.settings) == {"rate", "rate_step", "rate_factor"}


def test_bad_searches(digits: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TrainingError, match="0 trials"):
        searched(digits, tmp_path, 0)
    with pytest.raises(TrainingError, match="objective 'luck'"):
        searched(digits, tmp_path, objective="luck")
    (tmp_path / "tuning.log").write_text("no journal\n")
    with pytest.raises(TrainingError, match=r"tuning\.log"):
        searched(digits, tmp_path)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtra, match="optuna"):
        searched(digits, tmp_path)
