"""One attempt to decide a specification: the root first, then branching on what stays open.

Ahead of it, a ReLU on the outputs is moved out of the network into the specification:
max(0, a) <= max(0, b) exactly where a <= b or a <= 0. So "class b is at least class a" behind a
final ReLU becomes two linear statements in front of it, and its units need no relaxation. The same
holds with a margin on the right of all three, and in the scale in which they were given.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from radii.attacks import attack_specification
from radii.bounds import (
    OFFSET_ROUNDING,
    Fusion,
    ReluForm,
    bound_rows,
    box_of,
    crown_state,
    ends_in_last,
    fuse,
    fuse_cascades,
    relu_form,
    stage_bounds,
    without_last,
    without_softmax,
)
from radii.networks import Network, OperatorKind, Relu
from radii.problem import FLOAT, REAL, Arithmetic, Halfspaces, Specification, Verdict, Witness
from radii.verifiers._base import Answer, Limits
from radii.verifiers._case import attack_seconds, check_bounded
from radii.verifiers.native._box_certificates import box_certificate
from radii.verifiers.native._candidates import Candidates
from radii.verifiers.native._certificates import certificate_of
from radii.verifiers.native._crown_log import crown_log, has_relu_alone
from radii.verifiers.native._input_splitting import SplitOutcome, split_inputs
from radii.verifiers.native._mapped_reduction import keeps_structure, mapped_reduction
from radii.verifiers.native._nodes import Frontier
from radii.verifiers.native._proof_log import ProofLog
from radii.verifiers.native._reduction import PossibleOverflow, Reduction, reduce
from radii.verifiers.native._tree import Tree


def unwrapped(
    fusion: Fusion, violations: Sequence[Halfspaces]
) -> tuple[Fusion, tuple[Halfspaces, ...]]:
    """The fusion without its final ReLU and equivalent violations; as given if that cannot be."""
    pairs = [_compared_outputs(polyhedron) for polyhedron in violations]
    if not _ends_in_relu(fusion) or any(pair is None for pair in pairs):
        return fusion, tuple(violations)
    outputs = fusion.output.offset.size
    rows: dict[bytes, npt.NDArray[np.float64]] = {}
    for pair in pairs:
        assert pair is not None
        above, below, scale = pair
        positive = _unit(above, outputs)
        for row in (scale * (positive - _unit(below, outputs)), scale * positive):
            rows[row.tobytes()] = row
    return without_last(fusion), tuple(Halfspaces(row, np.zeros(1)) for row in rows.values())


def _compared_outputs(polyhedron: Halfspaces) -> tuple[int, int, float] | None:
    """(a, b, c) if the polyhedron is c y_a <= c y_b."""
    row = polyhedron.matrix[0]
    above, below = np.flatnonzero(row > 0), np.flatnonzero(row < 0)
    is_pair = len(polyhedron.matrix) == 1 and len(above) == len(below) == 1
    if not is_pair or polyhedron.offset[0] != 0 or row[above[0]] != -row[below[0]]:
        return None
    return int(above[0]), int(below[0]), float(row[above[0]])


def _ends_in_relu(fusion: Fusion) -> bool:
    """Every output is exactly one unit of the last layer, in order, and nothing rounds it: what is
    rounded behind the ReLU has no place in front of it."""
    if not fusion.stages or fusion.behind is not None:
        return False
    last = fusion.stages[-1]
    is_plain = fusion.graph.nodes[last.node].shape == last.shape
    return isinstance(last.operator, Relu) and is_plain and ends_in_last(fusion)


def _unit(index: int, size: int) -> npt.NDArray[np.float64]:
    row = np.zeros(size)
    row[index] = 1.0
    return row


MULTIPLIER_MEMORY_BYTES, MULTIPLIER_MEMORY_SHARE = 512 << 20, 0.25
"""For the multipliers that children start from: at most, and of the memory that is left."""

CROWN_FIRST_UNITS = 2000
"""From so many units on, CROWN on the layers as they are is tried first: it takes a fraction of the
time in which the tree's own form of the network is bounded (0.15 s for 0.5 to 2 s)."""

CERTIFYING_SHARE, LEAST_CERTIFYING_SECONDS = 4.0, 5.0
"""Of the time that splitting inputs took, and more: to prove the same in a way to be certified."""

ROOT_SLOPES_SHARE = 0.1
"""Of the time that is left, at most, for slopes of open units at the root."""

