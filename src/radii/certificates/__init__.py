"""Certificates: what is claimed and what shows it, as a file that `radii_check` reads.

The format is described in docs/certificates.md. Here it is written; whoever does not trust radii
reads and checks it with `radii_check`, which shares no code with it.
"""

from __future__ import annotations

from radii.certificates._claims import claim_of
from radii.certificates._container import Certificate, certificate_hash
from radii.certificates._covers import CoveredRequirement, ProbabilityCover, covered

__all__ = [
    "Certificate",
    "CoveredRequirement",
    "ProbabilityCover",
    "certificate_hash",
    "claim_of",
    "covered",
]
