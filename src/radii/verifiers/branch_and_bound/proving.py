"""One attempt to decide a specification: the root first, then branching on what stays open."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from radii.attacks import attack_specification
from radii.bounds import Fusion, Stage, crown_bounds, fuse, without_softmax
from radii.bounds.relu_form import ReluForm, relu_form
from radii.networks import Kind, Network
from radii.properties import Halfspaces
from radii.queries import Specification
from radii.verdicts import Verdict, Witness
from radii.verifiers._base import Answer, Limits
from radii.verifiers.branch_and_bound.candidates import Candidates
from radii.verifiers.branch_and_bound.frontier import Frontier
from radii.verifiers.branch_and_bound.input_splitting import Outcome, split_inputs
from radii.verifiers.branch_and_bound.reduction import reduce
from radii.verifiers.branch_and_bound.tree import Tree
from radii.verifiers.branch_and_bound.unwrapping import unwrapped
from radii.verifiers.case import check_bounded
from radii.verifiers.replaying import ReplayNoise

__all__ = ["Attempt", "by_inputs", "by_units", "crown_margin", "is_piecewise_linear"]

PROOF_MARGIN = 1e-6
"""The least that a proven bound must exceed: far above the rounding of float64."""

MEMORY_BYTES, MEMORY_SHARE = 512 << 20, 0.25
"""For the multipliers that children start from: at most, and of the memory that is left."""

CLOSE = 2.0
"""A smaller region may need so many times the margin of the larger one and still go on from it:
both are estimated from samples, with more to spare than that."""

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
    bare, _ = without_softmax(fuse(network), specification.requirement.violations or ())
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


def proof_margin(network: Network, specification: Specification, output: Stage) -> float:
    """What a proof must exceed: float64's rounding by far, and ONNX Runtime's noise."""
    check_bounded(network, specification)
    noise = ReplayNoise(network, specification, output)
    violations = specification.requirement.violations or ()
    return max([PROOF_MARGIN, *(noise.margin(polyhedron) for polyhedron in violations)])


def by_units(
    network: Network,
    specification: Specification,
    limits: Limits,
    *,
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
    candidates = Candidates(network, specification)
    fusion, violations = without_softmax(fuse(network), specification.requirement.violations or ())
    margin = proof_margin(network, specification, fusion.output)
    if not violations:
        return Attempt(Answer(Verdict.ROBUST, margin=margin))
    if _is_large(fusion) and _crown_suffices(fusion, specification, violations, margin):
        return Attempt(Answer(Verdict.ROBUST, margin=margin))
    form, violations = unwrapped(form_of(network, fusion), violations)
    if frontier is not None and margin > CLOSE * frontier.margin:
        frontier = None
    if frontier is not None:
        margin = frontier.margin

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
            margin,
        )
    except MemoryError as error:
        return Attempt(Answer(Verdict.MEMOUT, message=str(error)))
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
        seconds = min(ATTACK_SECONDS, ATTACK_SHARE * limits.remaining)
        witness = attack_specification(network, specification, seconds=seconds)
        if witness is not None:
            return Attempt(Answer(Verdict.NOT_ROBUST, witness.input), witness)
    if branches:
        tree.grow()
    if candidates.witness is not None:
        return Attempt(Answer(Verdict.NOT_ROBUST, candidates.found), candidates.witness)
    if tree.is_proven:
        return Attempt(Answer(Verdict.ROBUST, margin=margin))
    left = Frontier(tree.left, reduction.names, specification.region, margin)
    return Attempt(Answer(limits.expired or Verdict.UNKNOWN), frontier=left)


def crown_margin(network: Network, specification: Specification) -> float | None:
    """The margin of a proof by CROWN alone; None if it proves nothing, or the network is small."""
    fusion, violations = without_softmax(fuse(network), specification.requirement.violations or ())
    if not violations or not _is_large(fusion):
        return None
    margin = proof_margin(network, specification, fusion.output)
    return margin if _crown_suffices(fusion, specification, violations, margin) else None


def _is_large(fusion: Fusion) -> bool:
    return sum(math.prod(stage.shape) for stage in fusion.stages) >= LARGE


def _crown_suffices(
    fusion: Fusion,
    specification: Specification,
    violations: Sequence[Halfspaces],
    margin: float,
) -> bool:
    """For every way to break the requirement one row alone is bounded away from it."""
    rows = np.vstack([polyhedron.matrix for polyhedron in violations])
    offsets = np.concatenate([polyhedron.offset for polyhedron in violations])
    least = crown_bounds(fusion, [specification.region], rows).low[0].numpy() + offsets
    least = np.nextafter(least, -np.inf)
    ends = np.cumsum([len(polyhedron.offset) for polyhedron in violations])[:-1]
    return all(part.max() > margin for part in np.split(least, ends))


def by_inputs(
    network: Network, specification: Specification, limits: Limits, *, device: str = "cpu"
) -> Attempt:
    """Split the region of inputs; for few inputs, and for networks that are smooth."""
    candidates = Candidates(network, specification)
    fusion, _ = without_softmax(fuse(network), specification.requirement.violations or ())
    margin = proof_margin(network, specification, fusion.output)
    result = split_inputs(
        network, specification, limits, candidates.replay, margin=margin, device=device
    )
    if candidates.witness is not None:
        return Attempt(Answer(Verdict.NOT_ROBUST, candidates.found), candidates.witness)
    if result.outcome is Outcome.PROVEN:
        return Attempt(Answer(Verdict.ROBUST, margin=margin))
    return Attempt(Answer(limits.expired or Verdict.UNKNOWN))
