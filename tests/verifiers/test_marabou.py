"""maraboupy, really run: it agrees with complete verifiers, and ends when told to."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pytest

from conftest import BUSY_SECONDS
from radii.bounds import fuse, relu_form
from radii.problem import Query, Verdict
from radii.runs import Experiment, prepare
from radii.store import Store
from radii.testing import NetworkFamily, VerifierConformance, random_instance, random_network
from radii.verifiers import Limits, Marabou, Milp, Verifier
from radii.verifiers._marabou import as_chain

is_here = pytest.mark.skipif(
    Marabou().version == "maraboupy is not installed", reason="maraboupy is not installed"
)


@is_here
@pytest.mark.sampled(3, "family")  # test_a_chain_computes_what_the_network_does has all
class TestConformance(VerifierConformance):
    def make(self) -> Verifier:
        return Marabou()


@pytest.mark.parametrize("family", list(NetworkFamily))
@pytest.mark.parametrize("seed", range(3))
def test_a_chain_computes_what_the_network_does(family: NetworkFamily, seed: int) -> None:
    network = random_network(family, seed, units=12)
    low = np.full(int(np.prod(network.input_shape)), -1.0)
    chain = as_chain(relu_form(fuse(network)), low)
    points = np.random.default_rng(seed).uniform(-1, 1, (20, *network.input_shape))
    points = points.astype(network.input_dtype)
    values = points.reshape(20, -1).astype(np.float64)
    for place, layer in enumerate(chain):
        read = np.hstack([values, np.ones((20, 1))]) @ layer.toarray().T
        values = read if place == len(chain) - 1 else np.maximum(read, 0.0)
    np.testing.assert_allclose(values, network.replay(points), atol=1e-4)


@is_here
@pytest.mark.parametrize(
    "family", [NetworkFamily.DENSE, NetworkFamily.RESIDUAL, NetworkFamily.PRELU]
)
def test_it_agrees_with_milp(family: NetworkFamily) -> None:
    network = random_network(family, 11, units=12)
    for seed in range(3):
        instance = random_instance(network, seed)
        for eps in (0.03, 0.15):
            query = Query(instance, eps)
            ours = Milp().verify(network, query)
            theirs = Marabou().verify(network, query, Limits(60))
            assert theirs.verdict is ours.verdict
            assert theirs.version.startswith("maraboupy ")
            if theirs.proof is not None:
                assert theirs.proof.margin >= 1e-5


@is_here
@pytest.mark.slow
def test_a_run_with_it_ends_with_the_bracket_of_native(
    tmp_path: Path, relu_file: Path, relu_points_file: Path
) -> None:
    options = {
        "networks": [str(relu_file)],
        "data": f"{relu_points_file}[0:3]",
        "domain": "0:1",
        "grid": "0.01:0.3:0.02",
    }
    found = {}
    for verifier in ("marabou", "native"):
        experiment = Experiment.from_options({**options, "verifier": verifier})
        with Store.in_memory() as store:
            prepare(experiment).run(store)
            found[verifier] = store.measurements()
            answers = [result for told in store.results().values() for _, result in told]
            assert {verifier} <= {result.verifier for result in answers}
    for theirs, ours in zip(found["marabou"], found["native"], strict=True):
        assert theirs.bracket.lower == ours.bracket.lower > 0
        assert theirs.bracket.upper == pytest.approx(ours.bracket.upper, abs=1e-3)


@is_here
def test_cancelling_kills_the_solver() -> None:
    network = random_network(NetworkFamily.DENSE, 3, units=240, inputs=60, outputs=8)
    instance = random_instance(network, 0)
    started = time.monotonic()
    limits = Limits(60, cancelled=lambda: time.monotonic() > started + 1.0)
    result = Marabou().verify(network, Query(instance, 0.2), limits)
    assert time.monotonic() - started < 1 + BUSY_SECONDS
    assert result.verdict is Verdict.CANCELLED or not result.verdict.is_missing


def test_without_the_package_it_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    network = random_network(NetworkFamily.DENSE, 0, units=4)
    instance = random_instance(network, 0)
    monkeypatch.setitem(sys.modules, "maraboupy", None)
    assert "radii[marabou]" in str(Marabou().unsupported(network, instance.norm))
