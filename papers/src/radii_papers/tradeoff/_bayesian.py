"""Bayesian networks: samples of the posterior of a network's weights, whose mean softmax predicts.

The sampler is Hamiltonian Monte Carlo (pyro). Weights have independent normal priors whose standard
deviation falls with the square root of a unit's number of weights; labels are drawn from the
softmax of the outputs. Each chain starts at the end of a few steps of gradient ascent from random
weights of its own, so that the warm-up begins near the data.

Each member is a network of its own, and so is their mean, whose outputs are probabilities. All
parts of radii accept either, and an attack on the mean follows the gradient of the mean.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from radii.datasets import Dataset
from radii.errors import TrainingError
from radii.networks import Network, from_torch
from radii.problem import Domain
from radii.training import TrainingData, architecture, claimed, replacing, training_data

ASCENT_STEPS = 150
ASCENT_RATE = 0.01
"""Of the steps that a chain begins with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hamiltonian:
    """How chains move. `step` is the step size; with `adapts` warming up tunes it. `steps` are
    those of a trajectory of hmc; nuts finds its own. `prior` is the standard deviation of what a
    unit receives, if its inputs are of size 1.
    """

    kernel: Literal["hmc", "nuts"] = "hmc"
    samples: int = 100
    warmup: int = 100
    chains: int = 2
    step: float = 0.01
    steps: int = 30
    adapts: bool = True
    prior: float = 3.0

    def __post_init__(self) -> None:
        if self.kernel not in ("hmc", "nuts"):
            raise TrainingError(f"kernel '{self.kernel}' is not one of hmc, nuts")
        for name, least in (("samples", 4), ("warmup", 0), ("chains", 1), ("steps", 1)):
            if getattr(self, name) < least:
                raise TrainingError(f"{name} {getattr(self, name)} must be at least {least}")
        for name in ("step", "prior"):
            if not 0 < getattr(self, name) < math.inf:
                raise TrainingError(f"{name} {getattr(self, name):g} must be above 0")


