"""Bayesian networks: a sample of the posterior, whose mean softmax is the prediction.

Every member is a network of its own, and so is their mean, whose outputs are probabilities: all
parts of radii look at either, and an attack on the mean follows the gradient of the mean.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy.typing as npt
import torch
from torch import Tensor, nn

from radii.balls import Domain
from radii.datasets import Dataset
from radii.errors import TrainingError
from radii.networks import Network, from_torch
from radii.training.architectures import architecture
from radii.training.checkpoints import claimed, replacing
from radii.training.posterior import Chain, Hamiltonian, Posterior, sample_chain
from radii.training.preparation import Material, material

__all__ = ["BayesianNetwork", "Convergence", "MeanSoftmax", "convergence", "train_bayesian"]

LARGEST_RHAT = 1.1
SHARE_WITHIN = 0.95
LEAST_EFFECTIVE = 10
"""Chains have converged where 95 % of the predictions have an R-hat of at most 1.1, and half of
them are worth 10 independent samples a chain or more."""
WATCHED = 100
"""Held-out inputs whose predictions are watched."""
CONSTANT = 1e-12
"""Predictions with less variance than this are the same in all samples: nothing is left to mix."""


class MeanSoftmax(nn.Module):
    """The mean of the members' softmax."""

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, x: Tensor) -> Tensor:
        total: Tensor = torch.softmax(self.members[0](x), dim=1)
        for member in self.members[1:]:
            total = total + torch.softmax(member(x), dim=1)
        return total * (1.0 / len(self.members))


@dataclass(frozen=True, slots=True)
class Convergence:
    """Of the probabilities that are predicted for held-out inputs: weights are not identifiable.

    `rhat` is what 95 % of them stay within, `effective` the median of the effective sample size.
    """

    rhat: float
    effective: float
    chains: int
    samples: int
    acceptance: float
    divergences: int

    @property
    def is_reached(self) -> bool:
        return self.rhat <= LARGEST_RHAT and self.effective >= LEAST_EFFECTIVE * self.chains

    def __str__(self) -> str:
        verdict = "converged" if self.is_reached else "DID NOT CONVERGE"
        return (
            f"{verdict}: R-hat of 95 % of predictions at most {self.rhat:.3f} (wanted: "
            f"{LARGEST_RHAT}), median effective sample size {self.effective:.0f} of "
            f"{self.chains * self.samples} (wanted: {LEAST_EFFECTIVE * self.chains}), "
            f"{100 * self.acceptance:.0f} % of moves accepted, {self.divergences} divergences"
        )


@dataclass(frozen=True, slots=True, eq=False)
class BayesianNetwork:
    """`network` predicts the mean of `members`; `accuracy` is its own on the test inputs."""

    network: Network
    members: tuple[Network, ...]
    convergence: Convergence
    accuracy: float
    trained_on: int
    held_out: bool

    def write(self, directory: Path) -> None:
        """`network.onnx`, `members/000.onnx` and so on, and `bayesian.json`."""
        files = {directory / "network.onnx": self.network}
        for number, member in enumerate(self.members):
            files[directory / "members" / f"{number:03}.onnx"] = member
        for place, network in files.items():
            with replacing(place) as path:
                path.write_bytes(network.onnx_bytes)
        told = {
            "converged": self.convergence.is_reached,
            **asdict(self.convergence),
            "accuracy": self.accuracy,
            "trained_on": self.trained_on,
            "held_out": self.held_out,
            "members": [member.fingerprint for member in self.members],
        }
        with replacing(directory / "bayesian.json") as path:
            path.write_text(json.dumps(told, indent=1) + "\n")


