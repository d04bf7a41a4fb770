"""Samples of the posterior of a network's weights, by Hamiltonian Monte Carlo (pyro).

Weights have independent normal priors whose width shrinks with the square root of how many weights
a unit has; labels are drawn from the softmax of the outputs. Each chain starts where a few steps of
ascent from its own random weights end, so that warming up need not find the data first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from radii.errors import MissingExtra, TrainingError
from radii.training.checkpoints import replacing

__all__ = ["Chain", "Hamiltonian", "Posterior", "sample_chain"]

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
        found: Tensor = torch.func.functional_call(self.module, self.weights(row), (images,))
        return found

    def potential(self, row: Tensor) -> Tensor:
        misfit = cross_entropy(self.outputs(row, self.images), self.labels, reduction="sum")
        return misfit + 0.5 * (self._precision * row.square()).sum()

    def ascended(self, row: Tensor) -> Tensor:
        """Weights that fit better than these."""
        moving = row.clone().requires_grad_()
        optimizer = torch.optim.Adam([moving], lr=ASCENT_RATE)
        for _ in range(ASCENT_STEPS):
            optimizer.zero_grad()
            self.potential(moving).backward()  # type: ignore[no-untyped-call]
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
    told = {**asdict(how), "seed": seed, "purpose": purpose}
    if path is not None and path.exists():
        return _read(path, told)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        chain = _sampled(posterior, posterior.ascended(start), how, advanced)
    if path is not None:
        kept = {"told": told, "rows": chain.rows, "acceptance": chain.acceptance}
        with replacing(path) as partial:
            torch.save({**kept, "divergences": chain.divergences}, partial)
    return chain


def _sampled(
    posterior: Posterior, start: Tensor, how: Hamiltonian, advanced: Callable[[], None]
) -> Chain:
    try:
        from pyro.infer.mcmc import HMC, MCMC, NUTS
    except ImportError:
        raise MissingExtra("pyro-ppl", "train", "Bayesian training") from None

    def potential(held: dict[str, Tensor]) -> Tensor:
        return posterior.potential(held["weights"])

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
    told = run.diagnostics()
    acceptance = told.get("acceptance rate", {}).get("chain 0", float("nan"))
    return Chain(rows, float(acceptance), len(told.get("divergences", {}).get("chain 0", ())))


def _read(path: Path, told: dict[str, Any]) -> Chain:
    try:
        kept = torch.load(path, weights_only=True)
        before = kept["told"]
        chain = Chain(kept["rows"], float(kept["acceptance"]), int(kept["divergences"]))
    except Exception:  # torch fails on damaged files in more ways than it documents
        raise TrainingError(f"{path}: cannot be read as a chain; remove it to sample it") from None
    different = [f"{name} {before.get(name)}, not {told[name]}" for name in told
                 if before.get(name) != told[name]]  # fmt: skip
    if different:
        raise TrainingError(
            f"{path}: belongs to another training ({'; '.join(different)}); choose another "
            "directory"
        )
    return chain
