"""Random networks whose proofs are written down and checked: do writer and checker agree?

For each network the largest eps of a fine grid that native proves comes with a certificate. It must
be accepted; and the same certificate with an eps at which a counterexample lies must not be.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from radii.attacks import MinimumNorm
from radii.networks import Network
from radii.problem import FLOAT, REAL, Arithmetic, Grid, Norm, Query
from radii.testing import NetworkFamily, random_instance, random_network
from radii.verifiers import BranchAndBound, Limits
from radii_check import CertificateError, check

GRID = Grid("0.002", "0.6", "0.002")
SECONDS = 20.0
"""For one network; most take a tenth of one."""


@dataclass(frozen=True, slots=True)
class CertifiedCase:
    """One random network and input, and what became of its proof.

    `problem` is what must not be: no certificate, a rejected one, or one accepted beyond a witness.
    """

    family: NetworkFamily
    seed: int
    norm: Norm
    arithmetic: Arithmetic
    lower: float
    upper: float
    bytes: int
    problem: str

    def __str__(self) -> str:
        return f"{self.family} {self.seed} {self.norm.value} {self.arithmetic}: {self.problem}"


def certified_cases(seeds: range, *, exact: bool = False) -> Iterator[CertifiedCase]:
    """Families, norms and arithmetics in turn, one for each seed."""
    families, norms = list(NetworkFamily), list(Norm)
    for seed in seeds:
        family = families[seed % len(families)]
        norm = norms[seed // len(families) % len(norms)]
        arithmetic = REAL if seed % 5 == 0 else FLOAT
        yield certified_case(family, seed, norm, arithmetic, exact=exact)


def certified_case(
    family: NetworkFamily,
    seed: int,
    norm: Norm,
    arithmetic: Arithmetic = FLOAT,
    *,
    exact: bool = False,
) -> CertifiedCase:
    """Prove, write down, check; and try to sell the same proof for too large an eps."""
    inputs = 4 + seed % 17
    network = random_network(family, seed, inputs=inputs)
    instance = random_instance(network, seed, norm=norm)
    (attacked,) = MinimumNorm().attack(network, [Query(instance, GRID[len(GRID) - 1])])
    upper = float("inf") if attacked.witness is None else attacked.witness.distance
    values = GRID.values[: GRID.count_below(upper)]
    lower, certificate = 0.0, None
    if values:
        verifier = BranchAndBound(arithmetic=arithmetic, certificates=True)
        found = verifier.certify(network, instance, values, Limits(seconds=SECONDS))
        if found.witness is not None:
            upper = min(upper, found.witness.distance)
        if found.proof is not None:
            lower, certificate = found.proof.eps, found.proof.certificate
    problem = _problem(network, lower, upper, certificate, exact=exact)
    size = len(certificate or b"")
    return CertifiedCase(family, seed, norm, arithmetic, lower, upper, size, problem)


def _problem(
    network: Network, lower: float, upper: float, certificate: bytes | None, *, exact: bool
) -> str:
    if lower == 0:
        return ""
    if certificate is None:
        return "no certificate"
    for is_exact in (False, True) if exact else (False,):
        report = check(certificate, network.onnx_bytes, exact=is_exact)
        if not report.accepted:
            return f"rejected{' exactly' if is_exact else ''}: {report.reason}"
    if upper < float("inf") and is_accepted(with_eps(certificate, upper), network):
        return f"accepted at {upper}, where a counterexample lies"
    return ""


def is_accepted(certificate: bytes, network: Network) -> bool:
    """Whether the checker takes it; what it cannot read it does not take."""
    try:
        return check(certificate, network.onnx_bytes).accepted
    except CertificateError:
        return False


def with_eps(certificate: bytes, eps: float) -> bytes:
    """The same certificate for another eps, in its claim and in all its parts."""
    return with_claim(certificate, eps=eps)


def with_claim(certificate: bytes, **claim: float | str) -> bytes:
    """The same certificate with other words in its claim; another eps also in all its parts."""
    version, length = struct.unpack_from("<II", certificate, 8)
    header = json.loads(certificate[16 : 16 + length])
    header["claim"] |= claim
    content = bytearray(zlib.decompress(certificate[16 + length :]))
    place = 0
    for entry in header["arrays"]:
        count = math.prod(entry["shape"])
        wide = count * int(entry["dtype"][2:])
        if entry["name"] == "eps" and "eps" in claim:
            content[place : place + wide] = struct.pack(f"<{count}d", *[claim["eps"]] * count)
        place += wide
    text = json.dumps(header).encode()
    start = certificate[:8] + struct.pack("<II", version, len(text)) + text
    return start + zlib.compress(bytes(content))
