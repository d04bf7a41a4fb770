"""A run is the same whether it is read at once, followed, or exported and read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import write_linear, write_points
from radii.errors import DataError, StoreError
from radii.problem import FLOAT, Grid, Norm
from radii.runs import Experiment, prepare
from radii.statistics import (
    COLUMNS,
    Distribution,
    FollowedStore,
    Run,
    frame_of_columns,
    read,
    read_store,
    with_distinct_names,
)
from radii.store import Store, StoredSettings


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two inputs with radii 0.1 and 0.25, and one misclassified."""
    files = tmp_path_factory.mktemp("run")
    network, data = write_linear(files), write_points(files)
    options = {"networks": [str(network)], "data": f"{data}[0:3]", "domain": "0:1"}
    plan = prepare(Experiment.from_options({**options, "grid": "0.01:0.4:0.02"}))
    with Store.create_or_open(files / "out") as store:
        plan.run(store, jobs=0)
    return files / "out"


def same_columns(one: Run, two: Run) -> bool:
    return all(
        np.array_equal(
            one.columns[name], two.columns[name], equal_nan=one.columns[name].dtype == float
        )
        for name in COLUMNS
    )


def test_reading_and_following_a_store_give_one_run(place: Path) -> None:
    followed = FollowedStore(place)
    followed.refresh()
    run = read_store(place)
    assert same_columns(run, followed.run())
    assert run.is_measured and run.notes == () and run.disagreements == ()
    assert [record.key for record in run.records] == [r.key for r in followed.records]
    # Everybody who reads a store knows how far was searched; misclassified inputs need no search.
    assert run.columns["searched"].tolist() == [run.grid.values[-1], run.grid.values[-1], 0.0]
    assert [step.upper for step in run.records[2].steps] == [0.0]
    assert Distribution.from_run(run).measurements == run.measurements


def test_a_record_is_weighed_once(place: Path) -> None:
    (record, *_) = read_store(place).records
    assert record.measurement is record.measurement
    assert record.measurement.bracket is record.bracket
    assert record.steps[-1].lower == record.bracket.lower


def test_settings_are_typed(place: Path) -> None:
    settings = read_store(place).settings
    assert (settings.norm, settings.arithmetic) == (Norm.LINF, FLOAT)
    assert settings.grid == Grid.parse("0.01:0.4:0.02")
    assert settings.text_of("grid") == "0.01:0.4:0.02"
    assert set(settings.domain_of_network()) == set(settings.networks.values())
    assert StoredSettings.from_json({"seed": None, "of a later version": 1}) == StoredSettings()
    wrong: list[dict[str, Any]]
    wrong = [{"seed": "1"}, {"networks": []}, {"norm": "l3"}, {"timeout": True}]
    for stored in wrong:
        with pytest.raises(ValueError, match=r"is no|not a valid"):
            StoredSettings.from_json(stored)


def test_an_exported_run_comes_back_as_claims(place: Path, tmp_path: Path) -> None:
    run = read_store(place)
    frame_of_columns(run.columns).to_csv(tmp_path / "out.csv", index=False)
    again = read(tmp_path / "out.csv")
    assert same_columns(run, again)
    assert not again.is_measured
    assert again.settings == StoredSettings(source="out.csv")
    with pytest.raises(StoreError, match="does not say on which grid"):
        _ = again.grid
    assert len({name for each in with_distinct_names([run, again]) for name in each.networks}) == 2


def test_a_folder_without_results(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no radii\.sqlite here"):
        read(tmp_path)
    with Store.create_or_open(tmp_path / "new"), pytest.raises(StoreError, match="no instances"):
        read_store(tmp_path / "new")
