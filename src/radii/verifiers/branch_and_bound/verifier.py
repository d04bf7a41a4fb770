"""The native verifier: branch and bound on the signs of ReLU units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from torch import Tensor

from radii import __version__
from radii.balls import Norm
from radii.bounds import fuse
from radii.bounds.relu_form import ReluForm, relu_form
from radii.networks import Network
from radii.queries import Instance, Query, Specification
from radii.verdicts import Array, Verdict, Witness
from radii.verifiers._base import Answer, GridVerifier, Limits, RadiusAnswer
from radii.verifiers.branch_and_bound.radius import Climb
from radii.verifiers.branch_and_bound.reduction import reduce
from radii.verifiers.branch_and_bound.tree import Tree
from radii.verifiers.branch_and_bound.unwrapping import unwrapped
from radii.witnesses import check_witness

__all__ = ["BranchAndBound"]

PROOF_MARGIN = 1e-6
"""What a proven bound on an output difference must exceed: far above the rounding of float64."""

REPLAYS = 4
"""How many of a batch's candidates are replayed with all checks, most violating first."""

REMEMBERED = 4
_forms: dict[str, ReluForm] = {}


def form_of(network: Network) -> ReluForm:
    """The network's ReLU form; the last few are remembered."""
    form = _forms.pop(network.fingerprint, None) or relu_form(fuse(network))
    _forms[network.fingerprint] = form
    while len(_forms) > REMEMBERED:
        _forms.pop(next(iter(_forms)))
    return form


class BranchAndBound(GridVerifier):
    """Complete for piecewise-linear networks, in all three norms."""

    name: ClassVar[str] = "native"
    norms: ClassVar[frozenset[Norm]] = frozenset(Norm)
    is_complete: ClassVar[bool] = True

    @property
    def version(self) -> str:
        return __version__

    def unsupported(self, network: Network, norm: Norm) -> str | None:
        if not network.is_piecewise_linear:
            return f"verifier '{self.name}' decides piecewise-linear networks only"
        return super().unsupported(network, norm)

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        return self._decided(network, specification, limits, branches=True)

    def climb(
        self, network: Network, instance: Instance, values: Sequence[float], limits: Limits
    ) -> RadiusAnswer:
        def attempt(eps: float, seconds: float) -> tuple[Verdict, Witness | None]:
            specification = Query(instance, eps).specification
            is_root_only = seconds <= 0
            span = limits.remaining if is_root_only else min(seconds, limits.remaining)
            within = Limits(seconds=span, cancelled=limits.cancelled)
            answer = self._decided(network, specification, within, branches=not is_root_only)
            return answer.verdict, check_witness(network, specification, answer.candidate)

        climb = Climb(values, attempt, lambda: 0.0 if limits.expired else limits.remaining)
        climb.run()
        is_closed = climb.proven == climb.goal
        return RadiusAnswer(
            lower=climb.lower,
            witness=climb.witness,
            margin=PROOF_MARGIN,
            stopped=None if is_closed else limits.expired or Verdict.UNKNOWN,
        )

    def _decided(
        self, network: Network, specification: Specification, limits: Limits, *, branches: bool
    ) -> Answer:
        found: list[Array] = []

        def check(points: Tensor, _specs: Tensor) -> bool:
            candidates = points.numpy().astype(network.input_dtype)
            outputs = network.replay(candidates.reshape(-1, *network.input_shape))
            margins = specification.requirement.margin(outputs, 0.0)
            for place in np.argsort(margins)[:REPLAYS]:
                if margins[place] > 0:
                    break
                if check_witness(network, specification, candidates[place]) is not None:
                    found.append(candidates[place])
                    return True
            return False

        form, violations = unwrapped(form_of(network), specification.requirement.violations or ())
        tree = Tree(
            reduce(form, specification.region, violations, specification.inputs),
            margin=PROOF_MARGIN,
            is_over=lambda: limits.expired is not None,
            check=check,
        )
        tree.start()
        if branches:
            tree.grow()
        if found:
            return Answer(Verdict.NOT_ROBUST, found[-1])
        if tree.is_proven:
            return Answer(Verdict.ROBUST, margin=PROOF_MARGIN)
        return Answer(limits.expired or Verdict.UNKNOWN)