UNPROVABLE = "an input of the region is closer to a violation than what the network may round"

Certify = Callable[[], bytes | None]
"""Makes the certificate of a proof; None where the format cannot state it."""


@dataclass(frozen=True, slots=True, eq=False)
class ProofAttempt:
    """What came of it. `frontier` is what stayed open: where to go on for a smaller region.
    `certify` makes the certificate of a proof, if something is known to make it of. What
    `is_unprovable` stays so, however long it is tried: rounding is in the way."""

    answer: Answer
    witness: Witness | None = None
    frontier: Frontier | None = None
    certify: Certify | None = None
    is_unprovable: bool = False


def is_piecewise_linear(network: Network, specification: Specification) -> bool:
    """Whether units can be split: also behind a final softmax that the specification allows."""
    if network.is_piecewise_linear:
        return True
    bare, _ = without_softmax(fuse(network), specification.requirement.violations or (), REAL)
    return all(stage.operator.kind is OperatorKind.PIECEWISE_LINEAR for stage in bare.stages)


def form_of(network: Network, fusion: Fusion) -> ReluForm:
    """The ReLU form of a fusion that is the network's, or its beginning; made once."""
    return network.memo.get((form_of, len(fusion.stages)), lambda: relu_form(fusion))


def prove_by_units(
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
    certifies: bool = False,
    plain: bool = False,
    stops_at_rounding: bool = False,
) -> ProofAttempt:
    """Split on the signs of units; for piecewise-linear networks.

    `is_hopeless` is asked now and then with the part of the tree that is closed; `frontier` is what
    an attempt on a larger region left open; `attacks` looks for a counterexample before branching,
    for callers that have not attacked themselves; `certifies` keeps what a certificate needs, and
    `plain` takes maxima one after another, as certificates do. `stops_at_rounding` gives up once
    it is unprovable, for callers that go on with a smaller region.
    """
    check_bounded(network, specification)
    started = time.monotonic()
    fusion, violations = _fused(network, specification, arithmetic, plain=plain)
    if not violations:
        return ProofAttempt(Answer(Verdict.ROBUST))
    # Where the tree works on the network's own maps, its root is CROWN anyway.
    is_tried_first = _is_large(fusion) and not keeps_structure(fusion)
    # Units of other operators than ReLU have a certificate by the tree alone.
    is_tried_first &= not plain or has_relu_alone(fusion)
    if is_tried_first and _crown_margin(fusion, specification, violations, arithmetic) > 0:
        certify = crown_certificate(network, specification, arithmetic, limits)
        return ProofAttempt(Answer(Verdict.ROBUST), certify=certify if certifies else None)
    candidates = Candidates(network, specification)

    try:
        reduction = _reduced(network, fusion, specification, violations, limits, arithmetic)
    except MemoryError as error:
        return ProofAttempt(Answer(Verdict.MEMOUT, message=str(error)))
    except PossibleOverflow as error:
        unknown = ProofAttempt(Answer(Verdict.UNKNOWN, message=str(error)))
        return (_attack_first(network, specification, limits) if attacks else None) or unknown
    log = _log(reduction, violations, frontier) if certifies else None
    margins = candidates.descent.margins if stops_at_rounding else None
    tree = _tree(reduction, candidates, limits, is_hopeless, frontier, device, log, margins)
    if branches and keeps_structure(fusion):
        tree.start_cheaply()
    tree.start()
    if attacks and not tree.is_proven and not tree.is_refuted:
        found = _attack_first(network, specification, limits)
        if found is not None:
            return found
    if branches:
        tree.grow()
    attempt = _outcome(tree, candidates, reduction, limits)
    if log is None or attempt.answer.verdict is not Verdict.ROBUST:
        return attempt
    if not reduction.grounds:
        again = proven_again(network, specification, arithmetic, limits, started)
        return replace(attempt, certify=None if plain else again)
    rows = [len(held.offset) for held in violations]
    certify = partial(certificate_of, network, specification, arithmetic, log, rows)
    return replace(attempt, certify=certify)


def _log(
    reduction: Reduction, violations: Sequence[Halfspaces], frontier: Frontier | None
) -> ProofLog | None:
    """Where a tree keeps what it shows; None if what it goes on from has kept nothing."""
    before = None if frontier is None else frontier.log
    if frontier is not None and before is None:
        return None
    firsts = np.cumsum([0, *reduction.layer_sizes[:-1]]).tolist()
    return ProofLog(
        reduction.region, reduction.grounds, len(violations), tuple(firsts), before=before
    )


