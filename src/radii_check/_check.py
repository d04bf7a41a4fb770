"""The check: a certificate and a network are read, and the proof is gone through."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from radii_check._box_proof import BoxProof
from radii_check._format import Rejected, need, read_certificate
from radii_check._network import Numbers
from radii_check._onnx import read_network
from radii_check._unit_proof import UnitProof


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What came of a check. `seconds` are of processor time; `smallest_margin` is the least that a
    row gave beyond what is stated, or a closing row beyond 0; `reason` says why it was rejected."""

    claim: Mapping[str, Any]
    arithmetic: str
    nodes: int
    lemmas: int
    seconds: float
    smallest_margin: float
    accepted: bool
    reason: str


def check(
    certificate: bytes, model: bytes, *, exact: bool = False, memory_bytes: int = 2 << 30
) -> CheckReport:
    """Whether a certificate proves its claim about the ONNX model in these bytes.

    `exact` computes in balls, which needs python-flint. A CertificateError is raised for what is no
    certificate, or one of another network.
    """
    started, num, reason = time.process_time(), Numbers(exact), ""
    read = read_certificate(certificate, memory_bytes)
    digest, network = read_network(model, num)
    need(digest == read.claim["network"], f"it is about another network: {digest} is this one")
    need(network.size(0) == len(read.arrays["low"]), "its input is of another size")
    margin, kind = math.inf, UnitProof if read.mode == "units" else BoxProof
    try:
        with np.errstate(all="ignore"):
            proof = kind(read, network, num, memory_bytes)
            proof.run()
            margin = float(proof.margin)
    except Rejected as error:
        reason = str(error)
    nodes, lemmas = (len(read.arrays.get(name, ())) for name in ("parent", "node"))
    found = (time.process_time() - started, margin, not reason, reason)
    return CheckReport(read.claim, str(read.claim["arithmetic"]), nodes, lemmas, *found)
