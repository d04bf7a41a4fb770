"""Certificates in a store: their tables, their names, and what checkers said of them."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from radii.problem import Arithmetic, CertificateCheck, CheckOutcome, KeptCertificate, Result

MOST_BLOB_BYTES = 2**29
"""Of a certificate or a network: SQLite keeps at most 10^9 bytes in a cell."""

CERTIFICATES = """
CREATE TABLE certificates (
    hash TEXT PRIMARY KEY,  -- of the content, by SHA-256
    content BLOB NOT NULL
);
CREATE TABLE checks (  -- the last of each statement
    certificate TEXT NOT NULL,
    instance TEXT NOT NULL REFERENCES instances (key),
    eps REAL NOT NULL,
    arithmetic TEXT NOT NULL,
    checker TEXT NOT NULL,
    checked_at TEXT NOT NULL,
    accepted INTEGER NOT NULL,  -- 0: refused, 1: accepted, 2: the checker cannot read it
    reason TEXT NOT NULL,
    numbers TEXT NOT NULL,  -- in which it was calculated
    nodes INTEGER,
    lemmas INTEGER,
    margin REAL,
    seconds REAL NOT NULL,
    PRIMARY KEY (certificate, instance, eps, arithmetic)
);
"""
"""What shows proofs. A check is of a certificate and of the statement that it was to show: one of
another number than the check's was not checked."""

OUTCOMES = (CheckOutcome.REFUSED, CheckOutcome.ACCEPTED, CheckOutcome.UNREADABLE)
"""In the order of the numbers in `accepted`."""


@dataclass(frozen=True, slots=True)
class CertifiedStatement:
    """What a certificate is to show: that an instance is robust at this eps."""

    certificate: str
    instance: str
    eps: float
    arithmetic: Arithmetic


def certificate_of(result: Result) -> bytes | None:
    """What is kept beside a result; nothing where it is too large for a database."""
    return kept_blob(None if result.proof is None else result.proof.certificate)


def kept_blob(content: bytes | None) -> bytes | None:
    """What a cell has room for."""
    return None if content is None or len(content) > MOST_BLOB_BYTES else content


def content_hash(content: bytes) -> str:
    """The name of a certificate: 64 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def kept_certificate(name: Any, size: Any, *checked: Any) -> KeptCertificate | None:
    """What is known of a certificate; a ValueError if that cannot be."""
    if name is None:
        return None
    if not isinstance(name, str) or not re.fullmatch("[0-9a-f]{64}", name):
        raise ValueError(f"a certificate is called {name!r}")
    checker, checked_at, accepted, reason, numbers, nodes, lemmas, margin, seconds = checked
    if checker is None:
        return KeptCertificate(name, size or 0)
    texts = (checker, checked_at, reason, numbers)
    if not all(isinstance(text, str) for text in texts) or accepted not in range(len(OUTCOMES)):
        raise ValueError(f"a check of certificate {name[:12]} is by {checker!r}")
    for number in (nodes, lemmas, margin, seconds):
        if number is not None and not isinstance(number, int | float):
            raise ValueError(f"a check of certificate {name[:12]} has the number {number!r}")
    check = CertificateCheck(
        checker, checked_at, OUTCOMES[accepted], reason, numbers, nodes, lemmas, margin, seconds
    )
    return KeptCertificate(name, size or 0, check)


def check_row(statement: CertifiedStatement, check: CertificateCheck) -> tuple[object, ...]:
    """The columns of `checks`."""
    return (
        statement.certificate,
        statement.instance,
        statement.eps,
        str(statement.arithmetic),
        check.checker,
        check.checked_at,
        OUTCOMES.index(check.outcome),
        check.reason,
        check.numbers,
        check.nodes,
        check.lemmas,
        check.margin,
        check.seconds,
    )