def _fused(
    network: Network,
    specification: Specification,
    arithmetic: Arithmetic,
    *,
    plain: bool = False,
) -> tuple[Fusion, tuple[Halfspaces, ...]]:
    """The network in front of a final softmax or ReLU, and the violations there; with cascades of
    units for maxima where the tree works on the network's own maps, unless it is to be `plain`."""
    stated = specification.requirement.violations or ()
    fusion, violations = without_softmax(fuse_cascades(network), stated, arithmetic)
    if plain or not keeps_structure(fusion):
        fusion, violations = without_softmax(fuse(network), stated, arithmetic)
    return unwrapped(fusion, violations)


def _reduced(
    network: Network,
    fusion: Fusion,
    specification: Specification,
    violations: Sequence[Halfspaces],
    limits: Limits,
    arithmetic: Arithmetic,
) -> Reduction:
    """What the region leaves open: on the network's own maps where they are smaller than matrices
    of open units, on such matrices elsewhere."""
    region, inputs = specification.region, specification.inputs

    def is_over() -> bool:
        return limits.expired is not None

    if keeps_structure(fusion):
        seconds = ROOT_SLOPES_SHARE * limits.remaining
        return mapped_reduction(fusion, region, violations, inputs, is_over, seconds, arithmetic)
    form = form_of(network, fusion)
    return reduce(form, region, violations, inputs, is_over, lambda: limits.memory_left, arithmetic)


def _tree(
    reduction: Reduction,
    candidates: Candidates,
    limits: Limits,
    is_hopeless: Callable[[float], bool],
    frontier: Frontier | None,
    device: str,
    log: ProofLog | None,
    margins: Callable[[Tensor], Tensor] | None,
) -> Tree:
    memory_bytes = min(MULTIPLIER_MEMORY_BYTES, MULTIPLIER_MEMORY_SHARE * limits.memory_left)
    return Tree(
        reduction,
        is_over=lambda: limits.expired is not None,
        check=candidates.try_points,
        is_hopeless=is_hopeless,
        device=device,
        memory_bytes=int(memory_bytes),
        begun=None if frontier is None else frontier.within(reduction),
        log=log,
        margins=margins,
    )


def _outcome(
    tree: Tree, candidates: Candidates, reduction: Reduction, limits: Limits
) -> ProofAttempt:
    """What a tree that has stopped growing says."""
    if candidates.witness is not None:
        return ProofAttempt(Answer(Verdict.NOT_ROBUST, candidates.found), candidates.witness)
    if tree.is_proven:
        return ProofAttempt(Answer(Verdict.ROBUST))
    left = Frontier(tree.left, reduction.names, reduction.region, tree.log, tree.closed_share)
    message = UNPROVABLE if tree.is_unprovable else ""
    answer = Answer(limits.expired or Verdict.UNKNOWN, message=message)
    return ProofAttempt(answer, frontier=left, is_unprovable=tree.is_unprovable)


def _attack_first(
    network: Network, specification: Specification, limits: Limits
) -> ProofAttempt | None:
    seconds = attack_seconds(limits)
    witness = attack_specification(network, specification, seconds=seconds)
    return (
        None
        if witness is None
        else ProofAttempt(Answer(Verdict.NOT_ROBUST, witness.input), witness)
    )


def crown_margin(
    network: Network,
    specification: Specification,
    arithmetic: Arithmetic,
    *,
    on_intervals: bool = False,
    is_over: Callable[[], bool] = lambda: False,
) -> float:
    """How far CROWN alone keeps it from a violation: above 0 is a proof. Small networks are not
    tried, since the tree's own root is as quick: -inf. `on_intervals` is a small part of the work.
    """
    fusion, violations = _fused(network, specification, arithmetic)
    if not violations or not _is_large(fusion):
        return -math.inf
    return _crown_margin(fusion, specification, violations, arithmetic, on_intervals, is_over)


def margin_at(
    network: Network, specification: Specification, outputs: npt.NDArray[np.floating]
) -> float:
    """How far outputs are from a violation, in the scale of CROWN's margins, which it is no proof
    of; 0 where those are about other values than the outputs."""
    fusion, violations = _fused(network, specification, REAL)
    stated = specification.requirement.violations or ()
    if not stated or not _is_large(fusion) or len(stated) != len(violations):
        return 0.0
    if any(one is not other for one, other in zip(stated, violations, strict=True)):
        return 0.0
    values = outputs.ravel().astype(np.float64)
    return min(float((held.matrix @ values + held.offset).max()) for held in violations)


