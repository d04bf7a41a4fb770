"""The three ways in which a check ends early, and the functions that end it.

    CertificateError    not a certificate, or not one of this network: `require_format`
      Unreadable        this checker cannot tell: `require_readable`
    Rejected            the certificate does not prove its claim: `require`

The condition may be an array, or a list of conditions; then all of them must be true. NaN compares
as false, so that a condition that involves NaN never holds.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class CertificateError(ValueError):
    """Not a certificate, or not one of this network."""


class Unreadable(CertificateError):
    """This checker cannot tell whether the claim is shown: it does not know an operator, an opset
    or a version of the format, or it would need more memory than it may take."""


class Rejected(Exception):
    """The certificate does not prove its claim."""


def require_format(condition: Any, reason: str) -> None:
    """What must be true of a file that follows the format; raises a CertificateError."""
    if not _is_true(condition):
        raise CertificateError(reason)


def require_readable(condition: Any, reason: str) -> None:
    """What must be true for this checker to go through a proof, whether or not that proof is valid;
    raises Unreadable."""
    if not _is_true(condition):
        raise Unreadable(reason)


def require_known(condition: Any, what: str) -> None:
    """What must be true of an operator for this checker to read it; raises Unreadable."""
    require_readable(condition, f"operator {what} is not known to this checker")


def require(condition: Any, reason: str) -> None:
    """What must be true for the claim to be proven; raises Rejected."""
    if not _is_true(condition):
        raise Rejected(reason)


def _is_true(condition: Any) -> bool:
    return condition is True or bool(np.all(condition))
