"""R and D end to end, on a linear network whose radii are known by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import write_linear
from radii import datasets, load_network
from radii.errors import InputError
from radii.networks import Network
from radii.runs import (
    ChangeSettings,
    DataSource,
    GeneratorSource,
    InputSource,
    estimate_change,
    estimate_robustness,
    load_generator,
    settings_for,
)
from radii.statistics import Demand, Range
from radii.store import Store

EPS = 0.05
INPUTS = 120


@pytest.fixture
def network(tmp_path: Path) -> Network:
    return load_network(write_linear(tmp_path), domain=(0, 1))


def points() -> np.ndarray:
    return np.random.default_rng(0).uniform(0.2, 0.8, (INPUTS, 2)).astype(np.float32)


def is_robust(images: np.ndarray) -> np.ndarray:
    """y0 - y1 = x0 - x1: the prediction stays as long as eps is below half of that."""
    robust: np.ndarray = np.abs(images[:, 0] - images[:, 1]) / 2 > EPS
    return robust


def point_set(*, beyond: bool = False) -> DataSource:
    """Labels are all wrong half of the time: R is about predictions."""
    return DataSource(datasets.from_arrays(points(), np.zeros(INPUTS, int)), beyond=beyond)


def estimated(
    network: Network,
    source: InputSource,
    demand: Demand,
    by: str = "both",
    store: Store | None = None,
) -> Any:
    settings = settings_for(EPS, by)
    with store or Store.in_memory() as kept:
        return estimate_robustness(network, source, settings, demand, kept)


def test_a_whole_set_gives_the_share_itself(network: Network) -> None:
    found = estimated(network, point_set(), Demand(samples=INPUTS))
    assert found.estimate.low == found.estimate.high == pytest.approx(is_robust(points()).mean())
    assert found.estimate.population.size == INPUTS
    by_index = {row.index: row.lower for row in found.inputs}
    assert [by_index[k] for k in range(INPUTS)] == is_robust(points()).astype(float).tolist()


def test_a_planned_sample_is_drawn_by_its_seed(network: Network) -> None:
    found = estimated(network, point_set(), Demand(error=0.15))
    drawn = [row.index for row in found.inputs]
    assert len(drawn) == len(set(drawn)) == found.estimate.samples < INPUTS
    truth = is_robust(points()).mean()
    assert found.estimate.least == pytest.approx(is_robust(points()[drawn]).mean())
    assert found.estimate.error <= 0.15
    assert found.estimate.low <= truth <= found.estimate.high
    assert found.attacked is not None


def test_attacks_bound_one_side_and_proofs_both(network: Network) -> None:
    demand = Demand(samples=30)
    attacked = estimated(network, point_set(), demand, by="attack")
    proven = estimated(network, point_set(), demand, by="proof")
    assert attacked.estimate.low == 0.0
    assert attacked.estimate.bracket_width == attacked.estimate.most == proven.estimate.most
    assert attacked.attacked is not None
    assert attacked.attacked.low > 0
    assert proven.estimate.bracket_width == 0.0
    assert proven.attacked is None


def test_a_sequential_estimate_stops_and_continues(network: Network, tmp_path: Path) -> None:
    demand = Demand(is_sequential=True, threshold=0.3)
    once = estimated(network, point_set(), demand, store=Store.create_or_open(tmp_path / "out"))
    assert once.decision is True
    assert once.estimate.samples < INPUTS
    again = estimated(network, point_set(), demand, store=Store.create_or_open(tmp_path / "out"))
    assert again == once
    precise = Demand(is_sequential=True, error=0.2)
    assert estimated(network, point_set(), precise).estimate.error <= 0.2


def test_other_demands_of_the_same_directory_are_refused(network: Network, tmp_path: Path) -> None:
    estimated(network, point_set(), Demand(samples=10), store=Store.create_or_open(tmp_path / "o"))
    with pytest.raises(InputError, match="another experiment"):
        estimated(
            network, point_set(), Demand(samples=12), store=Store.create_or_open(tmp_path / "o")
        )


def test_the_output_says_whom_it_is_about(network: Network) -> None:
    source = point_set(beyond=True)
    found = estimated(network, source, Demand(samples=20))
    assert found.estimate.population.size is None
    assert "i.i.d." in found.estimate.population.sampling
    with pytest.raises(InputError, match=r"needs 738 inputs but arrays has 120: .* ±0\.124"):
        estimated(network, source, Demand(error=0.05))


def test_generators_make_independent_inputs(network: Network, tmp_path: Path) -> None:
    path = tmp_path / "points.py"
    path.write_text("def point(rng):\n    return rng.uniform(0.2, 0.8, 2)\n")
    source = load_generator(f"{path}:point")
    few, more = source.draw(5, seed=3), source.draw(9, seed=3)
    assert np.array_equal(few.images, more.images[:5])
    assert not np.array_equal(few.images, source.draw(5, seed=4).images)
    found = estimated(network, source, Demand(samples=25))
    assert found.estimate.population.size is None
    assert found.estimate.least == pytest.approx(is_robust(source.draw(25, 0).images).mean())


@pytest.mark.parametrize(
    "text", ["nowhere.py:point", "point", "{}:nothing", "{}:number", "{}:broken", "{}:words"]
)
def test_bad_generators(text: str, tmp_path: Path) -> None:
    path = tmp_path / "g.py"
    path.write_text(
        "number = 1\ndef broken(rng): raise ValueError('no')\ndef words(rng): return 'a'\n"
    )
    with pytest.raises(InputError):
        load_generator(text.format(path)).draw(1, 0)


def test_generators_of_mixed_shapes() -> None:
    source = GeneratorSource(lambda rng: np.zeros(int(rng.integers(1, 9))), "mixed")
    with pytest.raises(InputError, match="different shapes"):
        source.draw(20, 0)


def test_changes_of_outputs(network: Network, tmp_path: Path) -> None:
    """Each output is one input: it moves by eps, except where the domain ends."""
    measuring = ChangeSettings(eps=EPS, on="outputs")
    options: dict[str, Any] = {"values": Range(0, 1), "out": tmp_path / "d"}
    found = estimate_change(network, point_set(), measuring, Demand(samples=30), **options)
    assert found.estimate.least == pytest.approx(EPS, rel=1e-3)
    assert found.estimate.most == pytest.approx(EPS, abs=3e-4)
    assert found.estimate.low <= EPS <= found.estimate.high
    again = estimate_change(network, point_set(), measuring, Demand(samples=30), **options)
    assert again == found
    other = ChangeSettings(eps=2 * EPS, on="outputs")
    with pytest.raises(InputError, match="holds another measurement"):
        estimate_change(network, point_set(), other, Demand(samples=30), **options)


def test_an_interrupted_line_is_measured_again(network: Network, tmp_path: Path) -> None:
    measuring, demand = ChangeSettings(eps=EPS), Demand(samples=10)
    once = estimate_change(network, point_set(), measuring, demand, out=tmp_path)
    file = tmp_path / "changes.jsonl"
    file.write_text(file.read_text()[:-20])
    assert estimate_change(network, point_set(), measuring, demand, out=tmp_path) == once
    file.write_text(file.read_text().replace('"lower"', '"lover"'))
    with pytest.raises(InputError, match="line 2 is not a measured change"):
        estimate_change(network, point_set(), measuring, demand, out=tmp_path)


def test_sequential_changes_stop_early(network: Network) -> None:
    demand = Demand(error=0.1, is_sequential=True)
    found = estimate_change(network, point_set(), ChangeSettings(eps=EPS), demand)
    assert found.estimate.error <= 0.1
    assert found.estimate.samples < INPUTS


def test_ranges_of_changes(network: Network) -> None:
    demand, measuring = Demand(samples=5), ChangeSettings(eps=EPS, on="outputs")
    with pytest.raises(InputError, match="say how far they can move"):
        estimate_change(network, point_set(), measuring, demand)
    with pytest.raises(
        InputError, match=r"seen to change by 0\.05.* outside the range \[0, 0.01\]"
    ):
        estimate_change(network, point_set(), measuring, demand, values=Range(0, 0.01))


@pytest.mark.parametrize(
    "options",
    [
        {"eps": 0.0},
        {"eps": 0.1, "on": "logits"},
        {"eps": 0.1, "by": "guess"},
        {"eps": 0.1, "attack": "apgd"},
        {"eps": 0.1, "within": 0.0},
    ],
)
def test_bad_measuring(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        ChangeSettings(**options)


@pytest.mark.parametrize("eps", ["0", "-1", "x", "1/0"])
def test_bad_eps(eps: str) -> None:
    with pytest.raises(InputError, match="eps"):
        settings_for(eps, "both")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"error": 0.1, "confidence": 1.0},
        {"samples": 0},
        {"is_sequential": True},
        {"error": 0.1, "is_sequential": True, "method": "exact"},
        {"error": 0.1, "method": "guess"},
    ],
)
def test_bad_demands(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Demand(**options)


def test_demands_that_a_source_cannot_meet(network: Network) -> None:
    with pytest.raises(InputError, match="there are 120 inputs"):
        estimated(network, point_set(), Demand(samples=121))
    endless = GeneratorSource(lambda rng: rng.uniform(0, 1, 2), "endless")
    with pytest.raises(InputError, match="for ever"):
        estimated(network, endless, Demand(is_sequential=True, threshold=0.5))
