"""The callback for a training loop: true rows, an untouched module, files as it goes."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from radii.errors import InputError
from radii.training import RobustnessLog

IMAGES = np.array([[0.5 + r, 0.5 - r] for r in (0.052, 0.102, 0.202, 0.302, -0.1)], np.float32)
DATA = (IMAGES, [0] * 5)


def linear() -> nn.Module:
    """The Linf radius of (x0, x1), label 0, is (x0 - x1) / 2; with dropout, in training mode."""
    layer = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(2))
    return nn.Sequential(nn.Dropout(0.5), layer).train()


def test_a_row_is_the_distribution_of_the_inputs() -> None:
    log = RobustnessLog(DATA, domain=(0, 1), eps=(0.08, 0.25), quantiles=(0.9,), timeout=600)
    module = linear()
    state = torch.get_rng_state()
    row = log(3, module)
    assert module.training
    assert torch.equal(torch.get_rng_state(), state)
    assert row is not None
    assert row["accuracy"] == 0.8
    assert row["inputs"] == 5
    assert row["median_lower"] == pytest.approx(0.1)  # the grid is 0.005, 0.010, ...
    assert 0.1019 <= row["median_upper"] <= 0.1021
    for eps, share in ((0.08, 0.6), (0.25, 0.2)):
        for side in ("proven", "not_refuted"):
            assert row[f"robust_{eps}_{side}"] == pytest.approx(share)
    assert log.table.columns.tolist() == log.columns
    assert log.table.epoch.tolist() == [3]
    assert log.last is not None
    assert len(log.last) == 5


def test_files_as_it_goes_and_going_on(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "robustness.csv"
    log = RobustnessLog(DATA, domain=(0, 1), csv=path, every=2, inputs=2, timeout=600)
    for epoch in range(3):
        log(epoch, linear())
    assert pd.read_csv(path).epoch.tolist() == [0, 2]
    again = RobustnessLog(DATA, domain=(0, 1), csv=path, every=2, inputs=2, timeout=600)
    again(2, linear())
    again(4, linear())
    frame = pd.read_csv(path)
    assert frame.epoch.tolist() == [0, 2, 4]
    assert frame.inputs.tolist() == [2, 2, 2]
    assert frame.median_lower.nunique() == 1  # the same inputs, the same module
    with pytest.raises(InputError, match="another file"):
        RobustnessLog(DATA, domain=(0, 1), csv=path, eps=(0.1,))


def test_tensorboard_where_it_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with RobustnessLog(DATA, domain=(0, 1), inputs=3, tensorboard=tmp_path) as log:
        assert log.writes_tensorboard
        row = log(1, linear())
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    told = events.Scalars("radii/median_lower")
    assert row is not None
    assert [(event.step, event.value) for event in told] == [
        (1, pytest.approx(row["median_lower"]))
    ]
    assert "radii/lower" in events.Tags()["histograms"]


def test_a_writer_of_the_users_own_is_used() -> None:
    class Writer:
        told: list[str] = []  # noqa: RUF012

        def add_scalar(self, name: str, value: float, step: int) -> None:
            self.told.append(name)

        def add_histogram(self, name: str, values: object, step: int) -> None:
            self.told.append(name)

        def flush(self) -> None:
            self.told.append("flush")

    log = RobustnessLog(DATA, domain=(0, 1), inputs=1, tensorboard=Writer())
    log(0, linear())
    log.close()
    assert {"radii/accuracy", "radii/lower", "flush"} <= set(Writer.told)


def test_without_tensorboard_it_says_so_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.warns(UserWarning, match="'tensorboard' is not installed"):
        log = RobustnessLog(DATA, domain=(0, 1), inputs=1, tensorboard=tmp_path)
    assert not log.writes_tensorboard
    assert log(0, linear()) is not None


def test_a_file_that_is_damaged_is_refused(tmp_path: Path) -> None:
    log = RobustnessLog(DATA, domain=(0, 1), inputs=1)
    damaged = tmp_path / "log.csv"
    damaged.write_text(",".join(log.columns) + "\n" + ",".join(["?"] * len(log.columns)) + "\n")
    with pytest.raises(InputError, match="not a log of numbers"):
        RobustnessLog(DATA, domain=(0, 1), inputs=1, csv=damaged)


@pytest.mark.parametrize(
    "options",
    [
        {"every": 0},
        {"eps": (-1,)},
        {"quantiles": (2,)},
        {"domain": (1, 1)},
        {"domain": (-np.inf, np.inf)},
        {"colour": "red"},
        {"grid": "1:2"},
    ],
)
def test_bad_options_are_refused_at_once(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        RobustnessLog(DATA, **{"domain": (0, 1), **options})  # type: ignore[arg-type]
