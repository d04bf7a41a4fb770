"""The check: a certificate and a network are read, and the proof is gone through."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from radii_check._box_proof import BoxProof
from radii_check._errors import Rejected, Unreadable, require_format
from radii_check._format import Certificate, read_certificate
from radii_check._numbers import Numbers
from radii_check._onnx import read_network
from radii_check._unit_proof import UnitProof

Outcome = Literal["accepted", "refused", "unreadable"]


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The outcome of a check, and the reason if it is not "accepted".

    "refused": the certificate does not show its claim. "unreadable": this checker cannot tell, as
    it does not know an operator, an opset or the format's version, or needs more memory; that says
    nothing against the claim, which is empty if it could not be read either. `seconds` are of
    processor time; `smallest_margin` is the least that a row gave beyond what is stated, or a
    closing row beyond 0.
    """

    claim: Mapping[str, Any]
    arithmetic: str
    nodes: int
    lemmas: int
    seconds: float
    smallest_margin: float
    outcome: Outcome
    reason: str

    @property
    def accepted(self) -> bool:
        """The claim is shown."""
        return self.outcome == "accepted"


def check(
    certificate: bytes, model: bytes, *, exact: bool = False, memory_bytes: int = 2 << 30
) -> CheckReport:
    """Whether a certificate proves its claim about the ONNX model in these bytes.

    `exact` computes in balls, which needs python-flint. A CertificateError is raised for bytes that
    are not a certificate, or are one of another network.
    """
    started = time.process_time()
    content: Certificate | None = None
    outcome: Outcome = "accepted"
    margin, reason = math.inf, ""
    try:
        num = Numbers(exact)
        content = read_certificate(certificate, memory_bytes)
        margin = _margin_of_proof(content, model, num, memory_bytes)
    except Rejected as error:
        outcome, reason = "refused", str(error)
    except Unreadable as error:
        outcome, reason = "unreadable", str(error)
    except MemoryError:
        outcome, reason = "unreadable", "its check needs more memory than it may have"
    claim: Mapping[str, Any] = {} if content is None else content.claim
    arrays: Mapping[str, Any] = {} if content is None else content.arrays
    return CheckReport(
        claim=claim,
        arithmetic=str(claim.get("arithmetic", "")),
        nodes=len(arrays.get("parent", ())),
        lemmas=len(arrays.get("node", ())),
        seconds=time.process_time() - started,
        smallest_margin=margin,
        outcome=outcome,
        reason=reason,
    )


def _margin_of_proof(certificate: Certificate, model: bytes, num: Numbers, memory: int) -> float:
    """Go through the proof; a Rejected says where it fails."""
    _, network = read_network(model, num, certificate.claim["network"])
    has_inputs = network.size(0) == len(certificate.arrays["low"])
    require_format(has_inputs, "its input is of another size")
    kind = UnitProof if certificate.mode == "units" else BoxProof
    with np.errstate(all="ignore"):  # what is not finite never counts as a bound
        proof = kind(certificate, network, num, memory)
        proof.run()
        return float(proof.margin)
