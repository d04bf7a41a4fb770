"""One attempt to decide a specification: the root first, then branching on what stays open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from radii.attacks import attack_specification
from radii.bounds import fuse
from radii.bounds.relu_form import ReluForm, relu_form
from radii.networks import Network
from radii.queries import Specification
from radii.verdicts import Verdict, Witness
from radii.verifiers._base import Answer, Limits
from radii.verifiers.branch_and_bound.candidates import Candidates
from radii.verifiers.branch_and_bound.frontier import Frontier
from radii.verifiers.branch_and_bound.input_splitting import Outcome, split_inputs
from radii.verifiers.branch_and_bound.reduction import reduce
from radii.verifiers.branch_and_bound.tree import Tree
from radii.verifiers.branch_and_bound.unwrapping import unwrapped

__all__ = ["PROOF_MARGIN", "Attempt", "by_inputs", "by_units"]

PROOF_MARGIN = 1e-6
"""What a proven bound on an output difference must exceed: far above the rounding of float64."""

ATTACK_SECONDS, ATTACK_SHARE = 1.0, 0.1
"""For the attack between root and branching, and of the time that is left."""

REMEMBERED = 4
_forms: dict[str, ReluForm] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """What came of it. `frontier` is what stayed open: where to go on for a smaller region."""

    answer: Answer
    witness: Witness | None = None
    frontier: Frontier | None = None


def form_of(network: Network) -> ReluForm:
    """The network's ReLU form; the last few are remembered."""
    form = _forms.pop(network.fingerprint, None) or relu_form(fuse(network))
    _forms[network.fingerprint] = form
    while len(_forms) > REMEMBERED:
        _forms.pop(next(iter(_forms)))
    return form


def by_units(
    network: Network,
    specification: Specification,
    limits: Limits,
    *,
    device: str = "cpu",
    is_hopeless: Callable[[float], bool] | None = None,
    frontier: Frontier | None = None,
    branches: bool = True,
    attacks: bool = False,
) -> Attempt:
    """Split on the signs of units; for piecewise-linear networks.

    `is_hopeless` is asked now and then with the part of the tree that is closed; `frontier` is what
    an attempt on a larger region left open; `attacks` looks for a counterexample before branching,
    for callers that have not attacked themselves.
    """
    candidates = Candidates(network, specification)
    form, violations = unwrapped(form_of(network), specification.requirement.violations or ())

    def is_over() -> bool:
        return limits.expired is not None

    reduction = reduce(form, specification.region, violations, specification.inputs, is_over)
    tree = Tree(
        reduction,
        margin=PROOF_MARGIN,
        is_over=is_over,
        check=candidates.try_points,
        device=device,
        begun=None if frontier is None else frontier.within(reduction),
    )
    tree.start()
    if attacks and not tree.is_proven and not tree.is_refuted:
        seconds = min(ATTACK_SECONDS, ATTACK_SHARE * limits.remaining)
        witness = attack_specification(network, specification, seconds=seconds)
        if witness is not None:
            return Attempt(Answer(Verdict.NOT_ROBUST, witness.input), witness)
    if branches:
        tree.grow(is_hopeless or (lambda _: False))
    if candidates.witness is not None:
        return Attempt(Answer(Verdict.NOT_ROBUST, candidates.found), candidates.witness)
    if tree.is_proven:
        return Attempt(Answer(Verdict.ROBUST, margin=PROOF_MARGIN))
    left = Frontier(tree.left, reduction.names)
    return Attempt(Answer(limits.expired or Verdict.UNKNOWN), frontier=left)


def by_inputs(
    network: Network, specification: Specification, limits: Limits, *, device: str = "cpu"
) -> Attempt:
    """Split the region of inputs; for few inputs, and for networks that are smooth."""
    candidates = Candidates(network, specification)
    result = split_inputs(
        network, specification, limits, candidates.replay, margin=PROOF_MARGIN, device=device
    )
    if candidates.witness is not None:
        return Attempt(Answer(Verdict.NOT_ROBUST, candidates.found), candidates.witness)
    if result.outcome is Outcome.PROVEN:
        return Attempt(Answer(Verdict.ROBUST, margin=PROOF_MARGIN))
    return Attempt(Answer(limits.expired or Verdict.UNKNOWN))
