"""Bayesian networks: the sampler against a known posterior, members, their mean, convergence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch

from radii import datasets
from radii.cli import main
from radii.errors import InputError
from radii.problem import probabilities
from radii.training import architecture
from radii_papers.tradeoff import BayesianNetwork, Hamiltonian, train_bayesian
from radii_papers.tradeoff._bayesian import Chain, Posterior, convergence, sample_chain

SHORT = Hamiltonian(samples=6, warmup=4, chains=2, steps=4)


@pytest.fixture(scope="module")
def digits() -> datasets.Dataset:
    return datasets.load("digits", split="train").first(60)


@pytest.fixture(scope="module")
def few(
    digits: datasets.Dataset, tmp_path_factory: pytest.TempPathFactory
) -> tuple[BayesianNetwork, Path]:
    out = tmp_path_factory.mktemp("bayesian")
    return train_bayesian("dense:5", digits, how=SHORT, members=3, out=out, seed=1), out


@pytest.mark.parametrize("kernel", ["hmc", "nuts"])
def test_without_data_the_posterior_is_the_prior(kernel: Literal["hmc", "nuts"]) -> None:
    """Weights of a layer with four inputs have half the standard deviation of the prior."""
    module = architecture("dense:2", (4,), 2, seed=0)
    posterior = Posterior(module, torch.zeros(0, 4), torch.zeros(0, dtype=torch.long), prior=1.0)
    how = Hamiltonian(kernel=kernel, samples=120, warmup=20, chains=1, steps=6, step=0.3, prior=1.0)
    chain = sample_chain(posterior, posterior.row(module), how, seed=0)
    weights = [posterior.weights(row) for row in chain.rows]
    first = torch.stack([held["1.weight"] for held in weights]).flatten()
    bias = torch.stack([held["1.bias"] for held in weights]).flatten()
    assert first.numel() == 8 * 120
    assert float(first.mean()) == pytest.approx(0.0, abs=0.1)
    assert float(first.std()) == pytest.approx(0.5, rel=0.15)
    assert float(bias.std()) == pytest.approx(1.0, rel=0.25)
    assert chain.acceptance > 0.5


def test_the_network_is_the_mean_of_its_members(
    few: tuple[BayesianNetwork, Path], digits: datasets.Dataset
) -> None:
    found, _ = few
    images = digits.first(5).images
    each = [probabilities(member.replay(images)) for member in found.members]
    assert len({member.fingerprint for member in found.members}) == 3
    assert np.allclose(found.network.replay(images), np.mean(each, axis=0), atol=1e-5)


def test_what_is_kept(few: tuple[BayesianNetwork, Path], digits: datasets.Dataset) -> None:
    found, out = few
    told = json.loads((out / "bayesian.json").read_text())
    assert told["trained_on"] == 60
    assert told["held_out"] is False
    assert told["converged"] is found.convergence.is_reached
    assert sorted(path.name for path in (out / "members").iterdir()) == [
        f"00{number}.onnx" for number in range(3)
    ]
    again = train_bayesian("dense:5", digits, how=SHORT, members=3, out=out, seed=1)
    assert again.network.fingerprint == found.network.fingerprint
    with pytest.raises(InputError, match="belongs to another training"):
        train_bayesian("dense:5", digits.first(50), how=SHORT, members=3, out=out, seed=1)
    (out / "chain-0.pt").write_bytes(b"damaged")
    with pytest.raises(InputError, match="cannot be read as a chain"):
        train_bayesian("dense:5", digits, how=SHORT, members=3, out=out, seed=1)


def test_chains_that_disagree_did_not_converge() -> None:
    module = architecture("dense:2", (4,), 2, seed=0)
    images = torch.rand(10, 4, generator=torch.Generator().manual_seed(0))
    posterior = Posterior(module, images, torch.zeros(10, dtype=torch.long), prior=1.0)
    middle = posterior.row(module)
    noise = torch.randn(2, 80, len(middle), generator=torch.Generator().manual_seed(1))
    mixed = [Chain(middle + 0.3 * part, 0.9, 0) for part in noise]
    apart = [Chain(chain.rows + side, 0.9, 0) for side, chain in enumerate(mixed)]
    stuck = [Chain(middle.expand(80, -1) + side, 0.0, 0) for side in range(2)]
    assert convergence(posterior, mixed, images).is_reached
    assert str(convergence(posterior, mixed, images)).startswith("converged")
    for chains in (apart, stuck):
        found = convergence(posterior, chains, images)
        assert not found.is_reached
        assert str(found).startswith("DID NOT CONVERGE")


@pytest.mark.parametrize(
    "options",
    [{"kernel": "gibbs"}, {"samples": 1}, {"chains": 0}, {"step": 0.0}, {"prior": float("nan")}],
)
def test_bad_settings(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Hamiltonian(**options)


def test_too_many_members(digits: datasets.Dataset) -> None:
    with pytest.raises(InputError, match="members 13 must be between 1 and all 12 samples"):
        train_bayesian("dense:5", digits, how=SHORT, members=13)


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["--data", "digits:train[0:60]", "--arch", "dense:5", "--out", str(tmp_path)]
    flags = ["study", "bayesian", *data, "--warmup", "2", "--steps", "2"]
    assert main([*flags, "--samples", "4", "--members", "2"]) == 0
    told = capsys.readouterr().out
    assert "the mean of 2 members" in told
    assert "DID NOT CONVERGE" in told
    assert main([*flags, "--samples", "1"]) == 2
    assert "samples 1 must be at least 4" in capsys.readouterr().err
    assert main([*flags, "--kernel", "gibbs"]) == 2
