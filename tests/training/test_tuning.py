"""The search for training settings: scored on held-out training images, resumed to the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from radii import datasets
from radii.datasets import Dataset
from radii.errors import TrainingError
from radii.training import Trial, TuningResult, parse_regime, tune
from radii.training._tuning import FACTOR_RANGE, RATE_RANGE, SHARE_RANGE, _combination, _place


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


def test_bad_searches(digits: Dataset, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="0 trials"):
        searched(digits, tmp_path, 0)
    with pytest.raises(TrainingError, match="objective 'luck'"):
        searched(digits, tmp_path, objective="luck")


def test_the_first_places_are_spread_and_later_ones_close_in_on_the_best() -> None:
    def worth(place: tuple[float, ...]) -> float:
        return 1 - max(abs(at - 0.8) for at in place)

    found = []
    for seed in range(5):
        done: list[Trial] = []
        while len(done) < 60:
            place = _place(done, seed)
            assert place == _place(done, seed)
            assert len(place) == 5 and all(0 <= at <= 1 for at in place)
            done.append(Trial(len(done), {}, worth(place), place))
        assert all(np.ptp(column) > 0.4 for column in np.transpose([t.place for t in done[:5]]))
        found.append(max(trial.score for trial in done))
    uniform = np.random.default_rng(0).random((200, 60, 5))
    by_chance = np.median(1 - np.abs(uniform - 0.8).max(axis=2).min(axis=1))
    assert np.median(found) > by_chance + 0.05


def test_combinations_are_within_their_ranges() -> None:
    both = parse_regime("sr:eps=0.1"), parse_regime("crown-ibp")
    for at in (0.0, 0.3, 1.0):
        for regime in both:
            combination = _combination([at] * 5, regime, 8)
            assert RATE_RANGE[0] <= combination["rate"] <= RATE_RANGE[1] * (1 + 1e-12)
            assert FACTOR_RANGE[0] <= combination["rate_factor"] <= FACTOR_RANGE[1] * (1 + 1e-12)
            assert combination["rate_step"] in range(1, 9)
            assert ("kappa" in combination) == (regime is both[1])
            assert ("beta" in combination) == (regime is both[0])
    assert _combination([0.5] * 5, both[1], 8)["kappa"] == sum(SHARE_RANGE) / 2