def train_bayesian(
    name: str,
    data: Dataset,
    *,
    test: Dataset | None = None,
    how: Hamiltonian | None = None,
    members: int = 20,
    out: Path | str | None = None,
    domain: Domain | tuple[npt.ArrayLike, npt.ArrayLike] = (0.0, 1.0),
    seed: int = 0,
    advanced: Callable[[], None] = lambda: None,
) -> BayesianNetwork:
    """The architecture called `name`, its posterior given all of `data`, and `members` of it.

    With `out` each chain is kept there when it ends: doing it again continues. `advanced` is called
    once a sample, those of warming up included.
    """
    chosen = how or Hamiltonian()
    if not 1 <= members <= chosen.chains * chosen.samples:
        raise TrainingError(
            f"members {members} must be between 1 and all {chosen.chains * chosen.samples} samples"
        )
    largest = max(int(part.labels.max()) for part in (data, test) if part is not None)
    classes = max(len(data.classes or ()), largest + 1)
    module = architecture(name, data.shape, classes, seed=seed)
    on = material(module, name, data, test, domain)
    posterior = Posterior(module, on.images, on.labels, chosen.prior)
    directory = None if out is None else Path(out)
    purpose = f"{name} on {on.data.fingerprint[:16]}"
    chains = []
    for number in range(chosen.chains):
        start = posterior.row(architecture(name, data.shape, classes, seed=seed + number))
        path = None if directory is None else directory / f"chain-{number}.pt"
        chain = sample_chain(
            posterior,
            start.to(on.images),
            chosen,
            seed=seed + number,
            advanced=advanced,
            path=path,
            purpose=purpose,
        )
        chains.append(chain)
    found = _network(name, posterior, chains, on, members, domain)
    if directory is not None:
        with claimed(directory):
            found.write(directory)
    return found


def _network(
    name: str,
    posterior: Posterior,
    chains: Sequence[Chain],
    on: Material,
    members: int,
    domain: Domain | tuple[npt.ArrayLike, npt.ArrayLike],
) -> BayesianNetwork:
    rows = torch.cat([chain.rows for chain in chains])
    places = torch.linspace(0, len(rows) - 1, members).round().long()
    modules = [_with_weights(posterior, rows[place]) for place in places]
    mean = MeanSoftmax(modules).eval()
    shape = tuple(on.images.shape[1:])
    return BayesianNetwork(
        network=from_torch(mean, input_shape=shape, domain=domain, name=f"{name}-bayesian"),
        members=tuple(
            from_torch(module, input_shape=shape, domain=domain, name=f"{name}-member-{number}")
            for number, module in enumerate(modules)
        ),
        convergence=convergence(posterior, chains, on.holdout.images[:WATCHED]),
        accuracy=on.holdout.accuracy(mean, len(on.holdout)),
        trained_on=len(on.labels),
        held_out=on.is_held_out,
    )


@torch.no_grad()
def convergence(posterior: Posterior, chains: Sequence[Chain], images: Tensor) -> Convergence:
    """How well the chains agree on the probabilities of these inputs."""
    from pyro.ops.stats import effective_sample_size, split_gelman_rubin

    predicted = torch.stack(
        [
            torch.stack([torch.softmax(posterior.outputs(row, images), 1) for row in chain.rows])
            for chain in chains
        ]
    ).double()
    flat = predicted.flatten(2)
    moving = flat[..., flat.var(dim=(0, 1)) > CONSTANT]
    rhat, effective = 1.0, float(flat.shape[0] * flat.shape[1])
    if moving.shape[2]:
        ratios = split_gelman_rubin(moving).nan_to_num(nan=torch.inf)
        rhat = float(torch.quantile(ratios, SHARE_WITHIN, interpolation="higher"))
        effective = float(effective_sample_size(moving).nan_to_num(nan=0.0).median())
    return Convergence(
        rhat=rhat,
        effective=effective,
        chains=len(chains),
        samples=len(chains[0].rows),
        acceptance=sum(chain.acceptance for chain in chains) / len(chains),
        divergences=sum(chain.divergences for chain in chains),
    )


def _with_weights(posterior: Posterior, row: Tensor) -> nn.Module:
    module = copy.deepcopy(posterior.module)
    module.load_state_dict({**module.state_dict(), **posterior.weights(row)})
    return module.eval()
