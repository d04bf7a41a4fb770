"""One attempt to decide a specification: the root first, then branching on what stays open."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from radii.attacks import attack_specification
from radii.bounds import Fusion, box_of, crown_bounds, fuse, stage_bounds, without_softmax
from radii.bounds.relu_form import ReluForm, relu_form
from radii.bounds.rounding import OFFSET_ROUNDING
from radii.networks import Kind, Network
from radii.properties import Halfspaces
from radii.queries import Specification
from radii.verdicts import FLOAT, REAL, Arithmetic, Verdict, Witness
from radii.verifiers._base import Answer, Limits
from radii.verifiers.branch_and_bound.candidates import Candidates
from radii.verifiers.branch_and_bound.frontier import Frontier
from radii.verifiers.branch_and_bound.input_splitting import Outcome, split_inputs
from radii.verifiers.branch_and_bound.reduction import PossibleOverflow, reduce
from radii.verifiers.branch_and_bound.tree import Tree
from radii.verifiers.branch_and_bound.unwrapping import unwrapped
from radii.verifiers.case import check_bounded

__all__ = ["Attempt", "by_crown", "by_inputs", "by_units", "is_piecewise_linear"]

MEMORY_BYTES, MEMORY_SHARE = 512 << 20, 0.25
"""For the multipliers that children start from: at most, and of the memory that is left."""

ATTACK_SECONDS, ATTACK_SHARE = 1.0, 0.1
"""For the attack between root and branching, and of the time that is left."""

LARGE = 2000
"""From so many units on, CROWN on the layers as they are is tried first: it takes a fraction of the
time in which the tree's own form of the network is bounded (0.15 s for 0.5 to 2 s)."""

REMEMBERED = 4
_forms: dict[tuple[str, int], ReluForm] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """What came of it. `frontier` is what stayed open: where to go on for a smaller region."""

    answer: Answer
    witness: Witness | None = None
    frontier: Frontier | None = None


def is_piecewise_linear(network: Network, specification: Specification) -> bool:
    """Whether units can be split: also behind a final softmax that the specification allows."""
    if network.is_piecewise_linear:
        return True
    bare, _ = without_softmax(fuse(network), specification.requirement.violations or (), REAL)
    return all(stage.operator.kind is Kind.PIECEWISE_LINEAR for stage in bare.stages)


def form_of(network: Network, fusion: Fusion | None = None) -> ReluForm:
    """The ReLU form of the network, or of a fusion that is its beginning; some are remembered."""
    fusion = fuse(network) if fusion is None else fusion
    key = network.fingerprint, len(fusion.stages)
    form = _forms.pop(key, None) or relu_form(fusion)
    _forms[key] = form
    while len(_forms) > REMEMBERED:
        _forms.pop(next(iter(_forms)))
    return form


def by_units(
    network: Network,
    specification: Specification,
    limits: Limits,
    *,
    arithmetic: Arithmetic = FLOAT,
    device: str = "cpu",
    is_hopeless: Callable[[float], bool] = lambda _: False,
    frontier: Frontier | None = None,
    branches: bool = True,
    attacks: bool = False,
) -> Attempt:
    """Split on the signs of units; for piecewise-linear networks.

    `is_hopeless` is asked now and then with the part of the tree that is closed; `frontier` is what
    an attempt on a larger region left open; `attacks` looks for a counterexample before branching,
    for callers that have not attacked themselves.
    """
    check_bounded(network, specification)
    stated = specification.requirement.violations or ()
    fusion, violations = without_softmax(fuse(network), stated, arithmetic)
    if not violations:
        return Attempt(Answer(Verdict.ROBUST))
    if _is_large(fusion) and _crown_suffices(fusion, specification, violations, arithmetic):
        return Attempt(Answer(Verdict.ROBUST))
    candidates = Candidates(network, specification)
    form, violations = unwrapped(form_of(network, fusion), violations)

    def is_over() -> bool:
        return limits.expired is not None

    try:
        reduction = reduce(
            form,
            specification.region,
            violations,
            specification.inputs,
            is_over,
            lambda: limits.memory_left,
            arithmetic,
        )
    except MemoryError as error:
        return Attempt(Answer(Verdict.MEMOUT, message=str(error)))
    except PossibleOverflow as error:
        unknown = Attempt(Answer(Verdict.UNKNOWN, message=str(error)))
        return (_attacked(network, specification, limits) if attacks else None) or unknown
    tree = Tree(
        reduction,
        is_over=is_over,
        check=candidates.try_points,
        is_hopeless=is_hopeless,
        device=device,
        memory_bytes=int(min(MEMORY_BYTES, MEMORY_SHARE * limits.memory_left)),
        begun=None if frontier is None else frontier.within(reduction),
    )
    tree.start()
    if attacks and not tree.is_proven and not tree.is_refuted:
        found = _attacked(network, specification, limits)
        if found is not None:
            return found
    if branches:
        tree.grow()
    if candidates.witness is not None:
        return Attempt(Answer(Verdict.NOT_ROBUST, candidates.found), candidates.witness)
    if tree.is_proven:
        return Attempt(Answer(Verdict.ROBUST))
    left = Frontier(tree.left, reduction.names, specification.region)
    return Attempt(Answer(limits.expired or Verdict.UNKNOWN), frontier=left)