class Posterior:
    """The negative logarithm of the posterior density, of all weights in one row."""

    def __init__(self, module: nn.Module, images: Tensor, labels: Tensor, prior: float) -> None:
        self.module, self.images, self.labels = module, images, labels
        named = dict(module.named_parameters())
        self._shapes = {name: p.shape for name, p in named.items()}
        widths = [
            torch.full((p.numel(),), prior / math.sqrt(p[0].numel() if p.dim() > 1 else 1))
            for p in named.values()
        ]
        self._precision = torch.cat(widths).to(images).pow(-2)

    def row(self, module: nn.Module) -> Tensor:
        """The weights of a module of this kind."""
        return torch.cat([p.detach().flatten() for p in module.parameters()])

    def weights(self, row: Tensor) -> dict[str, Tensor]:
        """The weights by name."""
        parts = torch.split(row, [shape.numel() for shape in self._shapes.values()])
        pairs = zip(self._shapes.items(), parts, strict=True)
        return {name: part.reshape(shape) for (name, shape), part in pairs}

    def outputs(self, row: Tensor, images: Tensor) -> Tensor:
        outputs: Tensor = torch.func.functional_call(self.module, self.weights(row), (images,))
        return outputs

    def potential(self, row: Tensor) -> Tensor:
        misfit = cross_entropy(self.outputs(row, self.images), self.labels, reduction="sum")
        return misfit + 0.5 * (self._precision * row.square()).sum()

    def ascended(self, row: Tensor) -> Tensor:
        """Weights that fit better than these."""
        moving = row.clone().requires_grad_()
        optimizer = torch.optim.Adam([moving], lr=ASCENT_RATE)
        for _ in range(ASCENT_STEPS):
            optimizer.zero_grad()
            self.potential(moving).backward()
            optimizer.step()
        return moving.detach()


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Rows of weights, in the order of the chain, and the share of moves that were accepted."""

    rows: Tensor
    acceptance: float
    divergences: int


def sample_chain(
    posterior: Posterior,
    start: Tensor,
    how: Hamiltonian,
    *,
    seed: int,
    advanced: Callable[[], None] = lambda: None,
    path: Path | None = None,
    purpose: str = "",
) -> Chain:
    """One chain. With `path` it is kept there when it ends, and not sampled again.

    torch's own generator is left as it was.
    """
    described = {**asdict(how), "seed": seed, "purpose": purpose}
    if path is not None and path.exists():
        return _read_chain(path, described)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        chain = _sampled(posterior, posterior.ascended(start), how, advanced)
    if path is not None:
        kept = {"told": described, "rows": chain.rows, "acceptance": chain.acceptance}
        with replacing(path) as partial:
            torch.save({**kept, "divergences": chain.divergences}, partial)
    return chain


def _sampled(
    posterior: Posterior, start: Tensor, how: Hamiltonian, advanced: Callable[[], None]
) -> Chain:
    from pyro.infer.mcmc import HMC, MCMC, NUTS

    def potential(state: dict[str, Tensor]) -> Tensor:
        return posterior.potential(state["weights"])

    options: dict[str, Any] = {
        "potential_fn": potential,
        "step_size": how.step,
        "adapt_step_size": how.adapts,
        "adapt_mass_matrix": False,  # a short warm-up knows the masses of no thousand weights
    }
    kernel = HMC(num_steps=how.steps, **options) if how.kernel == "hmc" else NUTS(**options)
    run = MCMC(
        kernel,
        num_samples=how.samples,
        warmup_steps=how.warmup,
        initial_params={"weights": start},
        disable_progbar=True,
        hook_fn=lambda *_: advanced(),
    )
    run.run()
    rows = run.get_samples()["weights"].detach()
    if not bool(rows.isfinite().all()):
        raise TrainingError("the chain left all finite weights: lower its step size")
    diagnostics = run.diagnostics()
    acceptance = diagnostics.get("acceptance rate", {}).get("chain 0", float("nan"))
    return Chain(
        rows, float(acceptance), len(diagnostics.get("divergences", {}).get("chain 0", ()))
    )


def _read_chain(path: Path, described: dict[str, Any]) -> Chain:
    try:
        kept = torch.load(path, weights_only=True)
        before = kept["told"]
        chain = Chain(kept["rows"], float(kept["acceptance"]), int(kept["divergences"]))
    except Exception:  # torch fails on damaged files in more ways than it documents
        raise TrainingError(f"{path}: cannot be read as a chain; remove it to sample it") from None
    different = [f"{name} {before.get(name)}, not {described[name]}" for name in described
                 if before.get(name) != described[name]]  # fmt: skip
    if different:
        raise TrainingError(
            f"{path}: belongs to another training ({'; '.join(different)}); choose another "
            "directory"
        )
    return chain


# --- the network that the samples make


LARGEST_RHAT = 1.1
CONVERGED_SHARE = 0.95
LEAST_EFFECTIVE = 10
"""Chains have converged where 95 % of the predictions have an R-hat of at most 1.1, and half of
them are worth 10 independent samples a chain or more."""
WATCHED_INPUTS = 100
"""Held-out inputs whose predictions are watched."""
CONSTANT_VARIANCE = 1e-12
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
        card = {
            "converged": self.convergence.is_reached,
            **asdict(self.convergence),
            "accuracy": self.accuracy,
            "trained_on": self.trained_on,
            "held_out": self.held_out,
            "members": [member.fingerprint for member in self.members],
        }
        with replacing(directory / "bayesian.json") as path:
            path.write_text(json.dumps(card, indent=1) + "\n")


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
    on = training_data(module, name, data, test, domain)
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
    network = _network(name, posterior, chains, on, members, domain)
    if directory is not None:
        with claimed(directory):
            network.write(directory)
    return network


def _network(
    name: str,
    posterior: Posterior,
    chains: Sequence[Chain],
    on: TrainingData,
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
        convergence=convergence(posterior, chains, on.holdout.images[:WATCHED_INPUTS]),
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
    moving = flat[..., flat.var(dim=(0, 1)) > CONSTANT_VARIANCE]
    rhat, effective = 1.0, float(flat.shape[0] * flat.shape[1])
    if moving.shape[2]:
        ratios = split_gelman_rubin(moving).nan_to_num(nan=torch.inf)
        rhat = float(torch.quantile(ratios, CONVERGED_SHARE, interpolation="higher"))
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
