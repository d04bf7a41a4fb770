"""Proofs by CROWN alone, the cheapest there are: how far they reach, and what they show.

A pass bounds every unit, and then each row of the violations (Zhang et al. 2018). Its log states
the bounds of all units and one closing row a violation, for a certificate.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch

from radii.bounds import (
    OFFSET_ROUNDING,
    Fusion,
    Multipliers,
    Rows,
    State,
    bound_rows,
    has_forward_forms,
)
from radii.networks import Relu
from radii.problem import REAL, UNLIMITED, Halfspaces, Limits, Specification
from radii.verifiers.native._form import ProofForm, is_piecewise_linear
from radii.verifiers.native._proof_log import Ground, ProofLog, slope_bytes
from radii.verifiers.native._session import ProofSession


def crown_margin(
    session: ProofSession,
    specification: Specification,
    limits: Limits = UNLIMITED,
    *,
    on_intervals: bool = False,
) -> float:
    """How far CROWN alone keeps it from a violation: above 0 is a proof. Small networks with a tree
    are not tried, since the tree's own root is as quick: -inf. `on_intervals` is a small part of
    the work.
    """
    form = ProofForm.of(session.network, specification, session.arithmetic)
    is_small = form.arguments < session.settings.crown_first_units
    if not form.violations or (is_small and is_piecewise_linear(session.network, specification)):
        return -math.inf
    return least_margin(session, form, specification, limits, on_intervals=on_intervals)


def margin_at(
    session: ProofSession, specification: Specification, outputs: npt.NDArray[np.floating]
) -> float:
    """How far outputs are from a violation, in the scale of CROWN's margins, which it is no proof
    of; 0 where those are about other values than the outputs."""
    form = ProofForm.of(session.network, specification, REAL)
    stated = specification.requirement.violations or ()
    is_large = form.arguments >= session.settings.crown_first_units
    if not stated or not is_large or len(stated) != len(form.violations):
        return 0.0
    if any(one is not other for one, other in zip(stated, form.violations, strict=True)):
        return 0.0
    values = outputs.ravel().astype(np.float64)
    return min(float((each.matrix @ values + each.offset).max()) for each in form.violations)


def least_margin(
    session: ProofSession,
    form: ProofForm,
    specification: Specification,
    limits: Limits = UNLIMITED,
    *,
    on_intervals: bool = False,
) -> float:
    """For every way to break the requirement its best row alone; of these the least."""
    state = session.memory.passes.state(
        form.fusion,
        [specification.region],
        session.arithmetic,
        limits,
        on_intervals=on_intervals,
    )
    return _margin(state, form)


def _margin(state: State, form: ProofForm) -> float:
    rows = np.vstack([polyhedron.matrix for polyhedron in form.violations])
    offsets = np.concatenate([polyhedron.offset for polyhedron in form.violations])
    with torch.no_grad():
        bounds = bound_rows(state, torch.from_numpy(rows)[None])
    low = bounds.low[0].numpy()
    # Twice the rounding of this sum: whoever replays a point adds the offset in float64 as well.
    least = low + offsets - OFFSET_ROUNDING * (np.abs(low) + np.abs(offsets))
    least = np.where(np.isfinite(least), least, -np.inf)
    ends = np.cumsum(form.rows)[:-1]
    return min(float(part.max()) for part in np.split(least, ends))


def crown_log(
    session: ProofSession,
    form: ProofForm,
    specification: Specification,
    *,
    on_intervals: bool = False,
) -> ProofLog | None:
    """The log of the proof that CROWN finds; None for networks of other units than ReLU, and where
    it needs what affine forms have shown of units.

    `on_intervals` bounds units by plain intervals, as the cheapest proof does.
    """
    if not has_relu_alone(form.fusion):
        return None
    region, violations = specification.region, form.violations
    state = session.memory.passes.state(
        form.fusion, [region], session.arithmetic, on_intervals=on_intervals, forms=False
    )
    if has_forward_forms(form.fusion) and not _margin(state, form) > 0:
        return None
    with torch.no_grad():
        gamma = _best_rows(state, violations)
    nothing = torch.zeros(0, dtype=torch.float64)
    lower = torch.cat([nothing, *(held.low[0] for held in state.arguments)])
    upper = torch.cat([nothing, *(held.high[0] for held in state.arguments)])
    firsts = np.cumsum([0, *(held.low.shape[1] for held in state.arguments)])[:-1]
    log = ProofLog(region, (Ground(lower, upper),), len(violations), tuple(firsts.tolist()))
    count = len(violations)
    rows = Rows(lower.expand(count, -1), upper.expand(count, -1), torch.arange(count))
    slopes = slope_bytes(Multipliers.start(rows, 1).slopes)
    log.begin_round()
    log.keep(
        torch.arange(count),
        rows,
        torch.zeros(count),
        Multipliers(rows.lower, gamma, None),
        slopes,
        torch.arange(len(lower)),
    )
    return log


def has_relu_alone(fusion: Fusion) -> bool:
    """Whether every stage is of ReLU units, one for each entry."""
    return all(
        isinstance(stage.operator, Relu) and fusion.graph.nodes[stage.node].shape == stage.shape
        for stage in fusion.stages
    )


def _best_rows(state: State, violations: tuple[Halfspaces, ...]) -> torch.Tensor:
    """For each violation the row alone that CROWN bounds best, as multipliers."""
    rows = np.vstack([held.matrix for held in violations])
    offsets = np.concatenate([held.offset for held in violations])
    found = bound_rows(state, torch.from_numpy(rows)[None]).low[0].numpy() + offsets
    longest = max(len(held.offset) for held in violations)
    gamma = np.zeros((len(violations), longest))
    first = 0
    for place, held in enumerate(violations):
        gamma[place, int(np.argmax(found[first : first + len(held.offset)]))] = 1.0
        first += len(held.offset)
    return torch.from_numpy(gamma)
