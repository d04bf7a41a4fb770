"""What an audit found: which claims a replayed witness refutes."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from radii.auditing.audits import Audit
from radii.auditing.claims import Claim
from radii.errors import DataError
from radii.networks import Network
from radii.queries import Instance, Query
from radii.store import Store
from radii.verdicts import Array, Witness
from radii.witnesses import check_witness

__all__ = ["Finding", "Status", "findings"]

OUTWARD_STEPS = 8
"""Places between the closest witness and the claimed radius at which the clearest is looked for."""


class Status(StrEnum):
    """What became of a claim. One that stands is not proven: attacks may have missed something."""

    REFUTED = "refuted"
    STANDS = "stands"
    MISCLASSIFIED = "misclassified"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """A claim and what attacks found: `closest` is the distance of the closest witness, or inf.

    A refuted claim has its `witness`: of those that the attack's direction offers within the
    claimed radius, the one whose rival leads by the most (`margin`, in units of the outputs), so
    that it also replays where a runtime rounds differently.
    """

    claim: Claim
    instance: Instance
    status: Status
    closest: float
    witness: Witness | None = None
    margin: float = math.nan

    @property
    def ratio(self) -> float:
        """The closest witness's distance as a part of the claimed radius."""
        return self.closest / self.claim.eps


def findings(audit: Audit, store: Store) -> list[Finding]:
    """One for every claim, from what the audit's experiment has stored so far."""
    networks = {network.fingerprint: network for network in audit.plan.networks}
    answered = store.results()
    found = []
    for claim, instance in zip(audit.claims, audit.instances, strict=True):
        witnesses = [r.witness for _, r in answered[instance.key] if r.witness is not None]
        closest = min(witnesses, key=lambda witness: witness.distance, default=None)
        distance = math.inf if closest is None else closest.distance
        if not instance.holds:
            found.append(Finding(claim, instance, Status.MISCLASSIFIED, 0.0))
        elif closest is not None and distance <= claim.eps:
            clear = _clearest(networks[instance.network], instance, closest, claim.eps)
            lead = _lead(clear.outputs, instance)
            found.append(Finding(claim, instance, Status.REFUTED, distance, clear, lead))
        else:
            tried = Status.STANDS if answered[instance.key] else Status.NOT_TRIED
            found.append(Finding(claim, instance, tried, distance))
    _refuse_other_images(found)
    return found


def _clearest(network: Network, instance: Instance, closest: Witness, eps: float) -> Witness:
    """The witness with the largest margin on the way from the closest one to the claimed radius."""
    specification = Query(instance, eps).specification
    offset = closest.input.astype(np.float64) - instance.input
    best = closest
    for stretch in np.linspace(1.0, eps / closest.distance, OUTWARD_STEPS + 1)[1:]:
        tried = check_witness(network, specification, instance.input + stretch * offset)
        if tried is not None and _lead(tried.outputs, instance) > _lead(best.outputs, instance):
            best = tried
    return best


def _lead(outputs: Array, instance: Instance) -> float:
    """By how much the property is broken: the best other class, or the target, above the label.

    Of become it is the target's lead over every other class.
    """
    return -float(instance.requirement.margin(outputs, 0.0))


def _refuse_other_images(found: list[Finding]) -> None:
    """Published claims are about correctly classified inputs: other inputs refute nothing."""
    claims = Counter(finding.claim.network for finding in found)
    wrong = Counter(f.claim.network for f in found if f.status is Status.MISCLASSIFIED)
    for network, count in wrong.items():
        if 2 * count > claims[network]:
            raise DataError(
                f"{network} misclassifies {count} of {claims[network]} inputs that claims are "
                "about: check --data, --split, --mean, --std and --layout"
            )
