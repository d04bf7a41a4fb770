"""Any attack of foolbox by name. Its candidates are replayed like all others."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from radii.attacks._base import Attack
from radii.errors import MissingExtra, SpecificationError, UnsupportedQuery
from radii.networks import Network
from radii.queries import Query
from radii.verdicts import Array

__all__ = ["FoolboxAttack"]


class FoolboxAttack(Attack):
    """`FoolboxAttack("LinfPGD", steps=40)`: the class of foolbox.attacks with that name.

    Options are those of the foolbox class, and candidates are clipped to the query's eps. Foolbox
    knows labels, not properties: anything but one-to-any is refused.
    """

    def __init__(self, attack: str, **options: Any) -> None:
        self.attack_name = attack
        self.options = options
        self._attack()

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"foolbox:{self.attack_name}"

    @property
    def version(self) -> str:
        return str(_foolbox().__version__)

    def run(
        self, network: Network, queries: Sequence[Query], seed: int
    ) -> Sequence[Sequence[Array]]:
        foolbox = _foolbox()
        low, high = float(network.domain.low.min()), float(network.domain.high.max())
        module = _Module(network)
        torch.manual_seed(seed)
        candidates: list[Sequence[Array]] = []
        for query in queries:
            instance = query.instance
            if instance.property.spec != "one-to-any":
                raise UnsupportedQuery(
                    f"attack '{self.name}' does not search for '{instance.property.spec}'"
                )
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                model = foolbox.PyTorchModel(module, bounds=(low, high), device="cpu")
                inputs = torch.from_numpy(np.array(instance.input))[None]
                labels = torch.tensor([instance.label])
                try:
                    _, clipped, _ = self._attack()(model, inputs, labels, epsilons=query.eps)
                except Exception as error:
                    raise UnsupportedQuery(
                        f"attack '{self.name}' failed: {' '.join(str(error).split())}"
                    ) from error
            candidates.append((clipped[0].detach().numpy(),))
        return candidates

    def _attack(self) -> Any:
        kind = getattr(_foolbox().attacks, self.attack_name, None)
        if not isinstance(kind, type):
            raise SpecificationError(f"foolbox has no attack called '{self.attack_name}'")
        try:
            return kind(**self.options)
        except TypeError as error:
            raise SpecificationError(f"attack '{self.name}' cannot be made: {error}") from None


class _Module(torch.nn.Module):
    def __init__(self, network: Network) -> None:
        super().__init__()
        self._network = network
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._network(x.to(self._network.torch_dtype))


def _foolbox() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import foolbox
    except ImportError:
        raise MissingExtra("foolbox", "foolbox", "a foolbox attack") from None
    return foolbox