def crown_certificate(
    network: Network,
    specification: Specification,
    arithmetic: Arithmetic,
    limits: Limits,
    *,
    on_intervals: bool = False,
) -> Certify:
    """Makes the certificate of a proof by CROWN alone: bounds it once more, and states them. Where
    units are others than ReLU, it is proven once more by a tree of them."""

    def certify() -> bytes | None:
        fusion, violations = _fused(network, specification, arithmetic)
        log = crown_log(
            fusion, specification.region, violations, arithmetic, on_intervals=on_intervals
        )
        if log is None:
            return proven_again(network, specification, arithmetic, limits, time.monotonic())()
        rows = [len(held.offset) for held in violations]
        return certificate_of(network, specification, arithmetic, log, rows)

    return certify


def _is_large(fusion: Fusion) -> bool:
    return sum(math.prod(stage.shape) for stage in fusion.stages) >= CROWN_FIRST_UNITS


def _crown_margin(
    fusion: Fusion,
    specification: Specification,
    violations: Sequence[Halfspaces],
    arithmetic: Arithmetic,
    on_intervals: bool = False,
    is_over: Callable[[], bool] = lambda: False,
) -> float:
    """For every way to break the requirement its best row alone; of these the least."""
    rows = np.vstack([polyhedron.matrix for polyhedron in violations])
    offsets = np.concatenate([polyhedron.offset for polyhedron in violations])
    state = crown_state(
        fusion, [specification.region], arithmetic, is_over, on_intervals=on_intervals
    )
    with torch.no_grad():
        bounds = bound_rows(state, torch.from_numpy(rows)[None])
    low = bounds.low[0].numpy()
    # Twice the rounding of this sum: whoever replays a point adds the offset in float64 as well.
    least = low + offsets - OFFSET_ROUNDING * (np.abs(low) + np.abs(offsets))
    least = np.where(np.isfinite(least), least, -np.inf)
    ends = np.cumsum([len(polyhedron.offset) for polyhedron in violations])[:-1]
    return min(float(part.max()) for part in np.split(least, ends))


def prove_by_inputs(
    network: Network,
    specification: Specification,
    limits: Limits,
    *,
    arithmetic: Arithmetic = FLOAT,
    device: str = "cpu",
    certifies: bool = False,
) -> ProofAttempt:
    """Split the region of inputs; for few inputs, and for networks that are smooth."""
    check_bounded(network, specification)
    started = time.monotonic()
    candidates = Candidates(network, specification)
    result = split_inputs(
        network, specification, limits, candidates.replay, arithmetic=arithmetic, device=device
    )
    if candidates.witness is not None:
        return ProofAttempt(Answer(Verdict.NOT_ROBUST, candidates.found), candidates.witness)
    if result.outcome is SplitOutcome.PROVEN:
        certify = proven_again(network, specification, arithmetic, limits, started)
        return ProofAttempt(Answer(Verdict.ROBUST), certify=certify if certifies else None)
    message = _overflow(network, specification, arithmetic)
    return ProofAttempt(Answer(limits.expired or Verdict.UNKNOWN, message=message))


def proven_again(
    network: Network,
    specification: Specification,
    arithmetic: Arithmetic,
    limits: Limits,
    started: float,
) -> Certify:
    """Proves once more what a proof that began then has shown, in words that certificates have: by
    units, or by boxes that CROWN alone closes. There is none if that takes much longer."""
    seconds = CERTIFYING_SHARE * (time.monotonic() - started) + LEAST_CERTIFYING_SECONDS

    def certify() -> bytes | None:
        if not is_piecewise_linear(network, specification):
            return box_certificate(network, specification, arithmetic, seconds)
        share = Limits(seconds, limits.memory_bytes, limits.cancelled)
        again = prove_by_units(
            network, specification, share, arithmetic=arithmetic, certifies=True, plain=True
        )
        return None if again.certify is None else again.certify()

    return certify


def _overflow(network: Network, specification: Specification, arithmetic: Arithmetic) -> str:
    """That something may overflow in the region, where nothing was proven; else nothing."""
    bounds = stage_bounds(fuse(network), *box_of(specification.region), arithmetic)
    if all(np.isfinite(stage.error).all() for stage in bounds):
        return ""
    return str(PossibleOverflow(None))
