"""Auditing published lower bounds: trying to refute each with a witness that anybody can replay."""

from __future__ import annotations

from radii.auditing.audits import Audit, prepare_audit
from radii.auditing.claims import Claim, claims_of
from radii.auditing.findings import Finding, Status, findings
from radii.auditing.saving import findings_frame, save_witnesses

__all__ = [
    "Audit",
    "Claim",
    "Finding",
    "Status",
    "claims_of",
    "findings",
    "findings_frame",
    "prepare_audit",
    "save_witnesses",
]
