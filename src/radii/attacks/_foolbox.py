"""Any attack of foolbox by name. Its candidates are replayed like all others."""

from __future__ import annotations

import contextlib
import hashlib
import io
import math
import random
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from radii.attacks._base import Attack
from radii.errors import MissingExtra, SpecificationError, UnsupportedQuery
from radii.networks import Network
from radii.problem import (
    Array,
    Halfspaces,
    Instance,
    LinearRequirement,
    Norm,
    OneToAny,
    Query,
    Requirement,
)

NORM_OF_EXPONENT = {math.inf: Norm.LINF, 2: Norm.L2, 1: Norm.L1}
"""What foolbox's distances are called by their exponent."""
NOTHING_FOUND = ("init_attack failed", "not adversarial", "assert is_adv", "assert ep.all(is_adv")
"""Parts of messages, or of failed assertions, by which foolbox says that an attack found no point
to start from."""


class FoolboxAttack(Attack):
    """`FoolboxAttack("LinfPGD", steps=40)`: the class of foolbox.attacks with that name.

    Options are those of the foolbox class. Attacks with a fixed radius use the query's eps; those
    that minimise the distance themselves return what they find. Other properties than one-to-any
    are put to foolbox as a network of two classes: holds, and is broken.
    """

    unnamed_options = frozenset({"attack"})  # which its name holds
    needs_gradient: ClassVar[bool] = True

    def __init__(self, attack: str, /, **options: Any) -> None:
        self.attack_name = attack
        self.options = options
        self.norms = self._norms()

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"foolbox:{self.attack_name}"

    @property
    def version(self) -> str:
        return str(_foolbox().__version__)

    def unsupported(self, kind: type[Requirement]) -> str | None:
        if issubclass(kind, LinearRequirement):
            return None
        return (
            f"attack '{self.name}' cannot break {kind.description}: foolbox attacks classifiers "
            "only, and violations that are linear in the outputs"
        )

    def run(
        self, network: Network, queries: Sequence[Query], seed: int
    ) -> Sequence[Sequence[Array]]:
        """One query after the other, each with random numbers of its own."""
        candidates: list[Sequence[Array]] = []
        for query in queries:
            with _seeded(f"{query.instance.key}:{seed}"), _silence():
                candidates.append(self._candidates(network, query))
        return candidates

    def _candidates(self, network: Network, query: Query) -> Sequence[Array]:
        foolbox, instance = _foolbox(), query.instance
        attack = self._attack(instance.norm)
        cube = _UnitCube.of(network, instance)
        module, label = _classifier(network, cube, query)
        model = foolbox.PyTorchModel(module, bounds=(0, 1), device="cpu")
        inputs = cube.inside(torch.from_numpy(np.array(instance.input))[None])
        minimises = isinstance(attack, foolbox.attacks.base.MinimizationAttack)
        epsilons = None if minimises else query.eps / cube.length
        try:
            _, clipped, _ = attack(model, inputs, torch.tensor([label]), epsilons=epsilons)
        except Exception as error:
            reason = _reason(error)
            if any(part in reason for part in NOTHING_FOUND):
                return ()
            raise UnsupportedQuery(f"attack '{self.name}' failed: {reason}") from error
        return (cube.outside(clipped[0].detach()).numpy(),)

    def _norms(self) -> frozenset[Norm]:
        foolbox = _foolbox()
        attack = self._attack()
        flexible = foolbox.attacks.base.FlexibleDistanceMinimizationAttack
        if isinstance(attack, flexible) and "distance" not in self.options:
            return frozenset(Norm)
        exponent = getattr(getattr(attack, "distance", None), "p", None)
        return (
            frozenset({NORM_OF_EXPONENT[exponent]})
            if exponent in NORM_OF_EXPONENT
            else frozenset(Norm)
        )

    def _attack(self, norm: Norm | None = None) -> Any:
        """The foolbox attack, with the distance of `norm` if it can minimise any."""
        foolbox = _foolbox()
        kind = getattr(foolbox.attacks, self.attack_name, None)
        if not (isinstance(kind, type) and issubclass(kind, foolbox.attacks.Attack)):
            raise SpecificationError(f"foolbox has no attack called '{self.attack_name}'")
        options = dict(self.options)
        if norm and issubclass(kind, foolbox.attacks.base.FlexibleDistanceMinimizationAttack):
            options.setdefault("distance", getattr(foolbox.distances, norm.value))
        try:
            return kind(**options)
        except (TypeError, ValueError, ImportError, AssertionError) as error:
            reason = _reason(error)
            raise SpecificationError(f"attack '{self.name}' cannot be made: {reason}") from None