def _attacked(network: Network, specification: Specification, limits: Limits) -> Attempt | None:
    seconds = min(ATTACK_SECONDS, ATTACK_SHARE * limits.remaining)
    witness = attack_specification(network, specification, seconds=seconds)
    return None if witness is None else Attempt(Answer(Verdict.NOT_ROBUST, witness.input), witness)


def by_crown(network: Network, specification: Specification, arithmetic: Arithmetic) -> bool:
    """Whether CROWN alone proves it; small networks are not tried."""
    stated = specification.requirement.violations or ()
    fusion, violations = without_softmax(fuse(network), stated, arithmetic)
    if not violations or not _is_large(fusion):
        return False
    return _crown_suffices(fusion, specification, violations, arithmetic)


def _is_large(fusion: Fusion) -> bool:
    return sum(math.prod(stage.shape) for stage in fusion.stages) >= LARGE


def _crown_suffices(
    fusion: Fusion,
    specification: Specification,
    violations: Sequence[Halfspaces],
    arithmetic: Arithmetic,
) -> bool:
    """For every way to break the requirement one row alone is bounded away from it."""
    rows = np.vstack([polyhedron.matrix for polyhedron in violations])
    offsets = np.concatenate([polyhedron.offset for polyhedron in violations])
    bounds = crown_bounds(fusion, [specification.region], rows, arithmetic=arithmetic)
    least = bounds.low[0].numpy() + offsets
    # Twice the rounding of this sum: whoever replays a point adds the offset in float64 as well.
    least -= OFFSET_ROUNDING * (np.abs(bounds.low[0].numpy()) + np.abs(offsets))
    ends = np.cumsum([len(polyhedron.offset) for polyhedron in violations])[:-1]
    return all(bool((part > 0).any()) for part in np.split(least, ends))


def by_inputs(
    network: Network,
    specification: Specification,
    limits: Limits,
    *,
    arithmetic: Arithmetic = FLOAT,
    device: str = "cpu",
) -> Attempt:
    """Split the region of inputs; for few inputs, and for networks that are smooth."""
    check_bounded(network, specification)
    candidates = Candidates(network, specification)
    result = split_inputs(
        network, specification, limits, candidates.replay, arithmetic=arithmetic, device=device
    )
    if candidates.witness is not None:
        return Attempt(Answer(Verdict.NOT_ROBUST, candidates.found), candidates.witness)
    if result.outcome is Outcome.PROVEN:
        return Attempt(Answer(Verdict.ROBUST))
    message = _overflow(network, specification, arithmetic)
    return Attempt(Answer(limits.expired or Verdict.UNKNOWN, message=message))


def _overflow(network: Network, specification: Specification, arithmetic: Arithmetic) -> str:
    """That something may overflow in the region, where nothing was proven; else nothing."""
    bounds = stage_bounds(fuse(network), *box_of(specification.region), arithmetic)
    if all(np.isfinite(stage.error).all() for stage in bounds):
        return ""
    return str(PossibleOverflow(None))