@dataclass(frozen=True, slots=True, eq=False)
class _UnitCube:
    """The domain as a part of the unit cube, which is all that foolbox knows of features.

    A side of the cube is `length` units of distance, and `widths` of the features themselves: 0
    where they stay.
    """

    low: Tensor
    high: Tensor
    widths: Tensor
    length: float

    @classmethod
    def of(cls, network: Network, instance: Instance) -> _UnitCube:
        # The input's own values, rounded to the network's precision, must not be beyond the bounds.
        own = instance.input.astype(np.float64)
        least, most = instance.domain.box(own.shape)
        least, most = np.minimum(least, own), np.maximum(most, own)
        scale = np.ones(own.shape)
        if instance.features is not None:
            scale = instance.features.scale.reshape(own.shape)
        moves = scale > 0
        length = float(np.max((most - least)[moves] / scale[moves], initial=0.0)) or 1.0
        sides = np.stack([np.where(moves, least, own), most, scale * length])
        low, high, widths = torch.from_numpy(sides).to(network.torch_dtype)
        return cls(low, high, widths, length)

    def inside(self, inputs: Tensor) -> Tensor:
        """Inputs as points of the cube."""
        return (inputs - self.low) / self.widths.where(self.widths > 0, 1.0)

    def outside(self, points: Tensor) -> Tensor:
        """Points of the cube as inputs, drawn into the domain."""
        return torch.clamp(self.low + points * self.widths, self.low, self.high)


class _Classifier(torch.nn.Module):
    """The network itself, as a module on points of the cube."""

    def __init__(self, network: Network, cube: _UnitCube) -> None:
        super().__init__()
        self._network, self._cube = network, cube
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        return self._network(self._cube.outside(x.to(self._network.torch_dtype)))


class _HoldsOrBroken(_Classifier):
    """Two outputs: how far the requirement is from being broken, and 0."""

    def __init__(self, network: Network, cube: _UnitCube, violations: Sequence[Halfspaces]) -> None:
        super().__init__(network, cube)
        self._polyhedra = [
            tuple(torch.from_numpy(part).to(network.torch_dtype) for part in (p.matrix, p.offset))
            for p in violations
        ]

    def forward(self, x: Tensor) -> Tensor:
        outputs = super().forward(x)
        depths = [(outputs @ matrix.T + offset).amax(dim=1) for matrix, offset in self._polyhedra]
        margin = torch.stack(depths).amin(dim=0)
        return torch.stack([margin, torch.zeros_like(margin)], dim=1)


def _reason(error: Exception) -> str:
    """An error in one line; for an assertion without a message, the line that failed."""
    text = " ".join(str(error).split())
    if not text:
        frames = traceback.extract_tb(error.__traceback__)
        text = (frames[-1].line if frames else None) or type(error).__name__
    return text


def _classifier(network: Network, cube: _UnitCube, query: Query) -> tuple[_Classifier, int]:
    """The model that foolbox attacks, and the class that the input has to leave."""
    instance = query.instance
    if isinstance(instance.property, OneToAny):
        return _Classifier(network, cube), instance.label
    requirement = instance.requirement
    violations = requirement.violations
    if isinstance(requirement, LinearRequirement):
        violations = requirement.attacked
    if not violations:
        raise UnsupportedQuery(f"property '{instance.property.spec}' cannot be broken")
    return _HoldsOrBroken(network, cube, violations), 0


@contextlib.contextmanager
def _seeded(key: str) -> Iterator[None]:
    """Foolbox draws from the global generators: seeds them, and restores them afterwards."""
    seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:4])
    of_python, of_numpy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(of_python)
            np.random.set_state(of_numpy)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    nowhere = io.StringIO()
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        warnings.simplefilter("ignore")
        yield


def _foolbox() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import foolbox
    except ImportError:
        raise MissingExtra("foolbox", "foolbox", "a foolbox attack") from None
    return foolbox
